"""Builds the offline worlds, and draws tasks from them.

    python scripts/build_worlds.py build                      # every world that is not ready; seconds each
    python scripts/build_worlds.py sample --world repository --split train --n 500 --seed 1 > tasks.jsonl

Tasks go to stdout as JSON lines, the same bytes for the same arguments; remarks go to stderr.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable

import worlds
from worlds.world import SPLITS, sample_tasks


class UsageError(Exception):
    """Something on the command line names nothing we have."""


def known(kind: str, name: str, names: Iterable[str]) -> str:
    """`name`, if it is one of `names`; else an error that lists them and the nearest."""
    valid = list(names)
    if name not in valid:
        nearest = difflib.get_close_matches(name, valid, n=1, cutoff=0.0)[0]
        raise UsageError(f"no {kind} {name!r}: there are {', '.join(valid)}; did you mean {nearest!r}?")
    return name


def build(args: argparse.Namespace) -> None:
    names = [known("world", args.world, worlds.WORLDS)] if args.world else list(worlds.WORLDS)
    for name in names:
        world = worlds.load(name)
        if world.ready() and not args.force:
            print(f"{name}: ready")
            continue
        start = time.monotonic()
        found = world.build(world.DATA)
        print(f"{name}: {found} in {time.monotonic() - start:.1f} s", flush=True)
        if found != world.HASH:
            raise UsageError(
                f"world {name!r} came out as {found}, expected {world.HASH}: a source package has another version; "
                f"install what worlds/{name}/requirements.txt pins (scripts/setup.sh does) and build again"
            )


def sample(args: argparse.Namespace) -> None:
    world = worlds.load(known("world", args.world, worlds.WORLDS))
    split = known("split", args.split, SPLITS)
    templates = world.TEMPLATES
    if args.template:
        templates = {args.template: templates[known("template", args.template, templates)]}
    skipped = Counter[str]()
    try:
        rows = sample_tasks(templates, args.world, split, args.n, args.seed, skipped)
    except ValueError as error:
        raise UsageError(str(error)) from None
    for row in rows:
        print(json.dumps(row, ensure_ascii=False))
    if skipped:
        each = ", ".join(f"{name} {number}" for name, number in skipped.items())
        print(f"skipped for want of a single answer: {each}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="build | sample")

    building = commands.add_parser("build", help="build worlds that are not ready")
    building.add_argument("--world", help="only this one")
    building.add_argument("--force", action="store_true", help="build even what is ready")
    building.set_defaults(run=build)

    sampling = commands.add_parser("sample", help="print tasks as JSON lines")
    sampling.add_argument("--world", required=True)
    sampling.add_argument("--split", required=True, help=" or ".join(SPLITS))
    sampling.add_argument("--n", type=int, default=100, help="how many tasks (100)")
    sampling.add_argument("--seed", type=int, default=0)
    sampling.add_argument("--template", help="only this one")
    sampling.set_defaults(run=sample)

    args = parser.parse_args()
    try:
        args.run(args)
    except UsageError as error:
        print(f"build_worlds: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
