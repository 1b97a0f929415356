"""The repository world: builds alike, asks answerable questions, and its experts solve them on the real server."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import worlds
from worlds.repository import DEMO_TEMPLATES, TEMPLATES, build, ready
from worlds.repository.history import WORDS, Repository, repositories
from worlds.repository.store import HASH, SERVERS, git
from worlds.world import ARMS, COMPOSITIONS, SPLITS, sample_tasks

ROOT = Path(__file__).parent.parent
EVERY = [repository for split in SPLITS for repository in repositories(split).values()]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository") / "data"
    assert build(folder) == HASH
    return folder


# The data


def test_a_rebuild_replaces_the_data_by_the_same(data: Path) -> None:
    (data / "left-over").write_text("from an older version")
    assert build(data) == HASH
    assert ready(data)
    assert not (data / "left-over").exists()
    assert [path.name for path in data.parent.iterdir()] == ["data"]


def test_a_failed_build_leaves_the_last_good_one(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(OSError):
        build(data)
    assert ready(data)
    assert [path.name for path in data.parent.iterdir()] == ["data"]


def test_plain_git_agrees_with_the_model(data: Path) -> None:
    for repository in EVERY:
        folder = data / repository.name
        assert log_by_git(folder) == log_by_model(repository)
        for branch in repository.all_branches():
            listing = git(folder, "grep", "-c", "", branch).decode().split()
            lengths = {path: int(number) for _, path, number in (line.split(":") for line in listing)}
            assert lengths == {path: len(lines) for path, lines in repository.files(branch).items()}


def log_by_git(folder: Path) -> list[tuple[str, str, dict[str, int]]]:
    text = git(folder, "log", "--numstat", "--format=#%an%x09%as", "main").decode()
    found = []
    for part in text.split("#")[1:]:
        head, *rest = [line for line in part.splitlines() if line]
        author, date = head.split("\t")
        found.append((author, date, {path: int(n) for n, _, path in (line.split("\t") for line in rest)}))
    return found


def log_by_model(repository: Repository) -> list[tuple[str, str, dict[str, int]]]:
    def added(before: tuple[str, ...], after: tuple[str, ...]) -> int:
        return len(set(after) - set(before))

    return [
        (c.author, c.date, {path: added(c.before.get(path, ()), c.files[path]) for path in c.touched()})
        for c in repository.newest()
    ]


def test_the_splits_share_no_entity_and_no_word_of_one() -> None:
    def entities(split: str) -> set[str]:
        found: set[str] = set()
        for repository in repositories(split).values():
            found |= {repository.name, *repository.authors, *repository.branches}
            for branch in repository.all_branches():
                found |= set(repository.files(branch))
        return found

    assert entities("train").isdisjoint(entities("test"))
    for field in ("adjectives", "things", "given", "family", "topics"):
        train, test = (getattr(WORDS[split], field).split() for split in SPLITS)
        assert len({*train, *test}) == len(train) + len(test)


def test_no_author_is_part_of_another() -> None:
    authors = {author for repository in EVERY for author in repository.authors}
    assert not [(a, b) for a in authors for b in authors if a != b and a in b]


# The tasks


def passes(answer: Any, task: dict[str, Any]) -> bool:
    """The two forms of check that this world uses, in the benchmark's meaning."""
    for check in task["evaluators"]:
        if check["func"] == "json":
            json.dumps(answer)
        else:
            key = check["func"].removeprefix("json -> get(").removesuffix(")")
            if check["op"] != "=" or answer.get(key) != check["value"]:
                return False
    return True


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", TEMPLATES)
def test_checks_pass_gold_and_fail_the_rest(name: str, split: str) -> None:
    template = TEMPLATES[name]
    assert template.composition in COMPOSITIONS
    golds = Counter[str]()
    for task in sample_tasks({name: template}, "repository", split, 40, seed=3):
        gold = template.gold(task["params"])
        assert list(gold) == list(task["output_format"])
        assert passes(gold, task)
        assert not passes(template.near_miss(gold), task)
        assert not passes({}, task)
        golds[json.dumps(gold)] += 1
        quoted = [value for value in task["params"].values() if value != "main"]
        assert all(f'"{value}"' in task["question"] for value in quoted)
        assert '{"' not in task["question"]
    assert golds.most_common(1)[0][1] <= 0.25 * 40


@pytest.mark.parametrize("name", TEMPLATES)
def test_three_wordings(name: str) -> None:
    params = TEMPLATES[name].sample(random.Random(0), "train")
    assert len({TEMPLATES[name].question(params, random.Random(seed)) for seed in range(40)}) == 3


def test_samples_repeat_and_are_distinct() -> None:
    one, two = (sample_tasks(TEMPLATES, "repository", "train", 220, seed=1) for _ in range(2))
    assert one == two
    assert len({(t["template"], json.dumps(t["params"])) for t in one}) == 220
    assert Counter(task["template"] for task in one) == dict.fromkeys(TEMPLATES, 20)
    assert one[0]["task_id"] == f"repository-{next(iter(TEMPLATES))}-train-0000"
    assert one != sample_tasks(TEMPLATES, "repository", "train", 220, seed=2)


def test_an_exhausted_template_says_so() -> None:
    with pytest.raises(ValueError, match="'branches_with' has no new task in split 'test'"):
        sample_tasks({"branches_with": TEMPLATES["branches_with"]}, "repository", "test", 1000, seed=0)


# The command


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = [sys.executable, "scripts/build_worlds.py", *arguments]
    return subprocess.run(script, cwd=ROOT, env={"PYTHONPATH": "."}, capture_output=True, text=True, check=False)


def test_sample_prints_tasks() -> None:
    drawn = ("sample", "--world", "repository", "--split", "test", "--n", "5", "--seed", "1")
    done = command(*drawn, "--template", "lines_added")
    assert done.returncode == 0
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows == sample_tasks({"lines_added": TEMPLATES["lines_added"]}, "repository", "test", 5, seed=1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            ("--world", "repositry"),
            "no world 'repositry': there are repository, location; did you mean 'repository'?",
        ),
        (("--split", "tset"), "no split 'tset': there are train, test; did you mean 'test'?"),
        (("--template", "lines"), "did you mean 'lines_added'?"),
    ],
)
def test_unknown_names_are_named(changed: tuple[str, str], message: str) -> None:
    done = command("sample", "--world", "repository", "--split", "test", *changed)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_load_names_the_nearest_world() -> None:
    with pytest.raises(ValueError, match="did you mean 'repository'"):
        worlds.load("repo")


# The experts, on the real server

Call = Callable[[str, str, dict[str, Any]], str]


@pytest.fixture(scope="session")
def server(data: Path) -> Iterator[Call]:
    """The git server over stdio, its client in a thread with a loop of its own."""
    entry = json.loads(SERVERS.read_text())["mcpServers"]["git"]
    executable = ROOT / entry["command"]
    assert executable.exists(), f"{entry['command']} is missing: run `make setup`"
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    parameters = StdioServerParameters(command=str(executable), args=entry["args"], cwd=str(data))
    wanted: asyncio.Queue[Any] = asyncio.Queue()

    async def serve() -> None:
        async with Client(parameters) as client:
            while (item := await wanted.get()) is not None:
                tool, arguments, future = item
                try:
                    future.set_result(await client.call_tool(tool, arguments))
                except Exception as error:
                    future.set_exception(error)

    serving = asyncio.run_coroutine_threadsafe(serve(), loop)

    async def ask(tool: str, arguments: dict[str, Any]) -> Any:
        future = loop.create_future()
        await wanted.put((tool, arguments, future))
        return await future

    def call(name: str, tool: str, arguments: dict[str, Any]) -> str:
        assert name == "git"
        reply = asyncio.run_coroutine_threadsafe(ask(tool, arguments), loop).result(timeout=30)
        text = "".join(part.text for part in reply.content)
        assert not reply.is_error, text
        return str(text)

    yield call
    asyncio.run_coroutine_threadsafe(wanted.put(None), loop).result(timeout=10)
    serving.result(timeout=10)
    loop.call_soon_threadsafe(loop.stop)


def run_block(code: str, call: Call) -> str:
    def call_tool(name: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        text = call(name, tool, arguments)
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        return {"status": True, "result": value if isinstance(value, dict | list) else text}

    scope: dict[str, Any] = {"call_tool": call_tool}
    exec(code, scope)
    return json.dumps({"status": True, "result": scope["result"]}, ensure_ascii=False)


def play(name: str, arm: str, params: dict[str, Any], call: Call) -> tuple[Any, list[tuple[str, dict[str, Any]]]]:
    """The answer of a rollout, and the calls it made."""
    turns = TEMPLATES[name].expert(arm, params)
    message = next(turns)
    made = []
    while message.get("tool_calls"):
        seen = []
        for one in message["tool_calls"]:
            function, arguments = one["function"]["name"], json.loads(one["function"]["arguments"])
            made.append((function, arguments))
            if function == "hypertool":
                seen.append(run_block(arguments["code"], call))
            else:
                seen.append(call(*function.split("__"), arguments))
        message = turns.send(seen)
    return json.loads(message["content"].split("<answer>")[1].split("</answer>")[0]), made


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("name", TEMPLATES)
def test_experts_solve_their_tasks(name: str, arm: str, server: Call) -> None:
    for split in SPLITS:
        for task in sample_tasks({name: TEMPLATES[name]}, "repository", split, 2, seed=5):
            found, made = play(name, arm, task["params"], server)
            assert passes(found, task), (task["question"], found)
            assert json.dumps(found) == json.dumps(TEMPLATES[name].gold(task["params"]))
            blocks = [arguments["code"] for function, arguments in made if function == "hypertool"]
            if arm == "react":
                assert not blocks
            if arm == "hypertool":
                assert len(blocks) == len(made) == 1
            for code in blocks:
                assert not [mark for mark in ("\\", "#", "print(") if mark in code]


def test_the_server_offers_what_tasks_list(server: Call) -> None:
    (task,) = sample_tasks(TEMPLATES, "repository", "train", 1, seed=0)
    assert task["mcp_servers"] == [
        {"name": "git", "tools": ["git_status", "git_diff", "git_log", "git_show", "git_branch"]}
    ]
    assert "working tree clean" in server("git", "git_status", {"repo_path": next(iter(repositories("train")))})
    assert set(DEMO_TEMPLATES) <= set(TEMPLATES)
    for template in TEMPLATES.values():
        assert set(template.tools) <= set(template.offers)
