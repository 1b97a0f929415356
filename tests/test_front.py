"""`hypertool serve` with real MCP clients over stdio and HTTP: list, run, describe, cancel, approve."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import write_servers
from mcp import Client, StdioServerParameters
from mcp_types import ElicitRequestParams, ElicitResult

from hypertool.serve import FULL_CATALOGUE_CHARS, describe
from hypertool.tools import ToolSpec

ROOT = Path(__file__).parent.parent
ASKED: list[str] = []


def answering(action: Any, content: Any = None) -> Callable[[Any, ElicitRequestParams], Awaitable[ElicitResult]]:
    async def answer(_: Any, params: ElicitRequestParams) -> ElicitResult:
        ASKED.append(params.message)
        return ElicitResult(action=action, content=content)

    return answer


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The echo server and the public git server, each over stdio."""
    folder = tmp_path_factory.mktemp("front")
    path = write_servers(folder)
    entries = json.loads(path.read_text())["mcpServers"]
    git = json.loads((ROOT / "worlds/repository/servers.json").read_text())["mcpServers"]["git"]
    path.write_text(
        json.dumps(
            {
                "mcpServers": {
                    "echo": entries["echo"],
                    "git": git | {"cwd": str(ROOT / "worlds/repository" / git.get("cwd", "."))},
                }
            }
        )
    )
    return path


def command(servers: Path, *options: str) -> list[str]:
    return ["-m", "hypertool.cli", "serve", "--servers", str(servers), *options]


@contextlib.asynccontextmanager
async def over_stdio(servers: Path, *options: str, **client: Any) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(command=sys.executable, args=command(servers, *options), cwd=str(ROOT))
    async with Client(parameters, **client) as connected:
        yield connected


@pytest.fixture(scope="module")
def address(servers: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, *command(servers, "--http", f"127.0.0.1:{port}")]
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(300):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()
            server.wait(20)


async def run(client: Client, code: str, **options: Any) -> dict[str, Any]:
    result = await client.call_tool("hypertool", {"code": code}, **options)
    told: dict[str, Any] = json.loads(result.content[0].text)  # type: ignore[union-attr]
    assert result.is_error is not told["status"]
    return told


ECHO = 'result = call_tool("echo", "echo", {"text": "x"})["result"]'
ERASE = 'result = call_tool("echo", "erase", {"what": "x"})["result"]'
BOTH = """
one = call_tool("echo", "echo", {"text": "a"})["result"]
two = call_tool("git", "git_branch", {"repo_path": "frosty-barrel", "branch_type": "local"})["result"]
result = [one, two.replace("*", "").split()]
"""


def test_one_tool_whose_description_carries_rules_and_inner_tools(servers: Path) -> None:
    async def main() -> None:
        async with over_stdio(servers) as client:
            (tool,) = (await client.list_tools()).tools
            assert tool.name == "hypertool"
            assert tool.description is not None
            assert 'Tools of server "git"' in tool.description
            assert "echo(text: string)" in tool.description

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_block_over_two_servers_with_progress_and_one_approved_write(
    servers: Path, address: str, transport: str, mode: str
) -> None:
    progress: list[str | None] = []

    async def on_progress(_: float, __: float | None, message: str | None) -> None:
        progress.append(message)

    async def main() -> None:
        options: dict[str, Any] = {"mode": mode, "elicitation_callback": answering("accept", {})}
        opened = over_stdio(servers, **options) if transport == "stdio" else Client(address, **options)
        async with opened as client:
            ASKED.clear()
            told = await run(client, BOTH, progress_callback=on_progress)
            assert told == {"status": True, "result": ["a", told["result"][1]]}
            assert "main" in told["result"][1]
            assert any("Allow echo.echo?" in question for question in ASKED)
            told = await run(client, ERASE)  # a plain yes is not enough for what cannot be undone
            assert "was not approved" in told["error"]["message"]

    asyncio.run(main())
    assert progress == ["echo.echo", "git.git_branch"]


def test_an_irreversible_call_needs_its_name_and_a_no_is_a_no(address: str) -> None:
    async def main() -> None:
        async with Client(address, elicitation_callback=answering("accept", {"confirm": "echo.erase"})) as client:
            assert (await run(client, ERASE))["result"] == "erased x"
        async with Client(address, elicitation_callback=answering("decline")) as client:
            assert "was not approved" in (await run(client, ECHO))["error"]["message"]
        async with Client(address) as client:  # a client that cannot ask
            assert (await run(client, ECHO))["status"] is False

    asyncio.run(main())


def test_deciding_takes_no_time_from_the_block(servers: Path) -> None:
    async def slowly(_: Any, __: ElicitRequestParams) -> ElicitResult:
        await asyncio.sleep(4)
        return ElicitResult(action="accept", content={})

    async def main() -> None:
        limits = ("--limit", "wall_s=3", "--limit", "tool_s=2")
        async with over_stdio(servers, *limits, mode="legacy", elicitation_callback=slowly) as client:
            assert (await run(client, ECHO)) == {"status": True, "result": "x"}
            told = await run(client, "import time\ntime.sleep(30)\nresult = 1")
            assert told["error"]["kind"] == "wall_limit"

    asyncio.run(main())


def guests() -> set[int]:
    found = set()
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and b"/guest.py" in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
    return found


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_cancelling_a_call_kills_the_block_and_the_next_one_works(servers: Path, mode: str) -> None:
    async def main() -> None:
        async with over_stdio(servers, "--approve", "all", mode=mode) as client:
            await run(client, ECHO)
            before = guests()
            task = asyncio.create_task(run(client, "import time\ntime.sleep(100)\nresult = 1"))
            while not guests() - before:
                await asyncio.sleep(0.05)
            block = guests() - before
            task.cancel()
            for _ in range(200):
                if not guests() & block:
                    break
                await asyncio.sleep(0.05)
            assert not guests() & block
            assert (await run(client, ECHO))["result"] == "x"

    asyncio.run(main())


def test_hybrid_mode_lists_and_runs_the_inner_tools(servers: Path) -> None:
    async def main() -> None:
        async with over_stdio(servers, "--mode", "hybrid", "--approve", "write") as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names[0] == "hypertool"
            assert {"echo__echo", "git__git_log"} < set(names)
            result = await client.call_tool("echo__echo", {"text": "plain"})
            assert result.content[0].text == "plain"  # type: ignore[union-attr]
        async with over_stdio(servers) as client:
            result = await client.call_tool("echo__echo", {"text": "plain"})
            assert result.is_error

    asyncio.run(main())


def test_a_block_can_look_schemas_up(address: str) -> None:
    async def main() -> None:
        async with Client(address) as client:
            code = 'result = [t["input_schema"]["required"] for t in describe_tools("echo.echo")]'
            assert (await run(client, code))["result"] == [["text"]]
            told = await run(client, 'result = describe_tools("ecko")')
            assert "Did you mean 'echo'?" in told["error"]["message"]

    asyncio.run(main())


def test_a_large_catalogue_becomes_an_index() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    specs = [ToolSpec("big", f"tool_{i}", "word " * 40, schema, {"type": "object"}) for i in range(500)]
    text = describe(specs)
    assert len(text) < FULL_CATALOGUE_CHARS
    assert "describe_tools" in text
    assert "- tool_499" in text
    assert "-> object" in describe(specs[:3])


@pytest.mark.parametrize(
    ("options", "says"),
    [(("--http", "nowhere"), "is no address"), (("--approve", "wirte"), "Did you mean 'write'?")],
)
def test_bad_usage_is_one_error_and_exit_2(servers: Path, options: tuple[str, ...], says: str) -> None:
    done = subprocess.run(
        [sys.executable, *command(servers, *options)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_remains_when_the_client_goes(servers: Path) -> None:
    before = guests()

    async def main() -> None:
        async with over_stdio(servers, "--approve", "all") as client:
            await run(client, ECHO)

    asyncio.run(main())
    for _ in range(100):
        if not guests() - before:
            break
        time.sleep(0.05)
    assert not guests() - before
