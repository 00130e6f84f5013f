# vllm 0.33.0
# --tokenizer-mode mistral, as Mistral's models are served: xgrammar gets Tekkenizer.vocab(), which is made for display.
import importlib.util, pathlib, shutil, sys, tempfile, types
found = importlib.util.find_spec("vllm")
if found is None:
    sys.exit("this script needs vllm 0.33.0, which is not installed")
path = found.submodule_search_locations[0]
for name in ("vllm", "vllm.v1", "vllm.v1.structured_output"):  # the modules below, without the engine that vllm/__init__.py imports
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path + name.removeprefix("vllm").replace(".", "/")]
data = pathlib.Path(importlib.util.find_spec("mistral_common").submodule_search_locations[0], "data")
from vllm.tokenizers.mistral import MistralTokenizer
with tempfile.TemporaryDirectory() as folder:
    shutil.copy(data / "tekken_240911.json", folder + "/tekken.json")
    tokenizer = MistralTokenizer.from_pretrained(folder)
from vllm.v1.structured_output.backend_types import StructuredOutputOptions
from vllm.v1.structured_output.backend_xgrammar import XgrammarBackend
outputs = types.SimpleNamespace(backend="xgrammar", disable_any_whitespace=False, disable_additional_properties=False)
config = types.SimpleNamespace(structured_outputs_config=outputs, speculative_config=None, model_config=None)
backend = XgrammarBackend(config, tokenizer, len(tokenizer.vocab))
grammar = backend.compile_grammar(StructuredOutputOptions.REGEX, "[^a]*")
mask = backend.allocate_token_bitmask(1)
grammar.fill_bitmask(mask, 0)
for token, said in ((3, "[INST]"), (1195, tokenizer.tokenizer.id_to_byte_piece(1195))):
    print(said, bool(mask[0, token // 32] >> token % 32 & 1), repr(tokenizer.vocab[token]))
# expected: [INST] False, because it is a control token; seen: True, and a string may hold it.
# The byte is read as U+FFFD: a grammar of Cyrillic or Chinese forbids what such characters are written with.
grammar = backend.compile_grammar(StructuredOutputOptions.REGEX, "é")
grammar.fill_bitmask(mask, 0)
print(tokenizer.tokenizer.id_to_byte_piece(1195), bool(mask[0, 1195 // 32] >> 1195 % 32 & 1))
# expected: b'\xc3' True, which the character begins with; seen: False
