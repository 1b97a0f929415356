"""Trajectories become SFT rows: `task_id, arm, messages, tools`, one JSON line each.

Tool schemas and call arguments are JSON strings: as nested objects, Arrow would merge the keys of different
tools into one struct and print the nulls into the prompt (docs/trajectory.md, "SFT rows").
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hypertool.trajectory import Trajectory


def to_row(trajectory: Trajectory) -> dict[str, Any]:
    """One SFT row. The messages are those the agent saw, unchanged."""
    messages = []
    for message in trajectory.messages:
        row: dict[str, Any] = {"role": message["role"], "content": message["content"]}
        if message.get("tool_calls"):
            row["tool_calls"] = message["tool_calls"]
        messages.append(row)
    return {
        "task_id": trajectory.task_id,
        "arm": trajectory.arm,
        "messages": messages,
        "tools": trajectory.tools,
    }


def write_rows(trajectories: Iterable[Trajectory], path: Path) -> str:
    """Write a row per trajectory in the given order; the file appears whole or not at all. Returns its hash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(to_row(trajectory), ensure_ascii=True) + "\n" for trajectory in trajectories)
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
