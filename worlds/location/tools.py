"""The seven tools as a client sees them: names and parameters of `@modelcontextprotocol/server-google-maps` 0.6.2.

The descriptions are our own. The first sentence gives the shape of the result, since it is all that a block
writer reads of a tool; what is a model value rather than a measured one is said there too.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_POINT: Schema = {
    "type": "object",
    "properties": {"latitude": {"type": "number"}, "longitude": {"type": "number"}},
}
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_MODE: Schema = {
    "type": "string",
    "enum": ["driving", "walking", "bicycling", "transit"],
    "description": "How to travel; driving if left out; transit has no data and finds no route",
}
_SPEEDS = (
    "In central Helsinki routes follow OpenStreetMap streets at 5 km/h on foot, 15 km/h by bicycle and 10 to "
    "20 km/h by car, plus the straight line on foot to the nearest street node; anywhere else the distance is "
    "a model: the great circle times 1.25, at 5, 15 and 80 km/h."
)


def _parameters(required: list[str], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


def _said(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


TOOLS: dict[str, tuple[str, Schema]] = {
    "maps_geocode": (
        "Find an address, place, city or airport code: {location: {lat, lng}, formatted_address, place_id}. "
        'Forms: "Name, Helsinki", "Street 5, Helsinki", "City, Country", "City, State, United States", an IATA '
        "code, a place_id. Of several cities of one name the most populous is meant. ZERO_RESULTS if unknown.",
        _parameters(["address"], address=_said(_TEXT, "What to look up")),
    ),
    "maps_reverse_geocode": (
        "Name a point: {formatted_address, place_id, address_components: [{long_name, short_name, types}]}. "
        "In central Helsinki it is the nearest street address within 150 m, elsewhere the nearest city of "
        "15,000 people within 100 km.",
        _parameters(
            ["latitude", "longitude"],
            latitude={"type": "number", "description": "Degrees north"},
            longitude={"type": "number", "description": "Degrees east"},
        ),
    ),
    "maps_search_places": (
        "List up to 60 Helsinki places of a type (cafe, hotel) or with all words in name, address or cuisine, "
        "nearest first: {places: [{name, formatted_address, location: {lat, lng}, place_id, types}]}. "
        "Without a location the order is by name. The radius is a straight line and excludes what lies beyond; "
        "there are no ratings. ZERO_RESULTS if nothing fits.",
        _parameters(
            ["query"],
            query=_said(_TEXT, "A place type, or words that must all fit"),
            location=_said(_POINT, "Where to search around"),
            radius={"type": "number", "description": "Metres, 50000 at most and if left out"},
        ),
    ),
    "maps_place_details": (
        "Read one place: {name, formatted_address, location, formatted_phone_number?, website?, "
        'opening_hours?: {weekday_text: ["Monday: 10:00-18:00", "Tuesday: Closed", ...], osm}, attributes}. '
        "Keys with ? are missing where OpenStreetMap says nothing; weekday_text, Monday first, is missing "
        "where the hours are not a plain week. Spans past midnight end on the next day.",
        _parameters(["place_id"], place_id=_said(_TEXT, "A place_id from another tool")),
    ),
    "maps_distance_matrix": (
        "Distances in metres and times in seconds for every pair: {origin_addresses, destination_addresses, "
        "results: [{elements: [{status, duration: {text, value}, distance: {text, value}}]}]}, a row per "
        f"origin. {_SPEEDS} At most 25 origins and 25 destinations.",
        _parameters(
            ["origins", "destinations"],
            origins=_said(_TEXTS, 'Addresses, "lat,lng" or "place_id:ID"'),
            destinations=_said(_TEXTS, 'Addresses, "lat,lng" or "place_id:ID"'),
            mode=_MODE,
        ),
    ),
    "maps_elevation": (
        "Elevation in whole metres, modelled as that of the nearest airport: {results: [{elevation, location, "
        "resolution}]}. The resolution is the distance to that airport in metres.",
        _parameters(
            ["locations"],
            locations={
                "type": "array",
                "items": {**_POINT, "required": ["latitude", "longitude"]},
                "description": "Points to look up",
            },
        ),
    ),
    "maps_directions": (
        "One route with its steps: {routes: [{summary, distance: {text, value}, duration, steps: [{instructions, "
        "distance, duration, travel_mode}]}]}, a step per stretch of street, its name in <b></b>. " + _SPEEDS,
        _parameters(
            ["origin", "destination"],
            origin=_said(_TEXT, 'An address, "lat,lng" or "place_id:ID"'),
            destination=_said(_TEXT, 'An address, "lat,lng" or "place_id:ID"'),
            mode=_MODE,
        ),
    ),
}


def misfit(schema: Schema, value: Any, where: str = "arguments") -> str | None:
    """What is wrong with `value` under the few keywords used above, or None."""
    kinds: dict[str, Any] = {"object": dict, "array": list, "string": str, "number": (int, float)}
    kind = schema["type"]
    if not isinstance(value, kinds[kind]) or isinstance(value, bool):
        return f"{where} must be of type {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} must be one of {', '.join(schema['enum'])}"
    for key in schema.get("required", []):
        if key not in value:
            return f"{where}: {key} is missing"
    pairs = [(schema["items"], v, f"{where}[{i}]") for i, v in enumerate(value)] if kind == "array" else []
    if kind == "object":
        pairs = [(s, value[k], f"{where}.{k}") for k, s in schema["properties"].items() if k in value]
    return next((fault for pair in pairs if (fault := misfit(*pair))), None)
