"""An offline stand-in for the MCP server `google-maps`: real data of central Helsinki, the world's cities, airports.

    python -m worlds.location.server      # stdio

Names, parameters, JSON text shapes and the wording of errors follow `@modelcontextprotocol/server-google-maps`
0.6.2. It differs in what it knows (`tools.py` says so to the model), has no ratings and reviews, and adds
`attributes` to place details. The low-level SDK server is used because the other one puts a prefix before error
texts. Replies depend on the call alone.
"""

from __future__ import annotations

import asyncio
import json
from itertools import groupby
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

from worlds.location.geo import Point, Route, Streets, connect, halves_up
from worlds.location.lookup import Atlas, Found
from worlds.location.store import DATA, FILE
from worlds.location.tools import TOOLS, misfit

NAME = "google-maps"
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
VERBS = {"walking": "Walk", "bicycling": "Ride", "driving": "Drive"}
MOST_RADIUS = 50_000
MOST_SIDE = 25
"""Origins, or destinations, of one matrix."""
FAILURES = {
    "maps_geocode": "Geocoding failed",
    "maps_reverse_geocode": "Reverse geocoding failed",
    "maps_search_places": "Place search failed",
    "maps_place_details": "Place details request failed",
    "maps_distance_matrix": "Distance matrix request failed",
    "maps_elevation": "Elevation request failed",
    "maps_directions": "Directions request failed",
}
Reply = dict[str, Any]


class Refused(Exception):
    """The service answers with a status other than OK."""


class Maps:
    """The tools over one database: `Maps().call(name, arguments)` gives the reply or raises Refused."""

    def __init__(self) -> None:
        db = connect(DATA / FILE)
        self.db, self.atlas, self.streets = db, Atlas(db), Streets(db)

    def call(self, tool: str, arguments: dict[str, Any]) -> Reply:
        fault = misfit(TOOLS[tool][1], arguments)
        if fault:
            raise Refused(f"INVALID_REQUEST ({fault})")
        known = TOOLS[tool][1]["properties"]
        reply: Reply = getattr(self, tool)(**{k: v for k, v in arguments.items() if k in known})
        return reply

    def named(self, text: str, status: str = "ZERO_RESULTS") -> Found:
        found = self.atlas.find(text)
        if found is None:
            raise Refused(status)
        return found

    def maps_geocode(self, address: str) -> Reply:
        found = self.named(address)
        return {"location": at(found.point), "formatted_address": found.address, "place_id": found.id}

    def maps_reverse_geocode(self, latitude: float, longitude: float) -> Reply:
        found = self.atlas.around((latitude, longitude))
        if found is None:
            raise Refused("ZERO_RESULTS")
        parts = [{"long_name": long, "short_name": short, "types": [kind]} for long, short, kind in found.parts]
        return {"formatted_address": found.address, "place_id": found.id, "address_components": parts}

    def maps_search_places(
        self, query: str, location: dict[str, float] | None = None, radius: float = MOST_RADIUS
    ) -> Reply:
        center = None
        if location is not None:
            if not {"latitude", "longitude"} <= set(location):
                raise Refused("INVALID_REQUEST (location needs latitude and longitude)")
            center = (location["latitude"], location["longitude"])
        hits = self.atlas.search(query, center, min(radius, MOST_RADIUS))
        if not hits:
            raise Refused("ZERO_RESULTS")
        return {
            "places": [
                {
                    "name": f.name,
                    "formatted_address": f.address,
                    "location": at(f.point),
                    "place_id": f.id,
                    "types": list(f.types),
                }
                for f in hits
            ]
        }

    def maps_place_details(self, place_id: str) -> Reply:
        found = self.atlas.by_id(place_id.removeprefix("place_id:"))
        if found is None:
            raise Refused("NOT_FOUND")
        reply: Reply = {
            "name": found.name,
            "formatted_address": found.address,
            "location": at(found.point),
        }
        query = "SELECT phone, website, opening_hours, weekly, attributes FROM place WHERE id = ?"
        row = self.db.execute(query, (found.id,)).fetchone()
        if row is None:
            return reply | {"attributes": {}}
        phone, website, opening, weekly, attributes = row
        if phone:
            reply["formatted_phone_number"] = phone
        if website:
            reply["website"] = website
        if opening:
            week = {"weekday_text": self.weekday_text(found.id)} if weekly else {}
            reply["opening_hours"] = {**week, "osm": opening}
        return reply | {"attributes": json.loads(attributes)}

    def weekday_text(self, place_id: str) -> list[str]:
        spans: dict[int, list[str]] = {}
        query = "SELECT day, opens, closes FROM hours WHERE place = ? ORDER BY day, opens"
        for day, opens, closes in self.db.execute(query, (place_id,)):
            spans.setdefault(day, []).append(f"{clock(opens)}-{clock(closes)}")
        return [f"{name}: {', '.join(spans.get(day, ['Closed']))}" for day, name in enumerate(WEEKDAYS)]

    def maps_distance_matrix(self, origins: list[str], destinations: list[str], mode: str = "driving") -> Reply:
        if not origins or not destinations:
            raise Refused("INVALID_REQUEST (origins and destinations must not be empty)")
        if max(len(origins), len(destinations)) > MOST_SIDE:
            raise Refused(f"MAX_DIMENSIONS_EXCEEDED (at most {MOST_SIDE} origins and destinations)")
        starts, ends = ([self.atlas.find(text) for text in side] for side in (origins, destinations))
        return {
            "origin_addresses": [f.address if f else "" for f in starts],
            "destination_addresses": [f.address if f else "" for f in ends],
            "results": [{"elements": [self.element(a, b, mode) for b in ends]} for a in starts],
        }

    def element(self, a: Found | None, b: Found | None, mode: str) -> Reply:
        if a is None or b is None:
            return {"status": "NOT_FOUND"}
        if mode not in VERBS:
            return {"status": "ZERO_RESULTS"}
        route = self.streets.route(a.point, b.point, mode)
        return {"status": "OK", "duration": lasting(route.seconds), "distance": long(route.metres)}

    def maps_elevation(self, locations: list[dict[str, float]]) -> Reply:
        if not locations:
            raise Refused("INVALID_REQUEST (locations must not be empty)")
        results = []
        for spot in locations:
            point = spot["latitude"], spot["longitude"]
            height, away = self.atlas.ground(point)
            results.append({"elevation": height, "location": at(point), "resolution": away})
        return {"results": results}

    def maps_directions(self, origin: str, destination: str, mode: str = "driving") -> Reply:
        a, b = self.named(origin, "NOT_FOUND"), self.named(destination, "NOT_FOUND")
        if mode not in VERBS:
            raise Refused("ZERO_RESULTS")
        route = self.streets.route(a.point, b.point, mode, stretches=True)
        steps = street_steps(route, mode, b.name)
        streets = [s for s in steps if "<b>" in s["instructions"]]
        longest = max(streets, key=lambda s: s["distance"]["value"], default=None)
        summary = longest["instructions"].split("<b>")[1].split("</b>")[0] if longest else ""
        whole = {"distance": long(route.metres), "duration": lasting(route.seconds)}
        return {"routes": [{"summary": summary, **whole, "steps": steps}]}


def street_steps(route: Route, mode: str, goal: str) -> list[Reply]:
    """A step per stretch of one street; the straight lines at both ends are steps on foot."""
    verb = VERBS[mode]
    if not route.stretches:
        return [_step(f"{verb} toward <b>{goal}</b>", route.metres * 10, route.seconds * 1000, mode)]
    first, last = route.approach
    steps = [_step("Walk to the street", first, first * 72, "walking")]
    for street, group in groupby(route.stretches, key=lambda s: s[0]):
        rows = list(group)
        where = f"on <b>{street}</b>" if street else "along an unnamed way"
        steps.append(_step(f"{verb} {where}", sum(r[1] for r in rows), sum(r[2] for r in rows), mode))
    return [*steps, _step("Walk to the destination", last, last * 72, "walking")]


def _step(instructions: str, dm: int, ms: int, mode: str) -> Reply:
    length, time = long(halves_up(dm / 10)), lasting(halves_up(ms / 1000))
    return {"instructions": instructions, "distance": length, "duration": time, "travel_mode": mode.upper()}


def at(point: Point) -> dict[str, float]:
    return {"lat": point[0], "lng": point[1]}


def clock(minutes: int) -> str:
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}" if minutes != 1440 else "24:00"


def long(metres: int) -> Reply:
    return {"text": f"{metres / 1000:,.1f} km" if metres >= 1000 else f"{metres} m", "value": metres}


def lasting(seconds: int) -> Reply:
    hours, minutes = divmod(max(1, halves_up(seconds / 60)), 60)
    parts = [f"{n} {word}{'s' if n > 1 else ''}" for n, word in ((hours, "hour"), (minutes, "min")) if n]
    return {"text": " ".join(parts), "value": seconds}


def make_server() -> Server[Any]:
    """The MCP server; the same object serves stdio and in-memory clients."""
    maps = Maps()
    note = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    tools = [Tool(name=n, description=d, input_schema=s, annotations=note) for n, (d, s) in TOOLS.items()]

    async def on_list_tools(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    async def on_call_tool(_context: Any, params: Any) -> CallToolResult:
        if params.name not in TOOLS:
            return _said(f"Unknown tool: {params.name}", failed=True)
        try:
            reply = maps.call(params.name, params.arguments or {})
        except Refused as refusal:
            return _said(f"{FAILURES[params.name]}: {refusal}", failed=True)
        return _said(json.dumps(reply, indent=2, ensure_ascii=False))

    return Server(NAME, version="0.6.2-offline", on_list_tools=on_list_tools, on_call_tool=on_call_tool)


def _said(text: str, failed: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)


async def serve() -> None:
    server = make_server()
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(serve())
