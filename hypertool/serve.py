"""HyperTool as an MCP server: one tool, `hypertool`, in front of the servers you have.

    hypertool serve --servers servers.json                      # stdio, for an MCP client's own config
    hypertool serve --servers servers.json --http 127.0.0.1:8765   # streamable HTTP, at /mcp

The tool's description carries the rules of a block and the inner tools. Each inner call sends a progress
notification, cancelling the request kills the block, and a call that needs approval is put to the client's user
by elicitation: as a request of its own where the protocol allows one, else (protocol 2026-07-28) the block waits
while the client answers and asks again. The block's clocks stand still meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from hypertool.approval import Approval, ApprovalRequest
from hypertool.errors import ConfigError, HyperToolError
from hypertool.interface import Toolbox
from hypertool.pool import Pool
from hypertool.sandbox import Executor, Limits, untimed
from hypertool.tools import BLOCK_TOOL, ToolSpec, type_name

Mode = Literal["hypertool", "hybrid"]

FULL_CATALOGUE_CHARS = 24_000
"""Above this the description lists names only, and a block looks schemas up with describe_tools."""
DECISION_S = 600.0
"""How long a block waits for a person, or for a client to come back with the person's answer."""
RULES = """\
Run one Python block that may call tools. Call it with {"code": "<Python>"}.
- call_tool(server, tool, {"name": value}) returns {"status": true, "result": ...}; a failing tool raises ToolError.
- call_tools([(server, tool, params), ...]) makes independent calls in parallel; replies keep their order.
- Assign what you need to `result`: only it comes back, as JSON. Nothing is kept between blocks; print is not shown.
- Python 3.11 with its standard library; no files, network, processes or environment. Put every step you can
  foresee into one block: filter, join and compute there instead of reading raw results."""


def describe(specs: list[ToolSpec]) -> str:
    """The description of the one tool: the rules, then every inner tool, or an index when there are too many."""
    full = _catalogue(specs, _entry)
    if len(full) <= FULL_CATALOGUE_CHARS:
        return f"{RULES}\n{full}"
    index = _catalogue(specs, lambda spec: f"- {spec.name}")
    return (
        f'{RULES}\n- describe_tools("server") or describe_tools("server.tool", ...) in a block returns descriptions '
        f"and schemas; the list below has names only.\n{index}"
    )


def _catalogue(specs: list[ToolSpec], line: Callable[[ToolSpec], str]) -> str:
    servers = dict.fromkeys(spec.server for spec in specs)
    return "\n".join(
        f'\nTools of server "{server}":\n' + "\n".join(line(spec) for spec in specs if spec.server == server)
        for server in servers
    )


def _entry(spec: ToolSpec) -> str:
    returns = f" -> {type_name(spec.output_schema)}" if spec.output_schema else ""
    rest = " ".join(spec.description.split())
    return f"- {spec.signature().split(' - ')[0]}{returns} - {rest}" if rest else f"- {spec.signature()}"


@dataclass
class _Run:
    """One tools/call at work; with a protocol that has no requests to the client it outlives the request."""

    context: Any
    """The SDK's context of the request that is open now: progress goes there."""
    task: asyncio.Task[CallToolResult] | None = None
    questions: asyncio.Queue[tuple[ApprovalRequest, asyncio.Future[ElicitResult]]] = field(
        default_factory=asyncio.Queue
    )
    answer: asyncio.Future[ElicitResult] | None = None
    expiry: asyncio.TimerHandle | None = None


class Front:
    """The MCP server: lists one tool (or, in hybrid mode, the inner ones too) and runs what is called."""

    def __init__(
        self, pool: Pool, executor: Executor, limits: Limits, approval: Approval, mode: Mode = "hypertool"
    ) -> None:
        """Raises ConfigError if an inner server takes the name of the tool itself."""
        if BLOCK_TOOL in pool.names:
            raise ConfigError(f"a server may not be named {BLOCK_TOOL!r}, which is the name of the tool; rename it")
        self._pool, self._executor, self._limits = pool, executor, limits
        self._approval, self._mode = approval, mode
        self._specs = pool.specs()
        self._waiting: dict[str, _Run] = {}
        self.server: Server[Any] = Server(
            "hypertool", on_list_tools=self._list, on_call_tool=self._call, instructions=RULES.split("\n")[0]
        )

    async def _list(self, _: Any, __: PaginatedRequestParams | None) -> ListToolsResult:
        block = Tool(
            name=BLOCK_TOOL,
            description=describe(self._specs),
            input_schema={
                "type": "object",
                "properties": {"code": {"type": "string", "description": "a Python block that assigns result"}},
                "required": ["code"],
                "additionalProperties": False,
            },
        )
        atomic = [_tool(spec) for spec in self._specs] if self._mode == "hybrid" else []
        return ListToolsResult(tools=[block, *atomic])

    async def _call(self, context: Any, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """Run a call, or go on with the one whose question the client has just answered."""
        if params.request_state is not None:
            run = self._waiting.pop(params.request_state, None)
            if run is None or run.answer is None:
                return _text("Error: this call is no longer waiting for an answer; send it again.", failed=True)
            if run.expiry is not None:
                run.expiry.cancel()
            run.context = context
            said = (params.input_responses or {}).get("approval")
            run.answer.set_result(said if isinstance(said, ElicitResult) else ElicitResult(action="cancel"))
        else:
            run = _Run(context)
            run.task = asyncio.create_task(self._work(params, run))
        return await self._follow(run)

    async def _follow(self, run: _Run) -> CallToolResult | InputRequiredResult:
        assert run.task is not None
        question = asyncio.create_task(run.questions.get())
        either: set[asyncio.Future[Any]] = {run.task, question}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # the client cancelled: kill the block and wait until it is gone
            run.task.cancel()
            with suppress(asyncio.CancelledError):
                await run.task
            raise
        finally:
            question.cancel()
        if run.task.done():
            return run.task.result()
        request, run.answer = question.result()
        token = secrets.token_urlsafe(24)
        self._waiting[token] = run
        run.expiry = asyncio.get_running_loop().call_later(DECISION_S, self._forget, token)
        return InputRequiredResult(
            input_requests={"approval": ElicitRequest(params=_form(request))}, request_state=token
        )

    def _forget(self, token: str) -> None:
        run = self._waiting.pop(token, None)
        if run is not None and run.task is not None:
            run.task.cancel()

    async def _work(self, params: CallToolRequestParams, run: _Run) -> CallToolResult:
        async def ask(request: ApprovalRequest) -> bool | str:
            async with untimed():
                return _decision(request, await self._elicit(request, run))

        done = 0

        async def on_call(name: str) -> None:
            nonlocal done
            done += 1
            await run.context.session.report_progress(done, message=name)

        approval = replace(self._approval, ask=ask)
        toolbox = Toolbox(self._pool, self._executor, self._specs, self._limits, self._pool.names, approval)
        arguments = params.arguments or {}
        try:
            if params.name == BLOCK_TOOL and isinstance(code := arguments.get("code"), str) and code.strip():
                _, told = await toolbox.block(code, on_call)
                return _text(json.dumps(told, ensure_ascii=False), failed=not told["status"])
            if params.name != BLOCK_TOOL and self._mode != "hybrid":
                return _text(f"Error: unknown tool {params.name!r}. Tools: {BLOCK_TOOL}.", failed=True)
            call = await toolbox.run(params.name, arguments, self._limits.result_chars)
        except HyperToolError as error:  # ours: say so instead of ending the connection
            return _text(f"Error: {type(error).__name__}: {error}", failed=True)
        return _text(call.observation, failed=not call.ok)

    async def _elicit(self, request: ApprovalRequest, run: _Run) -> ElicitResult:
        context = run.context
        capabilities = context.session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            return ElicitResult(action="cancel")
        if context.session.can_send_request:
            form = _form(request)
            with suppress(TimeoutError):
                async with asyncio.timeout(DECISION_S):
                    said: ElicitResult = await context.session.elicit_form(
                        form.message, form.requested_schema, related_request_id=context.request_id
                    )
                    return said
            return ElicitResult(action="cancel")
        answer: asyncio.Future[ElicitResult] = asyncio.get_running_loop().create_future()
        await run.questions.put((request, answer))
        return await answer


def _tool(spec: ToolSpec) -> Tool:
    return Tool(
        name=spec.exposed_name,
        description=spec.description,
        input_schema=spec.input_schema,
        annotations=ToolAnnotations(
            read_only_hint=spec.effect == "read",
            destructive_hint=spec.effect == "irreversible",
            idempotent_hint=spec.idempotent,
        ),
    )


def _form(request: ApprovalRequest) -> ElicitRequestFormParams:
    """The question: a yes for a write, the tool's own name typed out for what cannot be undone."""
    shown = json.dumps(request.params, ensure_ascii=False)
    shown = shown if len(shown) <= 2_000 else shown[:2_000] + " ..."
    if request.spec.effect == "irreversible":
        message = f"{request.name} cannot be undone. Arguments: {shown}. To allow it, type its name: {request.name}"
        wanted: dict[str, Any] = {"confirm": {"type": "string", "title": f"Type {request.name}"}}
        return ElicitRequestFormParams(
            message=message, requested_schema={"type": "object", "properties": wanted, "required": ["confirm"]}
        )
    return ElicitRequestFormParams(
        message=f"Allow {request.name}? It may change something. Arguments: {shown}",
        requested_schema={"type": "object", "properties": {}},
    )


def _decision(request: ApprovalRequest, said: ElicitResult) -> bool | str:
    if said.action != "accept":
        return False
    return str((said.content or {}).get("confirm", "")) if request.spec.effect == "irreversible" else True


def _text(text: str, *, failed: bool) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)


async def serve_stdio(front: Front) -> None:
    """Serve one client over standard input and output until it closes them."""
    async with stdio_server() as (reading, writing):
        await front.server.run(reading, writing, front.server.create_initialization_options())


async def serve_http(front: Front, host: str, port: int) -> None:
    """Serve any number of clients over streamable HTTP at /mcp until interrupted."""
    app = front.server.streamable_http_app(host=host)
    web = uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="warning"))
    await web.serve()


def parse_address(text: str) -> tuple[str, int]:
    """`host:port`, or a port alone on 127.0.0.1. Raises ConfigError."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ConfigError(f"--http {text!r} is no address; give host:port, for example 127.0.0.1:8765")
    return host.strip("[]") or "127.0.0.1", int(port)
