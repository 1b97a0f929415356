"""The templates of the location world, in the order they are sampled."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from worlds.location import globe, town
from worlds.location.experts import expert
from worlds.location.questions import OUTPUT, question
from worlds.location.tools import TOOLS
from worlds.world import Gold, Params, Template

SERVER = "google-maps"
OFFERS = tuple((SERVER, tool) for tool in TOOLS)
"""All seven tools read only."""
DEMO_TEMPLATES = ("highest_airport", "halfway_city", "ride_or_drive")
"""The easiest for a very small model: the block needs no search."""


def template(
    name: str,
    composition: str,
    tools: str,
    sample: Callable[[random.Random, str], Params],
    gold: Callable[[Params], Gold],
    near_miss: Callable[[Gold], Gold],
    ask: Callable[[Params, random.Random], str] | None = None,
    output: dict[str, Any] | None = None,
) -> Template:
    """A template over the one server; `tools` are short names, e.g. "geocode elevation"."""
    return Template(
        name=name,
        composition=composition,
        servers=(SERVER,),
        tools=tuple((SERVER, f"maps_{tool}") for tool in tools.split()),
        sample=sample,
        question=ask or question(name),
        output_format=output or OUTPUT[name],
        gold=gold,
        near_miss=near_miss,
        expert=expert(name),
        offers=OFFERS,
    )


_ALL = (
    template(
        "open_nearest",
        "loop",
        "geocode search_places distance_matrix place_details",
        town.sample_open,
        town.gold_open,
        town.miss_open,
    ),
    template(
        "shortest_order",
        "aggregate",
        "distance_matrix",
        globe.sample_order,
        globe.gold_order,
        globe.miss_order,
        globe.ask_order,
        globe.ORDER,
    ),
    template(
        "meeting_place",
        "rank",
        "geocode search_places distance_matrix",
        town.sample_meeting,
        town.gold_meeting,
        town.miss_meeting,
    ),
    template(
        "elevation_pair",
        "join",
        "geocode elevation",
        globe.sample_pair,
        globe.gold_pair,
        globe.miss_pair,
        globe.ask_pair,
        globe.PAIR,
    ),
    template(
        "far_from",
        "join",
        "geocode search_places distance_matrix",
        town.sample_far,
        town.gold_far,
        town.miss_far,
    ),
    template(
        "highest_airport",
        "rank",
        "geocode elevation",
        globe.sample_airports,
        globe.gold_airports,
        globe.miss_airports,
        globe.ask_airports,
        globe.AIRPORTS,
    ),
    template(
        "open_count",
        "aggregate",
        "geocode search_places place_details",
        town.sample_count,
        town.gold_count,
        town.miss_count,
    ),
    template(
        "halfway_city",
        "chain",
        "geocode reverse_geocode distance_matrix",
        globe.sample_halfway,
        globe.gold_halfway,
        globe.miss_halfway,
        globe.ask_halfway,
        globe.HALFWAY,
    ),
    template(
        "ride_or_drive",
        "join",
        "distance_matrix",
        town.sample_ride,
        town.gold_ride,
        town.miss_ride,
    ),
    template(
        "longest_street",
        "chain",
        "search_places distance_matrix directions",
        town.sample_street,
        town.gold_street,
        town.miss_street,
    ),
)
TEMPLATES: dict[str, Template] = {t.name: t for t in _ALL}
