"""Offline worlds: MCP servers over fixed data, with tasks whose answers are computed from that data.

    world.py      what every world shares: templates, tasks, the experts' messages, hashes
    repository/   a few hundred small git repositories, read through the third-party `mcp-server-git`
    location/     places, routes, cities and airports, read through an own server

A world is a module with `TEMPLATES`, `SERVERS` (its servers.json), `DATA`, `HASH` (of the data),
`build(dest)` and `ready()`.
Nothing here imports `hypertool`: the interface meets a world as any MCP client would.
"""

from __future__ import annotations

import difflib
import importlib
from types import ModuleType

WORLDS: dict[str, str] = {
    "repository": "worlds.repository",
    "location": "worlds.location",
}


def load(name: str) -> ModuleType:
    """The module of a world; an unknown name is answered with the valid ones and the nearest."""
    if name not in WORLDS:
        nearest = difflib.get_close_matches(name, WORLDS, n=1, cutoff=0.0)
        raise ValueError(f"no world {name!r}: there are {', '.join(WORLDS)}; did you mean {nearest[0]!r}?")
    return importlib.import_module(WORLDS[name])
