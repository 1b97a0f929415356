"""Numbers from trajectories: success, tokens, turns, outer and inner calls, with intervals.

tokens     Qwen3 tokens of the rendered prompt (tools included) summed over turns, plus completions
peak       the largest prompt plus completion of one turn: the context an endpoint must hold
outer      calls the model made; inner: primitive tool calls, inside blocks or not
success    share of scored episodes with every evaluator passed; Wilson 95 % interval
means      bootstrap 95 % interval over episodes (percentile, seed 0)
Infrastructure failures leave the denominator and are counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from hypertool.tools import BLOCK_TOOL
from hypertool.trajectory import Trajectory

RESAMPLES = 2000


def tokens(trajectory: Trajectory) -> int:
    return sum(turn.prompt_tokens + turn.completion_tokens for turn in trajectory.turns)


def peak(trajectory: Trajectory) -> int:
    return max((turn.prompt_tokens + turn.completion_tokens for turn in trajectory.turns), default=0)


def turns(trajectory: Trajectory) -> int:
    return len(trajectory.turns)


def outer_calls(trajectory: Trajectory) -> int:
    return sum(len(turn.calls) for turn in trajectory.turns)


def inner_calls(trajectory: Trajectory) -> int:
    return sum(len(call.inner) for turn in trajectory.turns for call in turn.calls)


def seconds(trajectory: Trajectory) -> float:
    return trajectory.seconds


MEANS: dict[str, Callable[[Trajectory], float]] = {
    "tokens": tokens,
    "peak_context": peak,
    "turns": turns,
    "outer_calls": outer_calls,
    "inner_calls": inner_calls,
    "seconds": seconds,
}


def summarise(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """All metrics of one arm as JSON data: counts, success with interval, and `[mean, low, high]` per mean."""
    scored = [trajectory for trajectory in trajectories if trajectory.status != "infra_error"]
    passed = sum(bool(trajectory.passed) for trajectory in scored)
    outer = [call for trajectory in scored for turn in trajectory.turns for call in turn.calls]
    inner = [record for call in outer for record in call.inner]
    return {
        "n": len(scored),
        "attempted": len(trajectories),
        "infra_errors": len(trajectories) - len(scored),
        "passed": passed,
        "success": rate(passed, len(scored)),
        "mean_score": [float(np.mean([trajectory.score or 0.0 for trajectory in scored]))] if scored else None,
        "outcomes": _outcomes(scored),
        "parse_repaired": sum(turn.parse == "repaired" for trajectory in scored for turn in trajectory.turns),
        "parse_failed": sum(turn.parse == "failed" for trajectory in scored for turn in trajectory.turns),
        "block_errors": sum(call.name == BLOCK_TOOL and not call.ok for call in outer),
        "tool_error_rate": sum(not record.ok for record in inner) / len(inner) if inner else 0.0,
        "episodes_with_block": sum(
            any(call.name == BLOCK_TOOL for turn in trajectory.turns for call in turn.calls) for trajectory in scored
        ),
        "episodes_without_call": sum(outer_calls(trajectory) == 0 for trajectory in scored),
        **{name: mean([measure(trajectory) for trajectory in scored]) for name, measure in MEANS.items()},
    }


def _outcomes(scored: Sequence[Trajectory]) -> dict[str, int]:
    counts = {"passed": 0, "wrong_answer": 0, "no_answer": 0}
    for trajectory in scored:
        if trajectory.passed:
            key = "passed"
        elif trajectory.status != "finished":
            key = trajectory.status
        else:
            key = "no_answer" if trajectory.answer is None else "wrong_answer"
        counts[key] = counts.get(key, 0) + 1
    return counts


def rate(k: int, n: int) -> list[float] | None:
    """[k/n, low, high] with the Wilson 95 % interval; None for n = 0."""
    if n == 0:
        return None
    interval = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
    return [k / n, float(interval.low), float(interval.high)]


def mean(values: Sequence[float]) -> list[float] | None:
    """[mean, low, high], bootstrap over the values; a constant sample has a point interval; None if empty."""
    if not values:
        return None
    array = np.asarray(values, dtype=float)
    centre = float(array.mean())
    if len(array) < 2 or np.ptp(array) == 0:
        return [centre, centre, centre]
    interval = stats.bootstrap(
        (array,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    return [centre, float(interval.low), float(interval.high)]


def per_task(trajectories: Sequence[Trajectory]) -> list[dict[str, Any]]:
    """One small row per scored episode, enough to pair two runs without their trajectories."""
    return [
        {
            "task_id": row.task_id,
            "trial": row.trial,
            "passed": bool(row.passed),
            **{name: measure(row) for name, measure in MEANS.items() if name != "seconds"},
        }
        for row in trajectories
        if row.status != "infra_error"
    ]


def ratio(baseline: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]], name: str) -> list[float] | None:
    """[sum(other) / sum(baseline), low, high] of `name` over episodes both have, bootstrapped in pairs.

    Takes rows of `per_task`. None without pairs.
    """
    left = {(row["task_id"], row["trial"]): row[name] for row in baseline}
    pairs = [(left[row["task_id"], row["trial"]], row[name]) for row in other if (row["task_id"], row["trial"]) in left]
    if not pairs or sum(pair[0] for pair in pairs) == 0:
        return None
    before, after = (np.asarray(column, dtype=float) for column in zip(*pairs, strict=True))
    value = float(after.sum() / before.sum())
    if len(pairs) < 2:
        return [value, value, value]

    def statistic(x: Any, y: Any, axis: int = -1) -> Any:
        return y.sum(axis=axis) / x.sum(axis=axis)

    interval = stats.bootstrap(
        (before, after),
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return [value, float(interval.low), float(interval.high)]
