# xgrammar 0.2.8
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
import xgrammar
letters = {letter: token for token, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
tokenizer = Tokenizer(models.BPE(letters, []))
tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
tokenizer.add_tokens([AddedToken("é!", special=False)])
tokenizer.add_special_tokens(["</s>"])
token, end = tokenizer.token_to_id("é!"), tokenizer.token_to_id("</s>")
own = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")
info = xgrammar.TokenizerInfo.from_huggingface(own, vocab_size=len(own), stop_token_ids=[end])
print(own.encode("é!") == [token], info.decoded_vocab[token])
compiled = xgrammar.GrammarCompiler(info).compile_regex("é!|x")
matcher = xgrammar.GrammarMatcher(compiled)
mask = xgrammar.allocate_token_bitmask(1, info.vocab_size)
matcher.fill_next_token_bitmask(mask)
print("é!", bool(mask[0, token // 32].item() >> token % 32 & 1), matcher.accept_token(token))
# expected: the added token stands for its text, the bytes c3 a9 21; seen: it is read letter by letter as e9 21, and forbidden
