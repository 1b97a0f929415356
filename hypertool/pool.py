"""The MCP client pool: one owner task per server, started on demand, kept warm, restarted after a crash.

A connection is opened, used and closed by the task that owns it, because the SDK's contexts must be left in
the task that entered them. A call that dies with its server is reported as failed and never repeated: the
pool cannot know whether it had taken effect. The next call starts the server again.

    async with Pool(load_servers(Path("servers.json"))) as pool:
        await pool.start(["git"])
        reply = await pool.call("git", "git_log", {"repo_path": "."}, tool_s=60)
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, CallToolResult, Tool

from hypertool.errors import ConfigError, ServerError, ToolCallError, innermost, nearest
from hypertool.tools import Params, ToolReply, ToolSpec, find, unknown_server

START_S = 60.0  # a Python server imports for 1-5 s, longer on a loaded machine
MAX_PAGES = 100  # a server whose cursor never ends must not hang the start


@dataclass(frozen=True)
class ServerConfig:
    """One entry of `mcpServers`, variables expanded and paths made absolute."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None


def load_servers(path: Path) -> dict[str, ServerConfig]:
    """Read an `mcpServers` file, the form other MCP clients use.

    `${VAR}` is taken from the environment. A command with a slash is relative to the current folder, `cwd` to
    the file's folder. Raises ConfigError naming the entry and the change to make; starts nothing.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_no_duplicates)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such servers file; give the path of an mcpServers JSON file") from None
    except (ValueError, OSError) as error:
        raise ConfigError(f"{path}: not a readable servers file: {error}") from error
    entries = data.get("mcpServers") if isinstance(data, dict) else None
    if not isinstance(entries, dict) or not entries:
        raise ConfigError(f'{path}: no servers; expected {{"mcpServers": {{"name": {{"command": ...}}}}}}')
    return {name: _server(path, name, entry) for name, entry in entries.items()}


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the key {name!r} stands twice in one object; rename or remove one")
    return dict(pairs)


def _server(path: Path, name: str, entry: Any) -> ServerConfig:
    where = f"{path}: server {name!r}"
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} is not an object")
    if "url" in entry:
        raise ConfigError(f"{where} has a url; only stdio servers (command, args) are supported yet")
    command = entry.get("command")
    if not isinstance(command, str) or not command:
        raise ConfigError(f"{where} has no command; add the program that starts it")
    command = _expand(where, command)
    if "/" in command:
        command = str(Path(command).absolute())
    if shutil.which(command) is None:
        raise ConfigError(f"{where}: command {command!r} was not found; install it or correct the path")
    args = tuple(_expand(where, str(arg)) for arg in entry.get("args", []))
    env = {key: _expand(where, str(value)) for key, value in entry.get("env", {}).items()}
    cwd = entry.get("cwd")
    if cwd is not None:
        folder = path.parent / _expand(where, cwd)
        if not folder.is_dir():
            raise ConfigError(f"{where}: cwd {str(folder)!r} is no folder; build or create it first")
        cwd = str(folder.absolute())
    return ServerConfig(name, command, args, env, cwd)


def _expand(where: str, text: str) -> str:
    def value(match: re.Match[str]) -> str:
        variable = match.group(1)
        if variable not in os.environ:
            raise ConfigError(f"{where}: variable {variable} is not set; run: export {variable}=...")
        return os.environ[variable]

    return re.sub(r"\$\{(\w+)\}", value, text)


class Pool:
    """Warm connections to the configured servers. Use as an async context; closing leaves no process."""

    def __init__(self, servers: dict[str, ServerConfig]) -> None:
        self._connections = {name: _Connection(config) for name, config in servers.items()}

    async def __aenter__(self) -> Pool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))

    async def start(self, names: Iterable[str] | None = None) -> None:
        """Start the named servers (all, if None) in parallel. Raises ServerError, or ConfigError for a name."""
        wanted = list(self._connections) if names is None else list(names)
        for name in wanted:
            if name not in self._connections:
                valid = ", ".join(self._connections)
                raise ConfigError(f"unknown server {name!r}. {nearest(name, self._connections)}Servers: {valid}.")
        await asyncio.gather(*(self._connections[name].ensure() for name in wanted))

    @property
    def names(self) -> list[str]:
        return list(self._connections)

    def specs(self, names: Iterable[str] | None = None) -> list[ToolSpec]:
        """The tools of started servers, in server order, then as listed by each server."""
        wanted = set(self._connections) if names is None else set(names)
        return [spec for name, connection in self._connections.items() if name in wanted for spec in connection.specs]

    async def call(self, server: str, tool: str, params: Params, tool_s: float) -> ToolReply:
        """Call one tool with checked arguments.

        Raises ToolCallError (bad arguments, isError, or no answer within `tool_s` seconds) or ServerError
        (the server died in the call, or cannot be started).
        """
        if server not in self._connections:
            raise unknown_server(server, tool, self._connections)
        connection = self._connections[server]
        await connection.ensure()
        spec = find(connection.specs, server, tool)
        spec.check(params)
        return await connection.call(spec, params, tool_s)


class _Connection:
    """One server: the owner task, its client, and what the server listed."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.specs: list[ToolSpec] = []
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._lock = asyncio.Lock()
        self._failures = 0

    async def ensure(self) -> None:
        """Start the server unless it runs. Raises ServerError with the tail of its stderr."""
        async with self._lock:
            if self._client is not None:
                return
            await self._close_owner()
            if self._failures:
                await asyncio.sleep(min(0.2 * 2**self._failures, 5.0))
            ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._stop = asyncio.Event()
            self._owner = asyncio.create_task(self._own(ready), name=f"mcp:{self.config.name}")
            try:
                await asyncio.wait_for(asyncio.shield(ready), START_S)
            except TimeoutError:
                await self._close_owner()
                self._failures += 1
                raise ServerError(
                    f"server {self.config.name!r} did not list its tools within {START_S:.0f} s; "
                    f"try its command by hand: {' '.join([self.config.command, *self.config.args])}"
                ) from None

    async def _own(self, ready: asyncio.Future[None]) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errlog:
            parameters = StdioServerParameters(
                command=self.config.command,
                args=list(self.config.args),
                env=self.config.env,
                cwd=self.config.cwd,
            )
            try:
                async with Client(stdio_client(parameters, errlog=errlog)) as client:
                    self.specs = [_spec(self.config.name, tool) for tool in await _all_tools(client)]
                    self._client = client
                    self._failures = 0
                    ready.set_result(None)
                    await self._stop.wait()
            except Exception as error:
                if not ready.done():
                    self._failures += 1
                    cause = innermost(error)
                    ready.set_exception(
                        ServerError(
                            f"server {self.config.name!r} did not start: {type(cause).__name__}: {cause}{_tail(errlog)}"
                        )
                    )
            finally:
                self._client = None

    async def call(self, spec: ToolSpec, params: Params, tool_s: float) -> ToolReply:
        client = self._client
        if client is None:
            raise ServerError(f"server {self.config.name!r} is not running")
        try:
            result = await asyncio.wait_for(
                client.call_tool(spec.name, params, read_timeout_seconds=tool_s), tool_s + 5
            )
        except Exception as error:
            cause = innermost(error)
            if isinstance(cause, TimeoutError) or (isinstance(cause, MCPError) and cause.code == REQUEST_TIMEOUT):
                raise ToolCallError(f"{spec.server}.{spec.name} did not answer within {tool_s:g} s.") from error
            if isinstance(cause, MCPError) and cause.code != CONNECTION_CLOSED:
                raise ToolCallError(f"{spec.server}.{spec.name}: {cause.message}") from error
            self._lost()
            raise ServerError(
                f"server {self.config.name!r} died during {spec.name}; whether the call took effect is unknown"
            ) from error
        return _reply(spec, result)

    def _lost(self) -> None:
        self._client = None
        self._stop.set()
        self._failures += 1

    async def _close_owner(self) -> None:
        if self._owner is None:
            return
        self._stop.set()
        done, _ = await asyncio.wait({self._owner}, timeout=10)
        if not done:
            self._owner.cancel()
        with suppress(BaseException):
            await self._owner
        self._owner = None

    async def close(self) -> None:
        async with self._lock:
            await self._close_owner()


async def _all_tools(client: Client) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools.extend(page.tools)
        if page.next_cursor is None or page.next_cursor == cursor:
            return tools
        cursor = page.next_cursor
    return tools


def _spec(server: str, tool: Tool) -> ToolSpec:
    return ToolSpec(server, tool.name, tool.description or "", tool.input_schema, tool.output_schema)


def _tail(errlog: TextIO, lines: int = 8) -> str:
    errlog.seek(0)
    text = errlog.read().strip().split("\n")[-lines:]
    return ". Its stderr ends with:\n" + "\n".join(text) if text != [""] else ""


def _reply(spec: ToolSpec, result: CallToolResult) -> ToolReply:
    """Structured content wins for code; text that is a JSON object or array is parsed; the rest stays text.

    Raises ToolCallError with the server's own text when the result is an error.
    """
    texts = [_block_text(block) for block in result.content]
    text = "\n".join(texts)
    if result.is_error:
        raise ToolCallError(text or f"{spec.server}.{spec.name} failed without a text")
    value: Any
    if result.structured_content is not None:
        value = _unwrap(spec, result.structured_content)
        text = text or json.dumps(value, ensure_ascii=False)
    elif len(texts) == 1:
        value = parse_text(texts[0])
    else:
        value = [parse_text(part) for part in texts]
    return ToolReply(text, value, len(json.dumps(value, ensure_ascii=False).encode()))


def _unwrap(spec: ToolSpec, structured: Any) -> Any:
    """Servers built on the Python SDK wrap a list or scalar as {"result": ...}; code expects the bare value."""
    properties = (spec.output_schema or {}).get("properties", {})
    if isinstance(structured, dict) and set(structured) == {"result"} and set(properties) == {"result"}:
        inner = structured["result"]
        return parse_text(inner) if isinstance(inner, str) else inner
    return structured


def _block_text(block: Any) -> str:
    if block.type == "text":
        return str(block.text)
    if block.type == "resource" and getattr(block.resource, "text", None) is not None:
        return str(block.resource.text)
    if block.type in ("image", "audio"):
        return f"[{block.type} {block.mime_type}, {len(block.data) * 3 // 4} bytes]"
    return f"[{block.type}]"


def parse_text(text: str) -> Any:
    """A JSON object or array becomes data; everything else, scalars included, stays the text it was."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
