# vllm 0.33.0
# --structured-outputs-config.backend auto, the default: it names a library for each request, and the first request's library serves all that come behind it.
import importlib.util, os, sys, types
os.environ["VLLM_CONFIGURE_LOGGING"] = "0"
found = importlib.util.find_spec("vllm")
if found is None:
    sys.exit("this script needs vllm 0.33.0, which is not installed")
path = found.submodule_search_locations[0]
for name in ("vllm", "vllm.v1", "vllm.v1.structured_output"):  # the modules below, without the engine that vllm/__init__.py imports
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path + name.removeprefix("vllm").replace(".", "/")]
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast
tokenizer = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate("0123456789[],-")}, merges=[]))
tokenizer.decoder = decoders.ByteLevel()
tokenizer.add_special_tokens(["</s>"])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")
spec = importlib.util.spec_from_file_location("manager", path + "/v1/structured_output/__init__.py")
manager_module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(manager_module)
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.request import Request
Some = types.SimpleNamespace
outputs = Some(backend="auto", disable_any_whitespace=False, disable_additional_properties=False, enable_in_reasoning=False)
model = Some(skip_tokenizer_init=True, is_diffusion=False, get_vocab_size=lambda: 15)
manager = manager_module.StructuredOutputManager(Some(structured_outputs_config=outputs, model_config=model, speculative_config=None, num_speculative_tokens=0,
    parallel_config=Some(distributed_executor_backend="external_launcher"), scheduler_config=Some(max_num_seqs=1)))
manager.tokenizer = tokenizer
for schema in ({"type": "integer", "multipleOf": 5}, {"type": "integer"}):
    asked = SamplingParams(structured_outputs=StructuredOutputsParams(json=schema), max_tokens=1)
    asked._validate_structured_outputs(model, outputs, tokenizer)  # what the server does with each request
    try:
        manager.grammar_init(Request("request", [14], asked, None))  # what the engine's process does with it
        print(asked.structured_outputs._backend, "compiles", schema)
    except VLLMValidationError as error:
        print(asked.structured_outputs._backend, "is refused", schema, str(error)[:120])
# expected: both are compiled; seen: guidance compiles the first, and the second, which "auto" gives to xgrammar, is refused, as are all such requests until the engine is restarted
