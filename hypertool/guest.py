"""Inside the jail: one zygote that forks one child per block; the child locks itself up, then runs it.

Run by path as `python -I -S -B -X utf8 guest.py FD` and imported by nobody; standard library only. The
zygote (FD is its control socket) preloads what blocks import and never runs a block. A child gives up
its rights for good (rlimits, then a seccomp allow-list) *before* it receives any code. What happens in
here protects the block's own answer; what protects the host is the jail, the filter and the fact that
the parent treats every frame from here as hostile. Linux only; the filter is a table of numbers for x86-64
and one for aarch64, the latter untested. With a second argument (JSON, see `confine`) the zygote locks files
by Landlock, for machines where bubblewrap has no namespaces to offer.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import ctypes
import dataclasses
import datetime
import decimal
import enum
import fractions
import gc
import importlib
import io
import itertools
import json
import linecache
import marshal
import math
import os
import pathlib
import random
import resource
import select
import signal
import socket
import struct
import sys
import threading
import traceback
import types
import uuid
from collections.abc import Callable, Generator, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any, NoReturn

PRELOAD = """
    asyncio bisect calendar collections.abc concurrent.futures.thread contextlib copy csv _strptime difflib
    functools hashlib heapq html html.parser inspect numbers operator posix pprint re secrets statistics
    string textwrap time typing unicodedata urllib.parse warnings xml.etree.ElementTree zoneinfo
"""
GUARDED = """
    builtins collections.abc dataclasses datetime io itertools json json.encoder linecache marshal math os
    posix struct threading traceback
"""

BLOCK_FD = 3  # the only descriptor of a block beyond the null device on 0, 1 and 2
FILENAME = "<block>"
MAX_DEPTH = 60
MAX_VALUES = 200_000
ALL_BLOCKS_THREADS = 5_000  # the kernel counts threads per user, so this is a total over all blocks
THREAD_STACK = 512 * 1024


# The filter -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Machine:
    """Names and numbers of the system calls of one architecture, and what sets it apart."""

    audit: int
    """The kernel's AUDIT_ARCH constant: a call under another ABI kills."""
    calls: dict[str, int]

    def allowed(self) -> list[int]:
        """The calls let through whatever their arguments are. Not every architecture has every call."""
        return [number for name, number in self.calls.items() if name not in LOOKED_AT]


LOOKED_AT = ("openat", "clone", "clone3", "prlimit64", "socketpair", "ioctl", "fcntl")
MACHINES = {
    "x86_64": Machine(0xC000003E, {
        "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8, "mmap": 9,
        "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
        "ioctl": 16, "pread64": 17, "readv": 19, "writev": 20, "access": 21, "pipe": 22, "select": 23,
        "sched_yield": 24, "mremap": 25, "madvise": 28, "dup": 32, "dup2": 33, "pause": 34, "nanosleep": 35,
        "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39, "sendto": 44, "recvfrom": 45, "shutdown": 48,
        "socketpair": 53, "clone": 56, "exit": 60, "uname": 63, "fcntl": 72, "getcwd": 79, "readlink": 89,
        "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102,
        "getgid": 104, "geteuid": 107, "getegid": 108, "getppid": 110, "getgroups": 115, "getresuid": 118,
        "getresgid": 120, "sigaltstack": 131, "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204,
        "getdents64": 217, "set_tid_address": 218, "clock_gettime": 228, "clock_getres": 229,
        "clock_nanosleep": 230, "exit_group": 231, "epoll_wait": 232, "epoll_ctl": 233, "openat": 257,
        "newfstatat": 262, "readlinkat": 267, "faccessat": 269, "pselect6": 270, "ppoll": 271,
        "set_robust_list": 273, "epoll_pwait": 281, "eventfd2": 290, "epoll_create1": 291, "dup3": 292,
        "pipe2": 293, "prlimit64": 302, "getrandom": 318, "membarrier": 324, "statx": 332, "rseq": 334,
        "clone3": 435, "faccessat2": 439, "epoll_pwait2": 441,
    }),
    # Written from the kernel's table; no block has ever run on such a machine here: UNTESTED.
    "aarch64": Machine(0xC00000B7, {
        "getcwd": 17, "eventfd2": 19, "epoll_create1": 20, "epoll_ctl": 21, "epoll_pwait": 22, "dup": 23,
        "dup3": 24, "fcntl": 25, "ioctl": 29, "faccessat": 48, "openat": 56, "close": 57, "pipe2": 59,
        "getdents64": 61, "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66, "pread64": 67,
        "pselect6": 72, "ppoll": 73, "readlinkat": 78, "newfstatat": 79, "fstat": 80, "exit": 93,
        "exit_group": 94, "set_tid_address": 96, "futex": 98, "set_robust_list": 99, "nanosleep": 101,
        "getitimer": 102, "setitimer": 103, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115,
        "sched_getaffinity": 123, "sched_yield": 124, "sigaltstack": 132, "rt_sigaction": 134,
        "rt_sigprocmask": 135, "rt_sigreturn": 139, "getresuid": 148, "getresgid": 150, "times": 153,
        "getgroups": 158, "uname": 160, "getrlimit": 163, "getrusage": 165, "gettimeofday": 169, "getpid": 172,
        "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178,
        "sysinfo": 179, "socketpair": 199, "sendto": 206, "recvfrom": 207, "shutdown": 210, "brk": 214,
        "munmap": 215, "mremap": 216, "clone": 220, "mmap": 222, "mprotect": 226, "madvise": 233,
        "prlimit64": 261, "getrandom": 278, "membarrier": 283, "statx": 291, "rseq": 293, "clone3": 435,
        "faccessat2": 439, "epoll_pwait2": 441,
    }),
}  # fmt: skip
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
EPERM, EACCES, ENOTTY, ENOSYS = 1, 13, 25, 38
LOAD, EQUAL, AT_LEAST, ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06


def seccomp_program(machine: Machine) -> bytes:
    """The BPF program: kill on a foreign ABI, allow the table, look at seven calls' arguments, else EPERM."""

    def op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("=HBBI", code, yes, no, value)

    def low(argument: int) -> bytes:
        return op(LOAD, 16 + 8 * argument)

    def high(argument: int) -> bytes:
        return op(LOAD, 20 + 8 * argument)

    def when(name: str, *body: bytes) -> bytes:
        return op(EQUAL, machine.calls[name], 0, len(body)) + b"".join(body)

    def one_of(argument: int, values: Sequence[int], otherwise: int) -> tuple[bytes, ...]:
        checks = [op(EQUAL, value, len(values) - i, 0) for i, value in enumerate(values)]
        return (low(argument), *checks, op(RETURN, ERRNO | otherwise), op(RETURN, ALLOW))

    allow, refuse = op(RETURN, ALLOW), op(RETURN, ERRNO | EPERM)
    writing = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC | 0o20000000  # the last bit is O_TMPFILE's own
    threads = 0x00010F00  # VM, FS, FILES, SIGHAND and THREAD; no namespace bit may be there
    named = threads | 0x7E020000
    return b"".join(
        (
            op(LOAD, 4) + op(EQUAL, machine.audit, 1, 0) + op(RETURN, KILL),
            op(LOAD, 0) + op(AT_LEAST, 0x40000000, 0, 1) + op(RETURN, KILL),  # the x32 ABI
            *(op(EQUAL, number, 0, 1) + allow for number in machine.allowed()),
            when("clone3", op(RETURN, ERRNO | ENOSYS)),  # hides its flags; libc falls back to clone
            when("openat", low(2), op(ANY_BIT, writing, 0, 1), op(RETURN, ERRNO | EACCES), allow),
            when("clone", high(0), op(EQUAL, 0, 1, 0), refuse, low(0), op(AND, named), op(EQUAL, threads, 1, 0),
                 refuse, allow),
            when("prlimit64", low(2), op(EQUAL, 0, 1, 0), refuse, high(2), op(EQUAL, 0, 1, 0), refuse, allow),
            when("socketpair", *one_of(0, (socket.AF_UNIX,), EPERM)),
            when("ioctl", *one_of(1, (0x5421, 0x5450, 0x5451), ENOTTY)),  # FIONBIO, FIONCLEX, FIOCLEX
            # duplicate and flags. F_SETOWN with F_SETSIG would send signals to other blocks.
            when("fcntl", *one_of(1, (0, 1, 2, 3, 4, 1030), EPERM)),
            refuse,
        )
    )  # fmt: skip


PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 38


def _prctl(option: int, value: int, pointer: Any = 0) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, pointer, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option} refused")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def lock_up(program: bytes, cpu_s: int, memory_mb: int) -> None:
    """Give up rights for good. Raises OSError if the kernel refuses any part, so that nothing runs."""

    def limit(which: int, soft: int, hard: int | None = None) -> None:
        ceiling = resource.getrlimit(which)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(soft if hard is None else hard, ceiling)
        resource.setrlimit(which, (soft, soft if hard is None else hard))

    limit(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)
    limit(resource.RLIMIT_AS, memory_mb * 2**20)
    limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_NOFILE, 64)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_NPROC, ALL_BLOCKS_THREADS)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _prctl(PR_SET_SECCOMP, 2, ctypes.byref(_Program(len(program) // 8, program)))


# Landlock, where there are no namespaces ------------------------------------------------------------

CREATE_RULESET, ADD_RULE, RESTRICT_SELF, CAPSET = 444, 445, 446, {"x86_64": 126, "aarch64": 91}
READ_FILE, READ_DIR = 1 << 2, 1 << 3
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}  # by ABI, cumulative
NO_TCP, NO_SIGNALS_OR_ABSTRACT_SOCKETS = 0b11, 0b11
NOBODY = 65534


def _system_call(number: int, *arguments: Any) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    value = int(libc.syscall(ctypes.c_long(number), *arguments))
    if value < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"system call {number}: {os.strerror(error)}")
    return value


def drop_rights(files: Sequence[str]) -> None:
    """Leave root for good: another user where that one can read the interpreter, else root without any power."""
    if os.getuid() == 0:
        outside = all(_others_can_read(path) for path in files)
        for capability in range(64):
            with contextlib.suppress(OSError):  # this kernel has fewer, or the host holds no right to drop it
                _prctl(PR_CAPBSET_DROP, capability)
        if outside:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _system_call(CAPSET[os.uname().machine], header, (ctypes.c_uint32 * 6)())
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def _others_can_read(path: str) -> bool:
    real = pathlib.Path(path).resolve()
    wanted = 0o005 if real.is_dir() else 0o004
    through = all(folder.stat().st_mode & 0o001 for folder in real.parents)
    return through and real.stat().st_mode & wanted == wanted


def landlock(readable: Sequence[str], listable: Sequence[str]) -> None:
    """Of all files, let this process and its children read these; no TCP, no signals out."""
    abi = _system_call(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    files = FILE_RIGHTS[max(known for known in FILE_RIGHTS if known <= abi)]
    handled = [files, NO_TCP if abi >= 4 else 0, NO_SIGNALS_OR_ABSTRACT_SOCKETS if abi >= 6 else 0]
    handled = handled[: 3 if abi >= 6 else 2 if abi >= 4 else 1]
    rules = (ctypes.c_uint64 * len(handled))(*handled)
    ruleset = _system_call(CREATE_RULESET, rules, ctypes.c_size_t(ctypes.sizeof(rules)), ctypes.c_uint32(0))
    for path, rights in [*((path, READ_FILE | READ_DIR) for path in readable), *((p, READ_DIR) for p in listable)]:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not pathlib.Path(path).is_dir():
            rights &= READ_FILE
        rule = struct.pack("=Qi", rights, descriptor)
        _system_call(ADD_RULE, ruleset, ctypes.c_uint32(1), rule, ctypes.c_uint32(0))
        os.close(descriptor)
    _system_call(RESTRICT_SELF, ruleset, ctypes.c_uint32(0))
    os.close(ruleset)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends: nothing else does, without a pid namespace."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(70)


# The channel ----------------------------------------------------------------------------------------


class ToolError(Exception):
    """A tool call failed; the text is the server's own or says what was wrong with the call."""


class Stop(BaseException):
    """A top-level `return`."""


class CpuLimit(BaseException):
    """The soft CPU limit; the hard one kills a second later."""


class Refused(BaseException):
    """The block must end with this kind and text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Reply(dict[str, Any]):
    """A tool's object; awaiting it gives it back, for models that collect calls and `gather` them."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # gather keeps its awaitables in a dict

    def __await__(self) -> Generator[Any, Any, Reply]:
        yield from ()
        return self


class Replies(list[Any]):
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __await__(self) -> Generator[Any, Any, Replies]:
        yield from ()
        return self


class Channel:
    """Frames of 4-byte length and JSON. Any thread may call; whichever waits first reads for all."""

    def __init__(self, frame_bytes: int, max_parallel: int) -> None:
        self.frame_bytes, self.max_parallel = frame_bytes, max_parallel
        self.sending = threading.Lock()
        self.changed = threading.Condition()
        self.replies: dict[int, Any] = {}
        self.reading = False
        self.numbers = itertools.count(1)

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message, separators=(",", ":")).encode()
        if len(data) > self.frame_bytes:
            mib = self.frame_bytes / 2**20
            raise Refused("message_too_large", f"A message of {len(data):,} bytes is over {mib:g} MiB.")
        view = memoryview(struct.pack(">I", len(data)) + data)
        with self.sending:
            while view:
                view = view[os.write(BLOCK_FD, view) :]

    def receive(self) -> Any:
        def exactly(size: int) -> bytes:
            parts = []
            while size:
                part = os.read(BLOCK_FD, size)
                if not part:
                    os._exit(0)  # the parent has gone, or is done with this block
                parts.append(part)
                size -= len(part)
            return b"".join(parts)

        data = exactly(struct.unpack(">I", exactly(4))[0])
        return json.loads(data.decode("utf-8", "surrogatepass"))

    def call(self, server: str, tool: str, params: dict[str, Any]) -> Any:
        number = next(self.numbers)
        self.send({"op": "call", "id": number, "server": server, "tool": tool, "params": params})
        with self.changed:
            while number not in self.replies:
                if self.reading:
                    self.changed.wait()
                    continue
                self.reading = True
                self.changed.release()
                try:
                    message = self.receive()
                finally:
                    self.changed.acquire()
                    self.reading = False
                    self.changed.notify_all()
                self.replies[message["id"]] = message
            message = self.replies.pop(number)
        if not message["ok"]:
            raise ToolError(message["error"])
        value = message["value"]
        if type(value) is dict:
            return Reply(value)
        return Replies(value) if type(value) is list else value


def tools_for(channel: Channel) -> dict[str, Callable[..., Any]]:
    """The functions a block sees."""

    def call_tool(
        server_name: str | None = None,
        tool_name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        server: str | None = None,
        tool: str | None = None,
    ) -> Any:
        """Call one MCP tool and return its reply; raises ToolError. Synchronous."""
        server_name, tool_name = server_name or server, tool_name or tool
        for what, value in (("server_name", server_name), ("tool_name", tool_name)):
            if not isinstance(value, str):
                raise TypeError(f"call_tool {what} must be a str, not {type(value).__name__}.")
        params = {} if params is None else params
        if not isinstance(params, Mapping):
            raise TypeError(f"call_tool params must be a dict, not {type(params).__name__}.")
        try:
            plain = Converter("params").convert(params)
        except Refused as error:
            raise TypeError(f"call_tool: {error}") from None
        return channel.call(str(server_name), str(tool_name), plain)

    def call_tools(calls: Any, *, return_errors: bool = False) -> Any:
        """Call tools in parallel; [(server, tool, params), ...] in, values in the same order out."""
        todo = list(calls)
        for item in todo:
            if not isinstance(item, (tuple, list)) or not 2 <= len(item) <= 3:
                raise TypeError("call_tools takes a list of (server, tool, params) tuples.")
        values: list[Any] = [None] * len(todo)
        errors: dict[int, BaseException] = {}
        places = iter(range(len(todo)))  # next() on it is atomic

        def work() -> None:
            for place in places:
                try:
                    values[place] = call_tool(*todo[place])
                except BaseException as error:
                    errors[place] = error

        workers = [threading.Thread(target=work, daemon=True) for _ in todo[: channel.max_parallel]]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for place, error in sorted(errors.items()):
            if not (return_errors and isinstance(error, ToolError)):
                raise error.with_traceback(None)
            values[place] = error
        return Replies(values)

    def describe_tools(*names: str) -> Any:
        """Descriptions and schemas of the named servers ("git") or tools ("git.git_log"); of all without a name."""
        return channel.call("hypertool", "describe_tools", {"names": [str(name) for name in names]})["result"]

    return {"call_tool": call_tool, "call_tools": call_tools, "describe_tools": describe_tools}


# Values ---------------------------------------------------------------------------------------------


class Converter:
    """Python values to JSON values by a fixed table; refuses, with the path, what has no JSON form."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.values = 0
        self.path: list[str] = []  # filled from the inside out while an error leaves the containers

    def convert(self, value: Any) -> Any:
        try:
            return self.one(value, 0)
        except Refused as error:
            where = self.root + "".join(reversed(self.path))
            raise Refused(error.kind, str(error).replace("{}", where, 1)) from None

    def one(self, value: Any, depth: int) -> Any:
        self.values += 1
        if self.values > MAX_VALUES:
            raise Refused("result_too_large", f"{{}} makes more than {MAX_VALUES:,} values. {SMALLER}")
        if value is None or value is True or value is False:
            return value
        if isinstance(value, enum.Enum):
            return self.one(value.value, depth)
        if isinstance(value, str):
            return text_of(value)
        if isinstance(value, int):
            if value.bit_length() > 14_280:
                raise Refused("result_type", "{} is an integer of more than 4,300 digits. Use str or float.")
            return int(value)
        if isinstance(value, float):
            if math.isfinite(value):
                return float(value)
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        if isinstance(value, (datetime.date, datetime.time)):
            return value.isoformat()
        if isinstance(value, (decimal.Decimal, fractions.Fraction, uuid.UUID, datetime.timedelta)):
            return str(value)
        if isinstance(value, (bytes, bytearray)):
            return value.decode("utf-8", "replace")
        if depth >= MAX_DEPTH:
            raise Refused("result_type", f"{{}} is nested deeper than {MAX_DEPTH} levels. Flatten it.")
        if isinstance(value, ToolError):
            return {"error": text_of(str(value))}
        if isinstance(value, Mapping):
            return self.mapping(value.items(), depth)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self.mapping(((f.name, getattr(value, f.name)) for f in dataclasses.fields(value)), depth)
        if isinstance(value, (set, frozenset)):
            try:
                return self.array(sorted(value), depth)
            except TypeError:
                return self.array(sorted(value, key=lambda v: (type(v).__name__, repr(v))), depth)
        if isinstance(value, (list, tuple, collections.deque, range, KeysView, ValuesView, ItemsView)):
            return self.array(value, depth)
        endless = (itertools.count, itertools.cycle, itertools.repeat)
        if isinstance(value, Iterator) and not isinstance(value, (*endless, io.IOBase)):
            return self.array(value, depth)
        name = type(value).__name__
        article = "an" if name[:1] in "aeiouAEIOU" else "a"
        raise Refused(
            "result_type",
            f"{{}} is {article} {name}, which has no JSON form. Assign a dict, list, str, number, bool or None.",
        )

    def mapping(self, items: Any, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, item in items:
            name = text_of(key if isinstance(key, str) else str(key))
            if name in made:
                raise Refused("result_type", f"{{}} has two keys that both become {name[:80]!r} in JSON.")
            try:
                made[name] = self.one(item, depth + 1)
            except Refused:
                self.path.append(f"[{name[:80]!r}]")
                raise
        return made

    def array(self, items: Any, depth: int) -> list[Any]:
        made: list[Any] = []
        try:
            for item in items:
                made.append(self.one(item, depth + 1))
        except Refused as error:
            if error.kind == "result_type":
                self.path.append(f"[{len(made)}]")
            raise
        return made


SMALLER = "Filter, slice or summarise it in the block."


def text_of(value: str) -> str:
    """Plain text: lone surrogates, which no encoder takes, become their escapes."""
    return str(value.encode("utf-8", "backslashreplace"), "utf-8")


def shape(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return f"{type(value).__name__} of {len(value):,} item{'s' * (len(value) != 1)}"
    return type(value).__name__


# One block ------------------------------------------------------------------------------------------


class Output(io.TextIOBase):
    """Bounded standard output. `limit` characters are kept, the rest is only counted."""

    def __init__(self, limit: int) -> None:
        self.limit, self.kept, self.seen = limit, "", 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if len(self.kept) < self.limit:
            self.kept += text[: self.limit - len(self.kept)]
        self.seen += len(text)
        return len(text)

    def text(self) -> str:
        if self.seen <= self.limit:
            return self.kept
        return self.kept + f"\n[cut: {self.seen:,} characters were printed, the limit is {self.limit:,}]"


def hint(error: BaseException) -> str:
    """What a person would add to the exception's own text."""
    if isinstance(error, OSError) and not isinstance(error, (TimeoutError, BlockingIOError)):
        return "Files, network, processes and environment variables are not available in a block; use call_tool."
    if isinstance(error, ModuleNotFoundError):
        return "Only the Python standard library is available in a block."
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        return "Nothing persists between blocks: define every name in this one."
    return ""


def failure(error: BaseException, source: list[str]) -> dict[str, Any]:
    """The `fail` message for an exception: its text and the block's own frames, outermost first."""
    leaf = error
    while isinstance(leaf, BaseExceptionGroup) and leaf.exceptions:
        leaf = leaf.exceptions[0]
    frames: list[tuple[int, str, str]] = []
    for trace in (leaf.__traceback__, error.__traceback__):
        for frame, line in traceback.walk_tb(trace):
            if frame.f_code.co_filename == FILENAME:
                text = source[line - 1].strip() if 0 < line <= len(source) else ""
                frames.append((line, frame.f_code.co_name, text[:160]))
        if frames:  # a task of a group may have failed without a line of the block in it
            break
    kinds = {MemoryError: "memory_limit", CpuLimit: "cpu_limit", ToolError: "tool"}
    kind = next((name for of, name in kinds.items() if isinstance(leaf, of)), "runtime")
    if isinstance(leaf, SystemExit):
        message = "assign the value to 'result' instead of exiting."
    else:
        try:
            message = str(leaf)
        except BaseException:
            message = "(its text could not be made)"
        message = message[:4000]
        if more := hint(leaf):
            message = f"{message}{'' if message.endswith('.') else '.'} {more}"
    return {
        "op": "fail",
        "kind": leaf.kind if isinstance(leaf, Refused) else kind,
        "type": type(leaf).__name__,
        "message": text_of(message),
        "line": frames[-1][0] if frames else None,
        "frames": frames if len(frames) <= 6 else frames[:3] + frames[-3:],
    }


def snapshot() -> Callable[[], None]:
    """Remember the modules an answer needs; the returned function puts them back after the block."""
    held = [(vars(sys.modules[name]), dict(vars(sys.modules[name]))) for name in GUARDED.split()]
    held.append((globals(), dict(globals())))

    def restore() -> None:
        for live, saved in held:
            live.update(saved)

    return restore


def run_block(channel: Channel, result_chars: int, stdout: Output) -> None:
    """Wait for the code, run it in a fresh `__main__`, answer once with `done` or `fail`."""
    module = types.ModuleType("__main__")
    own = sys.modules["__main__"]
    space = module.__dict__
    space.update(tools_for(channel), ToolError=ToolError, __stop__=Stop)
    space.update(exit=sys.exit, quit=sys.exit)  # `site` would add them; they lead to a helpful text
    strict_loads = json.loads

    def loads(s: Any, **options: Any) -> Any:
        """json.loads, but a value that is already parsed is returned as it is."""
        return s if isinstance(s, (dict, list)) else strict_loads(s, **options)

    json.loads = loads
    restore = snapshot()
    sys.stdout, sys.stderr, sys.stdin = stdout, Output(0), io.StringIO()
    request = channel.receive()  # a child that was forked ahead waits here, with the work above behind it
    source = request["source"].splitlines()
    code = marshal.loads(base64.b64decode(request["code"]))
    linecache.cache[FILENAME] = (len(source), None, [line + "\n" for line in source], FILENAME)
    sys.modules["__main__"] = module
    try:
        answer: dict[str, Any] = {}
        try:
            try:
                awaitable = eval(code, space)
                if awaitable is not None:
                    sys.modules["asyncio"].run(awaitable)
            except Stop:
                pass
            restore()
            if "result" not in space:
                text = "'result' was not assigned on the path the block took. Assign it on every path."
                raise Refused("no_result", text)
            value = Converter("result").convert(space["result"])
            size = len(json.dumps(value, ensure_ascii=False))
            if size > result_chars:
                text = f"result has {size:,} characters, the limit is {result_chars:,} ({shape(value)})."
                raise Refused("result_too_large", f"{text} {SMALLER}")
            answer = {"op": "done", "result": value}
        except BaseException as error:
            restore()
            if isinstance(error, MemoryError):  # make room before anything else
                traceback.clear_frames(error.__traceback__)
                value = None
                space.clear()
                gc.collect()
            answer = failure(error, source)
        channel.send({**answer, "stdout": text_of(stdout.text())})
    finally:
        sys.modules["__main__"] = own


def child(program: bytes, order: dict[str, Any]) -> NoReturn:
    """The life of a block's process, from fork to exit."""
    os.closerange(BLOCK_FD + 1, 1024)
    gc.enable()
    random.seed(0)
    threading.stack_size(THREAD_STACK)

    def out_of_cpu(*_: object) -> None:
        raise CpuLimit

    signal.signal(signal.SIGXCPU, out_of_cpu)
    lock_up(program, order["cpu_s"], order["memory_mb"])
    channel = Channel(order["frame_bytes"], order["max_parallel"])
    run_block(channel, order["result_chars"], Output(order["stdout_chars"]))
    os._exit(0)


# The zygote -----------------------------------------------------------------------------------------


def confine(order: dict[str, Any]) -> None:
    """Give up what bubblewrap would have withheld: `files` to read, `folders` to list, the `parent` to die with."""
    files, folders = order["files"], order["folders"]
    drop_rights([*files, *folders])
    die_with(order["parent"])  # after the change of user, which would undo it
    landlock(files, folders)


def zygote(control: socket.socket, confinement: str) -> NoReturn:
    """Fork on request, hand out pidfds, reap and report, until the control socket closes."""
    for name in PRELOAD.split():
        importlib.import_module(name)
    program = seccomp_program(MACHINES[os.uname().machine])
    if confinement:
        confine(json.loads(confinement))
    own = os.getpid()
    os.environ.clear()
    os.dup2(0, 2)  # until here the parent could read a reason for failure; a block gets the null device
    gc.collect()
    gc.disable()
    gc.freeze()
    control.send(b'{"op":"ready"}')
    children: dict[int, tuple[int, int]] = {}  # pidfd -> block number, process id
    poller = select.poll()
    poller.register(control, select.POLLIN)
    while True:
        for ready, _ in poller.poll():
            if ready in children:
                number, process = children.pop(ready)
                poller.unregister(ready)
                os.close(ready)
                _, status, usage = os.wait4(process, 0)
                cpu_s = usage.ru_utime + usage.ru_stime
                report: dict[str, Any] = {"op": "exit", "block": number, "status": status, "cpu_s": cpu_s}
                control.send(json.dumps(report).encode())
                continue
            data, descriptors, _, _ = socket.recv_fds(control, 4096, 1)
            if not data:
                os._exit(0)  # as process 1 of the namespace: every block dies with it
            order = json.loads(data)
            try:
                process = os.fork()
            except OSError as error:
                control.send(json.dumps({"op": "refused", "block": order["block"], "why": str(error)}).encode())
                os.close(descriptors[0])
                continue
            if process == 0:
                try:
                    if confinement:
                        die_with(own)
                    os.dup2(descriptors[0], BLOCK_FD)
                    child(program, order)
                finally:
                    os._exit(70)
            os.close(descriptors[0])
            pidfd = os.pidfd_open(process)
            children[pidfd] = (order["block"], process)
            poller.register(pidfd, select.POLLIN)
            socket.send_fds(control, [json.dumps({"op": "child", "block": order["block"]}).encode()], [pidfd])


if __name__ == "__main__":
    if os.uname().machine not in MACHINES or sys.maxsize < 2**32:
        sys.exit(f"the sandbox's filter is written for {' and '.join(MACHINES)}, this is {os.uname().machine}")
    zygote(socket.socket(fileno=int(sys.argv[1])), "".join(sys.argv[2:]))
