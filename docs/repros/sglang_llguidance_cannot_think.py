# sglang 0.5.23
# --grammar-backend llguidance --reasoning-parser deepseek-r1: what the engine compiles for each request with a grammar.
import importlib.util, sys, types
found = importlib.util.find_spec("sglang")
if found is None:
    sys.exit("this script needs sglang 0.5.23, which is not installed")
path = found.submodule_search_locations[0]
for name in ("sglang", "sglang.srt", "sglang.srt.constrained"):  # the modules below, without the engine that these import
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path + name.removeprefix("sglang").replace(".", "/")]
for module, name in (("parser.reasoning_parser", "ReasoningParser"), ("server_args", "ServerArgs"), ("parser.response_template", "ResponseTemplateReasoningDetector")):
    sys.modules["sglang.srt." + module] = types.ModuleType(module)
    setattr(sys.modules["sglang.srt." + module], name, type(name, (), {}))  # of the last a type check asks, of the others nobody
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast
tokenizer = Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
tokenizer.decoder = decoders.ByteLevel()
tokenizer.add_special_tokens(["</s>", "</think>"])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")
from sglang.srt.constrained.llguidance_backend import GuidanceBackend
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
from sglang.srt.constrained.xgrammar_backend import XGrammarGrammarBackend
detector = types.SimpleNamespace(get_think_end_token_ids=lambda tokenizer: [3], get_answer_frame=lambda: None)
for backend in (XGrammarGrammarBackend(tokenizer, 4, [2]), GuidanceBackend(tokenizer=tokenizer, n_vocab=4, eos_token_ids=[2])):
    reasoner = ReasonerGrammarBackend(backend, types.SimpleNamespace(detector=detector), tokenizer)
    try:
        print(type(backend).__name__, type(reasoner._init_value_dispatch(("regex", "a"), True)).__name__)
    except AttributeError as error:
        print(type(backend).__name__, error)
# expected: ReasonerGrammarObject twice; seen: AttributeError of GuidanceBackend, which has no allocate_vocab_mask: the request is aborted
