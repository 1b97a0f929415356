"""The file format: whole lines, exact values, one schema; and what data and filters make of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hypertool import trajectory
from hypertool.data import to_row, write_rows
from hypertool.errors import ConfigError
from hypertool.trajectory import CallRecord, OuterCall, Trajectory, Turn
from hypertool.verify import filter_rows


def episode(**changes: object) -> Trajectory:
    inner = CallRecord("git", "git_log", {"a": [1]}, ok=True, reply={"x": "a\u2028b\u0085c"}, seconds=0.1, bytes=9)
    call = OuterCall("hypertool", {"code": "x"}, '{"status": true, "result": 1}', ok=True, inner=(inner,))
    request = {"id": "call_0", "type": "function", "function": {"name": "hypertool", "arguments": '{"code": "x"}'}}
    values: dict[str, object] = {
        "task_id": "t1",
        "arm": "hypertool",
        "model": "m",
        "answer": "1",
        "passed": True,
        "score": 1.0,
        "messages": [
            {"role": "user", "content": "q \u2028"},
            {"role": "assistant", "content": "p", "tool_calls": [request]},
            {"role": "tool", "tool_call_id": "call_0", "content": "{}"},
            {"role": "assistant", "content": "<answer>1</answer>"},
        ],
        "tools": '[{"a": null}]',
        "turns": [Turn(10, 5, 0.1, calls=(call,)), Turn(20, 3, 0.1)],
    }
    return Trajectory(**{**values, **changes})  # type: ignore[arg-type]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "trajectories.jsonl"
    rows = [episode(), episode(task_id="t2", status="infra_error", error="down")]
    for row in rows:
        trajectory.append(path, row)
    assert list(trajectory.read(path)) == rows
    assert len(path.read_bytes().split(b"\n")) == 3


def test_a_line_cut_by_a_crash_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    trajectory.append(path, episode())
    with path.open("ab") as file:
        file.write(b'{"schema": 1, "task_')
    assert [row.task_id for row in trajectory.read(path)] == ["t1"]


def test_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"schema": 99}) + "\n")
    with pytest.raises(ConfigError, match="schema 99 is not 1"):
        list(trajectory.read(path))


def test_a_full_disk_costs_no_earlier_line() -> None:
    with pytest.raises(OSError, match="No space left"):
        trajectory.append(Path("/dev/full"), episode())


def test_rows_hold_schemas_and_arguments_as_text(tmp_path: Path) -> None:
    path = tmp_path / "demo" / "train.jsonl"
    first = write_rows([episode()], path)
    assert first == write_rows([episode()], path)
    (row,) = [json.loads(line) for line in path.read_text().split("\n") if line]
    assert set(row) == {"task_id", "arm", "messages", "tools"}
    assert row == to_row(episode())
    assert isinstance(row["tools"], str)
    assert isinstance(row["messages"][1]["tool_calls"][0]["function"]["arguments"], str)


def test_every_drop_has_its_reason() -> None:
    failed = OuterCall("hypertool", {}, "{}", ok=False, error_kind="tool", inner=episode().turns[0].calls[0].inner)
    rows = [
        episode(),
        episode(status="infra_error"),
        episode(turns=[Turn(1, 1, 0.0, parse="failed")]),
        episode(turns=[Turn(1, 1, 0.0)]),
        episode(turns=[Turn(1, 1, 0.0, calls=(failed,))]),
        episode(status="exhausted"),
        episode(answer=None),
        episode(passed=False),
    ]
    kept, counts = filter_rows(rows)
    assert kept == [rows[0]]
    assert counts == {
        "attempted": 8,
        "kept": 1,
        "infra_error": 1,
        "unparsed": 1,
        "no_call": 1,
        "unresolved_failure": 1,
        "not_finished": 1,
        "no_answer": 1,
        "wrong_answer": 1,
    }
