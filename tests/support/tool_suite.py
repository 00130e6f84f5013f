"""Writes the suite `tools`: calls of tools as the models of each family write them.

    python tests/support/tool_suite.py

The grammar of a case is a structural tag in the new form that is composed here. The outputs are composed
apart from it, each as the family's chat template renders such a message, so that they say whether the tag is
right. docs/tools.md shows the forms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Form = dict[str, Any]
"""A format of a structural tag."""
Arguments = dict[str, Any]
Call = tuple[str, Arguments]
"""The name of a tool, and its arguments."""

WEATHER: Form = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
OTHER: Form = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "required": ["q"],
    "additionalProperties": False,
}
CHOICES = ("auto", "required", "named")
HUNDRED, FIVE_HUNDRED = 100, 500
WITH_500 = ("qwen_3", "kimi", "qwen_3_coder")
"""The families that have a case of 500 tools: one each of plain JSON, of markers, and of XML."""


@dataclass(frozen=True)
class Family:
    """How the models of a family write calls: `begin`, the calls with `separator` between them, `end`."""

    name: str
    call: Callable[[str, Form], Form]
    """Returns the format of a call of a tool of this name and schema."""
    write: Callable[[str, Arguments, int], str]
    """Returns the text of a call, of which so many stand before it."""
    trigger: str
    """What does not stand in the text before calls."""
    source: str
    begin: str = ""
    separator: str = ""
    end: str = ""
    is_raw: bool = False
    """Strings stand in calls as they are, not as JSON."""
    lead: str = ""
    """What follows the text before calls, whether there are any."""
    tail: str = ""
    """What ends an output."""


def text(value: str) -> Form:
    return {"type": "const_string", "value": value}


def sequence(*elements: Form) -> Form:
    return {"type": "sequence", "elements": list(elements)}


def optional(content: Form) -> Form:
    return {"type": "optional", "content": content}


def regex(pattern: str) -> Form:
    return {"type": "regex", "pattern": pattern}


def tag(begin: str, content: Form, end: str) -> Form:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def arguments_of(schema: Form, style: str) -> Form:
    return {"type": "json_schema", "json_schema": schema} | ({} if style == "json" else {"style": style})


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def raw(value: object) -> str:
    """Returns a string as it is, and anything else as JSON."""
    return value if isinstance(value, str) else as_json(value)


def calls_between(
    before: str, behind_name: str, end: str, style: str = "json"
) -> Callable[[str, Form], Form]:
    """Returns what makes the format of a call whose arguments stand between such texts."""
    return lambda name, schema: tag(before + name + behind_name, arguments_of(schema, style), end)


def json_between(before: str, behind_name: str, end: str) -> Callable[[str, Arguments, int], str]:
    """Returns what writes a call whose arguments are one JSON document between such texts."""
    return lambda name, arguments, _: before + name + behind_name + as_json(arguments) + end


def members_between(
    before: str, behind_name: str, member: Callable[[str, Any], str], end: str
) -> Callable[[str, Arguments, int], str]:
    """Returns what writes a call whose arguments are written one by one between such texts."""
    return lambda name, arguments, _: (
        before + name + behind_name + "".join(member(key, value) for key, value in arguments.items()) + end
    )


def numbered_calls(
    before: str, behind_name: str, rest: str, end: str, style: str
) -> Callable[[str, Form], Form]:
    """Returns what makes the format of a call in which a number stands behind the name."""
    return lambda name, schema: tag(
        before + name + behind_name,
        sequence(regex("[0-9]+"), text(rest), arguments_of(schema, style)),
        end,
    )


def dsml(gap: str) -> Callable[[str, Any], str]:
    """Returns what writes an argument of DeepSeek's; V4.1 has a blank before the word."""

    def member(key: str, value: object) -> str:
        is_string = as_json(isinstance(value, str))
        before = f'<{DSML}{gap}parameter name="{key}" string="{is_string}">'
        return f"{before}{raw(value)}</{DSML}{gap}parameter>\n"

    return member


def deepseek_xml(name: str, calls: str, source: str, gap: str = "", style: str = "deepseek_xml") -> Family:
    invoke = f'<{DSML}{gap}invoke name="', '">\n'
    end = f"</{DSML}{gap}invoke>\n"
    return Family(
        name,
        calls_between(*invoke, end, style),
        members_between(*invoke, dsml(gap), end),
        trigger=f"<{DSML}{gap}{calls}>",
        source=source,
        begin=f"\n\n<{DSML}{gap}{calls}>\n",
        end=f"</{DSML}{gap}{calls}>",
        is_raw=True,
    )


def json_family(
    name: str,
    before: str,
    behind_name: str,
    call_end: str,
    trigger: str,
    source: str,
    begin: str = "",
    separator: str = "",
    end: str = "",
) -> Family:
    texts = before, behind_name, call_end
    return Family(name, calls_between(*texts), json_between(*texts), trigger, source, begin, separator, end)


def mistral_call(name: str, schema: Form) -> Form:
    arguments = sequence(arguments_of(schema, "json"), text(', "id": "'), regex("[a-zA-Z0-9]{9}"), text('"'))
    return tag('{"name": "' + name + '", "arguments": ', arguments, "}") | {"end": ["}"]}


def mistral_text(name: str, arguments: Arguments, index: int) -> str:
    return f'{{"name": "{name}", "arguments": {as_json(arguments)}, "id": "call0000{index}"}}'


def command_call(name: str, schema: Form) -> Form:
    named = text('", "tool_name": "' + name + '", "parameters": ')
    return tag('{"tool_call_id": "', sequence(regex("[0-9]+"), named, arguments_of(schema, "json")), "}")


def command_text(name: str, arguments: Arguments, index: int) -> str:
    return f'{{"tool_call_id": "{index}", "tool_name": "{name}", "parameters": {as_json(arguments)}}}'


def cohere_call(name: str, schema: Form) -> Form:
    inside = sequence(regex("[0-9]+"), text(f'" name="{name}">'), arguments_of(schema, "cohere_xml"))
    return tag('<cofl:tool_call id="', inside, "</cofl:tool_call>")


def cohere_text(name: str, arguments: Arguments, index: int) -> str:
    values = [
        f'<cofl:value name="{key}" type="{"raw" if isinstance(value, str) else "json"}">'
        f"{raw(value)}</cofl:value>"
        for key, value in arguments.items()
    ]
    return f'<cofl:tool_call id="{index}" name="{name}">{"".join(values)}</cofl:tool_call>'


def kimi_k3_text(name: str, arguments: Arguments, index: int) -> str:
    values = [
        f'<|open|>argument key="{key}" type="{"string" if isinstance(value, str) else "number"}"<|sep|>'
        f"{raw(value)}<|close|>argument<|sep|>"
        for key, value in arguments.items()
    ]
    begin = f'<|open|>call tool="{name}" index="{index + 1}"<|sep|>'
    return f"{begin}{''.join(values)}<|close|>call<|sep|>"


def gemma_member(key: str, value: Form) -> Form:
    if value["type"] == "string":
        return tag(f"{key}:{QUOTE}", {"type": "any_text"}, QUOTE)
    return sequence(text(f"{key}:"), regex("-?(0|[1-9][0-9]*)"))


def gemma_call(name: str, schema: Form) -> Form:
    """Returns the format of a call of Gemma's, for which there is no style: the arguments, sorted by name, of
    which the first is required here and the others are optional."""
    first, *others = [gemma_member(key, value) for key, value in sorted(schema["properties"].items())]
    members = [first, *(optional(sequence(text(","), other)) for other in others)]
    return tag(f"<|tool_call>call:{name}{{", sequence(*members), "}<tool_call|>")


def gemma_text(name: str, arguments: Arguments, _: int) -> str:
    members = [
        f"{key}:{QUOTE}{value}{QUOTE}" if isinstance(value, str) else f"{key}:{as_json(value)}"
        for key, value in sorted(arguments.items())
    ]
    return f"<|tool_call>call:{name}{{{','.join(members)}}}<tool_call|>"


DSML = "｜DSML｜"
QUOTE = '<|"|>'
M3 = "]<]minimax[>["
HERMES = '<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>"
CODER = "<tool_call>\n<function=", ">\n", "\n</function>\n</tool_call>"
MIMO = "<tool_call><function=", ">", "</function></tool_call>"
TEMPLATES = "{} (llama.cpp, models/templates)"

FAMILIES = (
    json_family(
        *("llama", '{"name": "', '", "parameters": ', "}", '{"name": '),
        TEMPLATES.format("meta-llama-Llama-3.1-8B-Instruct.jinja"),
        separator="; ",
    ),
    json_family(
        *("qwen_3", *HERMES, "<tool_call>"),
        TEMPLATES.format("Qwen-Qwen3-0.6B.jinja, the form of Hermes"),
        separator="\n",
    ),
    json_family(
        *("exaone", '<tool_call>{"name": "', '", "arguments": ', "}</tool_call>", "<tool_call>"),
        "the built-in tag of xgrammar 0.2.8",
        separator="\n",
    ),
    Family(
        "kimi",
        numbered_calls(
            "<|tool_call_begin|>functions.",
            ":",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            "json",
        ),
        lambda name, arguments, index: (
            f"<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{as_json(arguments)}"
            "<|tool_call_end|>"
        ),
        trigger="<|tool_calls_section_begin|>",
        source=TEMPLATES.format("moonshotai-Kimi-K2.jinja"),
        begin="<|tool_calls_section_begin|>",
        end="<|tool_calls_section_end|>",
    ),
    Family(
        "kimi_k3",
        numbered_calls('<|open|>call tool="', '" index="', '"<|sep|>', "<|close|>call<|sep|>", "kimi_k3_xml"),
        kimi_k3_text,
        trigger="<|close|>",
        source=TEMPLATES.format("Kimi-K3.jinja"),
        begin="<|open|>tools<|sep|>",
        end="<|close|>tools<|sep|>",
        is_raw=True,
        lead="<|close|>response<|sep|>",
        tail="<|close|>message<|sep|>",
    ),
    json_family(
        *("deepseek_r1", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n"),
        *("\n```<｜tool▁call▁end｜>", "<｜tool▁calls▁begin｜>"),
        TEMPLATES.format("llama-cpp-deepseek-r1.jinja"),
        begin="<｜tool▁calls▁begin｜>",
        separator="\n",
        end="<｜tool▁calls▁end｜>",
    ),
    json_family(
        *("deepseek_v3_1", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
        "<｜tool▁calls▁begin｜>",
        TEMPLATES.format("deepseek-ai-DeepSeek-V3.1.jinja"),
        begin="<｜tool▁calls▁begin｜>",
        end="<｜tool▁calls▁end｜>",
    ),
    json_family(
        *("harmony", " to=functions.", "<|channel|>commentary json<|message|>", "<|call|>"),
        " to=functions.",
        TEMPLATES.format("openai-gpt-oss-120b.jinja"),
        separator="<|start|>assistant",
    ),
    Family(
        *("mistral", mistral_call, mistral_text, "[TOOL_CALLS]"),
        TEMPLATES.format("mistralai-Mistral-Nemo-Instruct-2407.jinja"),
        begin="[TOOL_CALLS][",
        separator=", ",
        end="]",
    ),
    Family(
        *("command_r7b", command_call, command_text, "<|START_ACTION|>"),
        TEMPLATES.format("CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja"),
        begin="<|START_ACTION|>[\n    ",
        separator=",\n    ",
        end="\n]<|END_ACTION|>",
    ),
    Family(
        *("cohere", cohere_call, cohere_text, "<cofl:tool_calls>"),
        "the built-in tag of xgrammar 0.2.8 and its tests/python/test_builtin_structural_tag.py",
        begin="<cofl:tool_calls>",
        end="</cofl:tool_calls>",
        is_raw=True,
    ),
    Family(
        "gemma_4",
        *(gemma_call, gemma_text, "<|tool_call>"),
        TEMPLATES.format("google-gemma-4-31B-it.jinja"),
        is_raw=True,
    ),
    Family(
        "qwen_3_coder",
        calls_between(*CODER, "qwen_xml"),
        lambda name, arguments, _: (
            CODER[0]
            + name
            + CODER[1]
            + "\n".join(f"<parameter={key}>\n{raw(value)}\n</parameter>" for key, value in arguments.items())
            + CODER[2]
        ),
        "<tool_call>\n<function=",
        TEMPLATES.format("Qwen3-Coder.jinja, which Qwen3.5-4B.jinja agrees with"),
        separator="\n",
        is_raw=True,
    ),
    Family(
        "mimo",
        calls_between(*MIMO, "qwen_xml"),
        members_between(
            MIMO[0], MIMO[1], lambda key, value: f"<parameter={key}>{raw(value)}</parameter>", MIMO[2]
        ),
        "<tool_call>",
        "the built-in tag of xgrammar 0.2.8, which names the template of XiaomiMiMo/MiMo-V2.6-Pro-RL",
        is_raw=True,
    ),
    Family(
        "glm_4_7",
        calls_between("<tool_call>", "", "</tool_call>", "glm_xml"),
        members_between(
            "<tool_call>",
            "",
            lambda key, value: f"<arg_key>{key}</arg_key><arg_value>{raw(value)}</arg_value>",
            "</tool_call>",
        ),
        "<tool_call>",
        TEMPLATES.format("GLM-4.7-Flash.jinja"),
        is_raw=True,
    ),
    Family(
        "minimax",
        calls_between('<invoke name="', '">\n', "</invoke>\n", "minimax_xml"),
        members_between(
            '<invoke name="',
            '">\n',
            lambda key, value: f'<parameter name="{key}">{raw(value)}</parameter>\n',
            "</invoke>\n",
        ),
        "\n<minimax:tool_call>\n",
        TEMPLATES.format("MiniMax-M2.jinja"),
        begin="\n<minimax:tool_call>\n",
        end="</minimax:tool_call>",
        is_raw=True,
    ),
    Family(
        "minimax_m3",
        calls_between(f'{M3}<invoke name="', '">', f"{M3}</invoke>\n", "minimax_m3_xml"),
        members_between(
            f'{M3}<invoke name="',
            '">',
            lambda key, value: f"{M3}<{key}>{raw(value)}{M3}</{key}>",
            f"{M3}</invoke>\n",
        ),
        f"{M3}<tool_call>",
        TEMPLATES.format("MiniMax-M3.jinja"),
        begin=f"{M3}<tool_call>\n",
        end=f"{M3}</tool_call>",
        is_raw=True,
    ),
    deepseek_xml("deepseek_v3_2", "function_calls", TEMPLATES.format("deepseek-ai-DeepSeek-V3.2.jinja")),
    deepseek_xml("deepseek_v4", "tool_calls", TEMPLATES.format("deepseek-ai-DeepSeek-V4.jinja")),
    deepseek_xml(
        *("deepseek_v4_1", "calls", "the parser of vLLM 0.33.0, vllm/parser/deepseek_v41.py"),
        gap=" ",
        style="deepseek_v4_1_xml",
    ),
)


def tools(count: int) -> list[tuple[str, Form]]:
    """Returns so many tools, each a name and the schema of its arguments."""
    return [("weather", WEATHER), *((f"tool_{number}", OTHER) for number in range(1, count))]


def format_of(family: Family, count: int, choice: str) -> Form:
    """Returns the format of the outputs with so many tools under a choice."""
    calls = [family.call(*tool) for tool in tools(count)]
    form: Form = {
        "type": "tags_with_separator",
        "tags": calls[:1] if choice == "named" else calls,
        "separator": family.separator,
        "at_least_one": True,
    }
    if choice == "named":
        form["stop_after_first"] = True
    if family.begin or family.end:
        form = tag(family.begin, form, family.end)
    lead, tail = ([text(each)] if each else [] for each in (family.lead, family.tail))
    if choice == "auto":
        free = {"type": "any_text", "excludes": [family.trigger]}
        return sequence(free, *lead, optional(form), *tail)
    return sequence(*lead, form, *tail) if lead or tail else form


def written(family: Family, *calls: Call, before: str = "") -> str:
    """Returns an output with these calls, behind a text."""
    texts = [family.write(*call, index) for index, call in enumerate(calls)]
    block = family.begin + family.separator.join(texts) + family.end if calls else ""
    return before + family.lead + block + family.tail


def outputs(family: Family, count: int, choice: str) -> tuple[list[str], list[str]]:
    """Returns right and wrong outputs with so many tools under a choice."""
    paris: Call = ("weather", {"city": "Paris"})
    both: Call = ("weather", {"city": "東京" if family.is_raw else '東京 ("x")', "days": 3})
    other: Call = (f"tool_{count - 1}", {"q": "a b"})
    one = written(family, paris)
    right = [one, written(family, both)]
    wrong = [
        one[:-1],
        written(family, ("weather", {"days": 3})),
        written(family, ("weather", {"city": "Paris", "days": "x"})),
        written(family, ("weathr", {"city": "Paris"})),
        written(family, ("weather", {"city": "Paris", "country": "F"})),
    ]
    if choice == "named":
        wrong += [written(family, paris, both), *([written(family, other)] if count > 1 else [])]
    else:
        right.append(written(family, paris, both))
        if count > 1:
            right += [written(family, other), written(family, paris, other)]
            wrong.append(written(family, (f"tool_{count}", {"q": "a"})))
    texts = [
        written(family),
        written(family, before="It is sunny."),
        written(family, paris, before="I look. "),
    ]
    if choice == "auto":
        return [*right, *texts], [*wrong, texts[-1][:-1]]
    return right, [*wrong, *texts, one + one[:1]]


def case(family: Family, count: int, choice: str) -> dict[str, Any]:
    """Returns a line of the suite."""
    judged = [
        (output, is_right)
        for is_right, of_kind in zip((True, False), outputs(family, count, choice), strict=True)
        for output in dict.fromkeys(of_kind)
    ]
    tests = [
        {
            "description": f"{number}: {output.replace(chr(10), '⏎')[:50] or 'empty output'}",
            "text": output,
            "valid": is_right,
        }
        for number, (output, is_right) in enumerate(judged, 1)
    ]
    return {
        "description": f"{family.name}, {choice}, {count} tool{'s' * (count > 1)}",
        "structural_tag": {"type": "structural_tag", "format": format_of(family, count, choice)},
        "tests": tests,
        "tags": [f"family:{family.name}", f"choice:{choice}", f"tools:{count}"],
        "notes": f"Written from {family.source}.",
    }


def cases() -> Iterable[dict[str, Any]]:
    """Yields the cases: of each family each choice with one and ten tools, and `auto` with many."""
    for family in FAMILIES:
        yield from (case(family, count, choice) for choice in CHOICES for count in (1, 10))
        yield case(family, HUNDRED, "auto")
        if family.name in WITH_500:
            yield case(family, FIVE_HUNDRED, "auto")


def suite() -> str:
    """Returns the text of the suite's file."""
    header = {
        "suite": "tools",
        "version": "2",
        "default": False,
        "description": f"Tool calls as the models of {len(FAMILIES)} families write them: tool_choice auto, "
        "required and named, one call and several, of 1 to 500 tools. The outputs are written from each "
        "family's chat template. docs/tools.md.",
    }
    lines = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in (header, *cases()))
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    (Path(__file__).parents[2] / "suites" / "tools.jsonl").write_text(suite(), encoding="utf-8")
