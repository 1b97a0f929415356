"""Central Helsinki, the world's cities and airports, read through an own server named `google-maps`.

    store.py      the database and its hash        osm.py, hours.py   the extract -> rows (build time)
    geo.py        what a distance is               text.py            how names compare
    server.py     the MCP server                   tools.py its schemas, lookup.py its search
    tasks.py      the templates                    town.py, globe.py  samples and gold, over truth.py
    experts.py    the turns in each arm            steps.py, blocks.py the atomic ways and the programs
    questions.py  the wordings and answer shapes

The tools keep the names and parameters of `@modelcontextprotocol/server-google-maps` 0.6.2.
"""

from __future__ import annotations

from worlds.location.store import CONTENT as HASH
from worlds.location.store import DATA, SERVERS, build, ready
from worlds.location.tasks import DEMO_TEMPLATES, TEMPLATES

__all__ = ["DATA", "DEMO_TEMPLATES", "HASH", "SERVERS", "TEMPLATES", "build", "ready"]
