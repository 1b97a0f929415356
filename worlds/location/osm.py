"""OSM extract -> rows: named places, address points, and the street graph of three modes. Build time only.

The graph keeps, for each mode, the edges whose two ends lie in the mode's largest strongly connected part:
streets are clipped at the border of the extract, and a lone clipped end would otherwise be unreachable.
Relations are not read; a closed way counts as a place at the mean of its corners.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from worlds.location.geo import MODES, great_circle, halves_up, inside
from worlds.location.hours import weekly

KINDS = ("amenity", "shop", "tourism", "leisure", "historic", "healthcare", "office", "craft", "railway")
VAGUE = {"yes", "no", "vacant", "switch", "crossing", "level_crossing", "railway_crossing", "stop", "platform"}
ATTRIBUTES = ("cuisine", "diet:vegan", "diet:vegetarian", "wheelchair", "outdoor_seating", "takeaway", "level")

SLOW, CALM, BRISK = 36, 24, 18
"""Milliseconds per decimetre in the centre: 10, 15 and 20 km/h."""
WALK_PACE, RIDE_PACE = 72, 24
CAR = dict.fromkeys(("primary", "primary_link", "secondary", "tertiary", "tertiary_link"), BRISK)
CAR |= dict.fromkeys(("residential", "unclassified", "living_street"), CALM) | {"service": SLOW}
RIDE = {*CAR, "cycleway", "pedestrian", "path"}
FOOT = {*RIDE, "footway", "steps", "corridor", "platform", "crossing"}
CLOSED = {"no", "private"}

Tags = dict[str, str]


@dataclass
class Extract:
    """Rows as they go into the tables of the same names."""

    place: list[tuple[Any, ...]] = field(default_factory=list)
    hours: list[tuple[Any, ...]] = field(default_factory=list)
    address: list[tuple[Any, ...]] = field(default_factory=list)
    street: list[tuple[Any, ...]] = field(default_factory=list)
    street_name: list[tuple[Any, ...]] = field(default_factory=list)
    node: list[tuple[Any, ...]] = field(default_factory=list)
    edge: list[tuple[Any, ...]] = field(default_factory=list)


def paces(tags: Tags) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Milliseconds per decimetre on foot, by bicycle and by car; along the way and against it; 0 = closed."""
    road = tags["highway"]
    buried = road in CAR and tags.get("tunnel") not in (None, "no", "building_passage")
    barred = buried or tags.get("access") in CLOSED  # the service tunnels below the centre are nobody's way
    foot = WALK_PACE if road in FOOT and not barred and tags.get("foot") not in CLOSED else 0
    welcome = tags.get("bicycle") in ("yes", "designated")
    ride = road in RIDE and not barred and tags.get("bicycle") not in {*CLOSED, "dismount"}
    bike = RIDE_PACE if ride or (road == "footway" and welcome and not barred) else 0
    car = 0 if barred or tags.get("motor_vehicle") in CLOSED else CAR.get(road, 0)
    oneway = tags.get("oneway") in ("yes", "1") or tags.get("junction") == "roundabout"
    contraflow = tags.get("oneway:bicycle") == "no" or "opposite" in tags.get("cycleway", "")
    back_bike = bike if not oneway or contraflow else 0
    return (foot, bike, car), (foot, back_bike, 0 if oneway else car)


def largest_part(arcs: list[tuple[int, int]]) -> set[int]:
    """The largest strongly connected set of nodes (Kosaraju); of equals the one with the smallest node."""
    ahead, behind = defaultdict(list), defaultdict(list)
    for a, b in arcs:
        ahead[a].append(b)
        behind[b].append(a)
    order: list[int] = []
    seen: set[int] = set()
    for root in sorted({n for arc in arcs for n in arc}):
        stack = [(root, iter(ahead[root]))] if root not in seen else []
        seen.add(root)
        while stack:
            node, following = stack[-1]
            fresh = next((n for n in following if n not in seen), None)
            if fresh is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(fresh)
                stack.append((fresh, iter(ahead[fresh])))
    parts: list[set[int]] = []
    taken: set[int] = set()
    for root in reversed(order):
        part, todo = set(), [root] if root not in taken else []
        while todo:
            node = todo.pop()
            if node not in taken:
                taken.add(node)
                part.add(node)
                todo += behind[node]
        parts.append(part)
    return max((p for p in parts if p), key=lambda p: (len(p), -min(p)))


def kinds_of(tags: Tags) -> list[str]:
    """The place's types, the telling one first: `amenity=cafe` is a `cafe`."""
    found = [tags[key] for key in KINDS if key in tags and tags[key] not in VAGUE]
    split = [part.strip() for value in found for part in value.split(";")]
    return list(dict.fromkeys(part for part in split if part))


def read(path: Path) -> Extract:
    """Everything this world takes from the extract, in a fixed order."""
    import osmium  # needed to build and not to run, and installed only for that

    points: dict[int, tuple[float, float]] = {}
    tagged: list[tuple[str, Tags, tuple[float, float]]] = []
    roads: list[tuple[Tags, list[int]]] = []
    for thing in osmium.FileProcessor(str(path)):
        tags = {t.k: t.v for t in thing.tags}
        if thing.is_node():
            points[thing.id] = (round(thing.lat, 7), round(thing.lon, 7))
            if tags:
                tagged.append((f"osm:node/{thing.id}", tags, points[thing.id]))
        elif thing.is_way():
            refs = [n.ref for n in thing.nodes]
            if "highway" in tags:
                roads.append((tags, refs))
            elif tags and refs[0] == refs[-1] and all(r in points for r in refs):
                corners = [points[r] for r in refs[:-1]]
                middle = (sum(p[0] for p in corners) / len(corners), sum(p[1] for p in corners) / len(corners))
                tagged.append((f"osm:way/{thing.id}", tags, (round(middle[0], 7), round(middle[1], 7))))
    extract = Extract()
    add_places(extract, sorted((t for t in tagged if inside(t[2])), key=lambda t: t[0]))
    add_streets(extract, roads, points)
    return extract


def add_places(extract: Extract, tagged: list[tuple[str, Tags, tuple[float, float]]]) -> None:
    addresses: dict[tuple[str, str], tuple[Any, ...]] = {}
    for key, tags, (lat, lng) in tagged:
        street, number = tags.get("addr:street", ""), tags.get("addr:housenumber", "")
        postcode = tags.get("addr:postcode", "")
        if street and number:
            addresses.setdefault((street, number), (f"address:{key}", street, number, postcode, lat, lng))
        types = kinds_of(tags)
        if not (types and tags.get("name")):
            continue
        city = f"{postcode} Helsinki".strip()
        address = ", ".join(part for part in (f"{street} {number}".strip(), city, "Finland") if part)
        site = tags.get("website") or tags.get("contact:website") or tags.get("url")
        phone = tags.get("phone") or tags.get("contact:phone")
        opening = tags.get("opening_hours")
        week = weekly(opening) if opening else None
        attributes = {k: tags[k] for k in ATTRIBUTES if k in tags}
        extract.place.append(
            (key, tags["name"], address, street, lat, lng, json.dumps(types), phone, site, opening,
             int(week is not None), json.dumps(attributes, ensure_ascii=False, sort_keys=True))
        )  # fmt: skip
        for day, spans in enumerate(week or []):
            extract.hours += [(key, day, opens, closes) for opens, closes in spans]
    extract.address = sorted(addresses.values())


def add_streets(extract: Extract, roads: list[tuple[Tags, list[int]]], points: dict[int, Any]) -> None:
    names = ["", *sorted({tags["name"] for tags, _ in roads if tags.get("name")})]
    number = {name: i for i, name in enumerate(names)}
    arcs: dict[tuple[int, int], tuple[int, int, tuple[int, int, int]]] = {}
    along: dict[str, set[int]] = defaultdict(set)
    for tags, refs in roads:
        name = tags.get("name", "")
        forth, back = paces(tags)
        if tags.get("oneway") == "-1":
            refs = refs[::-1]
        along[name].update(r for r in refs if r in points and inside(points[r]))
        for a, b in itertools.pairwise(refs):
            if a == b or not all(r in points and inside(points[r]) for r in (a, b)):
                continue
            dm = max(1, halves_up(great_circle(points[a], points[b]) * 10))
            for arc, speeds in (((a, b), forth), ((b, a), back)):
                if any(speeds) and arc not in arcs:
                    arcs[arc] = (dm, number[name], speeds)
    parts = [largest_part([arc for arc, row in arcs.items() if row[2][m]]) for m in range(len(MODES))]
    used: set[int] = set()
    for (a, b), (dm, name_id, speeds) in sorted(arcs.items()):
        kept = [v if a in part and b in part else 0 for v, part in zip(speeds, parts, strict=True)]
        if any(kept):
            extract.edge.append((a, b, dm, name_id, *kept))
            used |= {a, b}
    extract.node = [(n, *points[n]) for n in sorted(used)]
    extract.street_name = list(enumerate(names))
    for name in names[1:]:
        spots = sorted((points[n], n) for n in along[name] & used)
        if spots:
            (lat, lng), node = spots[len(spots) // 2]
            extract.street.append((f"street:osm:node/{node}/{number[name]}", name, lat, lng))
