# vllm 0.33.0
# Llama 3 ends an output with <|eot_id|>, <|end_of_text|> or <|eom_id|> (generation_config.json); the engine stops at each of them.
import importlib.util, sys, types
found = importlib.util.find_spec("vllm")
if found is None:
    sys.exit("this script needs vllm 0.33.0, which is not installed")
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast
pieces = {'"': 0, "a": 1}
tokenizer = Tokenizer(models.BPE(vocab=pieces, merges=[]))
tokenizer.decoder = decoders.ByteLevel()
tokenizer.add_special_tokens(["<|end_of_text|>", "<|eot_id|>"])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|eot_id|>")
path = found.submodule_search_locations[0]
for name in ("vllm", "vllm.v1", "vllm.v1.structured_output"):  # the module below, without the engine that vllm/__init__.py imports
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path + name.removeprefix("vllm").replace(".", "/")]
from outlines_core import Guide, Index
from vllm.v1.structured_output.utils import get_outlines_vocabulary
guide = Guide(Index('"[^"]*"', get_outlines_vocabulary(tokenizer).inner))
guide.advance(0)
allowed = guide.get_tokens()
for token, name in ((1, "a"), (3, "<|eot_id|>"), (2, "<|end_of_text|>")):
    print(name, token in allowed)
# expected: <|end_of_text|> False, because the string is open; seen: True, and vLLM stops there with half a document
