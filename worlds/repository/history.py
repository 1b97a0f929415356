"""The repositories as values: what was committed, by whom, when, on which branch.

One model, two renderings: `store.py` writes it as real git repositories, `tasks.py` computes gold answers
from it. A test reads every repository back with plain git and compares. Three properties keep answers single:
every line of a file is unique, so a diff has one reading; dates rise along each branch; nothing is deleted
or merged. The two splits share no repository, author, file or branch name, nor any word of one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import count

SEED = 20260115
START = int(datetime(2024, 1, 8, tzinfo=UTC).timestamp())
DAY = 86400
FOLDERS = ("core", "docs", "lib", "notes", "src", "tools")
SUFFIXES = ("cfg", "ini", "txt")
SUBJECTS = ("Adjust", "Extend", "Revise", "Rework", "Tidy", "Update")


@dataclass(frozen=True)
class Words:
    """What the names of one split are made from."""

    repositories: int
    adjectives: str
    things: str
    given: str
    family: str
    topics: str
    authors: int


WORDS = {
    "train": Words(
        repositories=140,
        adjectives="amber ancient arctic bold brisk calm cedar clever cobalt coral copper crimson dusty eager"
        " gentle golden granite hidden hollow ivory jade lively lunar mellow misty nimble olive polar quartz"
        " quiet rapid rustic sandy silver solar stormy sunny swift velvet wild",
        things="anchor badge basket beacon bridge bucket button candle canyon compass engine falcon fender"
        " garden hammer harbor helmet kettle ladder lantern magnet marble mirror needle packet parcel pillow"
        " planet pocket ribbon river saddle signal socket spindle tunnel turbine valley wagon widget",
        given="Alma Bruno Carla Dario Edith Fabian Greta Hugo Irene Jonas Karin Leon Mira Nadia Oscar Petra"
        " Quentin Rosa Simon Tilda Ugo Vera Walter Yara",
        family="Abel Barker Castro Dahl Ekman Fuchs Gomez Holt Ivers Jensen Kovac Lindgren Moreau Novak Olsen"
        " Price Quinn Rossi Sato Thorne Ulrich Vargas Weber Zimmer",
        topics="alarm batch buffer cache channel cookie cursor digest export filter format header import index"
        " journal layout ledger limits locale locks menu merge metric mirror numbers option order output"
        " parser plugin policy queue quota report retry routes sample schema scores search session shapes"
        " slots style table tags theme timer token traces units upload vector window",
        authors=60,
    ),
    "test": Words(
        repositories=32,
        adjectives="bright dizzy fancy frosty humble jolly proud scarlet silent tidy",
        things="acorn barrel clover dragon feather glacier orchard rocket tractor violin",
        given="Astrid Boris Celia Dmitri Esther Felix Gloria Henrik Ingrid Julian Lorna Marcus",
        family="Archer Bishop Crane Duval Fisher Grant Hansen Keller Larsen Mercer Nolan Parker",
        topics="access backup charts clock colors config drafts events fields groups images labels lookup"
        " mailer notices pages prices profile ranking rules stats sync titles views",
        authors=24,
    ),
}

Files = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Commit:
    author: str
    time: int
    """Seconds since 1970, UTC."""
    subject: str
    files: Files
    """Every file after this commit."""
    before: Files
    """Every file before it."""

    @property
    def date(self) -> str:
        return datetime.fromtimestamp(self.time, UTC).strftime("%Y-%m-%d")

    def touched(self) -> list[str]:
        return sorted(path for path, lines in self.files.items() if self.before.get(path) != lines)

    def added(self) -> int:
        return sum(len(missing(self.before.get(path, ()), self.files[path])) for path in self.touched())


@dataclass(frozen=True)
class Repository:
    name: str
    authors: tuple[str, ...]
    commits: tuple[Commit, ...]
    """main, oldest first."""
    forks: dict[str, int]
    """Branch -> how many commits of main it starts from."""
    branches: dict[str, tuple[Commit, ...]]
    """Branch -> its own commits, oldest first."""

    def newest(self, author: str | None = None) -> list[Commit]:
        """The commits of main, newest first, as a log shows them."""
        return [commit for commit in reversed(self.commits) if author in (None, commit.author)]

    def files(self, branch: str) -> Files:
        return self.commits[-1].files if branch == "main" else self.branches[branch][-1].files

    def all_branches(self) -> list[str]:
        return sorted([*self.branches, "main"])


def missing(before: tuple[str, ...], after: tuple[str, ...]) -> list[str]:
    """The lines of `after` that `before` lacks."""
    known = set(before)
    return [line for line in after if line not in known]


@cache
def repositories(split: str) -> dict[str, Repository]:
    """The repositories of a split by name, the same in every process."""
    words = WORDS[split]
    rng = random.Random(f"{SEED}/{split}")
    authors = _pairs(rng, words.given, words.family, " ", words.authors)
    names = _pairs(rng, words.adjectives, words.things, "-", words.repositories)
    return {name: _repository(rng, name, authors, words.topics.split()) for name in names}


def _pairs(rng: random.Random, first: str, second: str, joint: str, number: int) -> list[str]:
    every = [f"{a}{joint}{b}" for a in first.split() for b in second.split()]
    return rng.sample(every, number)


def _repository(rng: random.Random, name: str, authors: list[str], topics: list[str]) -> Repository:
    team = tuple(rng.sample(authors, 4))
    weights = [4, 3, 3, 2]
    folders = rng.sample(FOLDERS, 2)
    paths = [
        f"{folder}/{topic}.{rng.choice(SUFFIXES)}"
        for folder in folders
        for topic in rng.sample(topics, rng.randint(3, 4))
    ]
    numbers = count(1)
    time = START + rng.randrange(300 * DAY)
    commits: list[Commit] = []
    files: Files = {}
    for _ in range(rng.randint(10, 18)):
        time += rng.randrange(DAY, 20 * DAY)
        commits.append(_commit(rng, rng.choices(team, weights)[0], time, files, paths, numbers))
        files = commits[-1].files
    forks = {}
    branches = {}
    for topic in rng.sample(topics, 3):
        branch = f"{rng.choice(('draft', 'feature', 'fix'))}-{topic}"
        forks[branch] = rng.randint(len(commits) // 2, len(commits))
        branches[branch] = _branch(rng, team, commits[: forks[branch]], paths, numbers)
    return Repository(name, team, tuple(commits), forks, branches)


def _branch(
    rng: random.Random, team: tuple[str, ...], base: list[Commit], paths: list[str], numbers: Iterator[int]
) -> tuple[Commit, ...]:
    time, files = base[-1].time, base[-1].files
    own: list[Commit] = []
    for _ in range(rng.randint(1, 3)):
        time += rng.randrange(DAY // 4, 3 * DAY)
        own.append(_commit(rng, rng.choice(team), time, files, paths, numbers))
        files = own[-1].files
    return tuple(own)


def _commit(
    rng: random.Random, author: str, time: int, before: Files, paths: list[str], numbers: Iterator[int]
) -> Commit:
    files = dict(before)
    absent = [path for path in paths if path not in before]
    chosen = rng.sample(sorted(before), min(len(before), rng.randint(1, 2)))
    if absent and (not before or rng.random() < 0.6):
        chosen.append(absent[0])
    for path in chosen:
        files[path] = _edited(rng, files.get(path, ()), numbers)
    subject = f"{rng.choice(SUBJECTS)} {chosen[-1].split('/')[1]}"
    return Commit(author, time, subject, files, before)


def _edited(rng: random.Random, lines: tuple[str, ...], numbers: Iterator[int]) -> tuple[str, ...]:
    kept = list(lines)
    for _ in range(rng.randint(0, min(2, max(0, len(kept) - 2)))):
        kept.pop(rng.randrange(len(kept)))
    for _ in range(rng.randint(1, 2)):
        at = rng.randint(0, len(kept))
        kept[at:at] = [f"value_{next(numbers)} = {rng.randrange(100)}" for _ in range(rng.randint(1, 3))]
    return tuple(kept)
