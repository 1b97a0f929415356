"""Templates over the world's cities and airports: sampling, wording and gold answers."""

from __future__ import annotations

import random
from itertools import combinations, pairwise, permutations
from typing import Any

from worlds.location import truth
from worlds.location.geo import BOX, Point, closest, great_circle, halves_up, modelled
from worlds.location.truth import Spot, lead, require
from worlds.world import Gold, Params

NEAR_CITY = 90_000
"""Metres within which a halfway city must lie, well inside what the map service searches."""


def listed(names: list[str]) -> str:
    return "; ".join(names)


def country_cities(rng: random.Random, split: str, count: int) -> list[str]:
    groups = truth.cities_by_country(split)
    return truth.pick(rng, groups[rng.choice(list(groups))], count)


def labels(params: Params) -> list[str]:
    return [truth.cities()[key].name for key in params.get("cities") or params["towns"]]


def apart(a: Spot, b: Spot) -> int:
    return modelled(a.point, b.point, "driving").metres


def whole_km(metres: int) -> int:
    """Kilometres, halves up; refused where rounding the parts first could change it."""
    require(abs(metres % 1000 - 500) > 20, "the kilometres are on the edge of rounding")
    return halves_up(metres / 1000)


# highest_airport: geocode each code, one elevation call, rank


def sample_airports(rng: random.Random, split: str) -> Params:
    rows = [
        spot
        for spot, height in truth.airports().values()
        if height is not None and "International" in spot.name and truth.side(spot.id) == split
    ]
    return {"airports": truth.pick(rng, rows, rng.randint(4, 6))}


def codes(params: Params) -> list[str]:
    return [key.removeprefix("airport:") for key in params["airports"]]


def ask_airports(params: Params, rng: random.Random) -> str:
    names = ", ".join(codes(params))
    return rng.choice(
        [
            f"Rank the airports {names} by the elevation that the map service reports. Which code comes first, "
            "how many metres is that, and how many metres lie between the first and the last?",
            f"A pilot compares these airports, given by IATA code: {names}. Name the highest one with its "
            "elevation in metres, and tell by how many metres it exceeds the lowest.",
            f"Of {names} (IATA codes), which airport stands at the greatest elevation according to the map? "
            "Give the elevation and the spread from the highest to the lowest, both in metres.",
        ]
    )


def gold_airports(params: Params) -> Gold:
    heights = {}
    for code in codes(params):
        spot, height = truth.airports()[code]
        require(truth.ground(spot.point) == (height, code), "another airport is as near")
        heights[code] = height or 0
    ranked = sorted(heights, key=lambda c: -heights[c])
    lead([heights[c] for c in ranked], 10, "two airports are about equally high")
    top, last = heights[ranked[0]], heights[ranked[-1]]
    return {"airport": ranked[0], "elevation": top, "spread": top - last}


def miss_airports(gold: Gold) -> Gold:
    return {**gold, "spread": gold["elevation"]}


# elevation_pair: geocode each city, one elevation call, all pairs


def sample_pair(rng: random.Random, split: str) -> Params:
    groups = truth.cities_by_country(split)
    countries = rng.sample(list(groups), 5)
    return {"towns": [rng.choice(groups[code]).id for code in countries]}


def ask_pair(params: Params, rng: random.Random) -> str:
    names = listed(labels(params))
    return rng.choice(
        [
            f"Take these cities: {names}. Which two of them have the most similar elevation on the map, and what "
            "is the difference in metres? Write each name as given here, the two in alphabetical order.",
            f"Compare the map's elevations of the following cities pair by pair: {names}. Report the pair with the "
            "smallest difference (names as written here, alphabetically) and that difference in metres.",
            f"Two of these cities lie almost level with each other: {names}. Find the pair whose elevations, as the "
            "map service gives them, differ least; give both names as above in alphabetical order, and the metres.",
        ]
    )


def gold_pair(params: Params) -> Gold:
    heights = {}
    for key in params["towns"]:
        spot = truth.cities()[key]
        heights[spot.name] = truth.ground(spot.point)[0]
    gaps = sorted((abs(heights[a] - heights[b]), sorted((a, b))) for a, b in combinations(heights, 2))
    lead([gap for gap, _ in gaps], 2, "two pairs are equally close")
    return {"pair": gaps[0][1], "difference": gaps[0][0]}


def miss_pair(gold: Gold) -> Gold:
    return {**gold, "pair": gold["pair"][::-1]}


# shortest_order: one matrix, every order of the other cities


def sample_order(rng: random.Random, split: str) -> Params:
    return {"cities": country_cities(rng, split, 5)}


def ask_order(params: Params, rng: random.Random) -> str:
    first, *others = labels(params)
    names = listed(others)
    return rng.choice(
        [
            f"A van starts in {first} and must call once at each of these, ending at whichever comes last: {names}. "
            "Which order gives the fewest driving kilometres, and how many are they (the metres of the legs added "
            "up, rounded to whole kilometres)? List all five cities as written, the start included.",
            f"Plan a one-way drive from {first} through {names}, each once, not returning. Give the order with the "
            "least total driving distance, beginning with the start and with the names as above, and the total in "
            "kilometres, rounded only at the end.",
            f"Starting from {first}, in what order should one drive to {names} so that the whole one-way trip is "
            "shortest by the map's driving distances? Answer with the five names as given, start first, and the "
            "sum of the distances in kilometres to the nearest integer.",
        ]
    )


def gold_order(params: Params) -> Gold:
    first, *others = [truth.cities()[key] for key in params["cities"]]
    trips = sorted(
        (sum(apart(a, b) for a, b in pairwise((first, *order))), [first.name, *(s.name for s in order)])
        for order in permutations(others)
    )
    lead([trips[0][0], trips[1][0]], trips[0][0] * 0.01, "two orders are about equally short")
    return {"order": trips[0][1], "kilometres": whole_km(trips[0][0])}


def miss_order(gold: Gold) -> Gold:
    first, *others = gold["order"]
    return {**gold, "order": [first, *others[::-1]]}


# halfway_city: geocode two, reverse geocode the mean, measure


def sample_halfway(rng: random.Random, split: str) -> Params:
    return {"cities": country_cities(rng, split, 2)}


def ask_halfway(params: Params, rng: random.Random) -> str:
    a, b = labels(params)
    return rng.choice(
        [
            f"Take the plain average of the latitudes and of the longitudes of {a} and {b}. Which city does the map "
            f"name at that point, in which country, and how many whole kilometres is the drive from {a} to it?",
            f"What city lies at the midpoint of {a} and {b}, if the midpoint is the mean of their coordinates and the "
            f"city is the one found by looking up that point? Add its country and the driving distance from {a} in "
            "kilometres, rounded.",
            f"Someone from {a} and someone from {b} want to meet halfway: at the city the map reports for the mean "
            f"of their latitudes and the mean of their longitudes. Give that city, its country and how far {a} is "
            "from it by car, in whole kilometres.",
        ]
    )


def mean_point(a: Point, b: Point) -> Point:
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2


def gold_halfway(params: Params) -> Gold:
    a, b = (truth.cities()[key] for key in params["cities"])
    middle = mean_point(a.point, b.point)
    require(abs(a.lng - b.lng) < 90, "the mean of the longitudes is on the other side of the Earth")
    require(not BOX[0] <= middle[0] <= BOX[2], "the middle may lie in Helsinki")
    require(great_circle(a.point, b.point) > 100_000, "the cities are neighbours")
    (near, key), (next_near, _) = closest(middle, truth.city_points(), 2)
    require(near < NEAR_CITY, "no city near the middle")
    lead([near, next_near], 500, "two cities are equally near the middle")
    columns = "name, country, lat, lng"
    name, country, lat, lng = truth.db().execute(f"SELECT {columns} FROM city WHERE id = ?", (key,)).fetchone()
    require(f"city:{key}" not in params["cities"], "the middle belongs to one of the two")
    truth.same_side(f"city:{key}", a.id)
    distance = apart(a, Spot(f"city:{key}", name, lat, lng))
    return {"city": name, "country": country, "kilometres": whole_km(distance)}


def miss_halfway(gold: Gold) -> Gold:
    return {**gold, "kilometres": gold["kilometres"] + 1}


AIRPORTS: dict[str, Any] = {"airport": "[IATA CODE]", "elevation": "[INTEGER]", "spread": "[INTEGER]"}
PAIR: dict[str, Any] = {"pair": ["[CITY, COUNTRY]", "[CITY, COUNTRY]"], "difference": "[INTEGER]"}
ORDER: dict[str, Any] = {"order": ["[CITY, COUNTRY]"], "kilometres": "[INTEGER]"}
HALFWAY: dict[str, Any] = {"city": "[CITY]", "country": "[COUNTRY]", "kilometres": "[INTEGER]"}
