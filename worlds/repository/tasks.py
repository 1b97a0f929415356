"""The templates: what is drawn, how it is asked, and the gold answer, computed from the model of the history.

Gold never goes through the server: it reads `history.py`, which a test compares with plain git. Where a draw
has no single answer (a tie, a branch list of one) it raises `Unanswerable`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from worlds.repository.experts import expert
from worlds.repository.history import Repository, missing, repositories
from worlds.repository.questions import OUTPUT_FORMATS, QUESTIONS
from worlds.world import SPLITS, Gold, Params, Template, Unanswerable

OFFERS = tuple(("git", tool) for tool in ("git_status", "git_diff", "git_log", "git_show", "git_branch"))
"""The read-only tools, of the twelve the server has."""
DEMO_TEMPLATES = ("newest_files", "branches_with", "lines_added", "branch_gap")
"""The easiest for a very small model: one short block, two names to copy."""


def find(name: str) -> Repository:
    """A repository of either split."""
    for split in SPLITS:
        if name in repositories(split):
            return repositories(split)[name]
    raise KeyError(f"no repository {name!r}")


def question(name: str) -> Callable[[Params, random.Random], str]:
    return lambda params, rng: rng.choice(QUESTIONS[name]).format(**params)


def only_best(scores: dict[str, Any]) -> str:
    """The key with the highest score, where it is alone there."""
    best = max(scores.values())
    leaders = [key for key, score in scores.items() if score == best]
    if len(leaders) > 1:
        raise Unanswerable(f"{', '.join(leaders)} tie at {best}")
    return leaders[0]


def near_miss(gold: Gold) -> Gold:
    """The gold with its last value off by one: a line, a file, a day."""
    *_, (key, value) = gold.items()
    if isinstance(value, int):
        return gold | {key: value + 1}
    if isinstance(value, list):
        return gold | {key: value[:-1]}
    return gold | {key: str(date.fromisoformat(value) + timedelta(days=1))}


# What is drawn


def any_repository(rng: random.Random, split: str) -> Repository:
    return rng.choice(list(repositories(split).values()))


def repo_author(rng: random.Random, split: str) -> Params:
    repo = any_repository(rng, split)
    return {"repo": repo.name, "author": rng.choice(repo.newest()).author}


def repo_branch(rng: random.Random, split: str) -> Params:
    repo = any_repository(rng, split)
    return {"repo": repo.name, "branch": rng.choice(sorted(repo.branches))}


def repo_path_branches(rng: random.Random, split: str) -> Params:
    repo = any_repository(rng, split)
    one, two = rng.sample(repo.all_branches(), 2)
    path = rng.choice(sorted(set(repo.files(one)) & set(repo.files(two))))
    return {"repo": repo.name, "path": path, "one": one, "two": two}


def repo_path(rng: random.Random, split: str) -> Params:
    """A file that one of the newest eight commits changes, so that a search for it stays short."""
    repo = any_repository(rng, split)
    recent = {path for commit in repo.newest()[:8] for path in commit.touched()}
    return {"repo": repo.name, "path": rng.choice(sorted(recent))}


def repo_branch_folder(rng: random.Random, split: str) -> Params:
    repo = any_repository(rng, split)
    branch = rng.choice(repo.all_branches())
    folders = sorted({path.split("/")[0] for path in repo.files(branch)})
    return {"repo": repo.name, "branch": branch, "folder": rng.choice(folders)}


def two_repositories(rng: random.Random, split: str) -> Params:
    return dict(zip(("first", "second"), rng.sample(list(repositories(split)), 2), strict=True))


def three_contemporaries(rng: random.Random, split: str) -> Params:
    """Three repositories whose newest commits are neighbours in time, so that any of them may lead."""
    ordered = sorted(repositories(split).values(), key=lambda repo: repo.newest()[0].time)
    at = rng.randrange(len(ordered) - 7)
    names = [repo.name for repo in rng.sample(ordered[at : at + 8], 3)]
    return dict(zip(("first", "second", "third"), names, strict=True))


def shared_author(keys: tuple[str, ...]) -> Callable[[random.Random, str], Params]:
    """An author and as many repositories as there are keys; each has commits by that author if possible."""

    def sample(rng: random.Random, split: str) -> Params:
        author = rng.choice(any_repository(rng, split).newest()).author
        theirs = [name for name, repo in repositories(split).items() if repo.newest(author)]
        others = [name for name in repositories(split) if name not in theirs]
        lacking = max(0, len(keys) - len(theirs))
        names = rng.sample(theirs, len(keys) - lacking) + rng.sample(others, lacking)
        return {"author": author, **dict(zip(keys, names, strict=True))}

    return sample


# The gold answers


def newest_files(p: Params) -> Gold:
    return {"files": find(p["repo"]).newest(p["author"])[0].touched()}


def branches_with(p: Params) -> Gold:
    repo = find(p["repo"])
    held = repo.commits.index(repo.newest(p["author"])[0]) + 1
    branches = [b for b in repo.all_branches() if b == "main" or repo.forks[b] >= held]
    if len(branches) == 1:
        raise Unanswerable("only main contains the commit")
    return {"branches": branches}


def lines_added(p: Params) -> Gold:
    return {"added": sum(commit.added() for commit in find(p["repo"]).newest(p["author"]))}


def branch_gap(p: Params) -> Gold:
    repo = find(p["repo"])
    main, other = repo.files("main"), repo.files(p["branch"])

    def surplus(one: dict[str, tuple[str, ...]], two: dict[str, tuple[str, ...]]) -> int:
        return sum(len(missing(two.get(path, ()), lines)) for path, lines in one.items())

    return {"only_main": surplus(main, other), "only_branch": surplus(other, main)}


def count_two(p: Params) -> Gold:
    return {key: len(find(p[key]).newest(p["author"])) for key in ("first", "second")}


def longer_branch(p: Params) -> Gold:
    repo = find(p["repo"])
    lengths = {branch: len(repo.files(branch)[p["path"]]) for branch in (p["one"], p["two"])}
    best = only_best(lengths)
    return {"branch": best, "lines": lengths[best]}


def top_author(p: Params) -> Gold:
    counts = Counter(commit.author for key in ("first", "second") for commit in find(p[key]).newest())
    best = only_best(counts)
    return {"author": best, "commits": counts[best]}


def newest_of_three(p: Params) -> Gold:
    newest = {p[key]: find(p[key]).newest()[0] for key in ("first", "second", "third")}
    best = only_best({name: commit.time for name, commit in newest.items()})
    return {"repository": best, "date": newest[best].date}


def most_of_three(p: Params) -> Gold:
    counts = {p[key]: len(find(p[key]).newest(p["author"])) for key in ("first", "second", "third")}
    best = only_best(counts)
    return {"repository": best, "commits": counts[best]}


def last_touch(p: Params) -> Gold:
    commit = next(c for c in find(p["repo"]).newest() if p["path"] in c.touched())
    return {"author": commit.author, "date": commit.date}


def longest_file(p: Params) -> Gold:
    files = find(p["repo"]).files(p["branch"])
    inside = {path.split("/")[1]: len(files[path]) for path in files if path.split("/")[0] == p["folder"]}
    if len(inside) == 1:
        raise Unanswerable("the folder holds one file")
    best = only_best(inside)
    return {"file": best, "lines": inside[best]}


_TABLE = {
    "newest_files": ("chain", "git_log git_show", repo_author, newest_files),
    "branches_with": ("chain", "git_log git_branch", repo_author, branches_with),
    "lines_added": ("loop", "git_log git_show", repo_author, lines_added),
    "branch_gap": ("aggregate", "git_diff", repo_branch, branch_gap),
    "count_two": ("join", "git_log", shared_author(("first", "second")), count_two),
    "longer_branch": ("rank", "git_show", repo_path_branches, longer_branch),
    "top_author": ("aggregate", "git_log", two_repositories, top_author),
    "newest_of_three": ("rank", "git_log", three_contemporaries, newest_of_three),
    "most_of_three": ("rank", "git_log", shared_author(("first", "second", "third")), most_of_three),
    "last_touch": ("loop", "git_log git_show", repo_path, last_touch),
    "longest_file": ("loop", "git_show", repo_branch_folder, longest_file),
}

TEMPLATES = {
    name: Template(
        name=name,
        composition=composition,
        servers=("git",),
        tools=tuple(("git", tool) for tool in tools.split()),
        sample=sample,
        question=question(name),
        output_format=OUTPUT_FORMATS[name],
        gold=gold,
        near_miss=near_miss,
        expert=expert(name),
        offers=OFFERS,
    )
    for name, (composition, tools, sample, gold) in _TABLE.items()
}
