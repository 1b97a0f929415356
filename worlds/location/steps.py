"""The atomic way through each template: one call a turn, each thought saying what the last reply showed."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from itertools import combinations, pairwise, permutations
from typing import Any

from worlds.location import globe
from worlds.location.questions import PLURALS
from worlds.location.town import named
from worlds.location.truth import DAYS
from worlds.world import Expert, Message, Params, answer, call, calls

SERVER = "google-maps"
Reading = Generator[Message, list[str], Any]


def read(seen: str) -> Any:
    """The JSON of a reply; a block's reply is unwrapped. An expert that meets a failure is wrong: it raises."""
    try:
        value = json.loads(seen)
    except ValueError:
        raise RuntimeError(f"the expert's call failed: {seen[:300]}") from None
    if isinstance(value, dict) and "status" in value:
        if not value["status"]:
            raise RuntimeError(f"the expert's block failed: {seen[:300]}")
        return value["result"]
    return value


def brief(value: Any) -> str:
    """A result as a phrase: `place Carlton, metres 320`."""
    if not isinstance(value, dict):
        return str(value)
    return ", ".join(f"{k} {' > '.join(v) if isinstance(v, list) else v}" for k, v in value.items())


def values(p: Params) -> dict[str, Any]:
    """The parameters in the words of the map: addresses, codes and plain values."""
    known: dict[str, Any] = {}
    for key, value in p.items():
        if key in ("center", "start"):
            known[key] = named(value)
        elif key in ("people", "goals"):
            known[key] = [named(k) for k in value]
        elif key == "airports":
            known["names"] = globe.codes(p)
        elif key in ("cities", "towns"):
            known["cities" if key == "cities" else "names"] = globe.labels(p)
        elif key == "minute":
            known["time"] = f"{value // 60:02}:{value % 60:02}"
        else:
            known[key] = value
    return known


def ask(thought: str, tool: str, **arguments: Any) -> Reading:
    (seen,) = yield call(thought, SERVER, tool, **arguments)
    return read(seen)


def near(spot: dict[str, float]) -> dict[str, float]:
    return {"latitude": spot["lat"], "longitude": spot["lng"]}


def ids(places: list[Any]) -> list[str]:
    return [f"place_id:{place['place_id']}" for place in places]


def locate(name: str) -> Reading:
    reply = yield from ask(f"The search needs coordinates, so I locate {name} first.", "maps_geocode", address=name)
    return reply["location"]


def search(v: dict[str, Any], spot: dict[str, float]) -> Reading:
    thought = (
        f"{v['center']} is at {spot['lat']}, {spot['lng']}; I search for {PLURALS[v['kind']]} within {v['radius']} m."
    )
    reply = yield from ask(thought, "maps_search_places", query=v["kind"], location=near(spot), radius=v["radius"])
    return reply["places"]


def list_all(kind: str) -> Reading:
    reply = yield from ask(f"I list all {PLURALS[kind]} on the Helsinki map.", "maps_search_places", query=kind)
    return reply["places"]


def matrix(thought: str, origins: list[str], goals: list[str], mode: str, what: str = "distance") -> Reading:
    reply = yield from ask(thought, "maps_distance_matrix", origins=origins, destinations=goals, mode=mode)
    return [[element[what]["value"] for element in row["elements"]] for row in reply["results"]]


def meeting_place(p: Params) -> Expert:
    v = values(p)
    found = yield from search(v, (yield from locate(v["center"])))
    thought = f"There are {len(found)}: {', '.join(f['name'] for f in found)}. I measure the walks of all three."
    rows = yield from matrix(thought, v["people"], ids(found), "walking")
    longest = [max(column) for column in zip(*rows, strict=True)]
    best = longest.index(min(longest))
    name = found[best]["name"]
    thought = f"The longest walks are {', '.join(map(str, longest))} m, so {name} is best."
    yield answer(thought, {"place": name, "longest_walk": longest[best]})


def far_from(p: Params) -> Expert:
    v = values(p)
    found = yield from search(v, (yield from locate(v["center"])))
    others = yield from list_all(v["other"])
    thought = f"{len(found)} candidates and {len(others)} to walk to; one matrix holds all walks."
    rows = yield from matrix(thought, ids(found), ids(others), "walking")
    shortest = [min(row) for row in rows]
    best = shortest.index(max(shortest))
    other = others[rows[best].index(shortest[best])]["name"]
    thought = f"The nearest ones are {', '.join(map(str, shortest))} m away, so {found[best]['name']} is farthest."
    yield answer(thought, {"place": found[best]["name"], "nearest": other, "metres": shortest[best]})


def details(thought: str, place: Any) -> Reading:
    return (yield from ask(thought, "maps_place_details", place_id=place["place_id"]))


def hours(reply: Any, day: int) -> str:
    """The hours of a weekday as listed; "Closed" where none are."""
    week = reply.get("opening_hours", {}).get("weekday_text")
    return week[day].split(": ", 1)[1] if week else "Closed"


def open_nearest(p: Params) -> Expert:
    v = values(p)
    found = yield from search(v, (yield from locate(v["center"])))
    thought = f"{len(found)} places; the walking distances tell in which order to check them."
    (walks,) = yield from matrix(thought, [v["center"]], ids(found), "walking")
    note = "Nearest first"
    for metres, place in sorted(zip(walks, found, strict=True), key=lambda w: w[0]):
        reply = yield from details(f"{note}: {place['name']} is {metres} m away. Its details?", place)
        times = hours(reply, v["day"])
        if "website" in reply and times != "Closed":
            thought = f"{place['name']} has a website and opens {times} on {DAYS[v['day']]}."
            yield answer(thought, {"place": place["name"], "metres": metres, "opens": times[:5]})
            return
        note = "It has no website, so on to the next" if times != "Closed" else "It lists no such day, so the next"
    raise RuntimeError("no candidate qualifies")


def open_count(p: Params) -> Expert:
    v = values(p)
    found = yield from search(v, (yield from locate(v["center"])))
    note, open_then, websites = f"There are {len(found)} places, each needs its details", 0, 0
    for place in found:
        reply = yield from details(f"{note}. Next is {place['name']}.", place)
        times = hours(reply, v["day"])
        spans = [] if times == "Closed" else [span.split("-") for span in times.split(", ")]
        is_open = any(start < v["time"] and (v["time"] < end or end <= start) for start, end in spans)
        open_then, websites = open_then + is_open, websites + ("website" in reply)
        site = "with" if "website" in reply else "without"
        note = f"{place['name']}: {DAYS[v['day']]} {times}, {site} website, so {open_then} open and {websites} sites"
    yield answer(f"{note}.", {"listed": len(found), "open": open_then, "websites": websites})


def ride_or_drive(p: Params) -> Expert:
    v = values(p)
    thought = f"First the driving times from {v['start']}."
    (cars,) = yield from matrix(thought, [v["start"]], v["goals"], "driving", "duration")
    thought = f"By car {', '.join(map(str, cars))} s. Now the same by bicycle."
    (bicycles,) = yield from matrix(thought, [v["start"]], v["goals"], "bicycling", "duration")
    saved = [car - bicycle for car, bicycle in zip(cars, bicycles, strict=True)]
    best = saved.index(max(saved))
    name = v["goals"][best].removesuffix(", Helsinki")
    thought = f"By bicycle {', '.join(map(str, bicycles))} s, so the gains are {', '.join(map(str, saved))} s."
    yield answer(thought, {"place": name, "seconds": saved[best], "faster": sum(s > 0 for s in saved)})


def longest_street(p: Params) -> Expert:
    v = values(p)
    found = yield from list_all(v["kind"])
    thought = f"{len(found)} in all; I measure the walk from {v['start']} to each."
    (walks,) = yield from matrix(thought, [v["start"]], ids(found), "walking")
    goal = found[walks.index(min(walks))]
    reply = yield from ask(
        f"{goal['name']} is nearest with {min(walks)} m. I ask for the way there.",
        "maps_directions",
        origin=v["start"],
        destination=f"place_id:{goal['place_id']}",
        mode="walking",
    )
    streets: dict[str, int] = {}
    for step in reply["routes"][0]["steps"]:
        if "<b>" in step["instructions"]:
            street = step["instructions"].split("<b>")[1].split("</b>")[0]
            streets[street] = streets.get(street, 0) + step["distance"]["value"]
    longest = max(streets, key=streets.__getitem__)
    result = {"place": goal["name"], "street": longest, "metres": streets[longest]}
    yield answer(f"By street in metres: {brief(streets)}.", result)


def highest(heights: dict[str, int]) -> dict[str, Any]:
    top = max(heights, key=heights.__getitem__)
    return {"airport": top, "elevation": heights[top], "spread": heights[top] - min(heights.values())}


def closest_pair(heights: dict[str, int]) -> dict[str, Any]:
    gaps = [(abs(heights[a] - heights[b]), sorted((a, b))) for a, b in combinations(heights, 2)]
    difference, pair = min(gaps)
    return {"pair": pair, "difference": difference}


def highest_airport(p: Params) -> Expert:
    names, points, note = globe.codes(p), [], "Elevation needs coordinates"
    for name in names:
        reply = yield from ask(f"{note}; I locate {name}.", "maps_geocode", address=name)
        points.append(near(reply["location"]))
        note = f"{name} is at {reply['location']['lat']}, {reply['location']['lng']}"
    reply = yield from ask(f"{note}, the last one; one call gives all elevations.", "maps_elevation", locations=points)
    heights = dict(zip(names, [row["elevation"] for row in reply["results"]], strict=True))
    yield answer(f"In metres: {brief(heights)}.", highest(heights))


def elevation_pair(p: Params) -> Expert:
    names = globe.labels(p)
    wanted: list[tuple[str, str, dict[str, Any]]] = [(SERVER, "maps_geocode", {"address": name}) for name in names]
    seen = yield calls(f"The {len(names)} look-ups do not depend on each other, so I send them together.", wanted)
    points = [near(read(text)["location"]) for text in seen]
    reply = yield from ask("With the coordinates I ask for all elevations.", "maps_elevation", locations=points)
    heights = dict(zip(names, [row["elevation"] for row in reply["results"]], strict=True))
    result = closest_pair(heights)
    yield answer(f"In metres: {brief(heights)}; the smallest difference is {result['difference']}.", result)


def shortest_order(p: Params) -> Expert:
    names = globe.labels(p)
    thought = "The order depends on all distances between the cities, so I ask for the whole matrix."
    rows = yield from matrix(thought, names, names, "driving")
    trips = [
        (sum(rows[a][b] for a, b in pairwise((0, *rest))), (0, *rest)) for rest in permutations(range(1, len(names)))
    ]
    total, order = min(trips)
    legs = " + ".join(str(rows[a][b]) for a, b in pairwise(order))
    result = {"order": [names[i] for i in order], "kilometres": round(total / 1000)}
    yield answer(f"Of the {len(trips)} orders the shortest has {legs} = {total} m.", result)


def halfway_city(p: Params) -> Expert:
    a, b = globe.labels(p)
    one = (yield from ask(f"I need the coordinates of {a}.", "maps_geocode", address=a))["location"]
    thought = f"{a} is at {one['lat']}, {one['lng']}. Now {b}."
    two = (yield from ask(thought, "maps_geocode", address=b))["location"]
    lat, lng = (one["lat"] + two["lat"]) / 2, (one["lng"] + two["lng"]) / 2
    thought = f"{b} is at {two['lat']}, {two['lng']}; I name the mean point {lat:.5f}, {lng:.5f}."
    there = yield from ask(thought, "maps_reverse_geocode", latitude=lat, longitude=lng)
    thought = f"That is {there['formatted_address']}. I measure the drive from {a}."
    ((metres,),) = yield from matrix(thought, [a], [f"place_id:{there['place_id']}"], "driving")
    parts = {part["types"][0]: part["long_name"] for part in there["address_components"]}
    result = {"city": parts["locality"], "country": parts["country"], "kilometres": round(metres / 1000)}
    yield answer(f"The drive is {metres} m.", result)


REACT: dict[str, Callable[[Params], Expert]] = {
    turns.__name__: turns
    for turns in (
        meeting_place,
        far_from,
        open_nearest,
        open_count,
        ride_or_drive,
        longest_street,
        highest_airport,
        elevation_pair,
        shortest_order,
        halfway_city,
    )
}
