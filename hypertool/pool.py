"""The MCP client pool: one owner task per server, over stdio or streamable HTTP, restarted after a crash.

A connection is opened, used and closed by the task that owns it, because the SDK's contexts must be left in
the task that entered them. A call that dies with its server is reported as failed, because nobody knows whether
it had taken effect; only a tool annotated read-only or idempotent is called once more, on a new server. The next
call starts the server again. A server that left a call unanswered must answer a question before it gets the next
one, else it is replaced. Secrets of the servers file are kept out of replies and errors.

    async with Pool(load_servers(Path("servers.json")))  # servers.py as pool:
        await pool.start(["git"])
        reply = await pool.call("git", "git_log", {"repo_path": "."}, tool_s=60)
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, TypeVar, cast

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client  # the SDK's timeouts; it has no public name for them
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, CallToolResult, Tool

from hypertool.errors import ConfigError, ServerError, ToolCallError, ToolTimeout, innermost, nearest
from hypertool.servers import ServerConfig
from hypertool.tools import Effect, Params, ToolReply, ToolSpec, find, unknown_server

ANSWER_S = 2.0  # a server that left a call unanswered has this long to list its tools, or it hangs
START_S = 60.0  # a Python server imports for 1-5 s, longer on a loaded machine
KEEPER = Path(__file__).with_name("keeper.py")
REDACTED = "[redacted]"
MAX_PAGES = 100  # a server whose cursor never ends must not hang the start


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
        tool_s = min(tool_s, connection.config.timeout_s or tool_s)
        secrets = connection.config.secrets
        try:
            try:
                reply = await connection.call(spec, params, tool_s)
            except ServerError:
                if not spec.idempotent:
                    raise
                await connection.ensure()  # calling twice is the same as calling once, so once more
                reply = await connection.call(spec, params, tool_s)
        except (ToolCallError, ServerError) as error:
            if (text := redact(str(error), secrets)) != str(error):
                raise type(error)(text) from None  # the cause would carry the secret
            raise
        return replace(reply, text=redact(reply.text, secrets), value=redact(reply.value, secrets))


class _Connection:
    """One server: the owner task, its client, and what the server listed."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.specs: list[ToolSpec] = []
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._reviving: asyncio.Task[None] | None = None
        self._failures = 0
        self._unanswered = False

    async def ensure(self) -> None:
        """Start the server unless it runs and answers. Raises ServerError with the tail of its stderr.

        One start serves all who wait for it, and goes on when one of them gives up.
        """
        if self._client is not None and not self._unanswered:
            return
        if self._reviving is None:
            self._reviving = asyncio.create_task(self._revive(), name=f"start:{self.config.name}")
            self._reviving.add_done_callback(self._revived)
        await asyncio.shield(self._reviving)

    def _revived(self, task: asyncio.Task[None]) -> None:
        self._reviving = None
        if not task.cancelled():
            task.exception()  # seen, whether or not anybody still waits

    async def _revive(self) -> None:
        if self._client is not None and await self._answers(self._client):
            self._unanswered = False
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
                f"server {self.config.name!r} did not list its tools within {START_S:.0f} s; {self._by_hand}"
            ) from None

    async def _answers(self, client: Client) -> bool:
        """Whether a server that let a call pass by still speaks; one that does not is given up."""
        try:
            async with asyncio.timeout(ANSWER_S):
                await client.list_tools(cache_mode="refresh")  # a ping is not part of every protocol version
        except Exception as error:
            cause = innermost(error)
            if isinstance(cause, MCPError) and cause.code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
                return True  # a refusal is an answer
            self._lost()
            return False
        return True

    @property
    def _by_hand(self) -> str:
        if self.config.url is not None:
            return f"check that {self.config.url} answers"
        return f"try its command by hand: {' '.join([self.config.command, *self.config.args])}"

    async def _own(self, ready: asyncio.Future[None]) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errlog:
            try:
                async with AsyncExitStack() as stack:
                    client = await stack.enter_async_context(await self._transport(stack, errlog))
                    self.specs = [_spec(self.config.name, tool) for tool in await _all_tools(client)]
                    self._client = client
                    self._failures = 0
                    self._unanswered = False
                    ready.set_result(None)
                    await self._stop.wait()
            except Exception as error:
                if not ready.done():
                    self._failures += 1
                    cause = innermost(error)
                    ready.set_exception(
                        ServerError(
                            redact(
                                f"server {self.config.name!r} did not start: {type(cause).__name__}: {cause}"
                                f"{_tail(errlog)}",
                                self.config.secrets,
                            )
                        )
                    )
            finally:
                self._client = None

    async def _transport(self, stack: AsyncExitStack, errlog: TextIO) -> Client:
        config = self.config
        if config.url is not None:
            http = await stack.enter_async_context(create_mcp_http_client(headers=config.headers))
            return Client(streamable_http_client(config.url, http_client=http))
        command = [config.command, *config.args]
        if sys.platform == "linux":  # elsewhere a server must notice by itself that its host was killed
            command = [sys.executable, "-I", "-S", str(KEEPER), *command]
        parameters = StdioServerParameters(command=command[0], args=command[1:], env=config.env, cwd=config.cwd)
        return Client(stdio_client(parameters, errlog=errlog))

    async def call(self, spec: ToolSpec, params: Params, tool_s: float) -> ToolReply:
        client = self._client
        if client is None:
            raise ServerError(f"server {self.config.name!r} is not running")
        try:
            async with asyncio.timeout(tool_s + 5):
                result = await client.call_tool(spec.name, params, read_timeout_seconds=tool_s)
        except asyncio.CancelledError:  # the clock of a block, usually
            self._unanswered = True
            raise
        except Exception as error:
            cause = innermost(error)
            if isinstance(cause, TimeoutError) or (isinstance(cause, MCPError) and cause.code == REQUEST_TIMEOUT):
                self._unanswered = True
                raise ToolTimeout(f"{spec.server}.{spec.name} did not answer within {tool_s:g} s.") from error
            if isinstance(cause, MCPError) and cause.code != CONNECTION_CLOSED:
                raise ToolCallError(f"{spec.server}.{spec.name}: {cause.message}") from error
            if isinstance(cause, (RuntimeError, ValueError)):  # the SDK, on a reply against the schema it should keep
                said = str(cause).split("\n")[0]
                raise ToolCallError(f"{spec.server}.{spec.name} broke its own contract: {said}") from error
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
        if self._reviving is not None:
            self._reviving.cancel()
            await asyncio.wait({self._reviving})
        await self._close_owner()


T = TypeVar("T")


def redact(value: T, secrets: tuple[str, ...]) -> T:
    """`value` with every secret in its texts replaced; JSON data of any depth that the wire can carry."""
    if not secrets:
        return value
    made: Any = value
    if isinstance(value, str):
        for secret in sorted(secrets, key=len, reverse=True):
            made = made.replace(secret, REDACTED)
    elif isinstance(value, dict):
        made = {redact(key, secrets): redact(item, secrets) for key, item in value.items()}
    elif isinstance(value, list):
        made = [redact(item, secrets) for item in value]
    return cast(T, made)


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
    """Side effects by the server's own annotations: nothing said means that it writes."""
    claims = tool.annotations
    read = bool(claims and claims.read_only_hint)
    effect: Effect = "read" if read else "irreversible" if claims and claims.destructive_hint else "write"
    return ToolSpec(
        server,
        tool.name,
        tool.description or "",
        tool.input_schema,
        tool.output_schema,
        effect,
        idempotent=read or bool(claims and claims.idempotent_hint),
    )


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
    """Text as it is; of anything else a marker with its type and size, because a block cannot look at it."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource":
        if getattr(block.resource, "text", None) is not None:
            return str(block.resource.text)
        return _marker("resource", block.resource.mime_type, block.resource.blob)
    if block.type in ("image", "audio"):
        return _marker(block.type, block.mime_type, block.data)
    return f"[{block.type} {block.uri}]" if block.type == "resource_link" else f"[{block.type}]"


def _marker(kind: str, mime_type: str | None, data: str) -> str:
    size = len(data) * 3 // 4 - data[-2:].count("=")  # of the bytes that base64 stands for
    return f"[{kind} {mime_type or 'of unknown type'}, {size} bytes]"


def parse_text(text: str) -> Any:
    """A JSON object or array becomes data; everything else, scalars included, stays the text it was."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text
