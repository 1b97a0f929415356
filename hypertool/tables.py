"""Finished runs side by side: the same rows on the terminal and in Markdown, n and intervals included."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from hypertool import metrics
from hypertool.errors import ConfigError

ROWS = (
    "success",
    "tokens",
    "tokens vs react",
    "peak context",
    "turns",
    "outer calls",
    "inner calls",
    "parse failed",
    "block errors",
    "infra failures",
)


@dataclass(frozen=True)
class Finished:
    """One finished run as read from disk: what is committed of it, so a fresh clone shows the same tables."""

    folder: Path
    config: dict[str, Any]
    provenance: dict[str, Any]
    metrics: dict[str, Any]

    @property
    def arm(self) -> str:
        return str(self.config["arm"])

    @property
    def model(self) -> str:
        return str(self.config["model"])


def read_finished(folder: Path) -> Finished | None:
    """A finished run, or None if the folder holds none."""
    config, numbers = folder / "config.json", folder / "metrics.json"
    if not config.exists() or not numbers.exists():
        return None
    saved = json.loads(config.read_text(encoding="utf-8"))
    return Finished(
        folder,
        saved["config"],
        saved["provenance"],
        json.loads(numbers.read_text(encoding="utf-8")),
    )


def check_comparable(runs: Sequence[Finished]) -> None:
    """Raises ConfigError, naming the key, if runs were made on different tasks, prompts or limits."""
    for key in ("tasks_hash", "prompt_hash", "world_hash", "budget", "limits"):
        values = {json.dumps(run.config.get(key), sort_keys=True) for run in runs}
        if len(values) > 1:
            raise ConfigError(
                f"these runs differ in {key} and do not belong into one table: "
                + ", ".join(f"{run.folder.name}={run.config.get(key)}" for run in runs)
            )


def cells(runs: Sequence[Finished]) -> dict[str, list[str]]:
    """ROWS -> one cell per run. `tokens vs react` is the paired ratio to the same model's react run."""
    react = {run.model: run for run in runs if run.arm == "react"}
    columns = []
    for run in runs:
        numbers = run.metrics
        baseline = react.get(run.model)
        ratio = None
        if baseline is not None and baseline is not run:
            ratio = metrics.ratio(baseline.metrics["tasks"], numbers["tasks"], "tokens")
        rate = _interval(numbers["success"], 2)
        columns.append(
            [
                f"{rate}\n{numbers['passed']} of {numbers['n']}",
                _interval(numbers["tokens"], 0),
                _interval(ratio, 2),
                _interval(numbers["peak_context"], 0),
                _interval(numbers["turns"], 1),
                _interval(numbers["outer_calls"], 1),
                _interval(numbers["inner_calls"], 1),
                str(numbers["parse_failed"]),
                str(numbers["block_errors"]),
                str(numbers["infra_errors"]),
            ]
        )
    return {name: [column[place] for column in columns] for place, name in enumerate(ROWS)}


def _interval(value: list[float] | None, digits: int) -> str:
    if value is None:
        return "-"
    centre, low, high = (f"{number:,.{digits}f}" for number in value)
    return centre if low == high else f"{centre} [{low}, {high}]"


def _headers(runs: Sequence[Finished]) -> list[str]:
    models = {run.model for run in runs}
    return [run.arm if len(models) == 1 else f"{run.model}, {run.arm}" for run in runs]


def terminal(title: str, runs: Sequence[Finished]) -> Table:
    """A rich table, one column per run; print it with a Console."""
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("")
    for name in _headers(runs):
        table.add_column(name, justify="right")
    for name, row in cells(runs).items():
        table.add_row(name, *row)
    return table


def markdown(runs: Sequence[Finished]) -> str:
    """The same table for README and results/."""
    lines = ["| | " + " | ".join(_headers(runs)) + " |", "|---|" + "---|" * len(runs)]
    for name, row in cells(runs).items():
        lines.append(f"| {name} | " + " | ".join(cell.replace("\n", "; ") for cell in row) + " |")
    return "\n".join(lines) + "\n"


def caption(runs: Sequence[Finished]) -> str:
    """Where the numbers come from: commit, task set, seeds, intervals."""
    commits = sorted({run.provenance["commit"] + ("+dirty" if run.provenance["dirty"] else "") for run in runs})
    seeds = sorted({run.config["seed"] for run in runs})
    first = runs[0].config
    models = ", ".join(dict.fromkeys(run.model for run in runs))
    return (
        f"{models}; benchmark {first['benchmark']}, worlds {', '.join(first['worlds'])}, split {first['split']}, "
        f"task set {first['tasks_hash']}, seed {', '.join(map(str, seeds))}, commit {', '.join(commits)}. "
        "Success: Wilson 95 %; means and ratios: bootstrap 95 % over tasks. Tokens: Qwen3, prompt with tools "
        "summed over turns plus completions."
    )
