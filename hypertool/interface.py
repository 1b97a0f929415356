"""The one tool: run a block over the servers of a task and answer with one observation.

This is the only place where the parts meet: the sandbox knows no MCP, the pool knows no blocks. A `Toolbox`
is one episode's view of both: the tools the task may use, called one at a time or from inside a block.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from hypertool.errors import BlockError, ServerError, ToolCallError
from hypertool.pool import Pool, ServerConfig
from hypertool.sandbox import Executor, JailExecutor, Limits, Outcome
from hypertool.tools import BLOCK_TOOL, SEPARATOR, Params, ToolReply, ToolSpec, find, unknown_server
from hypertool.trajectory import CallRecord, OuterCall

CUT = "\n[... cut: {kept} of {total} characters shown]"


def observation(outcome: Outcome) -> dict[str, Any]:
    """What the model is told of a block: `status`, then `result` or `error`. JSON data."""
    if outcome.error is None:
        return {"status": True, "result": outcome.result}
    return {"status": False, "error": error_fields(outcome.error, outcome.calls)}


def error_fields(error: BlockError, calls: tuple[CallRecord, ...]) -> dict[str, Any]:
    """The error as JSON data; absent fields are left out. `calls_done` names calls whose effects stand."""
    fields: dict[str, Any] = {
        "kind": error.kind,
        "type": error.type,
        "message": error.message,
        "line": error.line,
        "source": error.source,
        "frames": [list(frame) for frame in error.frames],
        "calls_done": [f"{call.server}.{call.tool}" for call in calls if call.ok],
    }
    return {key: value for key, value in fields.items() if value not in (None, [])}


class Toolbox:
    """The tools one episode may use, called one at a time (react, hybrid) or from a block (hybrid, hypertool)."""

    def __init__(
        self,
        pool: Pool,
        executor: Executor,
        specs: list[ToolSpec],
        limits: Limits,
        known: Iterable[str] | None = None,
    ) -> None:
        """`known` are the server names to list when a call names another (default: those of `specs`)."""
        self.specs = specs
        self._known = list(dict.fromkeys(spec.server for spec in specs) if known is None else known)
        self._pool = pool
        self._executor = executor
        self._limits = limits

    async def run(self, name: str, arguments: Params, max_chars: int) -> OuterCall:
        """Run what the model asked for by its exposed name; the observation is cut at `max_chars`, marked.

        Raises SandboxError or ServerError for faults that are ours; the model's own become observations.
        """
        started = time.perf_counter()
        if name == BLOCK_TOOL:
            call = await self._block(arguments)
        else:
            call = await self._atomic(name, arguments)
        text = call.observation
        if len(text) > max_chars:
            text = text[:max_chars] + CUT.format(kept=max_chars, total=len(text))
        return replace(call, observation=text, seconds=round(time.perf_counter() - started, 4))

    async def block(self, code: str) -> Outcome:
        """Run a block; inner calls reach only this episode's tools."""
        return await self._executor.run(code, self._inner, self._limits)

    async def _call(self, server: str, tool: str, params: Params) -> ToolReply:
        if server not in self._known:
            raise unknown_server(server, tool, self._known)
        find(self.specs, server, tool)
        return await self._pool.call(server, tool, params, self._limits.tool_s)

    async def _inner(self, server: str, tool: str, params: Params) -> Any:
        reply = await self._call(server, tool, params)
        return {"status": True, "result": reply.value}

    async def _block(self, arguments: Params) -> OuterCall:
        code = arguments.get("code")
        if not isinstance(code, str) or not code.strip():
            message = f"{BLOCK_TOOL} takes one argument, code: a Python block as a string."
            return OuterCall(BLOCK_TOOL, arguments, _error_text(message), ok=False, error_kind="arguments")
        outcome = await self.block(code)
        return OuterCall(
            BLOCK_TOOL,
            arguments,
            json.dumps(observation(outcome), ensure_ascii=False),
            ok=outcome.error is None,
            error_kind=outcome.error.kind if outcome.error else None,
            stdout=outcome.stdout,
            inner=outcome.calls,
            server_errors=outcome.server_errors,
        )

    async def _atomic(self, name: str, arguments: Params) -> OuterCall:
        started = time.perf_counter()
        server, _, tool = name.partition(SEPARATOR)
        try:
            reply = await self._call(server, tool, arguments)
        except (ToolCallError, ServerError) as error:
            seconds = round(time.perf_counter() - started, 4)
            record = CallRecord(server, tool, arguments, ok=False, error=str(error), seconds=seconds)
            server_errors = (str(error),) if isinstance(error, ServerError) else ()
            return OuterCall(
                name,
                arguments,
                _error_text(str(error)),
                ok=False,
                error_kind="server" if server_errors else "tool",
                inner=(record,),
                server_errors=server_errors,
            )
        seconds = round(time.perf_counter() - started, 4)
        record = CallRecord(server, tool, arguments, ok=True, reply=reply.value, seconds=seconds, bytes=reply.bytes)
        return OuterCall(name, arguments, reply.text, ok=True, inner=(record,))


def _error_text(message: str) -> str:
    return f"Error: {message}"


@asynccontextmanager
async def open_parts(
    servers: dict[str, ServerConfig], names: list[str] | None = None
) -> AsyncIterator[tuple[Pool, Executor]]:
    """A started pool (all of `servers`, or `names`) and a started jail; both closed at the end."""
    executor = JailExecutor()
    async with Pool(servers) as pool:
        await executor.start()
        try:
            await pool.start(names)
            yield pool, executor
        finally:
            await executor.aclose()
