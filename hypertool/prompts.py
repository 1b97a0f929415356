"""The one renderer: every prompt of data, training, evaluation and serving comes from here.

Two templates: `system.j2` (what an arm is told) and `chat.jinja` (how a chat becomes text). The second is
also what training saves into the checkpoint and what the server is started with, so a prompt at serving
time is a token prefix of the training text (tests/test_prompts.py shows it for every turn).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from tokenizers import Tokenizer

from hypertool.errors import ConfigError, nearest
from hypertool.tools import BLOCK_TOOL, ToolSpec

ARMS = ("react", "hybrid", "hypertool")
TEMPLATES = Path(__file__).parent / "templates"
CHAT_TEMPLATE = TEMPLATES / "chat.jinja"

BLOCK_FUNCTION: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": BLOCK_TOOL,
        "description": "Run a Python block that may call tools. Returns the value of result.",
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string"}},
            "required": ["code"],
            "additionalProperties": False,
        },
    },
}


class _Generation(Extension):
    """Accepts the `generation` tags that mark trained text; for rendering they mean nothing."""

    tags = {"generation"}  # noqa: RUF012  (jinja2 declares it as an instance attribute)

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise(message: str) -> None:
    raise ConfigError(message)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        extensions=[_Generation, "jinja2.ext.loopcontrols"],
    )
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    environment.globals["raise_exception"] = _raise
    return environment


def check_arm(arm: str) -> str:
    """`arm` itself, or ConfigError naming the valid arms and the nearest."""
    if arm not in ARMS:
        raise ConfigError(f"unknown arm {arm!r}. {nearest(arm, ARMS)}Arms: {', '.join(ARMS)}.")
    return arm


def exposed_tools(arm: str, specs: list[ToolSpec]) -> list[dict[str, Any]]:
    """The functions the model may call in this arm, in OpenAI form."""
    atomic = [spec.openai() for spec in specs]
    return {"react": atomic, "hybrid": [*atomic, BLOCK_FUNCTION], "hypertool": [BLOCK_FUNCTION]}[check_arm(arm)]


def system_prompt(arm: str, specs: list[ToolSpec]) -> str:
    """The system message of an arm. `specs` are the inner tools that blocks can reach."""
    servers: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        servers.setdefault(spec.server, []).append(spec)
    return _environment().get_template("system.j2").render(arm=check_arm(arm), servers=servers).strip()


def user_prompt(question: str, output_format: Any) -> str:
    """The user message: the question and, alike in every arm, the shape of the answer."""
    if not output_format:
        return question
    return f"{question}\nAnswer as JSON: {json.dumps(output_format, ensure_ascii=False)}"


def render_chat(
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]] | None = None,
    add_generation_prompt: bool = False,
) -> str:
    """The exact text a model reads. Raises ConfigError for a message the template cannot show."""
    for message in messages:
        if not isinstance(message.get("content"), str):
            raise ConfigError(
                f"a {message.get('role')!r} message has content of type {type(message.get('content')).__name__}; "
                "flatten it to text, or it would vanish from the prompt"
            )
    template = _environment().get_template(CHAT_TEMPLATE.name)
    return template.render(messages=messages, tools=tools or None, add_generation_prompt=add_generation_prompt)


def completion_text(message: dict[str, Any]) -> str:
    """What the model wrote to produce this assistant message, end token included."""
    head = render_chat([{"role": "user", "content": ""}], add_generation_prompt=True)
    whole = render_chat([{"role": "user", "content": ""}, message])
    return whole[len(head) :].rstrip("\n")


TokenCount = Callable[[str], int]


def prompt_hash() -> str:
    """12 hex digits over every template: two runs with the same hash were prompted alike."""
    digest = hashlib.sha256()
    for path in sorted(TEMPLATES.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    digest.update(json.dumps(BLOCK_FUNCTION).encode())
    return digest.hexdigest()[:12]


def load_counter(path: Path) -> TokenCount:
    """Count tokens with a tokenizer.json (results use Qwen3's, whatever model is measured).

    Raises ConfigError naming the command that fetches it.
    """
    if not path.is_file():
        raise ConfigError(f"{path}: no tokenizer there; run: python scripts/fetch_models.py")
    tokenizer = Tokenizer.from_file(str(path))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def tools_hash(specs: list[ToolSpec]) -> str:
    """12 hex digits over the tool catalogue: names, descriptions and schemas in order."""
    text = json.dumps([spec.openai() for spec in specs], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
