"""The blocks the expert writes: one program for each template, and two that go on from a look.

Style, for models that learn to write them: the first line binds every name of the question to a variable and
nothing below repeats one; prose is split on its labels (no regex, so no backslash to escape); no comments. Names
stand in double quotes, as in the question they are copied from; the rest takes single quotes, which a JSON string
need not escape. Programs do a thing the same way or with other variables, so that a small model does not take
one for the other (docs/log.md, 2026-12-01).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Block:
    thought: str
    names: tuple[str, ...]
    """What the first line binds, in this order."""
    body: str

    def code(self, values: dict[str, Any]) -> str:
        bound = ", ".join(json.dumps(values[name]) for name in self.names)
        return f"{', '.join(self.names)} = {bound}\n{self.body.strip()}"


BLOCKS = {
    "newest_files": Block(
        "I find the author's newest commit and open it.",
        ("repo", "author"),
        """
log = call_tool('git', 'git_log', {'repo_path': repo, 'max_count': 50})['result']
entries = [entry for entry in log.split('Commit: ')[1:] if author in entry]
commit = entries[0].split()[0]
show = call_tool('git', 'git_show', {'repo_path': repo, 'revision': commit})['result']
result = {'files': [part.split()[0] for part in show.split('+++ b/')[1:]]}
""",
    ),
    "branches_with": Block(
        "I find the author's newest commit and its branches.",
        ("repo", "author"),
        """
log = call_tool('git', 'git_log', {'repo_path': repo, 'max_count': 50})['result']
entries = [entry for entry in log.split('Commit: ')[1:] if author in entry]
commit = entries[0].split()[0]
listing = call_tool('git', 'git_branch', {'repo_path': repo, 'branch_type': 'local', 'contains': commit})['result']
result = {'branches': listing.replace('*', '').split()}
""",
    ),
    "lines_added": Block(
        "I open every commit of the author and add up.",
        ("repo", "author"),
        """
log = call_tool('git', 'git_log', {'repo_path': repo, 'max_count': 50})['result']
entries = [entry for entry in log.split('Commit: ')[1:] if author in entry]
added = 0
for entry in entries:
    show = call_tool('git', 'git_show', {'repo_path': repo, 'revision': entry.split()[0]})['result']
    marks = [line[:1] for line in show.splitlines() if line[:3] not in ['+++', '---']]
    added += marks.count('+')
result = {'added': added}
""",
    ),
    "branch_gap": Block(
        "I compare main with the branch and count lines.",
        ("repo", "branch"),
        """
changes = call_tool('git', 'git_diff', {'repo_path': repo, 'target': branch})['result']
marks = [line[:1] for line in changes.splitlines() if line[:3] not in ['+++', '---']]
result = {'only_main': marks.count('+'), 'only_branch': marks.count('-')}
""",
    ),
    "count_two": Block(
        "I count the author's commits in both logs.",
        ("author", "first", "second"),
        """
one = call_tool('git', 'git_log', {'repo_path': first, 'max_count': 50})['result']
two = call_tool('git', 'git_log', {'repo_path': second, 'max_count': 50})['result']
result = {'first': one.count('Author: ' + author), 'second': two.count('Author: ' + author)}
""",
    ),
    "longer_branch": Block(
        "I read the file on both branches and compare.",
        ("repo", "path", "one", "two"),
        """
lines = {}
for branch in [one, two]:
    listing = call_tool('git', 'git_show', {'repo_path': repo, 'revision': branch + ':' + path})['result']
    lines[branch] = len(listing.splitlines())
best = max(lines, key=lines.get)
result = {'branch': best, 'lines': lines[best]}
""",
    ),
    "top_author": Block(
        "I join both logs and count commits by author.",
        ("first", "second"),
        """
log = ''
for repo in [first, second]:
    log += call_tool('git', 'git_log', {'repo_path': repo, 'max_count': 50})['result']
authors = [part.splitlines()[0] for part in log.split('Author: ')[1:]]
best = max(authors, key=authors.count)
result = {'author': best, 'commits': authors.count(best)}
""",
    ),
    "newest_of_three": Block(
        "I read the newest date of each repository.",
        ("first", "second", "third"),
        """
dates = {}
for repo in [first, second, third]:
    log = call_tool('git', 'git_log', {'repo_path': repo, 'max_count': 1})['result']
    dates[repo] = log.split('Date: ')[1].splitlines()[0]
best = max(dates, key=dates.get)
result = {'repository': best, 'date': dates[best][:10]}
""",
    ),
    "most_of_three": Block(
        "I count the author's commits in each of three logs.",
        ("author", "first", "second", "third"),
        """
counts = {}
for repo in [first, second, third]:
    log = call_tool('git', 'git_log', {'repo_path': repo, 'max_count': 50})['result']
    counts[repo] = log.count('Author: ' + author)
best = max(counts, key=counts.get)
result = {'repository': best, 'commits': counts[best]}
""",
    ),
    "last_touch": Block(
        "I open commits from the newest until one changes it.",
        ("repo", "path"),
        """
log = call_tool('git', 'git_log', {'repo_path': repo, 'max_count': 50})['result']
for entry in log.split('Commit: ')[1:]:
    show = call_tool('git', 'git_show', {'repo_path': repo, 'revision': entry.split()[0]})['result']
    if '+++ b/' + path in show:
        break
author = entry.split('Author: ')[1].splitlines()[0]
result = {'author': author, 'date': entry.split('Date: ')[1][:10]}
""",
    ),
    "longest_file": Block(
        "I list the folder and read every file in it.",
        ("repo", "branch", "folder"),
        """
tree = branch + ':' + folder
names = call_tool('git', 'git_show', {'repo_path': repo, 'revision': tree})['result'].split()
lines = {}
for name in names:
    listing = call_tool('git', 'git_show', {'repo_path': repo, 'revision': tree + '/' + name})['result']
    lines[name] = len(listing.splitlines())
best = max(lines, key=lines.get)
result = {'file': best, 'lines': lines[best]}
""",
    ),
}

AFTER_A_LOOK = {
    "lines_added": Block(
        "I open them all in one block and add up.",
        ("repo", "commits"),
        """
added = 0
for commit in commits:
    show = call_tool('git', 'git_show', {'repo_path': repo, 'revision': commit})['result']
    marks = [line[:1] for line in show.splitlines() if line[:3] not in ['+++', '---']]
    added += marks.count('+')
result = {'added': added}
""",
    ),
    "longest_file": Block(
        "I read them all in one block and compare.",
        ("repo", "tree", "names"),
        """
lines = {}
for name in names:
    listing = call_tool('git', 'git_show', {'repo_path': repo, 'revision': tree + '/' + name})['result']
    lines[name] = len(listing.splitlines())
best = max(lines, key=lines.get)
result = {'file': best, 'lines': lines[best]}
""",
    ),
}
