# llama-cpp-python 0.3.36
vocabulary = [b'\xc0\x80']
vocabulary += [bytes([byte]) for byte in range(256) if bytes([byte]) not in vocabulary] + [b'']
walk = [0]
grammar = '{}'
try:
    vocabulary[0].decode()
except UnicodeDecodeError as error:
    print("no document begins so:", error, flush=True)
import tempfile
from ctypes import byref, pointer
import gguf
from llama_cpp import *
from llama_cpp.llama_grammar import json_schema_to_gbnf
end = len(vocabulary) - 1
texts = ["".join(f"\\x{byte:02x}" for byte in text) for text in vocabulary[:-1]]  # the only kind of vocabulary with any bytes
file = gguf.GGUFWriter(tempfile.mkdtemp() + "/vocabulary.gguf", "llama")
file.add_context_length(64), file.add_embedding_length(64), file.add_block_count(1), file.add_feed_forward_length(64)
file.add_head_count(1), file.add_layer_norm_rms_eps(1e-5), file.add_tokenizer_model("rwkv")
file.add_token_list([*texts, "</s>"]), file.add_token_types([1] * end + [3]), file.add_eos_token_id(end)
file.write_header_to_file(), file.write_kv_data_to_file(), file.write_tensors_to_file(), file.close()
parameters = llama_model_default_params()
parameters.vocab_only = True
model = llama_model_load_from_file(str(file.path).encode(), parameters)
sampler = llama_sampler_init_grammar(llama_model_get_vocab(model), json_schema_to_gbnf(grammar).encode(), b"root")
for token in walk:
    candidate = llama_token_data(id=token, logit=0.0, p=0.0)
    llama_sampler_apply(sampler, byref(llama_token_data_array(data=pointer(candidate), size=1, selected=-1, sorted=False)))
    allowed = candidate.logit == 0
    print(vocabulary[token], allowed, allowed, flush=True)
    if not allowed or token == end:
        break
    llama_sampler_accept(sampler, token)  # of a token that is not allowed this ends the process
# expected: the last token is refused, because no output goes on with it; seen: after b'' it allows 1 token with which no document of the schema goes on, e.g. b'\xc0\x80': it is no JSON
