"""Numbers against values worked out by hand or by a second formula."""

from __future__ import annotations

import math

import pytest

from hypertool import metrics
from hypertool.trajectory import CallRecord, OuterCall, Trajectory, Turn


def episode(
    task: str, prompts: list[int], *, passed: bool = True, inner: int = 1, status: str = "finished"
) -> Trajectory:
    records = tuple(CallRecord("s", "t", {}, ok=True) for _ in range(inner))
    call = OuterCall("hypertool", {}, "", ok=True, inner=records)
    turns = [Turn(p, 10, 0.0, calls=(call,) if i == 0 else ()) for i, p in enumerate(prompts)]
    row = Trajectory(task_id=task, arm="a", model="m", passed=passed, score=float(passed), answer="1", turns=turns)
    row.status = status  # type: ignore[assignment]
    return row


def test_tokens_are_summed_over_turns_and_peak_is_one_turn() -> None:
    row = episode("t", [100, 250])
    assert metrics.tokens(row) == 100 + 250 + 20
    assert metrics.peak(row) == 260
    assert (metrics.turns(row), metrics.outer_calls(row), metrics.inner_calls(row)) == (2, 1, 1)


def test_infrastructure_failures_leave_the_denominator() -> None:
    rows = [
        episode("a", [1]),
        episode("b", [1], passed=False),
        episode("c", [1], passed=False, status="infra_error"),
    ]
    summary = metrics.summarise(rows)
    assert (summary["n"], summary["attempted"], summary["infra_errors"], summary["passed"]) == (2, 3, 1, 1)
    assert summary["outcomes"] == {"passed": 1, "wrong_answer": 1, "no_answer": 0}


def test_wilson_interval() -> None:
    k, n, z = 39, 40, 1.959963984540054
    p = k / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    value = metrics.rate(k, n)
    assert value == pytest.approx([p, centre - half, centre + half])
    assert metrics.rate(0, 0) is None


def test_mean_interval_holds_the_mean_and_shrinks_to_a_point() -> None:
    value = metrics.mean([1.0, 2.0, 3.0, 4.0, 10.0])
    assert value is not None
    assert value[0] == 4.0
    assert 1.0 < value[1] < 4.0 < value[2] < 10.0
    assert metrics.mean([5.0, 5.0]) == [5.0, 5.0, 5.0]
    assert metrics.mean([]) is None


def test_ratio_pairs_tasks_and_leaves_out_what_has_no_partner() -> None:
    react = [episode(f"t{i}", [100 * (i + 1)]) for i in range(6)]
    block = [episode(f"t{i}", [50 * (i + 1) - 5]) for i in range(6)] + [episode("alone", [10_000])]
    value = metrics.ratio(metrics.per_task(react), metrics.per_task(block), "tokens")
    assert value is not None
    assert value[0] == pytest.approx(
        sum(50 * (i + 1) + 5 for i in range(6)) / sum(100 * (i + 1) + 10 for i in range(6))
    )
    assert value[1] <= value[0] <= value[2]
