"""Run one block in a jail and serve its tool calls: the host side, which believes nothing it is sent.

An executor takes code, an async callable that reaches the tools, and limits; it gives back an `Outcome`.
It knows no MCP. A fault of the block is a `BlockError` inside the outcome; only our own machinery raises.

    jail = JailExecutor()
    await jail.start()                                   # or ExecutorUnavailable, saying what to install
    outcome = await jail.run("result = 6 * 7", call, Limits())
    await jail.aclose()                                  # leaves no process

Three layers keep a block in: bubblewrap's namespaces (no network, no files but the interpreter, no other
processes) or else Landlock, the guest's seccomp filter and rlimits, and this file, which counts, times and
finally kills. executors.py chooses.
What is covered, and what is not: docs/sandbox.md.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import contextvars
import json
import marshal
import math
import os
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from hypertool import blocks
from hypertool.errors import (
    BlockError,
    BlockErrorKind,
    CallFailure,
    ExecutorUnavailable,
    SandboxError,
    ServerError,
    ToolCallError,
    boundary,
)
from hypertool.jail import Child, Confinement, Zygote, ZygoteLost
from hypertool.trajectory import CallRecord

ToolCaller = Callable[[str, str, dict[str, Any]], Awaitable[Any]]
"""(server, tool, params) -> a JSON value for the block, or raises ToolCallError or ServerError."""

MAX_DEPTH = 60
MAX_VALUES = 200_000
TRAFFIC_FRAMES = 8
"""Parameters and replies of one block may add up to this many full frames: all of them are recorded."""
BACK_OFF_S = 1.0
GUEST_KINDS: tuple[BlockErrorKind, ...] = (
    "no_result",
    "tool",
    "runtime",
    "result_type",
    "result_too_large",
    "cpu_limit",
    "memory_limit",
    "message_too_large",
)
"""What a block may say of itself; the rest is decided here."""


@dataclass(frozen=True)
class Limits:
    """The bounds of one block. They enter the run record."""

    cpu_s: int = 10
    """CPU seconds of the block's process, enforced by the kernel."""
    wall_s: float = 180.0
    """Seconds from the start of the block to its end, tools included."""
    tool_s: float = 60.0
    """Seconds one tool call may take; then the block gets a ToolError it can catch."""
    memory_mb: int = 512
    """Address space of the block's process, interpreter included."""
    max_calls: int = 200
    max_parallel: int = 8
    """Tool calls in flight at once; further ones wait."""
    code_chars: int = 65_536
    result_chars: int = 65_536
    frame_mb: int = 8
    """The largest message between block and host: parameters, or a tool's reply."""
    stdout_chars: int = 4_096


@dataclass(frozen=True)
class Outcome:
    """What a block came to. `result` means something only when `error` is None."""

    result: Any = None
    error: BlockError | None = None
    stdout: str = ""
    calls: tuple[CallRecord, ...] = ()
    """Every inner call in the order made, finished or not."""
    wall_s: float = 0.0
    tool_s: float = 0.0
    """Seconds of `wall_s` during which at least one tool call was open."""
    server_errors: tuple[str, ...] = ()
    """Texts of the ServerErrors the block was told of: infrastructure, not the model's fault."""


@contextlib.asynccontextmanager
async def untimed() -> AsyncIterator[None]:
    """For a tool caller that waits for a person: inside, neither the call's nor the block's clock runs."""
    pause = _pause.get()
    if pause is None:
        yield
        return
    async with pause():
        yield


_pause: contextvars.ContextVar[Callable[[], AbstractAsyncContextManager[None]] | None] = contextvars.ContextVar(
    "pause", default=None
)


class Executor(Protocol):
    name: str
    isolation: str

    async def start(self) -> None: ...
    async def run(self, code: str, call: ToolCaller, limits: Limits) -> Outcome: ...
    async def aclose(self) -> None: ...


class _Ended(Exception):
    """The block is over with this error."""

    def __init__(self, kind: BlockErrorKind, message: str) -> None:
        super().__init__(message)
        self.error = BlockError(kind, kind.title().replace("_", ""), message)


class JailExecutor:
    """CPython in a jail: one zygote per executor, one forked child per block, the next child forked ahead.

    Bound to the event loop that first uses it. At most `max_blocks` blocks run at once, the rest wait:
    `Limits.memory_mb` times that number should fit the machine. `confinement` is what holds the zygote:
    bubblewrap's namespaces, or Landlock where there are none (docs/sandbox.md says what is weaker).
    """

    isolation = "os"

    def __init__(self, max_blocks: int = 16, confinement: Confinement = "bwrap") -> None:
        self.name = f"jail-{confinement}"
        self._confinement = confinement
        self._slots = asyncio.Semaphore(max_blocks)
        self._starting = asyncio.Lock()
        self._zygote: Zygote | None = None
        self._spare: tuple[dict[str, int], Child] | None = None
        self._refilling: asyncio.Task[None] | None = None
        self._closed = False

    async def start(self) -> None:
        """Probe this machine and start the zygote. Raises ExecutorUnavailable with what to do about it."""
        try:
            await self._alive()
            outcome = await self.run("result = 1", _no_tools, Limits())
        except BaseException:
            await self.aclose()
            raise
        if outcome.result != 1:
            await self.aclose()
            reason = outcome.error.message if outcome.error else "a wrong answer"
            raise ExecutorUnavailable(f"the jail starts, but a block cannot run in it: {reason}")

    async def run(self, code: str, call: ToolCaller, limits: Limits) -> Outcome:
        """Run one block. Raises SandboxError for faults of ours, never for the block's.

        Cancelling the awaiting task kills the block and its open tool calls.
        """
        error = blocks.check(code, limits.code_chars)
        if error is not None:
            return Outcome(error=error)
        order = {
            "cpu_s": max(1, math.ceil(limits.cpu_s)),
            "memory_mb": limits.memory_mb,
            "frame_bytes": limits.frame_mb * 2**20,
            "max_parallel": limits.max_parallel,
            "result_chars": limits.result_chars,
            "stdout_chars": limits.stdout_chars,
        }
        async with self._slots:
            for _ in range(2):
                zygote = await self._alive()
                with contextlib.suppress(ZygoteLost):  # nothing of the block has run yet, so try again
                    child = self._take_spare(order) or await zygote.fork(order)
                    try:
                        return await _Session(child, call, limits).run(code)
                    finally:
                        child.kill()
                        self._refill(order)
        raise SandboxError("the sandbox's zygote died twice before the block could start")

    def _take_spare(self, order: dict[str, int]) -> Child | None:
        """The child forked ahead, if it was locked up under these very limits and still lives."""
        if self._spare is None:
            return None
        (locked_under, child), self._spare = self._spare, None
        if locked_under == order and not child.exited.done():
            return child
        child.kill()
        return None

    def _refill(self, order: dict[str, int]) -> None:
        """Fork the next block's child once this one has answered: off the path of any block."""
        if self._spare is None and self._refilling is None and not self._closed:
            self._refilling = asyncio.create_task(self._fork_ahead(order))

    async def _fork_ahead(self, order: dict[str, int]) -> None:
        try:
            with contextlib.suppress(ZygoteLost, SandboxError):
                if self._zygote is not None and not self._zygote.lost:
                    self._spare = (order, await self._zygote.fork(order))
        finally:
            self._refilling = None

    async def aclose(self) -> None:
        """End the zygote and every block. A block in flight ends as `crashed`."""
        self._closed = True
        async with self._starting:
            if self._refilling is not None:
                self._refilling.cancel()
                await asyncio.wait({self._refilling})
            if self._spare is not None:
                self._spare[1].kill()
                self._spare = None
            if self._zygote is not None:
                await self._zygote.aclose()

    async def _alive(self) -> Zygote:
        async with self._starting:
            if self._closed:
                raise SandboxError("the executor is closed")
            if self._zygote is not None and self._zygote.lost:
                await self._zygote.aclose()
                self._zygote = None
                with contextlib.suppress(ExecutorUnavailable):
                    self._zygote = await Zygote.spawn(self._confinement)
                    return self._zygote
                await asyncio.sleep(BACK_OFF_S)  # then once more, and its reason goes to the caller
            if self._zygote is None:
                self._zygote = await Zygote.spawn(self._confinement)
            return self._zygote


async def _no_tools(server: str, tool: str, params: dict[str, Any]) -> Any:
    raise ToolCallError(f"there are no tools here: {server}.{tool} {params}")


@dataclass
class _Session:
    """One block from its first frame to its outcome."""

    child: Child
    call: ToolCaller
    limits: Limits
    calls: list[CallRecord] = field(default_factory=list)
    server_errors: list[str] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    ids: set[int] = field(default_factory=set)
    traffic: int = 0
    tool_s: float = 0.0
    busy_since: float = 0.0
    pauses: int = 0
    paused_s: float = 0.0
    paused_since: float = 0.0

    async def run(self, code: str) -> Outcome:
        self.begun = time.perf_counter()
        self.free = asyncio.Semaphore(self.limits.max_parallel)
        self.writing = asyncio.Lock()
        self.fault: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.reader, self.writer = await asyncio.open_unix_connection(sock=self.child.ours)
        reading = asyncio.create_task(self._read(code))
        try:
            either: set[asyncio.Future[Any]] = {reading, self.fault}
            while (left := self.limits.wall_s - self._clock()) > 0 or self.pauses:
                done, _ = await asyncio.wait(either, timeout=max(left, 0.05), return_when=asyncio.FIRST_COMPLETED)
                if done:
                    break
            if self.fault.done():
                self.fault.result()
            outcome = reading.result() if reading.done() else self._out_of_time()
            return replace(
                outcome,
                calls=tuple(self.calls),
                wall_s=time.perf_counter() - self.begun,
                tool_s=self.tool_s + (time.perf_counter() - self.busy_since if self.tasks else 0.0),
                server_errors=tuple(self.server_errors),
            )
        finally:
            self.writer.transport.abort()
            self.child.kill()
            open_tasks: set[asyncio.Task[Any]] = {reading, *self.tasks}
            for task in open_tasks:
                task.cancel()
            await asyncio.wait(open_tasks, timeout=5.0)
            for future in (*open_tasks, self.fault):
                if future.done() and not future.cancelled():
                    future.exception()  # seen, so that asyncio does not report it

    def _clock(self) -> float:
        """Seconds of this block's own time: waiting for a person does not count."""
        now = time.perf_counter()
        return now - self.begun - self.paused_s - (now - self.paused_since if self.pauses else 0.0)

    @contextlib.asynccontextmanager
    async def _pausing(self, clock: asyncio.Timeout) -> AsyncIterator[None]:
        loop, end = asyncio.get_running_loop(), clock.when()
        left = end - loop.time() if end is not None else self.limits.tool_s
        clock.reschedule(None)
        self.pauses += 1
        if self.pauses == 1:
            self.paused_since = time.perf_counter()
        try:
            yield
        finally:
            self.pauses -= 1
            if not self.pauses:
                self.paused_s += time.perf_counter() - self.paused_since
            clock.reschedule(loop.time() + left)

    def _out_of_time(self) -> Outcome:
        waiting = self.tool_s + (time.perf_counter() - self.busy_since if self.tasks else 0.0)
        open_calls = [f"{record.server}.{record.tool}" for record in self.calls if record.error == OPEN]
        told = f"The block ran longer than {self.limits.wall_s:g} s"
        if open_calls or waiting >= 0.1:
            told += f"; {waiting:.3g} s of it waiting for {open_calls[0] if open_calls else 'tools'}"
        return Outcome(error=_Ended("wall_limit", f"{told}.").error)

    async def _read(self, code: str) -> Outcome:
        """Serve the block until it answers, dies or breaks a rule."""
        try:
            program = base64.b64encode(marshal.dumps(blocks.compiled(code))).decode()
            await self._write(json.dumps({"op": "run", "source": code, "code": program}).encode())
            while True:
                await self._room()  # above max_parallel nothing is read
                message = await self._frame()
                if message.get("op") == "call":
                    if not self.child.exited.done():  # nobody waits for a dead block's call
                        self._begin(message)
                    continue
                stdout = _text(message.get("stdout"), self.limits.stdout_chars + 100)
                if message.get("op") == "done" and "result" in message:
                    return Outcome(result=self._result(message["result"]), stdout=stdout)
                if message.get("op") == "fail":
                    return Outcome(error=self._failure(message), stdout=stdout)
                raise _broken("an unknown message")
        except _Ended as ended:
            return Outcome(error=ended.error)
        except (asyncio.IncompleteReadError, ConnectionError):
            return Outcome(error=await self._post_mortem())

    async def _room(self) -> None:
        """Wait for a free place among the open calls; a block that has died does not wait for its calls."""
        if not self.free.locked():
            await self.free.acquire()
            return
        place = asyncio.create_task(self.free.acquire())
        either: set[asyncio.Future[Any]] = {place, self.child.exited}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            place.cancel()

    async def _frame(self) -> dict[str, Any]:
        size = int.from_bytes(await self.reader.readexactly(4))
        if size > self.limits.frame_mb * 2**20:
            raise _Ended(
                "message_too_large",
                f"The block sent a message of {size:,} bytes, the limit is {self.limits.frame_mb} MiB.",
            )
        data = await self.reader.readexactly(size)
        self.traffic += size
        try:
            message = json.loads(data.decode(), parse_constant=_refuse)
            if b"\\ud" in data or b"\\uD" in data:
                json.dumps(message, ensure_ascii=False).encode()  # a lone surrogate fails here
        except (ValueError, RecursionError):
            raise _broken("a message that is not JSON") from None
        if not isinstance(message, dict):
            raise _broken("a message that is not an object")
        return message

    def _begin(self, message: dict[str, Any]) -> None:
        number, params = message.get("id"), message.get("params")
        server, tool = message.get("server"), message.get("tool")
        if type(number) is not int or number in self.ids:
            raise _broken("a call without an id of its own")
        if not isinstance(server, str) or not isinstance(tool, str) or not isinstance(params, dict):
            raise _broken("a call without server, tool and params")
        if _shape_fault(params):
            raise _broken("a call with params too deep or too many")
        if len(self.calls) >= self.limits.max_calls:
            raise _Ended("call_limit", f"The block made more than {self.limits.max_calls} tool calls.")
        if self.traffic > TRAFFIC_FRAMES * self.limits.frame_mb * 2**20:
            total = f"{TRAFFIC_FRAMES * self.limits.frame_mb} MiB"
            raise _Ended("message_too_large", f"The block's tool calls carried more than {total} in all.")
        self.ids.add(number)
        started = time.perf_counter()
        self.calls.append(
            CallRecord(
                server,
                tool,
                params,
                ok=False,
                error=OPEN,
                failure="unfinished",
                start_s=round(started - self.begun, 4),
            )
        )
        if not self.tasks:
            self.busy_since = started
        task = asyncio.create_task(self._answer(number, len(self.calls) - 1))
        self.tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not self.tasks:
            self.tool_s += time.perf_counter() - self.busy_since
        self.free.release()
        if not self.fault.done() and not self.child.killed:
            if task.cancelled():
                self.fault.set_exception(SandboxError("the tool caller cancelled itself"))
            elif (error := task.exception()) is not None and not isinstance(error, ConnectionError):
                self.fault.set_exception(error)

    async def _answer(self, number: int, place: int) -> None:
        """Make one tool call, record it, reply. Whatever it raises is our fault, not the block's."""
        record = self.calls[place]
        name = f"{record.server}.{record.tool}"
        started = time.perf_counter()
        error, value, data = "", None, b"null"
        failure: CallFailure | None = None
        try:
            with boundary(SandboxError, f"calling {name}"):
                async with asyncio.timeout(self.limits.tool_s) as clock:
                    _pause.set(lambda: self._pausing(clock))
                    # a copy: what a caller does to its params must not reach the record
                    value = await self.call(record.server, record.tool, json.loads(json.dumps(record.params)))
                data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        except ToolCallError as refused:
            error, failure = str(refused) or "the tool failed without a text", refused.failure
        except ServerError as broken:
            error, failure = str(broken), "server"
            self.server_errors.append(error)
        except SandboxError:
            if not clock.expired():
                raise
            error, failure = f"{name} did not answer within {self.limits.tool_s:g} s.", "timeout"
        if len(data) > self.limits.frame_mb * 2**20 - 100:
            error = f"{name} answered with {len(data):,} bytes, the limit is {self.limits.frame_mb} MiB."
            failure = "tool"
        self.calls[place] = replace(
            record,
            ok=not error,
            reply=None if error else value,
            error=error or None,
            failure=failure,
            seconds=round(time.perf_counter() - started, 4),
            bytes=len(data) if not error else 0,
        )
        self.traffic += 0 if error else len(data)
        if error:
            await self._write(json.dumps({"id": number, "ok": False, "error": error[:20_000]}).encode())
        else:
            await self._write(b'{"id":%d,"ok":true,"value":%b}' % (number, data))

    async def _write(self, data: bytes) -> None:
        """One frame at a time, each drained: a block that does not read holds up nobody's memory."""
        async with self.writing:
            self.writer.write(struct.pack(">I", len(data)) + data)
            await self.writer.drain()

    def _result(self, value: Any) -> Any:
        if fault := _shape_fault(value):
            raise _broken(f"a result with {fault}")
        size = len(json.dumps(value, ensure_ascii=False))
        if size > self.limits.result_chars:
            raise _Ended(
                "result_too_large",
                f"result has {size:,} characters, the limit is {self.limits.result_chars:,}. "
                "Filter, slice or summarise it in the block.",
            )
        return value

    def _failure(self, message: dict[str, Any]) -> BlockError:
        line = message.get("line")
        line = line if type(line) is int else None
        kind = next((known for known in GUEST_KINDS if known == message.get("kind")), None)
        if kind is None:
            raise _broken("a failure of unknown kind")
        text = _text(message.get("message"), 4_000)
        name = _text(message.get("type"), 80)
        if kind in ("cpu_limit", "memory_limit"):
            text = self._used_up(kind, line)
        if kind not in ("tool", "runtime"):
            name = kind.title().replace("_", "")
        rows = message.get("frames")
        frames = tuple(
            (row[0], _text(row[1], 80), _text(row[2], 160))
            for row in (rows[:6] if isinstance(rows, list) else [])
            if isinstance(row, list) and len(row) == 3 and type(row[0]) is int
        )
        return BlockError(kind, name, text, line, frames[-1][2] if frames else None, frames)

    def _used_up(self, kind: BlockErrorKind, line: int | None = None) -> str:
        if kind == "memory_limit":
            return f"The block used more than {self.limits.memory_mb} MiB of memory."
        where = f" (stopped at line {line})" if line else ""
        return f"The block used more than {self.limits.cpu_s:g} s of CPU time{where}."

    async def _post_mortem(self) -> BlockError:
        """The block closed its channel: ask the zygote what became of the process."""
        report: dict[str, Any] = {"status": None, "cpu_s": 0.0}
        with contextlib.suppress(TimeoutError):
            report = await asyncio.wait_for(asyncio.shield(self.child.exited), 2.0)
        if report["cpu_s"] >= self.limits.cpu_s:
            return _Ended("cpu_limit", self._used_up("cpu_limit")).error
        text = "The block's process died (out of memory, or it damaged its own runtime)."
        if report["status"] is not None and os.WIFEXITED(report["status"]):
            text = "The block's process exited without an answer (out of memory, or it ended itself)."
        return _Ended("crashed", text).error


OPEN = "not finished when the block ended"


def _broken(what: str) -> _Ended:
    return _Ended("crashed", f"The block broke the protocol of its tool channel: it sent {what}.")


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _text(value: Any, limit: int) -> str:
    """Hostile text made fit to show: cut, with control characters escaped so that no terminal obeys them."""
    if not isinstance(value, str):
        return ""
    text = "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in value[:limit])
    return text[:limit]


def _shape_fault(value: Any) -> str:
    """Why a value is no result: too deep or too many parts. Empty when it is fine. Never recurses."""
    level, count = [value], 0
    for _ in range(MAX_DEPTH + 2):
        count += len(level)
        if count > MAX_VALUES:
            return f"more than {MAX_VALUES:,} values"
        level = [
            part
            for item in level
            if isinstance(item, (list, dict))
            for part in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return ""
    return f"more than {MAX_DEPTH} levels"
