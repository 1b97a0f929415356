"""The record of one episode: messages, turns, outer calls, blocks and inner calls. One JSON line each.

The file is append-only; a line is written whole or not at all. The format is versioned by `SCHEMA` and
specified in docs/trajectory.md. Everything later (data, metrics, tables) reads only this file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from hypertool.errors import CallFailure, ConfigError

SCHEMA = 1

Status = Literal["finished", "exhausted", "context_overflow", "parse_failed", "infra_error"]


@dataclass(frozen=True)
class CallRecord:
    """One primitive tool call, made from inside a block or as an atomic call.

    `failure` is None exactly when `ok`; it keeps the tool's own failures apart from refusals, clocks and servers.
    `start_s` counts from the start of the enclosing block or call; `bytes` is the size of the reply as JSON.
    """

    server: str
    tool: str
    params: dict[str, Any]
    ok: bool
    reply: Any = None
    error: str | None = None
    failure: CallFailure | None = None
    start_s: float = 0.0
    seconds: float = 0.0
    bytes: int = 0


@dataclass(frozen=True)
class OuterCall:
    """One call the model made: an atomic tool, or `hypertool` with a block.

    `observation` is exactly the text the model was shown. `inner` has one record per primitive call: one
    for an atomic call, any number for a block. `error_kind` is None on success. `server_errors` are faults of
    servers met on the way: infrastructure, not the model's.
    """

    name: str
    arguments: dict[str, Any]
    observation: str
    ok: bool
    error_kind: str | None = None
    stdout: str = ""
    seconds: float = 0.0
    inner: tuple[CallRecord, ...] = ()
    server_errors: tuple[str, ...] = ()
    repeats: int = 0
    """How often the very same failure had already happened in this episode."""


@dataclass(frozen=True)
class Turn:
    """One model completion and what it led to. Token counts follow metrics.md: Qwen3 tokens, rendered."""

    prompt_tokens: int
    completion_tokens: int
    seconds: float
    parse: Literal["clean", "repaired", "failed"] = "clean"
    calls: tuple[OuterCall, ...] = ()


@dataclass
class Trajectory:
    """One episode of one task in one arm. `messages` is the chat as the model saw it, answer included."""

    task_id: str
    arm: str
    model: str
    trial: int = 0
    status: Status = "finished"
    answer: str | None = None
    passed: bool | None = None
    score: float | None = None
    checks: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    tools: str = "[]"
    turns: list[Turn] = field(default_factory=list)
    seconds: float = 0.0
    world: str = ""
    template: str = ""
    split: str = ""
    schema: int = SCHEMA

    @property
    def key(self) -> tuple[str, str, int]:
        """What makes an episode unique inside a run: (task_id, arm, trial)."""
        return (self.task_id, self.arm, self.trial)

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=True, separators=(",", ":"))

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Trajectory:
        """Rebuild from a parsed line. Raises ConfigError for another schema version."""
        if row.get("schema") != SCHEMA:
            raise ConfigError(
                f"trajectory schema {row.get('schema')!r} is not {SCHEMA}: "
                "read it with the commit that wrote it, or run again"
            )
        turns = [
            Turn(
                **{
                    **turn,
                    "calls": tuple(
                        OuterCall(
                            **{
                                **call,
                                "inner": tuple(CallRecord(**inner) for inner in call["inner"]),
                                "server_errors": tuple(call["server_errors"]),
                            }
                        )
                        for call in turn["calls"]
                    ),
                }
            )
            for turn in row["turns"]
        ]
        return cls(**{**row, "turns": turns})


def append(path: Path, trajectory: Trajectory) -> None:
    """Append one line and flush it to disk, so that a crash costs at most the row in flight.

    Raises OSError (a full disk) before the line counts; a partial line is cut off again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    data = (trajectory.to_json() + "\n").encode()
    with path.open("ab") as file:
        start = file.tell()
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            os.truncate(path, start)
            raise


def read(path: Path) -> Iterator[Trajectory]:
    """Every whole line of a trajectory file. A last line without newline (a crash) is skipped."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ConfigError(f"{path}:{number} is not JSON ({error}); delete that line") from error
            yield Trajectory.from_dict(row)


def extract_answer(text: str) -> str | None:
    """The content of the last `<answer>...</answer>`, or None. The same rule in every arm."""
    found = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return found[-1].strip() if found else None
