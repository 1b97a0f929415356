"""Tables from finished runs: on the terminal, and as results/README.md.

    python eval/report.py                         # every benchmark below results/
    python eval/report.py --benchmark demo --no-write

Takes the newest finished run of each model and arm. Declines to put runs of different tasks, prompts or limits
into one table, and says which differ.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from hypertool import tables
from hypertool.errors import HyperToolError
from hypertool.prompts import ARMS

BEGIN, END = "<!-- results -->", "<!-- /results -->"


def main() -> int:
    parser = argparse.ArgumentParser(description="Print and write the comparison tables.")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--benchmark", help="only this one (default: all)")
    parser.add_argument("--no-write", action="store_true", help="do not rewrite results/README.md")
    arguments = parser.parse_args()
    console = Console()
    pages = ["# Results\n\nWritten by `make report`; each run's config.json says how to make it again.\n"]
    try:
        for title, runs in groups(arguments.results, arguments.benchmark):
            tables.check_comparable(runs)
            console.print(tables.terminal(title, runs))
            console.print(tables.caption(runs), style="dim", soft_wrap=True)
            folders = "\n".join(f"- `{run.folder}`" for run in runs)
            pages.append(f"## {title}\n\n{tables.markdown(runs)}\n{tables.caption(runs)}\n\n{folders}\n")
    except HyperToolError as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    if len(pages) == 1:
        print(
            f"report: no finished run below {arguments.results}; make one: make eval MODEL=scripted",
            file=sys.stderr,
        )
        return 2
    if not arguments.no_write and arguments.benchmark is None:
        target = arguments.results / "README.md"
        target.write_text("\n".join(pages), encoding="utf-8")
        console.print(f"written: {target}")
        if arguments.results == Path("results"):
            fill_readme(Path("README.md"), pages[1:])
    return 0


def fill_readme(path: Path, sections: list[str]) -> None:
    """Put the tables between the markers of the README, one heading level down."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    body = "\n".join(sections).replace("\n## ", "\n### ").replace("## ", "### ", 1)
    path.write_text(f"{before}{BEGIN}\n{body}\n{END}{after}", encoding="utf-8")


def groups(root: Path, only: str | None) -> list[tuple[str, list[tables.Finished]]]:
    """(title, runs) per benchmark, task set and seed; the newest run of each model and arm."""
    read = [tables.read_finished(path.parent) for path in root.glob("*/*/*/metrics.json")]
    chosen = [run for run in read if run is not None and only in (None, run.config["benchmark"])]
    chosen.sort(key=lambda run: run.provenance["date"])
    benchmarks = list(dict.fromkeys(run.config["benchmark"] for run in chosen))  # as they were first played
    found: dict[tuple[int, int, str], dict[tuple[str, str], tables.Finished]] = {}
    for run in chosen:
        place = (benchmarks.index(run.config["benchmark"]), run.config["seed"], run.config["tasks_hash"])
        found.setdefault(place, {})[(run.model, run.arm)] = run
    pages = []
    for place in sorted(found):
        models = list(dict.fromkeys(model for model, _ in found[place]))  # before training, then after
        runs = sorted(found[place].values(), key=lambda run: (models.index(run.model), ARMS.index(run.arm)))
        pages.append((f"{benchmarks[place[0]]}, seed {place[1]}", runs))
    return pages


if __name__ == "__main__":
    sys.exit(main())
