"""What the data says, for sampling and for gold answers: plain SQL and the shared distances, no server code.

Every entity belongs to one split by the hash of its id; a question names entities of its own split only, and
an answer that lies in the other split makes a sample unanswerable, so the splits share neither.
"""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from worlds.location.geo import Point, Streets, closest, connect, great_circle
from worlds.location.store import DATA, FILE
from worlds.location.text import plain
from worlds.world import Unanswerable

TRAIN_SHARE = 0.6
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
BIG = 200_000
"""Inhabitants of the cities that questions name."""


@dataclass(frozen=True)
class Spot:
    """An entity with a position, as questions and answers name it."""

    id: str
    name: str
    lat: float
    lng: float

    @property
    def point(self) -> Point:
        return self.lat, self.lng


@cache
def db() -> sqlite3.Connection:
    return connect(DATA / FILE)


@cache
def streets() -> Streets:
    return Streets(db())


def side(entity: str) -> str:
    """The split an entity belongs to."""
    share = int.from_bytes(hashlib.sha256(f"location/{entity}".encode()).digest()[:4]) / 2**32
    return "train" if share < TRAIN_SHARE else "test"


def same_side(answer: str, named: str) -> None:
    """Refuse an answer from the other split than the entity a question names."""
    if side(answer) != side(named):
        raise Unanswerable("the answer belongs to the other split")


def require(condition: bool, why: str) -> None:
    if not condition:
        raise Unanswerable(why)


def lead(values: Sequence[float], margin: float, why: str) -> None:
    """Refuse unless the first two of the sorted `values` are at least `margin` apart."""
    require(len(values) > 1 and abs(values[1] - values[0]) >= margin, why)


# Helsinki


@cache
def places() -> dict[str, Spot]:
    rows = db().execute("SELECT id, name, lat, lng FROM place ORDER BY id")
    return {row[0]: Spot(*row) for row in rows}


@cache
def landmarks(split: str) -> list[Spot]:
    """Places of a split whose name means nothing else in Helsinki: fit to be named in a question."""
    count = Counter(plain(spot.name) for spot in places().values())
    count.update(plain(name) for (name,) in db().execute("SELECT name FROM street"))
    clear = [
        spot
        for spot in places().values()
        if count[plain(spot.name)] == 1 and not set(spot.name) & set(',()"') and 4 <= len(spot.name) <= 40
    ]
    return [spot for spot in clear if side(spot.id) == split and plain(spot.name) != "helsinki"]


@cache
def of_kind(kind: str) -> list[Spot]:
    """Every place with the type, in the order of ids."""
    rows = db().execute("SELECT id, types FROM place ORDER BY id")
    return [places()[key] for key, types in rows if kind in json.loads(types)]


def within(kind: str, center: Spot, radius: int) -> list[Spot]:
    """Places of a kind in a circle, nearest first; refused where the border is in doubt."""
    far = [(great_circle(center.point, spot.point), spot) for spot in of_kind(kind)]
    require(all(abs(metres - radius) > 0.1 for metres, _ in far), "a place lies on the border of the circle")
    return [spot for metres, spot in sorted(far, key=lambda f: (f[0], f[1].id)) if metres < radius]


def unlike(spots: list[Spot]) -> None:
    """Refuse where two of the places have one name."""
    require(len({plain(s.name) for s in spots}) == len(spots), "two candidates have the same name")


def metres(a: Spot, b: Spot, mode: str = "walking") -> int:
    return streets().route(a.point, b.point, mode).metres


def seconds(a: Spot, b: Spot, mode: str) -> int:
    return streets().route(a.point, b.point, mode).seconds


def spans(place: str, day: int) -> list[tuple[int, int]] | None:
    """(opens, closes) in minutes on a weekday; None where the hours are not known as a plain week."""
    if not db().execute("SELECT weekly FROM place WHERE id = ?", (place,)).fetchone()[0]:
        return None
    query = "SELECT opens, closes FROM hours WHERE place = ? AND day = ? ORDER BY opens"
    return list(db().execute(query, (place, day)))


def attribute(place: str, key: str) -> str | None:
    row = db().execute("SELECT attributes FROM place WHERE id = ?", (place,)).fetchone()
    value: str | None = json.loads(row[0]).get(key)
    return value


def website(place: str) -> str | None:
    row = db().execute("SELECT website FROM place WHERE id = ?", (place,)).fetchone()
    value: str | None = row[0]
    return value


# The world


@cache
def cities() -> dict[str, Spot]:
    """Large cities by id, named "City, Country" (or with the state), where that means one city only."""
    columns = "c.id, c.name, c.region, c.country, c.code, c.lat, c.lng"
    rows = db().execute(f"SELECT {columns} FROM city c WHERE population >= ? ORDER BY c.id", (BIG,))
    found = {}
    for key, name, region, country, code, lat, lng in rows.fetchall():
        label = ", ".join(part for part in (name, region, country) if part)
        same = db().execute(
            "SELECT count(*) FROM city_name n JOIN city c ON c.id = n.city "
            "WHERE n.name = ? AND c.code = ? AND c.region = ?",
            (plain(name), code, region),
        )
        if label.isascii() and "," not in name + country and same.fetchone()[0] == 1 and name != "Helsinki":
            found[f"city:{key}"] = Spot(f"city:{key}", label, lat, lng)
    return found


@cache
def cities_by_country(split: str) -> dict[str, list[Spot]]:
    """Country code -> its large cities of a split, where there are at least six."""
    codes = dict(db().execute("SELECT id, code FROM city WHERE population >= ?", (BIG,)).fetchall())
    groups: dict[str, list[Spot]] = {}
    for spot in cities().values():
        if side(spot.id) == split:
            groups.setdefault(codes[int(spot.id.removeprefix("city:"))], []).append(spot)
    return {code: spots for code, spots in sorted(groups.items()) if len(spots) >= 6}


@cache
def city_points() -> list[tuple[float, float, int]]:
    return db().execute("SELECT lat, lng, id FROM city ORDER BY lat, lng, id").fetchall()


@cache
def airports() -> dict[str, tuple[Spot, int | None]]:
    rows = db().execute("SELECT iata, name, lat, lng, elevation FROM airport ORDER BY iata")
    return {iata: (Spot(f"airport:{iata}", name, lat, lng), height) for iata, name, lat, lng, height in rows}


@cache
def _heights() -> list[tuple[float, float, str]]:
    known = [(spot, iata) for iata, (spot, height) in airports().items() if height is not None]
    return sorted((spot.lat, spot.lng, iata) for spot, iata in known)


def ground(point: Point) -> tuple[int, str]:
    """(elevation, code) of the nearest airport of known elevation; refused where two are about as near."""
    (near, iata), (next_near, _) = closest(point, _heights(), 2)
    lead([near, next_near], 50, "two airports are equally near")
    return airports()[iata][1] or 0, iata


def pick(rng: random.Random, spots: list[Spot], count: int) -> list[str]:
    return [spot.id for spot in rng.sample(spots, count)]
