"""What every offline world shares: tasks with a computed answer, and an expert that knows how to get there.

A world is a set of MCP servers over fixed data plus a handful of templates. A `Template` draws parameters,
words the question, computes the gold answer from the data by plain code, states the checks, and carries an
expert for each arm. An `Expert` is a generator: it yields assistant messages in the OpenAI shape and is sent
the observation texts that answered its calls, so whoever runs it needs no knowledge of the world:

    turns = template.expert("hypertool", params)
    message = next(turns)
    while message.get("tool_calls"):
        message = turns.send([observe(c) for c in message["tool_calls"]])
    # message["content"] now ends in <answer>{...}</answer>

Not here: servers, transports, sandboxes and models. A world knows none of them.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
"""An assistant message: `content`, and `tool_calls` where it calls."""
Expert = Generator[Message, list[str], None]
"""Yields messages, is sent the texts of the tool messages that answer each one's calls, in order."""
Params = dict[str, Any]
Gold = dict[str, Any]
Check = dict[str, Any]

SPLITS = ("train", "test")
COMPOSITIONS = ("chain", "loop", "join", "rank", "page", "aggregate")
ARMS = ("react", "hybrid", "hypertool")
TRIES = 2000
"""Draws in a row without a new task after which a template counts as exhausted."""


class Unanswerable(Exception):
    """The drawn parameters have no single right answer; the sample is skipped and counted."""


# What an expert says


def calls(thought: str, wanted: list[tuple[str, str, dict[str, Any]]]) -> Message:
    """A turn with one or more atomic calls, given as (server, tool, arguments)."""
    return _turn(thought, [(f"{server}__{tool}", arguments) for server, tool, arguments in wanted])


def call(thought: str, server: str, tool: str, **arguments: Any) -> Message:
    """A turn with one atomic call."""
    return calls(thought, [(server, tool, arguments)])


def block(thought: str, code: str) -> Message:
    """A turn that runs one Python block through the single tool."""
    return _turn(thought, [("hypertool", {"code": code})])


def answer(thought: str, value: Any) -> Message:
    """The closing turn: no calls, the answer as JSON between tags."""
    text = json.dumps(value, ensure_ascii=False)
    return {"role": "assistant", "content": f"{thought}\n<answer>{text}</answer>"}


def _turn(thought: str, functions: list[tuple[str, dict[str, Any]]]) -> Message:
    tool_calls = [
        {
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
        }
        for index, (name, arguments) in enumerate(functions)
    ]
    return {"role": "assistant", "content": thought, "tool_calls": tool_calls}


# What a task is made from


def equal_checks(gold: Gold) -> list[Check]:
    """The answer is JSON, and each key holds exactly the gold value."""
    keys = [{"func": f"json -> get({key})", "op": "=", "value": value} for key, value in gold.items()]
    return [{"func": "json"}, *keys]


@dataclass(frozen=True)
class Template:
    name: str
    composition: str
    """One of COMPOSITIONS: the shape of the shortest program that answers."""
    servers: tuple[str, ...]
    tools: tuple[tuple[str, str], ...]
    """(server, tool) pairs that the expert needs; the least that must be there."""
    sample: Callable[[random.Random, str], Params]
    """(rng, split) -> parameters, JSON only; entities of the two splits are disjoint."""
    question: Callable[[Params, random.Random], str]
    """One of several wordings; says nothing of the output format, which the harness adds."""
    output_format: dict[str, Any]
    """An example-shaped JSON value, as in the MCP-Universe dialect."""
    gold: Callable[[Params], Gold]
    """Computed from the data, never through the servers; may raise Unanswerable."""
    near_miss: Callable[[Gold], Gold]
    """A plausible wrong answer, on which the checks must fail."""
    expert: Callable[[str, Params], Expert]
    """(arm, parameters) -> the turns of a rollout that succeeds."""
    evaluators: Callable[[Gold], list[Check]] = equal_checks
    offers: tuple[tuple[str, str], ...] = ()
    """(server, tool) pairs that the task lists; `tools` where empty."""


def sample_tasks(
    templates: Mapping[str, Template],
    world: str,
    split: str,
    n: int,
    seed: int,
    skipped: Counter[str] | None = None,
) -> list[dict[str, Any]]:
    """`n` distinct tasks, the templates in turn; the same arguments give the same rows.

    Each template draws from its own stream, so adding one leaves the others' draws alone. `skipped`, where
    given, counts by template the draws that had no single answer.
    """
    if split not in SPLITS:
        raise ValueError(f"split {split!r}: expected one of {', '.join(SPLITS)}")
    order = list(templates.values())
    streams = {t.name: random.Random(f"{world}/{t.name}/{split}/{seed}") for t in order}
    seen: set[tuple[str, str]] = set()
    counts = Counter[str]() if skipped is None else skipped
    rows = []
    for index in range(n):
        template = order[index % len(order)]
        params, gold = _draw(template, split, streams[template.name], seen, counts)
        question = template.question(params, streams[template.name])
        rows.append(_row(template, world, split, index, params, gold, question))
    return rows


def _draw(
    template: Template, split: str, rng: random.Random, seen: set[tuple[str, str]], skipped: Counter[str]
) -> tuple[Params, Gold]:
    for _ in range(TRIES):
        params = template.sample(rng, split)
        key = (template.name, json.dumps(params, sort_keys=True))
        if key in seen:
            continue
        seen.add(key)
        try:
            return params, template.gold(params)
        except Unanswerable:
            skipped[template.name] += 1
    raise ValueError(
        f"template {template.name!r} has no new task in split {split!r} after {TRIES} draws: ask for fewer"
    )


def _row(
    template: Template, world: str, split: str, index: int, params: Params, gold: Gold, question: str
) -> dict[str, Any]:
    offers = template.offers or template.tools
    servers = [
        {"name": server, "tools": [tool for owner, tool in offers if owner == server]} for server in template.servers
    ]
    return {
        "task_id": f"{world}-{template.name}-{split}-{index:04d}",
        "world": world,
        "template": template.name,
        "split": split,
        "params": params,
        "category": "general",
        "question": question,
        "output_format": template.output_format,
        "use_specified_server": True,
        "mcp_servers": servers,
        "evaluators": template.evaluators(gold),
    }


# What a build is checked by


def digest(parts: Mapping[str, bytes]) -> str:
    """One hash over named contents, in the order of their names."""
    total = hashlib.sha256()
    for name in sorted(parts):
        total.update(f"{name}\0{hashlib.sha256(parts[name]).hexdigest()}\n".encode())
    return total.hexdigest()
