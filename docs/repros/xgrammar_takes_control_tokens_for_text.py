# xgrammar 0.2.9
import tempfile
from pathlib import Path
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
import xgrammar
letters = {letter: token for token, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
tokenizer = Tokenizer(models.BPE(letters, []))
tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
tokenizer.add_special_tokens(["<|start|>", "</s>"])
control, end = tokenizer.token_to_id("<|start|>"), tokenizer.token_to_id("</s>")
own = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")
info = xgrammar.TokenizerInfo.from_huggingface(own, vocab_size=len(own), stop_token_ids=[end])
print(control in own.all_special_ids or own.added_tokens_decoder[control].special, info.decoded_vocab[control])
compiled = xgrammar.GrammarCompiler(info).compile_json_schema('{"type": "string"}')
matcher = xgrammar.GrammarMatcher(compiled)
mask = xgrammar.allocate_token_bitmask(1, info.vocab_size)
matcher.accept_token(letters['"'])
matcher.fill_next_token_bitmask(mask)
print("<|start|>", bool(mask[0, control // 32].item() >> control % 32 & 1), matcher.accept_token(control))
# expected: in a JSON string the control token <|start|> is forbidden; seen: it is taken for nine characters of text
