# llguidance 1.9.1
import numpy
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from llguidance import LLMatcher, LLTokenizer
letters = {letter: token for token, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
tokenizer = Tokenizer(models.BPE(letters, []))
tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
tokenizer.add_tokens([AddedToken("<think>", special=False)])
tokenizer.add_special_tokens(["</s>"])
token, end = tokenizer.token_to_id("<think>"), tokenizer.token_to_id("</s>")
own = LLTokenizer(tokenizer.to_str(), eos_token=end)
print(tokenizer.encode("<think>").ids == [token], own.is_special_token(token))
matcher = LLMatcher(own, LLMatcher.grammar_from_regex("<think>|x"), log_level=0)
mask = numpy.zeros((own.vocab_size + 31) // 32, dtype=numpy.int32)
matcher.unsafe_compute_mask_ptr(mask.ctypes.data, 4 * len(mask))
print("<think>", bool(mask[token // 32] >> token % 32 & 1), bool(matcher.try_consume_tokens([token])))
# expected: the token is text, as the tokenizer says (special is false), so the regex allows it; seen: it is never allowed as text
