"""Names and coordinates to places: what the server finds, never what the tasks count as right.

A text is tried as coordinates, as a place id, as an airport code, as a Helsinki address, place or street, as an
airport and as a city, in this order; a trailing "Helsinki" or "Finland" narrows it to the first ones and a
trailing country or state to cities and airports. What is not in the data is not found: `None`, never a guess.
"""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from worlds.location.geo import Point, closest, great_circle, halves_up, inside
from worlds.location.text import plain

MOST = 60
"""Search results at most."""
NEAR_ADDRESS = 150
"""Metres within which an address names a point of the box."""
NEAR_CITY = 100_000
"""Metres within which a city names a point of the world."""
SYNONYMS = {"coffee": "cafe", "coffee shop": "cafe", "drugstore": "pharmacy", "chemist": "pharmacy"}
HOME = {"helsinki", "finland", "helsinki finland"}
IGNORED = {"in", "near", "at", "the", "helsinki", "finland", "around", "nearby", "me"}
COORDINATES = re.compile(r"\(?\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*\)?")


@dataclass(frozen=True)
class Found:
    """Something with a place on the map."""

    id: str
    name: str
    address: str
    lat: float
    lng: float
    types: tuple[str, ...]
    parts: tuple[tuple[str, str, str], ...] = ()
    """Address components: (long name, short name, type)."""

    @property
    def point(self) -> Point:
        return self.lat, self.lng


def singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


class Atlas:
    """The tables by name, id and position."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    @cached_property
    def places(self) -> dict[str, Found]:
        rows = self.db.execute("SELECT id, name, address, lat, lng, types FROM place ORDER BY id")
        return {k: Found(k, n, a, lat, lng, tuple(json.loads(t))) for k, n, a, lat, lng, t in rows}

    @cached_property
    def addresses(self) -> list[Found]:
        rows = self.db.execute("SELECT id, street, number, postcode, lat, lng FROM address ORDER BY id")
        return [self._address(*row) for row in rows]

    @staticmethod
    def _address(key: str, street: str, number: str, postcode: str, lat: float, lng: float) -> Found:
        parts = [(number, number, "street_number"), (street, street, "route")]
        parts += [("Helsinki", "Helsinki", "locality"), ("Finland", "FI", "country")]
        parts += [(postcode, postcode, "postal_code")] if postcode else []
        text = f"{street} {number}, {f'{postcode} Helsinki'.strip()}, Finland"
        return Found(key, f"{street} {number}", text, lat, lng, ("street_address",), tuple(parts))

    @cached_property
    def streets(self) -> list[Found]:
        rows = self.db.execute("SELECT id, name, lat, lng FROM street ORDER BY id")
        return [Found(k, n, f"{n}, Helsinki, Finland", lat, lng, ("route",)) for k, n, lat, lng in rows]

    @cached_property
    def airports(self) -> dict[str, Found]:
        rows = self.db.execute("SELECT iata, name, city, country, code, lat, lng FROM airport ORDER BY iata")
        return {r[0]: self._airport(*r) for r in rows}

    @staticmethod
    def _airport(iata: str, name: str, city: str, country: str, code: str, lat: float, lng: float) -> Found:
        text = ", ".join(part for part in (f"{name} ({iata})", city, country) if part)
        return Found(f"airport:{iata}", name, text, lat, lng, ("airport",), ((country, code, "country"),))

    @cached_property
    def in_box(self) -> dict[str, list[Found]]:
        """Plain name -> what carries it in Helsinki, addresses first, then places, then streets."""
        index: dict[str, list[Found]] = {}
        for found in (*self.addresses, *self.places.values(), *self.streets):
            index.setdefault(plain(found.name), []).append(found)
        return index

    @cached_property
    def airport_names(self) -> dict[str, Found]:
        index: dict[str, Found] = {}
        for found in self.airports.values():
            index.setdefault(plain(found.name), found)
        return index

    @cached_property
    def regions(self) -> dict[str, set[tuple[str, str]]]:
        """Plain name or code of a country or state -> the (column of `city`, value) it may mean."""
        index: dict[str, set[tuple[str, str]]] = {"usa": {("code", "US")}, "uk": {("code", "GB")}}
        columns = "region, state, country, code"
        for region, state, country, code in self.db.execute(f"SELECT DISTINCT {columns} FROM city"):
            for name, meaning in (
                (country, ("code", code)),
                (code, ("code", code)),
                (region, ("region", region)),
                (state, ("region", region)),
            ):
                index.setdefault(plain(name), set()).add(meaning)
        index.pop("", None)
        return index

    def find(self, text: str) -> Found | None:
        """The place a text names, or None."""
        text = text.strip()
        if match := COORDINATES.fullmatch(text):
            lat, lng = float(match[1]), float(match[2])
            if abs(lat) > 90 or abs(lng) > 180:
                return None
            return Found(f"point:{lat},{lng}", f"{lat},{lng}", f"{lat},{lng}", lat, lng, ())
        if by_id := self.by_id(text.removeprefix("place_id:")):
            return by_id
        if (code := re.fullmatch(r"(?:.*\()?([A-Z]{3})\)?(?: [Aa]irport)?", text)) and code[1] in self.airports:
            return self.airports[code[1]]
        head, *rest = [plain(part) for part in text.split(",") if plain(part)] or [""]
        home = any(part in HOME or re.fullmatch(r"(fi )?00\d{3}( helsinki)?", part) for part in rest)
        if head == "helsinki":  # the city, not the station of that name
            return self.city(head, [])
        if (home or not rest) and head in self.in_box:
            return self.in_box[head][0]
        for part in rest if head in self.in_box else []:  # "Name, Street 5"
            same = [f for f in self.in_box[head] if plain(f.address).startswith(part)]
            if same:
                return same[0]
        if head in self.airport_names:
            return self.airport_names[head]
        return self.city(head, rest)

    def by_id(self, key: str) -> Found | None:
        if key in self.places:
            return self.places[key]
        if key.startswith("airport:"):
            return self.airports.get(key.removeprefix("airport:"))
        if key.startswith("city:") and key[5:].isdigit():
            rows = self._cities("id = ?", (int(key[5:]),))
            return rows[0] if rows else None
        if match := re.fullmatch(r"point:(.+),(.+)", key):
            return self.find(f"{match[1]},{match[2]}")
        return next((f for f in (*self.addresses, *self.streets) if f.id == key), None)

    def _cities(self, where: str, values: tuple[Any, ...]) -> list[Found]:
        order = "ORDER BY population DESC, id"
        columns = "id, name, region, country, code, lat, lng"
        rows = self.db.execute(f"SELECT {columns} FROM city WHERE {where} {order}", values).fetchall()
        found = []
        for key, name, region, country, code, lat, lng in rows:
            parts = [(name, name, "locality"), (region, region, "administrative_area_level_1")]
            parts = [p for p in parts if p[0]] + [(country, code, "country")]
            address = ", ".join(p[0] for p in parts)
            found.append(Found(f"city:{key}", name, address, lat, lng, ("locality",), tuple(parts)))
        return found

    def city(self, name: str, narrower: list[str]) -> Found | None:
        """The most populous city of that name, in the given states and countries."""
        where, values = "id IN (SELECT city FROM city_name WHERE name = ?)", [name]
        for part in narrower:
            if part not in self.regions:
                return None
            meanings = sorted(self.regions[part])
            where += f" AND ({' OR '.join(f'{column} = ?' for column, _ in meanings)})"
            values += [value for _, value in meanings]
        rows = self._cities(where, tuple(values))
        return next((f for f in rows if plain(f.name) == name), rows[0] if rows else None)

    @cached_property
    def _address_points(self) -> list[tuple[float, float, str]]:
        return sorted((a.lat, a.lng, a.id) for a in self.addresses)

    @cached_property
    def _city_points(self) -> list[tuple[float, float, int]]:
        return self.db.execute("SELECT lat, lng, id FROM city ORDER BY lat, lng, id").fetchall()

    def around(self, p: Point) -> Found | None:
        """What names a point: the nearest address in the box, the nearest city elsewhere."""
        if inside(p):
            ((metres, key),) = closest(p, self._address_points, 1)
            return self.by_id(key) if metres <= NEAR_ADDRESS else None
        ((metres, city),) = closest(p, self._city_points, 1)
        return self.by_id(f"city:{city}") if metres <= NEAR_CITY else None

    @cached_property
    def known_types(self) -> set[str]:
        return {plain(t.replace("_", " ")) for f in self.places.values() for t in f.types}

    def search(self, query: str, center: Point | None, radius: float) -> list[Found]:
        """Places that fit every word, nearest first or by name; a type alone means that type only."""
        words = [w for w in plain(query.replace("_", " ")).split() if w not in IGNORED]
        phrase = " ".join(words)
        for form in (phrase, singular(phrase)):
            kind = SYNONYMS.get(form, form)
            if kind in self.known_types:
                hits = [f for f in self.places.values() if kind in {plain(t.replace("_", " ")) for t in f.types}]
                break
        else:
            hits = [f for f in self.places.values() if words and self._fits(f, words)]
            named = self.find(query) if not hits else None
            hits += [named] if named is not None and named.types else []
        if center is not None:
            near = sorted((great_circle(center, f.point), f.id, f) for f in hits)
            return [f for metres, _, f in near if metres <= radius][:MOST]
        return sorted(hits, key=lambda f: (plain(f.name), f.id))[:MOST]

    def _fits(self, found: Found, words: list[str]) -> bool:
        kinds = {plain(t.replace("_", " ")) for t in found.types}
        text = f"{plain(found.name)} {plain(found.address)} {self.cuisines.get(found.id, '')}"
        return all(w in kinds or singular(w) in kinds or SYNONYMS.get(w) in kinds or w in text for w in words)

    @cached_property
    def cuisines(self) -> dict[str, str]:
        rows = self.db.execute("SELECT id, attributes FROM place ORDER BY id")
        return {key: plain(json.loads(text).get("cuisine", "")) for key, text in rows}

    @cached_property
    def _heights(self) -> tuple[list[tuple[float, float, str]], dict[str, int]]:
        query = "SELECT lat, lng, iata, elevation FROM airport WHERE elevation IS NOT NULL ORDER BY lat, lng, iata"
        rows = self.db.execute(query).fetchall()
        return [row[:3] for row in rows], {row[2]: row[3] for row in rows}

    def ground(self, p: Point) -> tuple[int, int]:
        """(elevation, metres away) of the nearest airport whose elevation is known."""
        points, heights = self._heights
        ((metres, iata),) = closest(p, points, 1)
        return heights[iata], halves_up(metres)
