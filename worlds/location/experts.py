"""How a competent user solves each template in each arm.

    react       one atomic call a turn; the thoughts carry what the replies said
    hypertool   one block, or a block that looks and one that acts where the shape of a reply matters
    hybrid      atomic calls for single look-ups, a block for the loop that follows; atomic only where no loop is

Experts know the question's parameters and what the server replies, nothing else. The atomic solutions are in
`steps.py`, the programs in `blocks.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from worlds.location import blocks, steps
from worlds.location.blocks import given, program
from worlds.location.questions import PLURALS
from worlds.location.steps import brief, locate, near, read, search, values
from worlds.world import ARMS, Expert, Params, answer, block

Turns = Callable[[Params], Expert]


def expert(name: str) -> Callable[[str, Params], Expert]:
    """The expert of a template, for any arm."""

    def turns(arm: str, params: Params) -> Expert:
        if arm not in ARMS:
            raise ValueError(f"arm {arm!r}: expected one of {', '.join(ARMS)}")
        return {"react": steps.REACT, "hybrid": HYBRID, "hypertool": HYPERTOOL}[arm][name](params)

    return turns


def spoken(thought: str, p: Params) -> str:
    """A thought with the parameters filled in, kinds of places in the plural."""
    plurals = {f"{key}s": PLURALS[p[key]] for key in ("kind", "other") if key in p}
    return thought.format(**values(p), **plurals)


def whole(thought: str, body: str, **known: Any) -> Expert:
    """One block that returns the answer, then the answer."""
    (seen,) = yield block(thought, program(body, **known))
    result = read(seen)
    yield answer(f"The block found {brief(result)}.", result)


def uses(known: dict[str, Any], body: str) -> dict[str, Any]:
    """The values that a loop over candidates reads."""
    return {k: known[k] for k in ("center", "day", "time") if k in known and re.search(rf"\b{k}\b", body)}


# hypertool


def circle(body: str, thought: str) -> Turns:
    """A template that begins with a search around a landmark, in one block."""

    def turns(p: Params) -> Expert:
        return whole(spoken(thought, p), blocks.LOCATE + blocks.SEARCH + body, **values(p))

    return turns


def direct(body: str, thought: str) -> Turns:
    def turns(p: Params) -> Expert:
        return whole(spoken(thought, p), body, **values(p))

    return turns


def look_then(body: str, aim: str) -> Turns:
    """First a block that lists the candidates and shows one place's details, then the loop over them."""

    def turns(p: Params) -> Expert:
        v = values(p)
        look = (
            blocks.LOCATE + blocks.SEARCH + 'first = {"place_id": found[0]["place_id"]}\n'
            'details = call_tool("google-maps", "maps_place_details", first)["result"]\n'
            'result = {"found": [{"name": place["name"], "place_id": place["place_id"]} for place in found], '
            '"details": details}\n'
        )
        known = {k: v[k] for k in ("center", "kind", "radius")}
        (seen,) = yield block(
            f"This block lists the {PLURALS[v['kind']]} near {v['center']} and shows the details of one.",
            given(**known) + look,
        )
        found, details = read(seen)["found"], read(seen)["details"]
        hours = details.get("opening_hours", {})
        form = f"hours come as {hours['weekday_text'][0]!r}" if "weekday_text" in hours else "hours can be missing"
        known = uses(v, body)
        thought = f"There are {len(found)} candidates, and {form}. This block {aim}."
        yield from whole(thought, body, **known, found=found)

    return turns


HYPERTOOL: dict[str, Turns] = {
    "meeting_place": circle(
        blocks.MEETING,
        "This block finds the {kinds} within {radius} m of {center} and keeps the one with the smallest longest walk.",
    ),
    "far_from": circle(
        blocks.FAR, "This block measures the walks from {kinds} near {center} to {others} and compares the nearest."
    ),
    "open_nearest": look_then(blocks.OPEN, "goes through them from the nearest until one qualifies"),
    "open_count": look_then(blocks.COUNT, "reads the details of all and counts"),
    "ride_or_drive": direct(blocks.RIDE, "This block gets both travel times from {start} to every place and compares."),
    "longest_street": direct(
        blocks.LIST_ALL + blocks.STREET,
        "This block finds which of the {kinds} is nearest to {start} on foot and adds up the way there by street.",
    ),
    "highest_airport": direct(
        blocks.HEIGHTS + blocks.HIGHEST, "This block locates the airports, reads their elevations and ranks them."
    ),
    "elevation_pair": direct(
        blocks.HEIGHTS + blocks.PAIR, "This block reads the elevation of every city and compares all pairs."
    ),
    "shortest_order": direct(
        blocks.ORDER, "This block gets all driving distances at once and tries every order of the stops."
    ),
    "halfway_city": direct(
        blocks.HALFWAY, "This block averages the coordinates, names the city there and measures the drive."
    ),
}


# hybrid


def located(body: str) -> Turns:
    """The center by an atomic call, the rest in a block."""

    def turns(p: Params) -> Expert:
        v = values(p)
        spot = yield from locate(v["center"])
        known = {k: v[k] for k in v if k != "center"}
        thought = f"{v['center']} lies at {spot['lat']}, {spot['lng']}; a block can search there and compare the walks."
        yield from whole(thought, blocks.SEARCH + body, **known, near=near(spot))

    return turns


def searched(body: str, aim: str) -> Turns:
    """The candidates by atomic calls, the loop over their details in a block."""

    def turns(p: Params) -> Expert:
        v = values(p)
        spot = yield from locate(v["center"])
        found = yield from search(v, spot)
        short = [{"name": place["name"], "place_id": place["place_id"]} for place in found]
        known = uses(v, body)
        yield from whole(f"That leaves {len(found)} to check, so a block {aim}.", body, **known, found=short)

    return turns


def hybrid_street(p: Params) -> Expert:
    v = values(p)
    found = yield from steps.list_all(v["kind"])
    short = [{"name": place["name"], "place_id": place["place_id"]} for place in found]
    thought = f"The map has {len(found)}; a block can find the nearest and add up the way by street."
    yield from whole(thought, blocks.STREET, start=v["start"], found=short)


def hybrid_airports(p: Params) -> Expert:
    """The look-ups in a block, the ranking by reading its short result."""
    names = values(p)["names"]
    code = given(names=names) + blocks.HEIGHTS + "result = dict(zip(names, heights))\n"
    (seen,) = yield block(f"One block can locate all {len(names)} airports and read their elevations.", code)
    heights = read(seen)
    yield answer(f"In metres: {brief(heights)}.", steps.highest(heights))


HYBRID: dict[str, Turns] = {
    "meeting_place": located(blocks.MEETING),
    "far_from": located(blocks.FAR),
    "open_nearest": searched(blocks.OPEN, "measures the walks and opens the details from the nearest on"),
    "open_count": searched(blocks.COUNT, "opens the details of each and counts"),
    "ride_or_drive": HYPERTOOL["ride_or_drive"],
    "longest_street": hybrid_street,
    "highest_airport": hybrid_airports,
    "elevation_pair": HYPERTOOL["elevation_pair"],
    "shortest_order": HYPERTOOL["shortest_order"],
    "halfway_city": steps.REACT["halfway_city"],
}
