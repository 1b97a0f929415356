"""Shared parts: a servers file for the echo server, and one warm pool and jail for the tests of a module."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from hypertool.interface import open_parts
from hypertool.pool import Pool
from hypertool.sandbox import Executor
from hypertool.servers import load_servers

TESTS = Path(__file__).parent
T = TypeVar("T")


def write_servers(folder: Path) -> Path:
    """Two echo servers, `echo` and `other`, and one that cannot start."""
    script = str(TESTS / "echo_server.py")
    entry = {"command": sys.executable, "args": [script]}
    broken = {"command": sys.executable, "args": [script, "broken"]}
    path = folder / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"echo": entry, "other": entry, "broken": broken}}))
    return path


@pytest.fixture
def servers_file(tmp_path: Path) -> Path:
    return write_servers(tmp_path)


class Live:
    """A running event loop in its own thread, with a warm pool (`echo`) and a jail."""

    def __init__(self, servers: Path) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._stop = asyncio.Event()
        self.parts: tuple[Pool, Executor]
        ready = threading.Event()
        self._owner = asyncio.run_coroutine_threadsafe(self._own(servers, ready), self._loop)
        while not ready.wait(0.1):
            if self._owner.done():
                self._owner.result()

    async def _own(self, servers: Path, ready: threading.Event) -> None:
        async with open_parts(load_servers(servers), ["echo"]) as parts:
            self.parts = parts
            ready.set()
            await self._stop.wait()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(120)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._owner.result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    parts = Live(write_servers(tmp_path_factory.mktemp("live")))
    yield parts
    parts.close()
