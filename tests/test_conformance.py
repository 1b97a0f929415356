"""Blocks of both kinds over four real MCP servers, under every executor of this machine.

`blocks/ordinary.py` must give what plain CPython gives for the same text; `blocks/hostile.py` must end as an
ordinary observation, touch nothing outside and leave the next block as it was. The last tests take a part of the
jail away and see the checks fail: a check that cannot fail shows nothing.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import os
import re
import runpy
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hypertool import jail
from hypertool.executors import EXECUTORS, open_executor
from hypertool.interface import Toolbox
from hypertool.jail import GUEST
from hypertool.pool import Pool
from hypertool.sandbox import Executor, JailExecutor, Limits
from hypertool.servers import ServerConfig

BLOCKS = Path(__file__).parent / "blocks"
WORLD = runpy.run_path(str(BLOCKS / "world.py"))
SERVERS = {name: ServerConfig(name, sys.executable, (str(BLOCKS / "world.py"), name)) for name in WORLD["TOOLS"]}
QUICK = Limits(cpu_s=1, wall_s=5, tool_s=2, memory_mb=256)
SECRET = "canary-5b1f7e"
CLEAN = """
import json, math, sys, threading
rows = sorted(call_tool("geo", "cities")["result"])
result = [len(rows), json.dumps(rows[0]), json.loads("[1]"), round(math.pi, 3), "leaked" in sys.modules]
result.append(threading.active_count())
"""


@dataclass(frozen=True)
class Block:
    id: str
    kind: str
    rest: str
    code: str


def cells(name: str) -> list[Block]:
    made = []
    for cell in ("\n" + (BLOCKS / name).read_text(encoding="utf-8")).split("\n# %% ")[1:]:
        head, code = cell.split("\n", 1)
        number, kind, *rest = head.split(" | ")
        made.append(Block(number, kind, rest[0], code))
    return made


ORDINARY, HOSTILE = cells("ordinary.py"), cells("hostile.py")


# The twin: the same text in plain CPython, tools called as functions ---------------------------------


class Given(dict[str, Any]):
    """A reply that may be awaited."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __await__(self) -> Iterator[Any]:
        yield from ()
        return self


def twin(code: str) -> Any:
    """`result` of the block as CPython alone gives it, as JSON data."""
    functions = {server: {f.__name__: f for f in tools} for server, tools in WORLD["TOOLS"].items()}

    class ToolError(Exception):
        pass

    def call_tool(
        server_name: str = "", tool_name: str = "", params: Any = None, *, server: str = "", tool: str = ""
    ) -> Given:
        try:
            value = functions[server_name or server][tool_name or tool](**(params or {}))
        except WORLD["ToolError"] as error:
            raise ToolError(f"Error executing tool {tool_name or tool}: {error}") from None
        if isinstance(value, str) and value[:1] in "[{":
            value = json.loads(value)
        return Given(status=True, result=json.loads(json.dumps(value)))

    def call_tools(calls: list[Any], return_errors: bool = False) -> list[Any]:
        made: list[Any] = []
        for call in calls:
            try:
                made.append(call_tool(*call))
            except ToolError as error:
                if not return_errors:
                    raise
                made.append(error)
        return made

    plain_loads = json.loads
    space: dict[str, Any] = {
        "__name__": "__main__", "call_tool": call_tool, "call_tools": call_tools, "ToolError": ToolError,
    }  # fmt: skip
    tree = ast.parse(code)
    if isinstance(last := tree.body[-1], ast.Return):
        assert last.value is not None
        tree.body[-1] = ast.Assign([ast.Name("result", ast.Store())], last.value)
    program = compile(ast.fix_missing_locations(tree), "<twin>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    json.loads = lambda s, **k: s if isinstance(s, (dict, list)) else plain_loads(s, **k)
    try:
        waiting = eval(program, space)
        if waiting is not None:
            asyncio.run(waiting)
        return plain_loads(json.dumps(space["result"]))
    finally:
        json.loads = plain_loads


# What a hostile block must not reach ------------------------------------------------------------------


@dataclass
class Canaries:
    """A folder, a TCP port, a Unix socket and a process of the host, and what became of them."""

    folder: Path
    touched: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.secret = self.folder / "secret.txt"
        self.secret.write_text(SECRET)
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.path = str(self.folder / "s")
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(self.path)
        self.unix.listen()
        self.victim = subprocess.Popen(["sleep", "600"], env={"HYPERTOOL_CANARY": SECRET})
        self.before = self.state()
        for listener in (self.tcp, self.unix):
            threading.Thread(target=self._listen, args=(listener,), daemon=True).start()

    def _listen(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                listener.accept()
                self.touched.append(f"a connection to {listener.getsockname()}")

    def state(self) -> list[tuple[str, int, int, str]]:
        return [
            (path.name, path.stat().st_mode, path.stat().st_mtime_ns, path.read_text() if path.is_file() else "")
            for path in sorted(self.folder.iterdir())
        ]

    def fill(self, code: str) -> str:
        """The block with this host's names in it, its imports written so that the friendly check lets them by."""
        port = str(self.tcp.getsockname()[1])
        names = {"FOLDER": str(self.folder), "SOCKET": self.path, "PORT": port, "PID": str(self.victim.pid)}
        for name, value in names.items():
            code = code.replace(name, value)
        return re.sub(r"^import (.+)$", hidden_imports, code, flags=re.MULTILINE)

    def breaches(self) -> list[str]:
        found = list(self.touched)
        if self.state() != self.before:
            found.append(f"the folder became {self.state()}")
        if self.victim.poll() is not None:
            found.append("the process was killed")
        return found

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()
        for listener in (self.tcp, self.unix):
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def hidden_imports(line: re.Match[str]) -> str:
    return "; ".join(f"{name.split('.')[0]} = __import__({name!r})" for name in line[1].split(", "))


SWEEP = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
result = []
for n in range(470):
    if n not in SKIP:
        ctypes.set_errno(0)
        if libc.syscall(n, -1, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1:
            result.append(n)
"""


class Bench:
    """One executor behind the toolbox of the four servers, with the canaries out."""

    def __init__(self, runner: asyncio.Runner, pool: Pool, executor: Executor, canaries: Canaries) -> None:
        self.runner, self.pool, self.executor, self.canaries = runner, pool, executor, canaries

    def run(self, code: str, limits: Limits = QUICK) -> dict[str, Any]:
        toolbox = Toolbox(self.pool, self.executor, self.pool.specs(), limits)
        outcome, told = self.runner.run(toolbox.block(code))
        assert SECRET not in json.dumps(told) + outcome.stdout
        return told


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def pool(runner: asyncio.Runner) -> Iterator[Pool]:
    pool = Pool(SERVERS)
    runner.run(pool.start())
    yield pool
    runner.run(pool.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Canaries]:
    canaries = Canaries(tmp_path_factory.mktemp("canary"))
    os.environ["HYPERTOOL_CANARY"] = SECRET
    yield canaries
    del os.environ["HYPERTOOL_CANARY"]
    canaries.close()


@pytest.fixture(scope="module", params=EXECUTORS)
def bench(request: pytest.FixtureRequest, runner: asyncio.Runner, pool: Pool, canaries: Canaries) -> Iterator[Bench]:
    executor = runner.run(open_executor(request.param))
    yield Bench(runner, pool, executor, canaries)
    runner.run(executor.aclose())


def test_there_are_enough_blocks_of_every_kind() -> None:
    assert len(ORDINARY) >= 60
    assert {block.kind for block in ORDINARY} == {"Atomic", "Chaining", "Transform", "Aggregate", "Helper"}
    assert len(HOSTILE) >= 60
    assert len({block.id for block in ORDINARY}) == len(ORDINARY)
    assert len({block.id for block in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize("block", ORDINARY, ids=lambda block: block.id)
def test_an_ordinary_block_gives_what_cpython_gives(bench: Bench, block: Block) -> None:
    assert bench.run(block.code) == {"status": True, "result": twin(block.code)}


@pytest.mark.parametrize("block", HOSTILE, ids=lambda block: block.id)
def test_a_hostile_block_is_contained(bench: Bench, block: Block) -> None:
    allowed = block.rest.split(",")
    limits = replace(QUICK, wall_s=2 if allowed[0] == "wall_limit" else 15)
    told = bench.run(bench.canaries.fill(block.code), limits)
    assert ("ok" if told["status"] else told["error"]["kind"]) in allowed, told
    assert bench.canaries.breaches() == []
    assert bench.run(CLEAN)["result"] == [5, '"Lisbon"', [1], 3.142, False, 1]


# The same checks with a part of the jail taken away ----------------------------------------------------


def breaches(runner: asyncio.Runner, executor: JailExecutor, canaries: Canaries) -> list[str]:
    """Everything that the jail let through: system calls by number, a shared network, what canaries saw."""

    async def scene() -> list[str]:
        await executor.start()
        try:
            found = []
            table = runpy.run_path(str(GUEST))["MACHINES"]["x86_64"]
            looked_at = {table.calls[name] for name in ("openat", "clone", "prlimit64", "socketpair", "ioctl", "fcntl")}
            # 335 and 336 are the kernel's own probes, clone3 says ENOSYS; fork and vfork are tried by a block below
            skip = {*table.allowed(), *looked_at, 335, 336, 435, 57, 58}
            swept = await executor.run(SWEEP.replace("SKIP", repr(skip)), no_tools, QUICK)
            if swept.error or swept.result:
                found.append(f"system calls: {swept.error or swept.result}")
            if executor.name == "jail-bwrap":
                assert executor._zygote is not None
                for process in children_of(executor._zygote.process.pid):
                    if Path(f"/proc/{process}/ns/net").readlink() == Path("/proc/self/ns/net").readlink():
                        found.append("the network of the host")
            for block in HOSTILE:
                if block.kind in ("network", "files", "processes") and "_limit" not in block.rest:
                    outcome = await executor.run(canaries.fill(block.code), no_tools, QUICK)
                    kind = outcome.error.kind if outcome.error else "ok"
                    if kind not in block.rest.split(","):
                        found.append(f"{block.id}: {outcome.error or outcome.result}")
            return found + canaries.breaches()
        finally:
            await executor.aclose()

    return runner.run(scene())


async def no_tools(server: str, tool: str, params: dict[str, Any]) -> Any:
    raise AssertionError(f"no block here calls a tool: {server}.{tool}({params})")


def children_of(process: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.fixture
def own_canaries(tmp_path: Path) -> Iterator[Canaries]:
    canaries = Canaries(tmp_path)
    yield canaries
    canaries.close()


@pytest.mark.parametrize("confinement", ["bwrap", "landlock"])
def test_nothing_gets_through(runner: asyncio.Runner, own_canaries: Canaries, confinement: Any) -> None:
    assert breaches(runner, JailExecutor(confinement=confinement), own_canaries) == []


@pytest.mark.parametrize("confinement", ["bwrap", "landlock"])
def test_a_jail_without_its_filter_is_noticed(
    runner: asyncio.Runner,
    own_canaries: Canaries,
    confinement: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    text = GUEST.read_text()
    line = next(line for line in text.splitlines() if "_prctl(PR_SET_SECCOMP" in line)
    guest = tmp_path_factory.mktemp("guest") / "guest.py"
    guest.write_text(text.replace(line, line.split("_prctl")[0] + "pass"))
    monkeypatch.setattr(jail, "GUEST", guest)
    found = breaches(runner, JailExecutor(confinement=confinement), own_canaries)
    assert any(line.startswith("system calls: ") for line in found), found
    assert any(line.startswith("net7: ") for line in found), found
    # namespaces hold without the filter; Landlock leaves Unix sockets and file attributes to it
    assert bool(own_canaries.breaches()) == (confinement == "landlock"), found


def test_a_jail_in_the_network_of_the_host_is_noticed(
    runner: asyncio.Runner, own_canaries: Canaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = jail.bwrap_command

    def shared(bwrap: str, control: int) -> list[str]:
        command = closed(bwrap, control)
        command.insert(command.index("--unshare-all") + 1, "--share-net")
        return command

    monkeypatch.setattr(jail, "bwrap_command", shared)
    assert "the network of the host" in breaches(runner, JailExecutor(), own_canaries)
