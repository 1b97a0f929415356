"""The MCP-Universe dialect: chains, ops, and no credit for an empty answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hypertool.errors import ConfigError
from hypertool.scoring import evaluate
from hypertool.tasks import Task, read_tasks
from hypertool.trajectory import extract_answer


def task(*evaluators: dict[str, Any]) -> Task:
    return Task.from_dict({"task_id": "t", "question": "q", "evaluators": list(evaluators)})


def verdicts(answer: str | None, *evaluators: dict[str, Any]) -> list[bool]:
    return [check["passed"] for check in evaluate(task(*evaluators), answer)]


def test_chains_and_ops() -> None:
    answer = json.dumps({"n": 3, "name": "x", "rows": [{"k": 1}, {"k": 2}], "flag": True})
    assert verdicts(
        answer,
        {"func": "json"},
        {"func": "json -> get(n)", "op": "=", "value": 3},
        {"func": "json -> get(n)", "op": "=", "value": 3.0},
        {"func": "json -> get(n)", "op": "=", "value": "3"},
        {"func": "json -> get(flag)", "op": "=", "value": 1},
        {"func": "json -> get(rows) -> len", "op": "=", "value": 2},
        {"func": "json -> get(rows) -> foreach -> get(k)", "op": "<=", "value": 2},
        {"func": "json -> get(rows) -> foreach -> get(k)", "op": "<", "value": 2},
        {"func": "json -> get(name)", "op": "in", "value": ["x", "y"]},
    ) == [True, True, True, False, False, True, True, False, True]


@pytest.mark.parametrize("answer", [None, "", "{}", '{"rows": []}', "not json", "[]"])
def test_an_empty_answer_earns_nothing_on_a_list(answer: str | None) -> None:
    assert verdicts(answer, {"func": "json -> get(rows) -> foreach -> get(k)", "op": "=", "value": 1}) == [False]


def test_fences_around_the_answer_are_allowed() -> None:
    assert verdicts('```json\n{"n": 1}\n```', {"func": "json -> get(n)", "op": "=", "value": 1}) == [True]


def test_a_fault_of_the_task_is_not_a_wrong_answer() -> None:
    with pytest.raises(ConfigError, match=r"unknown op '=='"):
        evaluate(task({"func": "json", "op": "==", "value": 1}), "1")
    with pytest.raises(ConfigError, match=r"unknown evaluator func 'gett'.*Did you mean 'get'\?"):
        evaluate(task({"func": "json -> gett(a)"}), "1")


def test_the_last_answer_counts() -> None:
    assert extract_answer("<answer>1</answer> no: <answer>\n2\n</answer>") == "2"
    assert extract_answer("no tags") is None


def test_a_task_without_question_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"task_id": "t7", "evaluators": []}\n')
    with pytest.raises(ConfigError, match="'t7' has no 'question'"):
        read_tasks(path)


def test_the_public_benchmark_reads(tmp_path: Path) -> None:
    """A task as MCP-Universe writes it: no task_id, unknown keys, several servers."""
    row = {
        "category": "general",
        "question": "q",
        "output_format": {"a": "[NUMBER]"},
        "use_specified_server": True,
        "mcp_servers": [{"name": "yfinance"}, {"name": "calculator"}],
        "evaluators": [{"func": "json"}],
        "cleanups": [],
    }
    path = tmp_path / "yfinance_task_0001.json"
    path.write_text(json.dumps(row))
    (read,) = read_tasks(path)
    assert read.task_id == "yfinance_task_0001"
    assert read.servers == {"yfinance": None, "calculator": None}
