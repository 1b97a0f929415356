"""The wordings of the Helsinki templates, three each, and the shapes of all answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from worlds.location.town import place
from worlds.location.truth import DAYS
from worlds.world import Params

PLURALS = {
    "restaurant": "restaurants",
    "cafe": "cafes",
    "fast_food": "fast food places",
    "pub": "pubs",
    "bar": "bars",
    "clothes": "clothes shops",
    "hairdresser": "hairdressers",
    "hotel": "hotels",
    "jewelry": "jewelry shops",
    "beauty": "beauty salons",
    "pharmacy": "pharmacies",
    "supermarket": "supermarkets",
    "library": "libraries",
    "theatre": "theatres",
    "books": "bookshops",
    "cinema": "cinemas",
    "museum": "museums",
    "bank": "banks",
    "convenience": "convenience stores",
    "embassy": "embassies",
    "atm": "cash machines",
}

OUTPUT: dict[str, dict[str, Any]] = {
    "meeting_place": {"place": "[NAME]", "longest_walk": "[INTEGER]"},
    "far_from": {"place": "[NAME]", "nearest": "[NAME]", "metres": "[INTEGER]"},
    "open_nearest": {"place": "[NAME]", "metres": "[INTEGER]", "opens": "[HH:MM]"},
    "ride_or_drive": {"place": "[NAME]", "seconds": "[INTEGER]", "faster": "[INTEGER]"},
    "open_count": {"listed": "[INTEGER]", "open": "[INTEGER]", "websites": "[INTEGER]"},
    "longest_street": {"place": "[NAME]", "street": "[NAME]", "metres": "[INTEGER]"},
}

HOME = "All places are in central Helsinki; write names as the map has them."
WORDINGS: dict[str, tuple[str, str, str]] = {
    "meeting_place": (
        "Three friends set out on foot from {people}. They consider the {kinds} (type {kind}) within {radius} "
        "metres in a straight line of {center}. Which of these keeps the longest of the three walks shortest, "
        "and how many metres is that walk?",
        "Of all {kinds} (map type {kind}) no more than {radius} metres as the crow flies from {center}, find "
        "the one whose farthest-walking guest walks least, when the guests come from {people}. Report it with "
        "the metres that this guest walks.",
        "We start walking at {people} and want to meet in one of the {kinds} (type {kind}) inside a {radius} "
        "metre radius around {center}. Pick the one that minimises the maximum walking distance, and state "
        "this maximum in metres.",
    ),
    "far_from": (
        "Consider the {kinds} (type {kind}) within {radius} metres in a straight line of {center}. For each, "
        "take the walk to the closest of the {others} (type {other}) on the map. Which has the longest such "
        "walk, to which of the {others}, and over how many metres?",
        "Which of the {kinds} (map type {kind}) in a circle of {radius} metres around {center} is worst "
        "placed for {others} (type {other}), that is, has the greatest walking distance to its nearest one? "
        "Name it, name that nearest one, and give the metres on foot.",
        "Someone who needs {others} (type {other}) close by is choosing among the {kinds} (type {kind}) at "
        "most {radius} metres in a straight line from {center}. Find the one to avoid, being farthest on foot "
        "from its own nearest one; say which one that is and how many metres away.",
    ),
    "open_nearest": (
        "Within {radius} metres in a straight line of {center} there are several {kinds} (type {kind}). Keep "
        "those with a website whose opening hours by weekday show them open on {day}. Which is the shortest "
        "walk from {center}, how many metres is it, and when does it first open that day (HH:MM)?",
        "I am at {center} on a {day}. Among the {kinds} (map type {kind}) in a {radius} metre radius, find "
        "the nearest on foot that lists both a website and {day} in its weekly hours; give the walking metres "
        "and the time it opens on that day as HH:MM.",
        "For {day}, list the {kinds} (type {kind}) no farther than {radius} metres as the crow flies from "
        "{center}, and drop any without a website or without listed {day} hours. From {center}, which "
        "remaining one takes the fewest metres to walk to? Add the metres and its opening time that day "
        "(HH:MM).",
    ),
    "ride_or_drive": (
        "From {start}, compare going by bicycle with going by car to each of: {goals}. Where does the bicycle "
        "gain most over the car, how many seconds does it gain there, and at how many of these places is it "
        "faster at all?",
        "A courier at {start} delivers to {goals}, each as a separate trip, by bicycle or by car. For which "
        "delivery does the bicycle save the most seconds, how many are saved, and for how many of them is it "
        "the quicker choice?",
        "Look at the travel times from {start} to {goals}. Name the place with the largest advantage of "
        "cycling over driving, give the advantage in seconds, and count the places that are reached sooner by "
        "bicycle.",
    ),
    "open_count": (
        "Look at the {kinds} (type {kind}) within {radius} metres in a straight line of {center}. How many "
        "are there, how many of them have weekly opening hours that show them open on {day} at {time}, and "
        "how many give a website?",
        "It is {day}, {time}, at {center}. Count the {kinds} (map type {kind}) in a circle of {radius} "
        "metres: all of them, those open at this moment according to their hours by weekday, and those with a "
        "website.",
        "Make three counts over the {kinds} (type {kind}) at most {radius} metres as the crow flies from "
        "{center}: the places listed, the ones whose hours by weekday include {day} {time}, and the ones that "
        "have a website.",
    ),
    "longest_street": (
        "Find which of the {kinds} (type {kind}) on the Helsinki map is the shortest walk from {start}. On "
        "the way there, which named street is walked for the most metres in all, and for how many? Add up the "
        "steps on that street.",
        "Walk from {start} to the closest, on foot, of all {kinds} (map type {kind}). Tell which one it is, "
        "the named street on which the route's steps sum to the greatest length, and this sum in metres.",
        "Someone leaves {start} for the nearest by walking distance of the {kinds} (type {kind}) in the map. "
        "Name that place. Then sum the metres of the walking directions per named street, and give the "
        "longest street with its metres.",
    ),
}


def quoted(keys: list[str]) -> str:
    """Landmarks as a list for people: `"A"`, `"B" and "C"`."""
    names = [f'"{place(key).name}"' for key in keys]
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]


def words(params: Params) -> dict[str, str]:
    """The parameters as a question shows them."""
    shown = {k: str(v) for k, v in params.items()}
    for key in ("center", "start", "people", "goals"):
        if key in params:
            value = params[key]
            shown[key] = quoted([value] if isinstance(value, str) else value)
    if "kind" in params:
        shown["kinds"] = PLURALS[params["kind"]]
    if "other" in params:
        shown["others"] = PLURALS[params["other"]]
    if "day" in params:
        shown["day"] = DAYS[params["day"]]
    if "minute" in params:
        shown["time"] = f"{params['minute'] // 60:02}:{params['minute'] % 60:02}"
    return shown


def question(name: str) -> Callable[[Params, random.Random], str]:
    return lambda params, rng: f"{rng.choice(WORDINGS[name]).format(**words(params))} {HOME}"
