"""The one tool: run a block over the servers of a task and answer with one observation.

This is the only place where the parts meet: the sandbox knows no MCP, the pool knows no blocks. A `Toolbox`
is one episode's view of both: the tools the task may use, called one at a time or from inside a block.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from hypertool.approval import Approval
from hypertool.errors import BadArguments, BlockError, CallFailure, ServerError, ToolCallError, nearest
from hypertool.executors import AUTO, open_executor
from hypertool.pool import Pool
from hypertool.sandbox import Executor, Limits, Outcome
from hypertool.servers import ServerConfig
from hypertool.tools import BLOCK_TOOL, SEPARATOR, Params, ToolReply, ToolSpec, find, unknown_server
from hypertool.trajectory import CallRecord, OuterCall

OnCall = Callable[[str], Awaitable[None]]

DESCRIBE = (BLOCK_TOOL, "describe_tools")  # how the block's describe_tools() arrives here
MAX_HINTS = 3
CUT = "\n[... cut: {kept} of {total} characters shown]"


def observation(outcome: Outcome, hints: Iterable[str] = (), repeats: int = 0) -> dict[str, Any]:
    """What the model is told of a block: `status`, then `result` or `error`. JSON data.

    `hints` are remarks on calls that went through; `repeats` counts earlier failures of this very kind.
    """
    told: dict[str, Any]
    if outcome.error is None:
        told = {"status": True, "result": outcome.result}
    else:
        told = {"status": False, "error": error_fields(outcome.error, outcome.calls)}
        if repeats:
            told["error"]["repeats"] = repeats
    if hints := list(dict.fromkeys(hints)):
        told["hints"] = hints[:MAX_HINTS]
    return told


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
        approval: Approval | None = None,
    ) -> None:
        """`known` are the server names to list when a call names another (default: those of `specs`).

        Without `approval` every call runs: right for worlds that are thrown away, wrong for a user's servers.
        """
        self.specs = specs
        self._known = list(dict.fromkeys(spec.server for spec in specs) if known is None else known)
        self._pool = pool
        self._executor = executor
        self._limits = limits
        self._approval = approval or Approval("all")
        self._failures: Counter[tuple[str, ...]] = Counter()

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

    async def block(self, code: str, on_call: OnCall | None = None) -> tuple[Outcome, dict[str, Any]]:
        """Run a block; inner calls reach only this episode's tools. Returns its outcome and its observation.

        `on_call` hears of every inner call when it is over, by its name `server.tool`.
        """
        hints: list[str] = []

        async def inner(server: str, tool: str, params: Params) -> Any:
            if (server, tool) == DESCRIBE and server not in self._known:
                return {"status": True, "result": self._describe(params.get("names"))}
            try:
                reply = await self._call(server, tool, params, hints)
            finally:
                if on_call is not None:
                    await on_call(f"{server}.{tool}")
            return {"status": True, "result": reply.value}

        outcome = await self._executor.run(code, inner, self._limits)
        repeats = 0
        if (error := outcome.error) is not None:
            repeats = self._seen(BLOCK_TOOL, error.kind, error.type, error.message)
        return outcome, observation(outcome, hints, repeats)

    def _describe(self, names: Any) -> list[dict[str, Any]]:
        """What `describe_tools` returns in a block: schemas of the named servers or tools, of all if none is."""
        wanted = [str(name) for name in names] if isinstance(names, list) else []
        valid = {name: spec for spec in self.specs for name in (spec.server, f"{spec.server}.{spec.name}")}
        for name in wanted:
            if name not in valid:
                listing = f"{nearest(name, valid)}Servers: {', '.join(self._known)}."
                raise BadArguments(f"describe_tools: nothing is named {name!r}. {listing}")
        return [
            {
                "server": spec.server,
                "tool": spec.name,
                "description": spec.description,
                "input_schema": spec.shown_schema,
                "output_schema": spec.output_schema,
            }
            for spec in self.specs
            if not wanted or spec.server in wanted or f"{spec.server}.{spec.name}" in wanted
        ]

    def _seen(self, *failure: str) -> int:
        """How often this very failure has already happened in this episode."""
        self._failures[failure] += 1
        return self._failures[failure] - 1

    async def _call(self, server: str, tool: str, params: Params, hints: list[str]) -> ToolReply:
        if server not in self._known:
            raise unknown_server(server, tool, self._known)
        spec = find(self.specs, server, tool)
        spec.check(params)  # before anybody is asked to approve it
        await self._approval.check(spec, params)
        hints.extend(spec.hints(params))
        return await self._pool.call(server, tool, params, self._limits.tool_s)

    async def _block(self, arguments: Params) -> OuterCall:
        code = arguments.get("code")
        if not isinstance(code, str) or not code.strip():
            message = f"{BLOCK_TOOL} takes one argument, code: a Python block as a string."
            return OuterCall(BLOCK_TOOL, arguments, _error_text(message), ok=False, error_kind="arguments")
        outcome, told = await self.block(code)
        return OuterCall(
            BLOCK_TOOL,
            arguments,
            json.dumps(told, ensure_ascii=False),
            ok=outcome.error is None,
            error_kind=outcome.error.kind if outcome.error else None,
            stdout=outcome.stdout,
            inner=outcome.calls,
            server_errors=outcome.server_errors,
            repeats=told.get("error", {}).get("repeats", 0),
        )

    async def _atomic(self, name: str, arguments: Params) -> OuterCall:
        started = time.perf_counter()
        server, _, tool = name.partition(SEPARATOR)
        hints: list[str] = []
        try:
            reply = await self._call(server, tool, arguments, hints)
        except (ToolCallError, ServerError) as error:
            seconds = round(time.perf_counter() - started, 4)
            failure: CallFailure = "server" if isinstance(error, ServerError) else error.failure
            record = CallRecord(server, tool, arguments, ok=False, error=str(error), failure=failure, seconds=seconds)
            return OuterCall(
                name,
                arguments,
                _error_text(str(error)),
                ok=False,
                error_kind="server" if failure == "server" else "tool",
                inner=(record,),
                server_errors=(str(error),) if failure == "server" else (),
                repeats=self._seen(name, failure, str(error)),
            )
        seconds = round(time.perf_counter() - started, 4)
        record = CallRecord(server, tool, arguments, ok=True, reply=reply.value, seconds=seconds, bytes=reply.bytes)
        text = "\n".join([reply.text, *(f"Hint: {hint}" for hint in hints[:MAX_HINTS])])
        return OuterCall(name, arguments, text, ok=True, inner=(record,))


def _error_text(message: str) -> str:
    return f"Error: {message}"


@asynccontextmanager
async def open_parts(
    servers: dict[str, ServerConfig], names: list[str] | None = None, executor_name: str = AUTO
) -> AsyncIterator[tuple[Pool, Executor]]:
    """A started pool (all of `servers`, or `names`) and a started executor; both closed at the end."""
    async with Pool(servers) as pool:
        executor = await open_executor(executor_name)
        try:
            await pool.start(names)
            yield pool, executor
        finally:
            await executor.aclose()
