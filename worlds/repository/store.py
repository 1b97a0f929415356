"""Writes the repositories to disk with `git fast-import`, under one hash.

Commit ids follow from contents, names and dates alone, so a rebuild gives the same ids anywhere. The hash
covers every ref of every repository. A build happens in a temporary folder and is renamed into place: one
that fails leaves the last good one as it was.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from worlds.repository.history import Commit, Repository, repositories
from worlds.world import SPLITS, digest

SERVERS = Path(__file__).parent / "servers.json"
DATA = Path(__file__).parent / "data"
HASH = "febf9bcee0d0f2eb1f80baf170bfb0f98e0cbe924cf2f5d90802a4c97569a2d2"
"""What a build of this version prints."""
STAMP = "hash.txt"


def ready(data: Path = DATA) -> bool:
    """Whether `data` holds a finished build of this version."""
    stamp = data / STAMP
    return stamp.is_file() and stamp.read_text().strip() == HASH


def build(dest: Path = DATA) -> str:
    """Write every repository below `dest`, replacing what was there; return the hash."""
    dest.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{dest.name}-", dir=dest.parent) as temporary:
        fresh = Path(temporary) / "fresh"
        fresh.mkdir()
        wanted = [repository for split in SPLITS for repository in repositories(split).values()]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            refs = dict(pool.map(lambda repository: _write(fresh, repository), wanted))
        total = digest(refs)
        (fresh / STAMP).write_text(total + "\n")
        if dest.exists():
            dest.rename(Path(temporary) / "stale")
        fresh.rename(dest)
    return total


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """The output of a git command that sees no configuration but the repository's own."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        input=stdin,
        capture_output=True,
        env=environment | {"GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"git {' '.join(arguments)} in {folder} failed: {done.stderr.decode().strip()}")
    return done.stdout


def _write(root: Path, repository: Repository) -> tuple[str, bytes]:
    folder = root / repository.name
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main", "--template=")
    stream = b"".join(_stream(repository))
    git(folder, "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--done", stdin=stream)
    git(folder, "reset", "--quiet", "--hard")
    return repository.name, git(folder, "for-each-ref", "--format=%(refname) %(objectname)")


def _stream(repository: Repository) -> Iterator[bytes]:
    """The fast-import commands: main under marks 1, 2, ..., then each branch from its fork."""
    mark = 0
    for commit in repository.commits:
        mark += 1
        yield _commit("main", commit, mark, parent=mark - 1)
    for branch, own in repository.branches.items():
        parent = repository.forks[branch]
        for commit in own:
            mark += 1
            yield _commit(branch, commit, mark, parent)
            parent = mark
    yield b"done\n"


def _commit(branch: str, commit: Commit, mark: int, parent: int) -> bytes:
    address = commit.author.lower().replace(" ", ".") + "@example.org"
    who = f"{commit.author} <{address}> {commit.time} +0000"
    parts = [f"commit refs/heads/{branch}\nmark :{mark}\nauthor {who}\ncommitter {who}\n"]
    parts.append(f"data {len(commit.subject) + 1}\n{commit.subject}\n\n")
    if parent:
        parts.append(f"from :{parent}\n")
    for path in commit.touched():
        text = "".join(f"{line}\n" for line in commit.files[path])
        parts.append(f"M 100644 inline {path}\ndata {len(text)}\n{text}\n")
    return "".join(parts).encode()
