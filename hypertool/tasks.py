"""One task row in MCP-Universe's JSON dialect, plus the keys our worlds add. Unknown keys are kept, unread."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypertool.errors import ConfigError


@dataclass(frozen=True)
class Task:
    """What an episode needs to begin and a scorer to end it.

    `servers` maps each server to the tools it may use (None: all of them). `raw` is the row as read.
    """

    task_id: str
    question: str
    output_format: Any
    servers: dict[str, list[str] | None]
    evaluators: tuple[dict[str, Any], ...]
    world: str = ""
    template: str = ""
    split: str = ""
    raw: dict[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def from_dict(cls, row: dict[str, Any], task_id: str = "") -> Task:
        """Raises ConfigError naming the missing key."""
        name = row.get("task_id", task_id)
        for key in ("question", "evaluators"):
            if key not in row:
                raise ConfigError(f"task {name!r} has no {key!r}")
        servers = {server["name"]: server.get("tools") for server in row.get("mcp_servers", [])}
        return cls(
            task_id=name,
            question=row["question"],
            output_format=row.get("output_format") or {},
            servers=servers,
            evaluators=tuple(row["evaluators"]),
            world=row.get("world", ""),
            template=row.get("template", ""),
            split=row.get("split", ""),
            raw=row,
        )


def read_tasks(path: Path) -> list[Task]:
    """A JSON-lines file of tasks, or one JSON file with a single task (MCP-Universe's own form)."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot read tasks: {error.strerror}") from error
    if path.suffix == ".json":
        return [Task.from_dict(json.loads(text), path.stem)]
    rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    return [Task.from_dict(row, f"{path.stem}-{number}") for number, row in enumerate(rows)]


def task_set_hash(tasks: list[Task]) -> str:
    """12 hex digits over the rows in order: two runs with the same hash met the same tasks."""
    digest = hashlib.sha256()
    for task in tasks:
        digest.update(json.dumps(task.raw, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()[:12]
