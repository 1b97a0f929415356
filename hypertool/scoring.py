"""Evaluators in MCP-Universe's dialect: a func chain extracts values, an op compares them.

`json -> get(key) -> len` walks the answer; the op must hold for every extracted value. Unlike upstream, a
check that extracts nothing fails: an empty list is not evidence. Ops beyond the generic ones are passed in by
the caller (a world brings its own), so this module knows no world.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from hypertool.errors import ConfigError, nearest
from hypertool.tasks import Task

Op = Callable[[Any, Any, Any], bool]  # (extracted, value, op_args)

GENERIC: dict[str, Op] = {
    "=": lambda x, value, _: (type(x) is type(value) and x == value) or (_both_numbers(x, value) and x == value),
    "<": lambda x, value, _: x < value,
    "<=": lambda x, value, _: x <= value,
    ">": lambda x, value, _: x > value,
    ">=": lambda x, value, _: x >= value,
    "in": lambda x, value, _: x in value,
    "contain": lambda x, value, _: value in x,
}


def _both_numbers(x: Any, value: Any) -> bool:
    kinds = (int, float)
    return isinstance(x, kinds) and isinstance(value, kinds) and not isinstance(x, bool) and not isinstance(value, bool)


def _json(value: Any) -> list[Any]:
    text = str(value).strip().strip("`").strip()
    return [json.loads(text.removeprefix("json"))]


def _get(value: Any, key: str) -> list[Any]:
    if not isinstance(value, dict):
        raise ValueError(f"get({key}) needs an object, got {type(value).__name__}")
    return [value.get(key)]


def _length(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"len needs a list, got {type(value).__name__}")
    return [len(value)]


def _foreach(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"foreach needs a list, got {type(value).__name__}")
    return value


_FUNCS: dict[str, Callable[..., list[Any]]] = {
    "json": _json,
    "get": _get,
    "len": _length,
    "foreach": _foreach,
    "list": lambda value: [[value]],
    "raw": lambda value: [value],
}


def parse_chain(func: str) -> list[tuple[str, tuple[str, ...]]]:
    """`json -> get(a)` as [("json", ()), ("get", ("a",))]. Raises ConfigError for an unknown step."""
    steps = []
    for part in func.split("->"):
        match = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", part)
        name = match.group(1) if match else part.strip()
        if match is None or name not in _FUNCS:
            raise ConfigError(
                f"unknown evaluator func {name!r} in {func!r}. {nearest(name, _FUNCS)}Funcs: {', '.join(_FUNCS)}."
            )
        arguments = tuple(text.strip() for text in match.group(2).split(",")) if match.group(2) else ()
        steps.append((name, arguments))
    return steps


def evaluate(task: Task, answer: str | None, ops: dict[str, Op] | None = None) -> list[dict[str, Any]]:
    """One dict per evaluator: `func`, `op`, `passed`, `reason`. An answer of None fails all of them.

    Raises ConfigError for a func or op nobody knows: that is a fault of the task, not of the answer.
    """
    known = {**GENERIC, **(ops or {})}
    checks = []
    for evaluator in task.evaluators:
        op = evaluator.get("op")
        if op is not None and op not in known:
            raise ConfigError(
                f"task {task.task_id!r} uses unknown op {op!r}. {nearest(op, known)}Ops: {', '.join(known)}."
            )
        chain = parse_chain(evaluator["func"])
        passed, reason = _one(chain, op, evaluator, answer, known)
        checks.append({"func": evaluator["func"], "op": op, "passed": passed, "reason": reason})
    return checks


def _one(
    chain: list[tuple[str, tuple[str, ...]]],
    op: str | None,
    evaluator: dict[str, Any],
    answer: str | None,
    known: dict[str, Op],
) -> tuple[bool, str]:
    if answer is None:
        return False, "no <answer>"
    values: list[Any] = [answer]
    try:
        for name, arguments in chain:
            values = [result for value in values for result in _FUNCS[name](value, *arguments)]
        if not values:
            return False, "nothing to check: the answer is empty there"
        if op is None:
            return True, ""
        for value in values:
            if not known[op](value, evaluator.get("value"), evaluator.get("op_args")):
                return False, f"{value!r} {op} {evaluator.get('value')!r} does not hold"[:300]
    except (ValueError, TypeError, KeyError) as error:
        return False, f"{type(error).__name__}: {error}"[:300]
    return True, ""
