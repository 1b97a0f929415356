"""What a tool is: its schema as the server declares it, and the forms a model meets.

One `ToolSpec` renders twice: as an OpenAI function (react, hybrid) and as one signature line (the text a
block writer reads). Arguments are checked against the original schema before a server sees them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for

from hypertool.errors import ToolCallError, nearest

SEPARATOR = "__"  # joins server and tool into the exposed name of an atomic tool
BLOCK_TOOL = "hypertool"  # the exposed name of the block tool, in every arm that has it

Params = dict[str, Any]


@dataclass(frozen=True)
class ToolSpec:
    """One tool of one server. `input_schema` and `output_schema` are JSON Schema, kept as declared."""

    server: str
    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None

    @property
    def exposed_name(self) -> str:
        return f"{self.server}{SEPARATOR}{self.name}"

    def openai(self) -> dict[str, Any]:
        """The OpenAI function form of an atomic tool."""
        return {
            "type": "function",
            "function": {
                "name": self.exposed_name,
                "description": self.description,
                "parameters": self.input_schema,
            },
        }

    def signature(self) -> str:
        """One line: `name(arg: type, opt?: type = default) - first sentence of the description`."""
        required = set(self.input_schema.get("required", []))
        properties: dict[str, Any] = self.input_schema.get("properties", {})
        ordered = sorted(properties, key=lambda key: key not in required)  # stable: required first
        arguments = []
        for key in ordered:
            schema = properties[key]
            text = f"{key}{'' if key in required else '?'}: {type_name(schema)}"
            if schema.get("default") is not None:
                text += f" = {json.dumps(schema['default'])}"
            arguments.append(text)
        first = self.description.strip().split("\n")[0].split(". ")[0].rstrip(".")
        return f"{self.name}({', '.join(arguments)}) - {first}"

    def check(self, params: Params) -> None:
        """Raise ToolCallError, naming the valid parameters, if `params` do not fit the input schema."""
        properties: dict[str, Any] = self.input_schema.get("properties", {})
        required: list[str] = self.input_schema.get("required", [])
        listing = ", ".join(
            f"{'*' if key in required else ''}{key}: {type_name(schema)}" for key, schema in properties.items()
        )
        where = f"call_tool({self.server!r}, {self.name!r})"
        for key in required:
            if key not in params:
                raise ToolCallError(
                    f"{where}: missing required parameter {key!r}. Parameters (* = required): {listing}."
                )
        if self.input_schema.get("additionalProperties") is False:
            for key in params:
                if key not in properties:
                    raise ToolCallError(
                        f"{where}: unknown parameter {key!r}. {nearest(key, properties)}"
                        f"Parameters (* = required): {listing}."
                    )
        validator = validator_for(self.input_schema)
        error = best_match(validator(self.input_schema).iter_errors(params))
        if error is not None:
            path = ".".join(str(part) for part in error.absolute_path) or "arguments"
            raise ToolCallError(f"{where}: {path}: {error.message[:300]}. Parameters (* = required): {listing}.")


@dataclass(frozen=True)
class ToolReply:
    """What a tool returned: `text` for display (react), `value` for code (blocks)."""

    text: str
    value: Any
    bytes: int


def type_name(schema: dict[str, Any]) -> str:
    """A short name for a JSON Schema type: `string`, `integer[]`, `string | null`, `"a" | "b"`, `any`."""
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(type_name(option) for option in schema[key])
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " | ".join(kind)
    if kind == "array":
        return f"{type_name(schema.get('items', {}))}[]"
    if kind == "object" and schema.get("properties"):
        inner = ", ".join(f"{key}: {type_name(value)}" for key, value in schema["properties"].items())
        return f"{{{inner}}}"
    return str(kind)


def unknown_server(server: str, tool: str, servers: Iterable[str]) -> ToolCallError:
    """The error for a server nobody configured: lists the valid names and the nearest."""
    names = list(servers)
    return ToolCallError(
        f"call_tool({server!r}, {tool!r}): unknown server {server!r}. "
        f"{nearest(server, names)}Servers: {', '.join(names)}."
    )


def find(specs: Iterable[ToolSpec], server: str, tool: str) -> ToolSpec:
    """The spec of (server, tool). Raises ToolCallError listing the valid names and the nearest."""
    specs = list(specs)
    names = [spec.name for spec in specs if spec.server == server]
    if not names:
        raise unknown_server(server, tool, dict.fromkeys(spec.server for spec in specs))
    for spec in specs:
        if (spec.server, spec.name) == (server, tool):
            return spec
    raise ToolCallError(
        f"call_tool({server!r}, {tool!r}): unknown tool {tool!r}. {nearest(tool, names)}Tools: {', '.join(names)}."
    )
