"""Pydantic models are sources of schemas, and so are Gemini's tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cases.case_json import cases_from_json
from harness.cases.models import model_file
from harness.cases.suite import find_suite, read_cases
from harness.errors import BadInput
from harness.running.experiment import moved_suite

MODELS = """
print("imported")
class Fake:
    class Inner:
        @staticmethod
        def model_json_schema():
            return {"type": "object", "properties": {"a": {"type": "integer"}}}
broken = object()
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_model_is_a_suite_of_one_case() -> None:
    (case,) = read_cases(find_suite("shop_models:Fake.Inner"))
    assert case.name == "Fake.Inner"
    assert json.loads(case.grammar.text)["properties"] == {"a": {"type": "integer"}}


def test_a_model_has_one_name_in_each_folder_and_a_file_of_that_name_is_a_path(tmp_path: Path) -> None:
    here, there = tmp_path, tmp_path / "run"
    assert moved_suite("shop_models:Fake.Inner", here, there) == "shop_models:Fake.Inner"
    assert moved_suite("shop_models.py", here, there) == "../shop_models.py"
    (here / "a:b").mkdir()
    assert moved_suite("a:b", here, there) == "../a:b"


def test_a_model_of_pydantic_itself(tmp_path: Path) -> None:
    pytest.importorskip("pydantic")
    (tmp_path / "real_models.py").write_text(
        "from pydantic import BaseModel, Field\n"
        "class Order(BaseModel):\n    count: int = Field(le=10)\n"
        "Orders = list[Order]\n".replace("\\\n", "\n")
    )
    (order,) = read_cases(find_suite("real_models:Order"))
    assert json.loads(order.grammar.text)["properties"]["count"]["maximum"] == 10
    (orders,) = read_cases(find_suite("real_models:Orders"))
    assert json.loads(orders.grammar.text)["type"] == "array"


OTHERWISE: dict[str, tuple[str, object]] = {
    "nothing_asked": ('{"title": "T"}', {"title": "T"}),
    "true": ("True", True),
    "tools": (
        '{"type": "object", "tools": [{"name": "a", "parameters": {}}]}',
        {"type": "object", "tools": [{"name": "a", "parameters": {}}]},
    ),
    "regex": ('{"type": "string", "regex": "a", "tests": []}', {"type": "string", "regex": "a", "tests": []}),
    "nan": (
        '{"properties": {"default": {"default": nan, "minimum": 2}, "b": {"default": 1, "examples": [inf]}}}',
        {"properties": {"default": {"minimum": 2}, "b": {"default": 1}}},
    ),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_the_schema_of_a_model_is_taken_for_nothing_else(name: str, tmp_path: Path) -> None:
    text, schema = OTHERWISE[name]
    (tmp_path / "other_models.py").write_text(
        "from math import inf, nan\nclass Other:\n    @staticmethod\n    def model_json_schema():\n"
        f"        return {text}\n"
    )
    (case,) = read_cases(find_suite("other_models:Other"))
    assert (case.name, json.loads(case.grammar.text), case.instances) == ("Other", schema, ())


@pytest.mark.parametrize(
    ("text", "said"), [('{"maximum": float("inf")}', "JSON compliant"), ("[]", "not list")]
)
def test_what_a_model_says_that_is_no_schema_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "odd_models.py").write_text(
        f"class Odd:\n    @staticmethod\n    def model_json_schema():\n        return {text}\n"
    )
    with pytest.raises(BadInput, match=r"^odd_models:Odd: no JSON Schema of it: ") as caught:
        find_suite("odd_models:Odd")
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("shop_models:Missing", "Missing"),
        ("no_such_module:A", "no_such_module"),
        ("shop_models:broken", "no JSON Schema of it"),
    ],
)
def test_what_is_no_model_is_one_line(wanted: str, said: str) -> None:
    with pytest.raises(BadInput) as error:
        find_suite(wanted)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_module_that_ends_its_process_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "ending_models.py").write_text('import os\nprint("good bye", flush=True)\nos._exit(3)\n')
    with pytest.raises(BadInput, match=r"exit code 3: good bye$"):
        find_suite("ending_models:A")


@pytest.mark.parametrize("wanted", ["my_schemas", "a/b:c", "C:\\\\x", "a:b:c", "1a:b"])
def test_other_names_are_no_models(wanted: str) -> None:
    assert model_file(wanted) is None


def test_the_tools_of_gemini_are_read_with_their_own_types() -> None:
    declared = {
        "name": "weather",
        "parameters": {
            "type": "OBJECT",
            "properties": {
                "city": {"type": "STRING", "nullable": True, "maxLength": "20"},
                "unit": {"type": "STRING", "enum": ["C", "F"], "nullable": True},
                "days": {"type": "ARRAY", "items": {"type": "INTEGER"}},
            },
            "propertyOrdering": ["city"],
            "required": ["city"],
        },
    }
    plain = {"name": "plain", "parametersJsonSchema": {"type": "object"}}
    request = {"contents": [], "tools": [{"functionDeclarations": [declared, plain]}]}
    weather, other = cases_from_json(request, "tools", "tools.json", None, {})
    assert (weather.name, other.name) == ("weather", "plain")
    assert json.loads(weather.grammar.text) == {
        "type": "object",
        "properties": {
            "city": {"type": ["string", "null"], "maxLength": 20},
            "unit": {"type": ["string", "null"], "enum": ["C", "F", None]},
            "days": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["city"],
    }
