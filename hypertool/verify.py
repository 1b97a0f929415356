"""Which trajectories may become training data, and why the others may not. Pure; counts every drop.

Two filters of the paper's three (its §3.3) exist while experts play: execution, and the answer against gold,
which our generators know. The evidence judge comes with teacher models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypertool.trajectory import Trajectory

REASONS = (
    "infra_error",  # our own machinery failed; play it again
    "unparsed",  # a tool call could not be read
    "no_call",  # answered without evidence
    "unresolved_failure",  # the last call failed and the agent answered all the same
    "not_finished",  # exhausted or out of context
    "no_answer",  # no <answer>
    "wrong_answer",  # an evaluator failed
)


def reject_reason(trajectory: Trajectory) -> str | None:
    """The first reason of REASONS that applies, or None for a trajectory worth training on."""
    calls = [call for turn in trajectory.turns for call in turn.calls]
    tests = (
        trajectory.status == "infra_error",
        any(turn.parse == "failed" for turn in trajectory.turns),
        not any(call.inner for call in calls),
        bool(calls) and not calls[-1].ok,
        trajectory.status != "finished",
        trajectory.answer is None,
        not trajectory.passed,
    )
    return next((reason for reason, applies in zip(REASONS, tests, strict=True) if applies), None)


def filter_rows(trajectories: Iterable[Trajectory]) -> tuple[list[Trajectory], dict[str, int]]:
    """(kept, counts): counts has `attempted`, `kept` and every reason that dropped something."""
    kept: list[Trajectory] = []
    counts: Counter[str] = Counter()
    for trajectory in trajectories:
        counts["attempted"] += 1
        reason = reject_reason(trajectory)
        counts[reason or "kept"] += 1
        if reason is None:
            kept.append(trajectory)
    return kept, dict(counts)
