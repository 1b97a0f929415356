"""A stdio server without the SDK: it sends each form of reply exactly as written in FORMS, valid or not.

Standard library only. What the pool must make of each form is said beside it and checked in test_pool.py.
"""

from __future__ import annotations

import json
import sys
from typing import Any

ROWS = {"type": "object", "properties": {"rows": {"type": "array"}}, "required": ["rows"]}
WRAPPED = {"type": "object", "properties": {"result": {"type": "array"}}, "required": ["result"]}
FAILS = "FAILS: "
"""Marks the value of a form that must raise ToolCallError with the text that follows."""


def text(*parts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part} for part in parts]


PNG = {"type": "image", "data": "AAAAAAAA", "mimeType": "image/png"}
FORMS: dict[str, tuple[dict[str, Any], dict[str, Any] | None, Any]] = {
    # name: (the reply, the declared output schema, what a block gets)
    "text_object": ({"content": text('{"price": 42}')}, None, {"price": 42}),
    "text_array": ({"content": text(' [1, "a"]\n')}, None, [1, "a"]),
    "text_number": ({"content": text("007")}, None, "007"),
    "text_word": ({"content": text("true")}, None, "true"),
    "text_string": ({"content": text('"quoted"')}, None, '"quoted"'),
    "text_prose": ({"content": text("two\nlines")}, None, "two\nlines"),
    "text_empty": ({"content": text("")}, None, ""),
    "text_broken": ({"content": text('{"a": 1')}, None, '{"a": 1'),
    "text_lines": ({"content": text('{"a": 1}\n{"a": 2}')}, None, '{"a": 1}\n{"a": 2}'),
    "text_deep": ({"content": text("[" * 100_000)}, None, "[" * 100_000),
    "text_large_number": ({"content": text('{"id": 12345678901234567890}')}, None, {"id": 12345678901234567890}),
    "nothing": ({"content": []}, None, []),
    "texts": ({"content": text("a", "b")}, None, ["a", "b"]),
    "texts_json": ({"content": text('{"id": 1}', '{"id": 2}')}, None, [{"id": 1}, {"id": 2}]),
    "texts_mixed": ({"content": text("found:", '{"id": 1}')}, None, ["found:", {"id": 1}]),
    "structured_only": ({"content": [], "structuredContent": {"rows": [1]}}, ROWS, {"rows": [1]}),
    "structured_and_summary": ({"content": text("1 row."), "structuredContent": {"rows": [1]}}, ROWS, {"rows": [1]}),
    "structured_without_schema": ({"content": text("hi"), "structuredContent": {"a": None}}, None, {"a": None}),
    "wrapped_none": ({"content": [], "structuredContent": {"result": []}}, WRAPPED, []),
    "wrapped_one": ({"content": text('{"id": 1}'), "structuredContent": {"result": [{"id": 1}]}}, WRAPPED, [{"id": 1}]),
    "result_of_its_own": ({"content": [], "structuredContent": {"result": 5}}, None, {"result": 5}),
    "picture": ({"content": [*text("a dot"), PNG]}, None, ["a dot", "[image image/png, 6 bytes]"]),
    "picture_only": ({"content": [PNG]}, None, "[image image/png, 6 bytes]"),
    "sound": (
        {"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]},
        None,
        "[audio audio/wav, 3 bytes]",
    ),
    "resource_text": (
        {"content": [{"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "[1]"}}]},
        None,
        [1],
    ),
    "resource_bytes": (
        {"content": [{"type": "resource", "resource": {"uri": "file:///a", "mimeType": "a/b", "blob": "AAAA"}}]},
        None,
        "[resource a/b, 3 bytes]",
    ),
    "resource_link": (
        {"content": [{"type": "resource_link", "uri": "file:///a.txt", "name": "a"}]},
        None,
        "[resource_link file:///a.txt]",
    ),
    "error": ({"content": text("no such row"), "isError": True}, None, FAILS + "no such row"),
    "error_twice": ({"content": text("a", "b"), "isError": True}, None, FAILS + "a\nb"),
    "error_silent": ({"content": [], "isError": True}, None, FAILS + "raw.error_silent failed without a text"),
    "error_json": ({"content": text('{"code": 7}'), "isError": True}, None, FAILS + '{"code": 7}'),
    "error_against_schema": ({"content": text("bad"), "isError": True}, ROWS, FAILS + "bad"),
    "error_in_prose": ({"content": text("Error: none"), "isError": False}, None, "Error: none"),
    "against_schema": (
        {"content": [], "structuredContent": {"row": 1}},
        ROWS,
        FAILS + "raw.against_schema broke its own contract: Invalid structured content",
    ),
    "schema_unmet": (
        {"content": text("hi")},
        ROWS,
        FAILS + "raw.schema_unmet broke its own contract: Tool schema_unmet",
    ),
    "no_content_type": (
        {"content": [{"type": "hologram"}]},
        None,
        FAILS + "raw.no_content_type broke its own contract",
    ),
    "no_content_at_all": ({"contents": 1}, None, FAILS + "raw.no_content_at_all broke its own contract"),
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        made: dict[str, Any] = {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "raw", "version": "1"},
        }
    elif method == "tools/list":
        made = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in FORMS]}
        for tool in made["tools"]:
            if schema := FORMS[tool["name"]][1]:
                tool["outputSchema"] = schema
    elif method == "tools/call":
        made = FORMS[params["name"]][0]
    else:
        return {"error": {"code": -32601, "message": f"no method {method}"}}
    return {"result": made}


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}), flush=True)
