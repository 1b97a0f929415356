"""Schemas: references inlined for prompts and kept for checks, three spellings of nullable, schemas that lie."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hypertool.errors import BadArguments
from hypertool.tools import MAX_INLINED, ToolSpec, inlined, type_name


def spec(properties: dict[str, Any], **more: Any) -> ToolSpec:
    return ToolSpec("s", "t", "Do it.", {"type": "object", "properties": properties, **more})


SCHEDULE = {
    "query_model": {"$ref": "#/$defs/Query", "description": "what to look for"},
}
DEFS = {
    "Query": {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"$ref": "#/$defs/Limit"}}},
    "Limit": {"type": "integer", "minimum": 1},
}


def test_references_are_inlined_for_prompts_and_kept_for_checks() -> None:
    tool = spec(SCHEDULE, required=["query_model"], **{"$defs": DEFS})
    shown = tool.openai()["function"]["parameters"]
    assert "$ref" not in json.dumps(shown)
    assert "$defs" not in shown
    assert shown["properties"]["query_model"] == {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
        "description": "what to look for",
    }
    assert tool.signature() == "t(query_model: {query: string, limit: integer}) - Do it"
    tool.check({"query_model": {"query": "x", "limit": 3}})
    with pytest.raises(BadArguments, match=r"query_model.limit: 0 is less than the minimum of 1"):
        tool.check({"query_model": {"limit": 0}})


def test_a_schema_without_references_is_shown_as_it_is() -> None:
    tool = spec({"a": {"type": "string"}, "definitions": {"type": "array", "items": {}}}, **{"$defs": {}})
    assert tool.openai()["function"]["parameters"] is tool.input_schema


def test_cycles_and_explosions_end() -> None:
    tree = {"Node": {"type": "object", "properties": {"value": {}, "next": {"$ref": "#/$defs/Node"}}}}
    shown = inlined({"properties": {"root": {"$ref": "#/$defs/Node"}}, "$defs": tree})
    assert shown == {
        "properties": {"root": {"type": "object", "properties": {"value": {}, "next": {"type": "object"}}}}
    }
    whole = inlined({"type": "object", "properties": {"child": {"$ref": "#"}, "name": {"type": "string"}}})
    assert whole["properties"]["child"]["properties"]["child"] == {"type": "object"}
    doubling = {f"D{n}": {"properties": {x: {"$ref": f"#/$defs/D{n + 1}"} for x in "ab"}} for n in range(40)}
    shown = inlined({"properties": {"a": {"$ref": "#/$defs/D0"}}, "$defs": {**doubling, "D40": {"type": "null"}}})
    assert len(json.dumps(shown)) < 100 * MAX_INLINED


def test_a_reference_that_leads_nowhere_is_left_to_the_server() -> None:
    tool = spec({"a": {"$ref": "#/$defs/Missing"}, "b": {"$ref": "https://example.org/schema.json"}})
    tool.check({"a": 1, "b": 2})
    assert inlined(tool.input_schema) == tool.input_schema
    assert tool.signature() == "t(a?: any, b?: any) - Do it"


def test_a_schema_that_is_none_is_left_to_the_server() -> None:
    spec({"a": {"type": "strange"}}).check({"a": 1})
    spec({"a": {"pattern": "("}}).check({"b": "x"})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "string", "nullable": True},
    ],
)
def test_three_spellings_of_nullable(schema: dict[str, Any]) -> None:
    tool = spec({"a": schema})
    for params in ({"a": "x"}, {"a": None}, {}):
        tool.check(params)
    with pytest.raises(BadArguments):
        tool.check({"a": 1})
    assert type_name(schema) == "string | null"


def test_a_nullable_enum_admits_null() -> None:
    tool = spec({"unit": {"type": "string", "enum": ["m", "km"], "nullable": True}})
    tool.check({"unit": None})
    with pytest.raises(BadArguments):
        tool.check({"unit": "mile"})


def test_type_names() -> None:
    assert type_name({"type": ["array", "null"], "items": {"type": "integer"}}) == "integer[] | null"
    assert type_name({"enum": ["a", 1]}) == '"a" | 1'
    assert type_name({}) == "any"
