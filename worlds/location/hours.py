"""OSM opening hours as weekly tables: the plain weekly forms, and None for whatever is more subtle.

    weekly("Mo-Fr 10:00-19:00; Sa 11:00-15:00")[5] == [(660, 900)]     # Saturday, minutes after midnight

Public-holiday rules (`PH off`) are dropped, since no day of this world is a holiday. A span that runs past
midnight ends above 1440 and belongs to the day it starts on. Dates, months, comments and open ends make the
whole text unreadable: better no hours than wrong hours.
"""

from __future__ import annotations

import re

DAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
_DAY = "(?:Mo|Tu|We|Th|Fr|Sa|Su)"
_DAYS = rf"{_DAY}(?:\s*-\s*{_DAY})?(?:\s*,\s*{_DAY}(?:\s*-\s*{_DAY})?)*"
_SPAN = r"\d{1,2}:\d{2}\s*-\s*\d{1,2}:\d{2}"
_RULE = re.compile(rf"(?:({_DAYS})\s+)?({_SPAN}(?:\s*,\s*{_SPAN})*|off|closed)")
Week = list[list[tuple[int, int]]]


def weekly(text: str) -> Week | None:
    """Seven lists of (opens, closes), Monday first; None where the text is not a plain week."""
    text = text.strip().replace("–", "-")
    if text == "24/7":
        return [[(0, 1440)] for _ in DAYS]
    week: Week = [[] for _ in DAYS]
    # "Mo-Th 10:00-23:00, Fr 10:00-24:00" is meant as two rules: a comma before a day separates them
    # unless days alone stand in front of it ("Tu, Fr 10:00-18:00").
    rules = re.split(rf";|(?<=\d\d)\s*,\s*(?={_DAY})|(?<=off)\s*,\s*(?={_DAY})", text)
    for rule in (part.strip() for part in rules):
        if not rule or re.fullmatch(r"PH\s+(?:off|closed)", rule):
            continue
        match = _RULE.fullmatch(rule)
        if match is None:
            return None
        spans = [] if match[2] in ("off", "closed") else [_span(s) for s in match[2].split(",")]
        if any(s is None for s in spans):
            return None
        for day in _days(match[1]):
            week[day] = [s for s in spans if s is not None]
    return week if any(week) else None


def _days(text: str | None) -> list[int]:
    if text is None:
        return list(range(7))
    found: list[int] = []
    for part in text.split(","):
        first, _, last = (p.strip() for p in part.partition("-"))
        start = DAYS.index(first)
        count = (DAYS.index(last) - start) % 7 + 1 if last else 1
        found += [(start + i) % 7 for i in range(count)]
    return found


def _span(text: str) -> tuple[int, int] | None:
    clocks = [[int(v) for v in c.split(":")] for c in text.split("-")]
    if any(h > 24 or m > 59 for h, m in clocks):
        return None
    opens, closes = (h * 60 + m for h, m in clocks)
    if opens >= 1440:
        return None
    return (opens, closes if closes > opens else closes + 1440)
