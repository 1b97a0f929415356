"""A run on disk: provenance, append, resume. `results/<benchmark>/<model>/<arm>-<date>-<commit>-s<seed>/`.

config.json        the resolved config and everything that makes numbers comparable; written first
trajectories.jsonl one line per episode, appended as it ends
metrics.json       written when every episode is there
The same command again finds the unfinished run and plays only what is missing or failed for our own reasons.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hypertool import metrics, trajectory
from hypertool.errors import ConfigError
from hypertool.trajectory import Trajectory

Key = tuple[str, str, int]

MIN_FREE = 50_000_000  # bytes; a run of a few hundred episodes writes about 10 MB
PACKAGES = ("mcp", "openai", "tokenizers", "torch", "transformers", "trl", "vllm")


def provenance(root: Path) -> dict[str, Any]:
    """Commit, dirty flag, date, Python and package versions."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "commit": git("rev-parse", "HEAD")[:12] or "none",
        "dirty": bool(git("status", "--porcelain", "--untracked-files=no")),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": f"{platform.system()}-{platform.machine()}",
        "packages": versions,
    }


def need_space(folder: Path, free: int) -> None:
    """Raises ConfigError if the disk of `folder` (which exists) has less than `free` bytes left."""
    left = shutil.disk_usage(folder).free
    if left < free:
        raise ConfigError(
            f"{folder}: {left / 1e6:,.0f} MB left on its disk, {free / 1e6:,.0f} MB needed; free some space first"
        )


def slug(model: str) -> str:
    """A folder name for a model path, URL or id."""
    name = model.rstrip("/")
    if "://" not in name and name.startswith((".", "/", "models/", "runs/")):
        name = "-".join(Path(name).parts[-2:]).removeprefix("models-")
    return re.sub(r"[^\w.-]+", "-", name).strip("-") or "model"


class Run:
    """One run folder, open for appending."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trajectories_path = folder / "trajectories.jsonl"

    @classmethod
    def open(cls, root: Path, arm: str, seed: int, config: dict[str, Any], source: dict[str, Any]) -> Run:
        """Resume the unfinished run of this very config, or begin a new folder under `root`.

        `config` decides identity (it holds the hashes of tasks, prompts and tools); `source` is provenance.
        """
        config = json.loads(json.dumps(config))  # as it will be read back: tuples are lists
        for folder in sorted(root.glob(f"{arm}-*-s{seed}*"), reverse=True):
            saved = folder / "config.json"
            if not saved.exists() or (folder / "metrics.json").exists():
                continue
            known = json.loads(saved.read_text(encoding="utf-8"))
            if known["config"] == config and known["provenance"]["commit"] == source["commit"]:
                return cls(folder)
        stem = f"{arm}-{source['date'][:10]}-{source['commit'][:8]}-s{seed}"
        folder = root / stem
        number = 2
        while folder.exists():
            folder = root / f"{stem}-{number}"
            number += 1
        text = json.dumps({"config": config, "provenance": source}, indent=1, ensure_ascii=False)
        try:
            folder.mkdir(parents=True)
            need_space(folder, MIN_FREE)
            (folder / "config.json").write_text(text + "\n", encoding="utf-8")
        except (OSError, ConfigError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"{folder}: cannot write results there: {error.strerror}") from error
        return cls(folder)

    def load(self) -> list[Trajectory]:
        """The last line of each episode, in the order first seen."""
        latest: dict[Key, Trajectory] = {}
        for row in trajectory.read(self.trajectories_path):
            latest[row.key] = row
        return list(latest.values())

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """Keys without a finished line; infrastructure failures count as missing."""
        done = {row.key for row in self.load() if row.status != "infra_error"}
        return [key for key in keys if key not in done]

    def append(self, row: Trajectory) -> None:
        """Raises ConfigError when the disk is full; earlier lines are safe."""
        try:
            trajectory.append(self.trajectories_path, row)
        except OSError as error:
            raise ConfigError(
                f"{self.trajectories_path}: {error.strerror}; earlier episodes are kept. "
                "Free some space and run the same command again"
            ) from error

    def finish(self) -> dict[str, Any]:
        """Write metrics.json and return it."""
        rows = self.load()
        values = metrics.summarise(rows)
        values["by_template"] = by_template(rows)
        values["tasks"] = metrics.per_task(rows)
        text = json.dumps(values, indent=1)
        (self.folder / "metrics.json").write_text(text + "\n", encoding="utf-8")
        return values


def by_template(rows: Sequence[Trajectory]) -> dict[str, dict[str, Any]]:
    """`template -> {n, passed}` over scored episodes."""
    table: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.status == "infra_error":
            continue
        cell = table.setdefault(row.template or "-", {"n": 0, "passed": 0})
        cell["n"] += 1
        cell["passed"] += bool(row.passed)
    return dict(sorted(table.items()))
