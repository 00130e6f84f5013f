# xgrammar 0.2.9
vocabulary = [bytes([byte]) for byte in range(256)] + [b'']
walk = [256]
import xgrammar
tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
tag = xgrammar.get_model_structural_tag("harmony", tools=[tool], tool_choice="required", reasoning=False)
info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[len(vocabulary) - 1])
compiled = xgrammar.GrammarCompiler(info).compile_structural_tag(tag)
matcher = xgrammar.GrammarMatcher(compiled)
mask = xgrammar.allocate_token_bitmask(1, len(vocabulary))
for token in walk:
    matcher.fill_next_token_bitmask(mask)
    allowed = bool(mask[0, token // 32].item() >> token % 32 & 1)
    accepted = matcher.accept_token(token)
    print(vocabulary[token], allowed, accepted)
    if not (allowed and accepted):
        break
# expected: the output may not end at the start: "Required: at least one tool call is required" (its
# docs/structural_tag/tool_calling_and_reasoning.md); seen: it may, also where one tool is named
