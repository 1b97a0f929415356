"""Turn rollouts into SFT rows: filter, count every drop, write one file per arm and split.

    python scripts/curate.py --runs runs/rollouts/scripted --set demo

Reads every run folder below --runs and writes data/<set>/<arm>/<split>.jsonl and data/<set>/card.json, the
funnel: how many were attempted, kept, and dropped for which reason. Seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hypertool import data, runs, verify
from hypertool.errors import ConfigError, HyperToolError
from hypertool.runs import Run
from hypertool.trajectory import Trajectory

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description="Filter rollouts into SFT rows.")
    parser.add_argument("--runs", type=Path, required=True, help="a folder of run folders")
    parser.add_argument("--set", required=True, help="name of the data set")
    parser.add_argument("--out", type=Path, default=Path("data"))
    arguments = parser.parse_args()
    try:
        groups = load(arguments.runs)
        table = Table("arm", "split", *["attempted", "kept"], "dropped", "file", title=f"data set {arguments.set}")
        card = {"provenance": runs.provenance(ROOT), "files": {}}
        for (arm, split), trajectories in sorted(groups.items()):
            kept, counts = verify.filter_rows(trajectories)
            path = arguments.out / arguments.set / arm / f"{split}.jsonl"
            digest = data.write_rows(kept, path)
            card["files"][f"{arm}/{split}"] = {"sha256": digest, **counts}
            dropped = {key: value for key, value in counts.items() if key not in ("attempted", "kept")}
            table.add_row(
                arm, split, str(counts["attempted"]), str(counts.get("kept", 0)), str(dropped or "none"), str(path)
            )
        (arguments.out / arguments.set / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    except HyperToolError as error:
        print(f"curate: {error}", file=sys.stderr)
        return 2
    Console().print(table)
    return 0


def load(folder: Path) -> dict[tuple[str, str], list[Trajectory]]:
    """Trajectories by (arm, split), in task order; the newest run of an arm wins over older ones."""
    latest: dict[tuple[str, str, int], Trajectory] = {}
    found = sorted(folder.glob("**/trajectories.jsonl"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise ConfigError(f"{folder}: no run with trajectories; make some: make data")
    for path in found:
        for row in Run(path.parent).load():
            latest[row.key] = row
    groups: dict[tuple[str, str], list[Trajectory]] = {}
    for row in sorted(latest.values(), key=lambda row: row.key):
        groups.setdefault((row.arm, row.split), []).append(row)
    return groups


if __name__ == "__main__":
    sys.exit(main())
