# llama-cpp-python 0.3.36
# Command R's vocabulary has 1,403 such tokens: whole characters, written as they are among the letters that stand for bytes.
import ctypes, tempfile
import gguf
from llama_cpp import *
tokens = ["a", "\u2122", "<end>"]
file = gguf.GGUFWriter(tempfile.mkdtemp() + "/vocabulary.gguf", "llama")
file.add_context_length(64), file.add_embedding_length(64), file.add_block_count(1), file.add_feed_forward_length(64)
file.add_head_count(1), file.add_layer_norm_rms_eps(1e-5), file.add_tokenizer_model("gpt2"), file.add_tokenizer_pre("command-r")
file.add_token_list(tokens), file.add_token_types([1, 1, 3]), file.add_token_merges(["a a"]), file.add_eos_token_id(2)
file.write_header_to_file(), file.write_kv_data_to_file(), file.write_tensors_to_file(), file.close()
parameters = llama_model_default_params()
parameters.vocab_only = True
vocabulary = llama_model_get_vocab(llama_model_load_from_file(str(file.path).encode(), parameters))
buffer = ctypes.create_string_buffer(64)
length = llama_token_to_piece(vocabulary, 1, buffer, 64, 0, True)
print(buffer.raw[:length].decode())
# expected: the sign for a trademark; seen: [UNK_BYTE_0xe284a2 and that sign and ], which a grammar then takes for the token's text
