# vllm 0.33.0
# Gemma's tokenizer writes a space as U+2581 and its decoder takes none away: 137,542 of Gemma 3's tokens begin with a space.
import importlib.util, sys, types
found = importlib.util.find_spec("vllm")
if found is None:
    sys.exit("this script needs vllm 0.33.0, which is not installed")
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast
pieces = {"a": 0, "\u2581the": 1, "\u2581\u2581the": 2, "<eos>": 3}
tokenizer = Tokenizer(models.BPE(vocab=pieces, merges=[]))
tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
tokenizer.add_special_tokens(["<eos>"])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>")
path = found.submodule_search_locations[0]
for name in ("vllm", "vllm.v1", "vllm.v1.structured_output"):  # the module below, without the engine that vllm/__init__.py imports
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path + name.removeprefix("vllm").replace(".", "/")]
from outlines_core import Guide, Index
from vllm.v1.structured_output.utils import get_outlines_vocabulary
guide = Guide(Index("( the|a)", get_outlines_vocabulary(tokenizer).inner))
print(repr(tokenizer.decode([1])), 1 in guide.get_tokens())
# expected: ' the' True; seen: ' the' False, because the wrapper reads the token as two spaces and "the"
