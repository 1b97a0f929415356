"""What a tool is: its schema as the server declares it, and the forms a model meets.

One `ToolSpec` renders twice: as an OpenAI function (react, hybrid) and as one signature line (the text a
block writer reads). Arguments are checked against the original schema before a server sees them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal
from urllib.parse import unquote

from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from hypertool.errors import BadArguments, nearest

SEPARATOR = "__"  # joins server and tool into the exposed name of an atomic tool
BLOCK_TOOL = "hypertool"  # the exposed name of the block tool, in every arm that has it

MAX_INLINED = 2_000  # parts of a schema with its references replaced; beyond, types only

Params = dict[str, Any]

Effect = Literal["read", "write", "irreversible"]
"""What a call does to the world, by the server's own annotations; a tool that says nothing writes."""


@dataclass(frozen=True)
class ToolSpec:
    """One tool of one server. `input_schema` and `output_schema` are JSON Schema, kept as declared.

    `effect` and `idempotent` come from the MCP annotations; both are the server's claim, not a proof.
    """

    server: str
    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    effect: Effect = "write"
    idempotent: bool = False
    """Whether calling twice is the same as calling once; read tools are."""

    @property
    def exposed_name(self) -> str:
        return f"{self.server}{SEPARATOR}{self.name}"

    @cached_property
    def shown_schema(self) -> dict[str, Any]:
        """The input schema as prompts show it: without references (`inlined`)."""
        return inlined(self.input_schema)

    def openai(self) -> dict[str, Any]:
        """The OpenAI function form of an atomic tool."""
        return {
            "type": "function",
            "function": {
                "name": self.exposed_name,
                "description": self.description,
                "parameters": self.shown_schema,
            },
        }

    def signature(self) -> str:
        """One line: `name(arg: type, opt?: type = default) - first sentence of the description`."""
        required = set(self.shown_schema.get("required", []))
        properties: dict[str, Any] = self.shown_schema.get("properties", {})
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

    @cached_property
    def _validator(self) -> Any:
        """None for a schema that is no JSON Schema. References to elsewhere are not fetched."""
        schema = _with_null(self.input_schema)
        kind = validator_for(schema)
        try:
            kind.check_schema(schema)
        except SchemaError:
            return None
        return kind(schema, registry=Registry())

    def _faults(self, params: Params) -> list[Any]:
        """The validator's errors; none where the schema cannot be judged by, so that the server must."""
        try:
            return list(self._validator.iter_errors(params)) if self._validator else []
        except Unresolvable:
            return []

    @property
    def _where(self) -> str:
        return f"call_tool({self.server!r}, {self.name!r})"

    @property
    def _listing(self) -> str:
        required: list[str] = self.input_schema.get("required", [])
        named = [
            f"{'*' if key in required else ''}{key}: {type_name(schema)}"
            for key, schema in self.shown_schema.get("properties", {}).items()
        ]
        return f"Parameters (* = required): {', '.join(named)}." if named else "It takes no parameters."

    def check(self, params: Params) -> None:
        """Raise BadArguments, naming the valid parameters, if `params` do not fit the input schema."""
        faults = self._faults(params)
        if not faults:
            return
        properties: dict[str, Any] = self.input_schema.get("properties", {})
        for key in self.input_schema.get("required", []):
            if key not in params:
                strange = [given for given in params if given not in properties]
                meant = f" You gave {strange[0]!r}." if nearest(key, strange) else ""
                raise BadArguments(f"{self._where}: missing required parameter {key!r}.{meant} {self._listing}")
        if self.input_schema.get("additionalProperties") is False:
            for key in params:
                if key not in properties:
                    raise BadArguments(
                        f"{self._where}: unknown parameter {key!r}. {nearest(key, properties)}{self._listing}"
                    )
        error = best_match(faults)
        path = ".".join(str(part) for part in error.absolute_path) or "arguments"
        raise BadArguments(f"{self._where}: {path}: {error.message[:300]}. {self._listing}")

    def hints(self, params: Params) -> list[str]:
        """Parameters the schema neither names nor speaks about: passed on, and worth a word to the model.

        Nothing where the schema forbids extras (that is an error of `check`) or allows them.
        """
        properties: dict[str, Any] = self.input_schema.get("properties", {})
        if {"additionalProperties", "patternProperties", "unevaluatedProperties"} & set(self.input_schema):
            return []
        return [
            f"{self._where}: no parameter {key!r} is declared; it was passed on and may have had no effect. "
            f"{nearest(key, properties)}{self._listing}"
            for key in params
            if key not in properties
        ]


@dataclass(frozen=True)
class ToolReply:
    """What a tool returned: `text` for display (react), `value` for code (blocks)."""

    text: str
    value: Any
    bytes: int


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with every local `$ref` replaced by what it names, for models, which do not follow references.

    A schema without references is returned as it is. A reference into itself becomes its bare type, as does
    everything beyond MAX_INLINED parts; one that leads nowhere stays. For validation use the original.
    """
    if '"$ref"' not in json.dumps(schema):
        return schema
    left = MAX_INLINED

    def target(reference: str) -> Any:
        found: Any = schema
        for part in reference.removeprefix("#").split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            found = found[int(key)] if isinstance(found, list) else found[key]
        return found

    def one(value: Any, inside: tuple[str, ...]) -> Any:
        nonlocal left
        left -= 1
        if isinstance(value, list):
            return [one(item, inside) for item in value]
        if not isinstance(value, dict):
            return value
        reference = value.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            dropped = ("$defs", "definitions") if value is schema else ()
            return {key: one(item, inside) for key, item in value.items() if key not in dropped}
        try:
            named = target(reference)
        except (KeyError, IndexError, ValueError, TypeError):
            return value
        beside = {key: one(item, inside) for key, item in value.items() if key != "$ref"}
        if not isinstance(named, dict) or reference in inside or left < 0:
            return {"type": named.get("type", "object") if isinstance(named, dict) else "object", **beside}
        return {**one(named, (*inside, reference)), **beside}

    made = one(schema, ())
    assert isinstance(made, dict)
    return made


def _with_null(value: Any) -> Any:
    """The schema with OpenAPI's `nullable: true`, the third spelling of nullable, in JSON Schema's own words."""
    if isinstance(value, list):
        return [_with_null(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: _with_null(item) for key, item in value.items()}
    if made.get("nullable") is True and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
        if isinstance(made.get("enum"), list) and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
    return made


def type_name(schema: dict[str, Any]) -> str:
    """A short name for a JSON Schema type: `string`, `integer[]`, `string | null`, `"a" | "b"`, `any`."""
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(type_name(option) for option in schema[key])
    kind = schema.get("type", "any")
    if schema.get("nullable") is True and isinstance(kind, str):
        kind = [kind, "null"]
    if isinstance(kind, list):
        return " | ".join(type_name({**schema, "type": one, "nullable": False}) for one in kind)
    if kind == "array":
        return f"{type_name(schema.get('items', {}))}[]"
    if kind == "object" and schema.get("properties"):
        inner = ", ".join(f"{key}: {type_name(value)}" for key, value in schema["properties"].items())
        return f"{{{inner}}}"
    return str(kind)


def unknown_server(server: str, tool: str, servers: Iterable[str]) -> BadArguments:
    """The error for a server nobody configured: lists the valid names and the nearest."""
    names = list(servers)
    return BadArguments(
        f"call_tool({server!r}, {tool!r}): unknown server {server!r}. "
        f"{nearest(server, names)}Servers: {', '.join(names)}."
    )


def find(specs: Iterable[ToolSpec], server: str, tool: str) -> ToolSpec:
    """The spec of (server, tool). Raises BadArguments listing the valid names and the nearest."""
    specs = list(specs)
    names = [spec.name for spec in specs if spec.server == server]
    if not names:
        raise unknown_server(server, tool, dict.fromkeys(spec.server for spec in specs))
    for spec in specs:
        if (spec.server, spec.name) == (server, tool):
            return spec
    raise BadArguments(
        f"call_tool({server!r}, {tool!r}): unknown tool {tool!r}. {nearest(tool, names)}Tools: {', '.join(names)}."
    )
