"""The programs that solve the templates, as text: a few assignments, then steps, then a body that sets `result`.

A body can begin from the question (LOCATE, SEARCH, body) or from what atomic calls have already found, which
`given` writes down as literals.
"""

from __future__ import annotations

from typing import Any

LOCATE = """\
spot = call_tool("google-maps", "maps_geocode", {"address": center})["result"]["location"]
near = {"latitude": spot["lat"], "longitude": spot["lng"]}
"""
SEARCH = """\
area = {"query": kind, "location": near, "radius": radius}
found = call_tool("google-maps", "maps_search_places", area)["result"]["places"]
"""
MEETING = """\
ids = ["place_id:" + place["place_id"] for place in found]
pairs = {"origins": people, "destinations": ids, "mode": "walking"}
rows = call_tool("google-maps", "maps_distance_matrix", pairs)["result"]["results"]
longest = [max(row["elements"][i]["distance"]["value"] for row in rows) for i in range(len(found))]
best = longest.index(min(longest))
result = {"place": found[best]["name"], "longest_walk": longest[best]}
"""
FAR = """\
others = call_tool("google-maps", "maps_search_places", {"query": other})["result"]["places"]
pairs = {
    "origins": ["place_id:" + place["place_id"] for place in found],
    "destinations": ["place_id:" + place["place_id"] for place in others],
    "mode": "walking",
}
rows = call_tool("google-maps", "maps_distance_matrix", pairs)["result"]["results"]
nearest = []
for place, row in zip(found, rows):
    walks = [element["distance"]["value"] for element in row["elements"]]
    nearest.append((min(walks), place["name"], others[walks.index(min(walks))]["name"]))
metres, name, closest = max(nearest)
result = {"place": name, "nearest": closest, "metres": metres}
"""
OPEN = """\
ids = ["place_id:" + place["place_id"] for place in found]
pairs = {"origins": [center], "destinations": ids, "mode": "walking"}
row = call_tool("google-maps", "maps_distance_matrix", pairs)["result"]["results"][0]["elements"]
walks = sorted((element["distance"]["value"], place["place_id"]) for element, place in zip(row, found))
result = None
for metres, place_id in walks:
    details = call_tool("google-maps", "maps_place_details", {"place_id": place_id})["result"]
    week = details.get("opening_hours", {}).get("weekday_text")
    if "website" not in details or not week:
        continue
    hours = week[day].split(": ", 1)[1]
    if hours != "Closed":
        result = {"place": details["name"], "metres": metres, "opens": hours[:5]}
        break
"""
COUNT = """\
open_then = websites = 0
for place in found:
    details = call_tool("google-maps", "maps_place_details", {"place_id": place["place_id"]})["result"]
    websites += "website" in details
    week = details.get("opening_hours", {}).get("weekday_text")
    hours = week[day].split(": ", 1)[1] if week else "Closed"
    spans = [] if hours == "Closed" else [span.split("-") for span in hours.split(", ")]
    open_then += any(start < time and (time < end or end <= start) for start, end in spans)
result = {"listed": len(found), "open": open_then, "websites": websites}
"""
RIDE = """\
times = {}
for mode in ("driving", "bicycling"):
    pairs = {"origins": [start], "destinations": goals, "mode": mode}
    row = call_tool("google-maps", "maps_distance_matrix", pairs)["result"]["results"][0]["elements"]
    times[mode] = [element["duration"]["value"] for element in row]
saved = [car - bicycle for car, bicycle in zip(times["driving"], times["bicycling"])]
best = saved.index(max(saved))
name = goals[best].removesuffix(", Helsinki")
result = {"place": name, "seconds": saved[best], "faster": sum(value > 0 for value in saved)}
"""
LIST_ALL = """\
found = call_tool("google-maps", "maps_search_places", {"query": kind})["result"]["places"]
"""
STREET = """\
ids = ["place_id:" + place["place_id"] for place in found]
pairs = {"origins": [start], "destinations": ids, "mode": "walking"}
row = call_tool("google-maps", "maps_distance_matrix", pairs)["result"]["results"][0]["elements"]
walks = [element["distance"]["value"] for element in row]
best = walks.index(min(walks))
way = {"origin": start, "destination": ids[best], "mode": "walking"}
steps = call_tool("google-maps", "maps_directions", way)["result"]["routes"][0]["steps"]
streets = {}
for step in steps:
    if "<b>" in step["instructions"]:
        street = step["instructions"].split("<b>")[1].split("</b>")[0]
        streets[street] = streets.get(street, 0) + step["distance"]["value"]
longest = max(streets, key=streets.get)
result = {"place": found[best]["name"], "street": longest, "metres": streets[longest]}
"""
HEIGHTS = """\
points = []
for name in names:
    spot = call_tool("google-maps", "maps_geocode", {"address": name})["result"]["location"]
    points.append({"latitude": spot["lat"], "longitude": spot["lng"]})
rows = call_tool("google-maps", "maps_elevation", {"locations": points})["result"]["results"]
heights = [row["elevation"] for row in rows]
"""
HIGHEST = """\
top = max(heights)
result = {"airport": names[heights.index(top)], "elevation": top, "spread": top - min(heights)}
"""
PAIR = """\
gaps = []
for i, first in enumerate(names):
    for j in range(i):
        gaps.append((abs(heights[i] - heights[j]), sorted([first, names[j]])))
difference, pair = min(gaps)
result = {"pair": pair, "difference": difference}
"""
ORDER = """\
from itertools import permutations
pairs = {"origins": cities, "destinations": cities, "mode": "driving"}
rows = call_tool("google-maps", "maps_distance_matrix", pairs)["result"]["results"]
metres = [[element["distance"]["value"] for element in row["elements"]] for row in rows]
trips = []
for rest in permutations(range(1, len(cities))):
    order = [0, *rest]
    trips.append((sum(metres[a][b] for a, b in zip(order, order[1:])), order))
total, order = min(trips)
result = {"order": [cities[i] for i in order], "kilometres": round(total / 1000)}
"""
HALFWAY = """\
spots = []
for name in cities:
    spots.append(call_tool("google-maps", "maps_geocode", {"address": name})["result"]["location"])
middle = {"latitude": (spots[0]["lat"] + spots[1]["lat"]) / 2, "longitude": (spots[0]["lng"] + spots[1]["lng"]) / 2}
there = call_tool("google-maps", "maps_reverse_geocode", middle)["result"]
names = {part["types"][0]: part["long_name"] for part in there["address_components"]}
pairs = {"origins": cities[:1], "destinations": ["place_id:" + there["place_id"]]}
row = call_tool("google-maps", "maps_distance_matrix", pairs)["result"]["results"][0]["elements"]
kilometres = round(row[0]["distance"]["value"] / 1000)
result = {"city": names["locality"], "country": names["country"], "kilometres": kilometres}
"""


def given(**values: Any) -> str:
    """Assignments that put what is known into a program."""
    return "".join(f"{name} = {value!r}\n" for name, value in values.items())


def program(body: str, **known: Any) -> str:
    """A body behind what it starts from, its imports first."""
    lines = body.splitlines(keepends=True)
    imports = [line for line in lines if line.startswith("from ")]
    return "".join(imports) + given(**known) + "".join(line for line in lines if line not in imports)
