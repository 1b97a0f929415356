"""What a distance is in this world: the one definition that the server and the gold answers share.

Inside the Helsinki box a route follows the street graph: the straight line on foot from each end to the
nearest graph node of the mode, and between the nodes the quickest path. Anywhere else it is a model, the
great circle times 1.25 at one speed per mode. There is no transit data. Lengths add up in decimetres and
times in milliseconds, as integers, and are rounded once at the end: metres and seconds, halves up.
"""

from __future__ import annotations

import heapq
import math
import sqlite3
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

BOX = (60.164, 24.935, 60.1795, 24.9535)
"""South, west, north, east of the mapped part of Helsinki."""
EARTH = 6_371_008.8
"""Mean radius in metres."""
DETOUR = 1.25
"""Road kilometres per great-circle kilometre outside the box."""
MODES = ("walking", "bicycling", "driving")
OPEN_SPEED = {"walking": 5, "bicycling": 15, "driving": 80}
"""km/h outside the box."""
WALK = 72
"""Milliseconds per decimetre on foot: 5 km/h."""
PAIRED = 1 << 32
"""A path cost is `milliseconds * PAIRED + decimetres`: the quickest path, of equals the shortest."""

Point = tuple[float, float]
Key = TypeVar("Key", int, str)


def great_circle(a: Point, b: Point) -> float:
    """Metres between two (latitude, longitude) points on a sphere."""
    (lat1, lng1), (lat2, lng2) = ((math.radians(v) for v in p) for p in (a, b))
    h = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lng2 - lng1) / 2) ** 2
    return 2 * EARTH * math.asin(min(1.0, math.sqrt(h)))


def closest(p: Point, spots: list[tuple[float, float, Key]], count: int) -> list[tuple[float, Key]]:
    """The `count` nearest of the (latitude, longitude, key) rows, sorted by latitude: (metres, key), nearest first."""
    for reach in (0.001, 0.01, 0.2, 2.0, 180.0):
        low = bisect_left(spots, p[0] - reach, key=itemgetter(0))
        high = bisect_right(spots, p[0] + reach, key=itemgetter(0))
        found = heapq.nsmallest(count, ((great_circle(p, (lat, lng)), key) for lat, lng, key in spots[low:high]))
        if len(found) == count and found[-1][0] < reach * 111_000:
            return found
    return found


def halves_up(value: float) -> int:
    return math.floor(value + 0.5)


def inside(p: Point) -> bool:
    south, west, north, east = BOX
    return south <= p[0] <= north and west <= p[1] <= east


@dataclass(frozen=True)
class Route:
    """A way from one point to another: the streets in order, each stretch with its decimetres."""

    metres: int
    seconds: int
    stretches: tuple[tuple[str, int, int], ...] = ()
    """(street name or "", decimetres, milliseconds), edge by edge; empty for modelled routes."""
    approach: tuple[int, int] = (0, 0)
    """Decimetres on foot before the first node and after the last."""


def modelled(a: Point, b: Point, mode: str) -> Route:
    """A route outside the box: great circle times DETOUR."""
    metres = great_circle(a, b) * DETOUR
    return Route(halves_up(metres), halves_up(metres * 3.6 / OPEN_SPEED[mode]))


class Streets:
    """The street graph of the box, read once into memory."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.nodes: dict[int, Point] = {}
        self.names: list[str] = [row[0] for row in db.execute("SELECT name FROM street_name ORDER BY id")]
        self.edges: dict[str, dict[int, list[tuple[int, int, int]]]] = {m: defaultdict(list) for m in MODES}
        rows = db.execute("SELECT a, b, dm, name, walking, bicycling, driving FROM edge ORDER BY a, b")
        for a, b, dm, name, *paces in rows:
            for mode, pace in zip(MODES, paces, strict=True):
                if pace:
                    self.edges[mode][a].append((b, dm * pace * PAIRED + dm, name))
        for node, lat, lng in db.execute("SELECT id, lat, lng FROM node ORDER BY id"):
            self.nodes[node] = (lat, lng)

    @cached_property
    def _by_latitude(self) -> dict[str, list[tuple[float, float, int]]]:
        return {m: sorted((*self.nodes[n], n) for n in self.edges[m]) for m in MODES}

    @lru_cache(maxsize=20_000)  # noqa: B019 - one Streets lives as long as its process
    def nearest(self, p: Point, mode: str) -> tuple[int, int]:
        """(node, decimetres in a straight line) of the node closest to `p` among those of the mode."""
        ((metres, node),) = closest(p, self._by_latitude[mode], 1)
        return node, halves_up(metres * 10)

    @lru_cache(maxsize=512)  # noqa: B019
    def _tree(self, source: int, mode: str) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
        """Costs from `source` to every node, and each node's (predecessor, street) on the way."""
        graph = self.edges[mode]
        costs, before = {source: 0}, {}
        heap, settled = [(0, source)], set()
        while heap:
            cost, node = heapq.heappop(heap)
            if node in settled:
                continue
            settled.add(node)
            for other, weight, street in graph[node]:
                if other not in costs or cost + weight < costs[other]:
                    costs[other] = cost + weight
                    before[other] = (node, street)
                    heapq.heappush(heap, (cost + weight, other))
        return costs, before

    def route(self, a: Point, b: Point, mode: str, stretches: bool = False) -> Route:
        """The way from `a` to `b`; the streets are listed only on request."""
        if not (inside(a) and inside(b)):
            return modelled(a, b, mode)
        if a == b:
            return Route(0, 0)
        (start, first), (end, last) = self.nearest(a, mode), self.nearest(b, mode)
        costs, before = self._tree(start, mode)
        ms, dm = divmod(costs[end], PAIRED)
        steps = []
        while stretches and end != start:
            node, street = before[end]
            spent, length = divmod(costs[end] - costs[node], PAIRED)
            steps.append((self.names[street], length, spent))
            end = node
        metres, seconds = (dm + first + last) / 10, (ms + (first + last) * WALK) / 1000
        return Route(halves_up(metres), halves_up(seconds), tuple(reversed(steps)), (first, last))


def connect(path: Path) -> sqlite3.Connection:
    """The world's database, read-only."""
    if not path.is_file():
        raise FileNotFoundError(f"no world data at {path}: build it with `python -m worlds.location.build`")
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
