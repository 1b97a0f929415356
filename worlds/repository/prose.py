"""Reads what `mcp-server-git` writes: it answers in text for people, not in JSON."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    commit: str
    """The first ten digits, which name a commit well enough."""
    author: str
    date: str


def entries(log: str) -> list[Entry]:
    """The commits of a `git_log` reply, newest first."""
    found = []
    for part in log.split("Commit: ")[1:]:
        author, date = (part.split(key)[1].splitlines()[0] for key in ("Author: ", "Date: "))
        found.append(Entry(part[:10], author, date))
    return found


def by(log: str, author: str) -> list[Entry]:
    return [entry for entry in entries(log) if entry.author == author]


def files(show: str) -> list[str]:
    """The files a `git_show` reply says were written."""
    return [part.splitlines()[0] for part in show.split("+++ b/")[1:]]


def added(patch: str) -> int:
    return _signs(patch).count("+")


def removed(patch: str) -> int:
    return _signs(patch).count("-")


def _signs(patch: str) -> list[str]:
    return [line[:1] for line in patch.splitlines() if line[:3] not in ("+++", "---")]


def branches(listing: str) -> list[str]:
    """The names in a `git_branch` reply, where a star marks the current one."""
    return listing.replace("*", "").split()
