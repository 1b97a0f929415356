"""Templates over central Helsinki: sampling and gold answers; `questions.py` words them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

from worlds.location import truth
from worlds.location.geo import halves_up
from worlds.location.truth import Spot, lead, require, same_side
from worlds.world import Gold, Params

KINDS = ("restaurant", "cafe", "fast_food", "pub", "bar", "clothes", "hairdresser", "hotel", "jewelry", "beauty")
SPARSE = ("pharmacy", "supermarket", "library", "theatre", "books", "cinema", "museum", "bank", "convenience")
"""Kinds with few enough places that a search without a center lists all of them."""
RADII = (120, 150, 180, 200, 220, 250, 300, 350, 400)
ON_FOOT = 8
"""Metres by which the best walk must beat the next."""


def place(key: str) -> Spot:
    return truth.places()[key]


def named(key: str) -> str:
    """A landmark as an address that the map finds."""
    return f"{place(key).name}, Helsinki"


def landmark(rng: random.Random, split: str) -> str:
    return rng.choice(truth.landmarks(split)).id


def circle(params: Params, least: int, most: int, center: str = "center") -> list[Spot]:
    """The candidates of a question: places of the kind in the circle, refused if too few or too many."""
    middle = place(params[center])
    found = list(truth.within(params["kind"], middle, params["radius"]))
    require(middle not in found, "the center is itself a candidate")
    require(least <= len(found) <= most, f"{len(found)} candidates")
    truth.unlike(found)
    return found


# meeting_place: one search, one matrix, the smallest longest walk


def sample_meeting(rng: random.Random, split: str) -> Params:
    center, *people = truth.pick(rng, truth.landmarks(split), 4)
    kind = rng.choice(KINDS)
    return {"center": center, "people": people, "kind": kind, "radius": rng.choice(RADII)}


def gold_meeting(params: Params) -> Gold:
    people = [place(key) for key in params["people"]]
    walks = sorted((max(truth.metres(person, spot) for person in people), spot.id) for spot in circle(params, 3, 10))
    lead([w[0] for w in walks], ON_FOOT, "two places are equally good")
    same_side(walks[0][1], params["center"])
    return {"place": place(walks[0][1]).name, "longest_walk": walks[0][0]}


def miss_meeting(gold: Gold) -> Gold:
    return {**gold, "longest_walk": gold["longest_walk"] - 1}


# far_from: two searches, one matrix, each candidate's nearest, the largest of these


def sample_far(rng: random.Random, split: str) -> Params:
    other = rng.choice(SPARSE)
    kind = rng.choice([k for k in KINDS if k != other])
    return {"center": landmark(rng, split), "kind": kind, "other": other, "radius": rng.choice(RADII)}


def gold_far(params: Params) -> Gold:
    candidates, others = circle(params, 3, 8), truth.of_kind(params["other"])
    require(len(candidates) * len(others) <= 56, "the matrix is too large to read")
    truth.unlike(others)
    nearest = []
    for spot in candidates:
        walks = sorted((truth.metres(spot, other), other.id) for other in others)
        nearest.append((*walks[0], walks[1][0], spot.id))
    nearest.sort(reverse=True)
    lead([n[0] for n in nearest], ON_FOOT, "two candidates are equally far")
    far, other, second, best = nearest[0]
    require(second - far >= ON_FOOT, "two others are equally near")
    same_side(best, params["center"])
    return {"place": place(best).name, "nearest": place(other).name, "metres": far}


def miss_far(gold: Gold) -> Gold:
    return {**gold, "metres": gold["metres"] + 1}


# open_nearest: search, details of each, keep those that qualify, measure, the nearest


def sample_open(rng: random.Random, split: str) -> Params:
    kind = rng.choice(("restaurant", "cafe", "fast_food", "pub", "bar", "clothes"))
    day = rng.choice((4, 5, 5, 6, 6, 6, 0))
    return {"center": landmark(rng, split), "kind": kind, "day": day, "radius": rng.choice(RADII)}


def gold_open(params: Params) -> Gold:
    qualifying = []
    for spot in circle(params, 4, 9):
        spans = truth.spans(spot.id, params["day"])
        if spans and truth.website(spot.id):
            qualifying.append((truth.metres(place(params["center"]), spot), spot.id, spans[0][0]))
    qualifying.sort()
    lead([q[0] for q in qualifying], ON_FOOT, "fewer than two qualify, or two are equally near")
    far, best, opens = qualifying[0]
    same_side(best, params["center"])
    return {"place": place(best).name, "metres": far, "opens": f"{opens // 60:02}:{opens % 60:02}"}


def miss_open(gold: Gold) -> Gold:
    return {**gold, "opens": "11:11"}


# ride_or_drive: two matrices, joined by place


def sample_ride(rng: random.Random, split: str) -> Params:
    start, *goals = truth.pick(rng, truth.landmarks(split), rng.randint(5, 7))
    return {"start": start, "goals": goals}


def gold_ride(params: Params) -> Gold:
    start, goals = place(params["start"]), [place(key) for key in params["goals"]]
    saved = {
        spot.name: truth.seconds(start, spot, "driving") - truth.seconds(start, spot, "bicycling") for spot in goals
    }
    ranked = sorted(saved.values(), reverse=True)
    require(ranked[0] >= 5 and all(ranked), "the bicycle wins nowhere, or ties with the car")
    lead(ranked, 5, "two places save about the same")
    faster = sum(value > 0 for value in saved.values())
    return {"place": max(saved, key=saved.__getitem__), "seconds": ranked[0], "faster": faster}


def miss_ride(gold: Gold) -> Gold:
    return {**gold, "faster": gold["faster"] - 1}


# open_count: search, details of each, count


def sample_count(rng: random.Random, split: str) -> Params:
    kind = rng.choice(("restaurant", "cafe", "fast_food", "pub", "bar", "clothes", "hairdresser"))
    minute = rng.choice(
        (8 * 60 + 15, 9 * 60 + 45, 11 * 60 + 15, 17 * 60 + 40, 19 * 60 + 20, 20 * 60 + 40, 22 * 60 + 10)
    )
    return {
        "center": landmark(rng, split),
        "kind": kind,
        "day": rng.randrange(7),
        "minute": minute,
        "radius": rng.choice(RADII),
    }


def gold_count(params: Params) -> Gold:
    day, minute = params["day"], params["minute"]
    found = circle(params, 4, 9)
    open_then = 0
    for spot in found:
        spans = truth.spans(spot.id, day) or []
        late = truth.spans(spot.id, (day - 1) % 7) or []
        require(all(closes <= 1440 + minute for _, closes in late), "a span of the day before is still running")
        require(all(minute not in span for span in spans), "a place opens or closes at that minute")
        open_then += any(opens < minute < closes for opens, closes in spans)
    websites = sum(truth.website(spot.id) is not None for spot in found)
    require(0 < open_then < len(found), "all or none are open")
    require(truth.side(params["center"]) == truth.side(found[0].id), "the nearest belongs to the other split")
    return {"listed": len(found), "open": open_then, "websites": websites}


def miss_count(gold: Gold) -> Gold:
    return {**gold, "open": gold["open"] + 1}


# longest_street: all of a kind, the nearest on foot, the way there, metres by street


def sample_street(rng: random.Random, split: str) -> Params:
    return {"start": landmark(rng, split), "kind": rng.choice((*SPARSE, "hotel", "embassy", "atm"))}


def gold_street(params: Params) -> Gold:
    start, others = place(params["start"]), truth.of_kind(params["kind"])
    require(start not in others, "the start is itself a candidate")
    require(len(others) <= 25, "too many for one matrix")
    truth.unlike(others)
    walks = sorted((truth.metres(start, spot), spot.id) for spot in others)
    lead([w[0] for w in walks], ON_FOOT, "two places are equally near")
    goal = place(walks[0][1])
    same_side(goal.id, start.id)
    along: dict[str, int] = defaultdict(int)
    previous, length = "", 0
    route = truth.streets().route(start.point, goal.point, "walking", stretches=True)
    for street, dm, _ in (*route.stretches, (None, 0, 0)):
        if street != previous:
            along[previous] += halves_up(length / 10)
            previous, length = street or "", 0
        length += dm
    along.pop("", None)
    ranked = Counter({street: metres for street, metres in along.items() if metres}).most_common()
    require(len(ranked) > 1, "fewer than two named streets")
    lead([n for _, n in ranked], 5, "two streets are about equally long")
    return {"place": goal.name, "street": ranked[0][0], "metres": ranked[0][1]}


def miss_street(gold: Gold) -> Gold:
    return {**gold, "metres": gold["metres"] + 1}
