"""How a competent user solves each template in each arm.

    hypertool   one block that does it all
    react       one atomic call a turn, each thought carrying what the reply said
    hybrid      atomic calls where replies are short or the next step hangs on reading them; a look and then a
                block where a loop follows; else one block

Experts know the question's parameters and what the server replies, nothing else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

from worlds.repository import prose
from worlds.repository.blocks import AFTER_A_LOOK, BLOCKS, Block
from worlds.world import ARMS, Expert, Message, Params, answer, block, call

Turns = Callable[[Params], Expert]
Reading = Generator[Message, list[str], str]


def expert(name: str) -> Callable[[str, Params], Expert]:
    """The expert of a template, for any arm."""

    def turns(arm: str, params: Params) -> Expert:
        if arm not in ARMS:
            raise ValueError(f"arm {arm!r}: expected one of {', '.join(ARMS)}")
        if arm == "react":
            return REACT[name](params)
        if arm == "hybrid" and name in HYBRID:
            return HYBRID[name](params)
        return run(BLOCKS[name], params)

    return turns


def run(program: Block, values: dict[str, Any]) -> Expert:
    """One block, and the answer it returns."""
    (seen,) = yield block(program.thought, program.code(values))
    reply = json.loads(seen)
    if not reply.get("status"):
        raise RuntimeError(f"the expert's block failed: {seen[:500]}")
    yield answer("The block returned the answer.", reply["result"])


def log(thought: str, repo: str, count: int = 50) -> Reading:
    (seen,) = yield call(thought, "git", "git_log", repo_path=repo, max_count=count)
    return seen


def show(thought: str, repo: str, revision: str) -> Reading:
    (seen,) = yield call(thought, "git", "git_show", repo_path=repo, revision=revision)
    return seen


def commits(number: int) -> str:
    return f"{number} commit" if number == 1 else f"{number} commits"


# react


def newest_files(p: Params) -> Expert:
    seen = yield from log(f"I look for the newest commit by {p['author']}.", p["repo"])
    newest = prose.by(seen, p["author"])[0]
    seen = yield from show(f"The newest is {newest.commit}; I open it.", p["repo"], newest.commit)
    yield answer("It changes these files.", {"files": prose.files(seen)})


def branches_with(p: Params) -> Expert:
    seen = yield from log(f"I look for the newest commit by {p['author']}.", p["repo"])
    commit = prose.by(seen, p["author"])[0].commit
    thought = f"The newest is {commit}; I list the branches with it."
    (seen,) = yield call(thought, "git", "git_branch", repo_path=p["repo"], branch_type="local", contains=commit)
    yield answer("These branches contain it.", {"branches": prose.branches(seen)})


def lines_added(p: Params) -> Expert:
    seen = yield from log(f"I list the commits to find those by {p['author']}.", p["repo"])
    mine = prose.by(seen, p["author"])
    thought = f"There are {len(mine)}; I open {mine[0].commit}."
    total = 0
    for entry, following in zip(mine, [*mine[1:], None], strict=True):
        seen = yield from show(thought, p["repo"], entry.commit)
        total += prose.added(seen)
        thought = f"It adds {prose.added(seen)}, so {total} so far"
        thought += f"; I open {following.commit}." if following else "; that was the last."
    yield answer(thought, {"added": total})


def branch_gap(p: Params) -> Expert:
    thought = f"I compare {p['branch']} with main."
    (seen,) = yield call(thought, "git", "git_diff", repo_path=p["repo"], target=p["branch"])
    gap = {"only_main": prose.added(seen), "only_branch": prose.removed(seen)}
    yield answer("Lines with a plus are only on main, with a minus only on the branch.", gap)


def count_two(p: Params) -> Expert:
    seen = yield from log(f"I count the commits by {p['author']} in {p['first']}.", p["first"])
    first = len(prose.by(seen, p["author"]))
    seen = yield from log(f"That is {commits(first)}; now {p['second']}.", p["second"])
    second = len(prose.by(seen, p["author"]))
    yield answer(f"There it is {commits(second)}.", {"first": first, "second": second})


def longer_branch(p: Params) -> Expert:
    lines = {}
    thought = f"I read the file on {p['one']}."
    for branch in (p["one"], p["two"]):
        seen = yield from show(thought, p["repo"], f"{branch}:{p['path']}")
        lines[branch] = len(seen.splitlines())
        thought = f"It has {lines[branch]} lines there; now {p['two']}."
    best = max(lines, key=lambda branch: lines[branch])
    yield answer(f"It has {lines[p['two']]} lines there.", {"branch": best, "lines": lines[best]})


def top_author(p: Params) -> Expert:
    counts = Counter[str]()
    thought = f"I count commits by author in {p['first']}."
    for repo in (p["first"], p["second"]):
        seen = yield from log(thought, repo)
        counts.update(entry.author for entry in prose.entries(seen))
        tally = ", ".join(f"{author} {number}" for author, number in counts.items())
        thought = f"So far: {tally}. Now {p['second']}."
    best = max(counts, key=lambda author: counts[author])
    yield answer(f"In all: {tally}.", {"author": best, "commits": counts[best]})


def newest_of_three(p: Params) -> Expert:
    dates = {}
    thought = f"I read the newest commit of {p['first']}."
    for repo, following in zip((p["first"], p["second"], p["third"]), ("second", "third", None), strict=True):
        seen = yield from log(thought, repo, count=1)
        dates[repo] = prose.entries(seen)[0].date
        thought = f"It is of {dates[repo][:10]}" + (f"; now {p[following]}." if following else ".")
    best = max(dates, key=lambda repo: dates[repo])
    yield answer(thought, {"repository": best, "date": dates[best][:10]})


def most_of_three(p: Params) -> Expert:
    counts = {}
    thought = f"I count the commits by {p['author']} in {p['first']}."
    for repo, following in zip((p["first"], p["second"], p["third"]), ("second", "third", None), strict=True):
        seen = yield from log(thought, repo)
        counts[repo] = len(prose.by(seen, p["author"]))
        thought = f"That is {commits(counts[repo])}" + (f"; now {p[following]}." if following else ".")
    best = max(counts, key=lambda repo: counts[repo])
    yield answer(thought, {"repository": best, "commits": counts[best]})


def last_touch(p: Params) -> Expert:
    seen = yield from log("I list the commits, newest first.", p["repo"])
    thought = "I open the newest."
    for entry in prose.entries(seen):
        seen = yield from show(thought, p["repo"], entry.commit)
        if p["path"] in prose.files(seen):
            break
        thought = "It leaves the file alone; I open the one before."
    yield answer("This one changes the file.", {"author": entry.author, "date": entry.date[:10]})


def longest_file(p: Params) -> Expert:
    tree = f"{p['branch']}:{p['folder']}"
    seen = yield from show("I list the folder.", p["repo"], tree)
    names = seen.split()
    thought = f"It holds {len(names)} files; I read {names[0]}."
    lines = {}
    for name, following in zip(names, [*names[1:], None], strict=True):
        seen = yield from show(thought, p["repo"], f"{tree}/{name}")
        lines[name] = len(seen.splitlines())
        thought = f"It has {lines[name]} lines" + (f"; now {following}." if following else ".")
    best = max(lines, key=lambda name: lines[name])
    yield answer(thought, {"file": best, "lines": lines[best]})


# hybrid: a look, then a block


def look_lines_added(p: Params) -> Expert:
    seen = yield from log(f"I list the commits to find those by {p['author']}.", p["repo"])
    found = [entry.commit for entry in prose.by(seen, p["author"])]
    yield from run(AFTER_A_LOOK["lines_added"], {"repo": p["repo"], "commits": found})


def look_longest_file(p: Params) -> Expert:
    tree = f"{p['branch']}:{p['folder']}"
    seen = yield from show("I list the folder.", p["repo"], tree)
    values = {"repo": p["repo"], "tree": tree, "names": seen.split()}
    yield from run(AFTER_A_LOOK["longest_file"], values)


REACT: dict[str, Turns] = {
    "newest_files": newest_files,
    "branches_with": branches_with,
    "lines_added": lines_added,
    "branch_gap": branch_gap,
    "count_two": count_two,
    "longer_branch": longer_branch,
    "top_author": top_author,
    "newest_of_three": newest_of_three,
    "most_of_three": most_of_three,
    "last_touch": last_touch,
    "longest_file": longest_file,
}
HYBRID: dict[str, Turns] = {
    "newest_files": newest_files,
    "branches_with": branches_with,
    "newest_of_three": newest_of_three,
    "lines_added": look_lines_added,
    "longest_file": look_longest_file,
}
