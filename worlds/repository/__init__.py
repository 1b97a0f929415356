"""Small git repositories with made-up histories, read through the third-party `mcp-server-git`.

    history.py    the repositories as values         store.py     writes them with `git fast-import`
    tasks.py      templates: draw, gold, near miss   questions.py their wordings and answer shapes
    experts.py    the turns in each arm              blocks.py    the programs; prose.py reads replies

The server is unmodified (2026.10.19, MIT) and started without `--repository`, in `data/`, so that a
`repo_path` is a plain repository name. It can also write; tasks list its read-only tools alone.
"""

from __future__ import annotations

from worlds.repository.store import DATA, HASH, SERVERS, build, ready
from worlds.repository.tasks import DEMO_TEMPLATES, TEMPLATES

__all__ = ["DATA", "DEMO_TEMPLATES", "HASH", "SERVERS", "TEMPLATES", "build", "ready"]
