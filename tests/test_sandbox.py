"""The jail: ordinary blocks, every limit, one attack per test, and a clean block after each attack.

Needs bubblewrap (`apt-get install bubblewrap`): without it these tests fail, because then nothing holds.
"""

from __future__ import annotations

import asyncio
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from hypertool.errors import ExecutorUnavailable, SandboxError, ServerError, ToolCallError
from hypertool.jail import GUEST, Confinement
from hypertool.sandbox import JailExecutor, Limits, Outcome

T = TypeVar("T")
QUICK = Limits(cpu_s=1, wall_s=8, tool_s=1)
PRICES = {"A": 3.5, "B": 1.25, "C": 9.0}
ROOT = Path(__file__).parents[1]


async def tools(server: str, tool: str, params: dict[str, Any]) -> Any:
    """The world of these tests. `word` is what tells concurrent blocks apart."""
    if tool == "price":
        if params.get("ticker") not in PRICES:
            raise ToolCallError(f"unknown ticker {params.get('ticker')!r}")
        return {"status": True, "result": {"price": PRICES[params["ticker"]], "server": server}}
    if tool == "tickers":
        return {"status": True, "result": sorted(PRICES)}
    if tool == "echo":
        await asyncio.sleep(params.get("sleep", 0))
        return {"status": True, "result": params.get("word")}
    if tool == "big":
        return {"status": True, "result": "x" * params["size"]}
    if tool == "down":
        raise ServerError(f"{server} has died")
    if tool == "bug":
        raise KeyError("a bug of the caller")
    raise ToolCallError(f"unknown tool {tool!r}")


class Jail:
    """A started executor with the loop it lives in."""

    def __init__(self, runner: asyncio.Runner, confinement: Confinement) -> None:
        self.runner = runner
        self.confinement = confinement
        self.executor = JailExecutor(confinement=confinement)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def run(self, code: str, limits: Limits = QUICK) -> Outcome:
        return self.wait(self.executor.run(code, tools, limits))

    def result(self, code: str, limits: Limits = QUICK) -> Any:
        outcome = self.run(code, limits)
        assert outcome.error is None, outcome.error
        return outcome.result

    def attack(self, code: str, *kinds: str, limits: Limits = QUICK) -> Outcome:
        """The block fails in one of these ways, and the next one is none the worse."""
        outcome = self.run(code, limits)
        assert outcome.error is not None, outcome.result
        assert outcome.error.kind in kinds, outcome.error
        self.clean()
        return outcome

    def clean(self) -> None:
        code = "import json\nresult = json.dumps(sorted(call_tool('m', 'tickers')['result'])), len('abc')"
        assert self.result(code) == ['["A", "B", "C"]', 3]


@pytest.fixture(scope="module", params=["bwrap", "landlock"])
def jail(request: pytest.FixtureRequest) -> Iterator[Jail]:
    with asyncio.Runner() as runner:
        jail = Jail(runner, request.param)
        jail.wait(jail.executor.start())
        yield jail
        jail.wait(jail.executor.aclose())


@asynccontextmanager
async def own_executor() -> AsyncIterator[JailExecutor]:
    executor = JailExecutor()
    await executor.start()
    try:
        yield executor
    finally:
        await executor.aclose()


def descendants() -> set[int]:
    """Every process below this one, by /proc."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    found, new = set(), {os.getpid()}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


def command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


async def settled() -> set[int]:
    """The processes below this one, once the last block has been reaped."""
    now: set[int] = set()
    while now != (now := descendants()):
        await asyncio.sleep(0.1)
    return now


async def left_over(before: set[int]) -> set[int]:
    """Processes that are still there after a moment's grace for the kernel and the zygote to reap."""
    for _ in range(40):
        if descendants() <= before:
            break
        await asyncio.sleep(0.05)
    return descendants() - before


async def forked_ahead(executor: JailExecutor) -> set[int]:
    """The process that waits for the executor's next block: the one process a finished block may leave."""
    if executor._refilling is not None:
        await asyncio.wait({executor._refilling})
    if executor._spare is None:
        return set()
    pidfd = Path(f"/proc/self/fdinfo/{executor._spare[1].pidfd}").read_text()
    return {int(line.split()[1]) for line in pidfd.splitlines() if line.startswith("Pid:")}


# Ordinary blocks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("result = call_tool('m', 'price', {'ticker': 'A'})['result']['price']", 3.5),
        ("result = call_tool(server_name='m', tool_name='price', params={'ticker': 'B'})['status']", True),
        ("result = await call_tool('m', 'echo', {'word': 7})", {"status": True, "result": 7}),
        (
            "t = call_tool('m', 'tickers')['result'][1]\n"
            "return call_tool('m', 'price', {'ticker': t})['result']['price']",
            1.25,
        ),
        (
            "rows = call_tool('m', 'tickers')['result']\nresult = [r.lower() for r in rows if r != 'B']",
            ["a", "c"],
        ),
        (
            "def price(t):\n    return call_tool('m', 'price', {'ticker': t})['result']['price']\n"
            "result = sorted(call_tool('m', 'tickers')['result'], key=price)",
            ["B", "A", "C"],
        ),
        (
            "from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor(8) as pool:\n"
            "    result = list(pool.map(lambda i: call_tool('m', 'echo', {'word': i})['result'], range(30)))",
            list(range(30)),
        ),
        (
            "import asyncio\nasync def get(i):\n    return (await call_tool('m', 'echo', {'word': i}))['result']\n"
            "async def main():\n    return await asyncio.gather(*(get(i) for i in range(3)))\n"
            "result = asyncio.run(main())",
            [0, 1, 2],
        ),
        (
            "import asyncio\nwaiting = [call_tool('m', 'echo', {'word': i}) for i in 'xy']\n"
            "result = [r['result'] for r in await asyncio.gather(*waiting)]",
            ["x", "y"],
        ),
        ("import json\nresult = json.loads(call_tool('m', 'tickers'))['result']", ["A", "B", "C"]),
        ("import json\nresult = json.loads('[1, 2]')", [1, 2]),
        ("import random\nresult = random.random()", 0.8444218515250481),
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nresult = P(3)", {"x": 3}),
        ("from zoneinfo import ZoneInfo\nresult = str(ZoneInfo('Asia/Tokyo'))", "Asia/Tokyo"),
        ("result = __name__, len([n for n in dir() if not n.startswith('_')])", ["__main__", 6]),
        ("total = 0\ndef add(n):\n    global total\n    total += n\nadd(4)\nresult = total", 4),
    ],
)
def test_ordinary_blocks(jail: Jail, code: str, value: Any) -> None:
    assert jail.result(code) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("10**40", 10**40),
        ("[float('nan'), float('inf'), -float('inf'), 0.5]", ["NaN", "Infinity", "-Infinity", 0.5]),
        ("{1: 'a', None: 'b', (1, 2): 'c'}", {"1": "a", "None": "b", "(1, 2)": "c"}),
        ("__import__('collections').Counter('aab')", {"a": 2, "b": 1}),
        ("(i * i for i in range(4))", [0, 1, 4, 9]),
        ("{3, 1, 2}", [1, 2, 3]),
        ("{1, 'a'}", [1, "a"]),
        (
            "[range(2), {'x': 1}.items(), zip('a', 'b'), map(str, [1])]",
            [[0, 1], [["x", 1]], [["a", "b"]], ["1"]],
        ),
        ("__import__('datetime').date(2024, 2, 29)", "2024-02-29"),
        ("__import__('decimal').Decimal('1.10')", "1.10"),
        ("b'caf\\xc3\\xa9'", "café"),
        ("'\\ud800x'", "\\ud800x"),
        ("__import__('enum').Enum('E', 'A B').B", 2),
        ("ToolError('no')", {"error": "no"}),
    ],
)
def test_result_conversion(jail: Jail, expression: str, value: Any) -> None:
    assert jail.result(f"result = {expression}") == value


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (
            "result = {'f': [1, len]}",
            "result_type",
            "result['f'][1] is a builtin_function_or_method, which has no JSON",
        ),
        ("result = {1: 'a', '1': 'b'}", "result_type", "two keys that both become '1'"),
        ("import itertools\nresult = itertools.count()", "result_type", "result is a count"),
        ("result = 10**5000", "result_type", "4,300 digits"),
        ("x = []\nfor _ in range(100):\n    x = [x]\nresult = x", "result_type", "deeper than 60 levels"),
        ("result = list(range(300_000))", "result_too_large", "more than 200,000 values"),
        (
            "result = ['x' * 500] * 12_004",
            "result_too_large",
            "result has 6,050,016 characters, the limit is 65,536 (list of 12,004 items). Filter, slice",
        ),
        ("if 0:\n    result = 1", "no_result", "not assigned on the path"),
    ],
)
def test_results_that_cannot_be_returned(jail: Jail, code: str, kind: str, text: str) -> None:
    outcome = jail.attack(code, kind)
    assert outcome.error is not None
    assert text in outcome.error.message


# Tools and errors -----------------------------------------------------------------------------------


def test_calls_are_recorded_in_order_with_params_reply_and_error(jail: Jail) -> None:
    code = (
        "a = call_tool('m', 'price', {'ticker': 'A'})\n"
        "try:\n    call_tool('m', 'price', {'ticker': 'Z'})\nexcept ToolError as error:\n    result = str(error)"
    )
    outcome = jail.run(code)
    assert outcome.result == "unknown ticker 'Z'"
    first, second = outcome.calls
    assert (first.server, first.tool, first.params, first.ok) == ("m", "price", {"ticker": "A"}, True)
    assert first.reply == {"status": True, "result": {"price": 3.5, "server": "m"}}
    assert first.bytes == len('{"status": true, "result": {"price": 3.5, "server": "m"}}')
    assert (second.ok, second.reply, second.error) == (False, None, "unknown ticker 'Z'")
    assert 0 <= first.start_s <= second.start_s


def test_an_uncaught_tool_error_has_line_and_frames(jail: Jail) -> None:
    code = "def locate(t):\n    return call_tool('m', 'price', {'ticker': t})\n\nresult = [locate(t) for t in 'AZ']"
    error = jail.attack(code, "tool").error
    assert error is not None
    assert (error.type, error.message, error.line) == ("ToolError", "unknown ticker 'Z'", 2)
    assert error.source == "return call_tool('m', 'price', {'ticker': t})"
    assert error.frames[0] == (4, "<module>", "result = [locate(t) for t in 'AZ']")
    assert error.frames[-1][:2] == (2, "locate")


def test_a_runtime_error_shows_six_frames_at_most(jail: Jail) -> None:
    error = jail.attack("def f(n):\n    return f(n + 1)\nresult = f(0)", "runtime").error
    assert error is not None
    assert error.type == "RecursionError"
    assert len(error.frames) == 6
    assert error.frames[0][0] == 3


@pytest.mark.parametrize(
    ("code", "kind_of_error", "text", "absent"),
    [
        ("open('/nowhere')", "FileNotFoundError", "not available in a block; use call_tool", "persists"),
        ("raise TimeoutError('slow')", "TimeoutError", "slow", "not available"),
        ("import numpy", "ModuleNotFoundError", "Only the Python standard library", "network"),
        ("print(rows)", "NameError", "Nothing persists between blocks", "network"),
        ("exit()", "SystemExit", "assign the value to 'result' instead of exiting", "network"),
        ("raise SystemExit", "SystemExit", "assign the value to 'result' instead of exiting", "network"),
        ("call_tool('m', 'echo', 'x')", "TypeError", "call_tool params must be a dict, not str.", "network"),
        ("call_tool('m', None)", "TypeError", "call_tool tool_name must be a str, not NoneType.", "network"),
        ("call_tool('m', 'echo', {'f': len})", "TypeError", "params['f'] is a builtin_function", "network"),
        ("call_tools([1])", "TypeError", "list of (server, tool, params)", "network"),
        ("raise ExceptionGroup('g', [ValueError('inner')])", "ValueError", "inner", "g ("),
    ],
)
def test_error_texts(jail: Jail, code: str, kind_of_error: str, text: str, absent: str) -> None:
    error = jail.attack(f"result = 0\n{code}", "runtime").error
    assert error is not None
    assert (error.type, error.line) == (kind_of_error, 2)
    assert text in error.message
    assert absent not in error.message


def test_call_tools_runs_in_parallel_and_keeps_order(jail: Jail) -> None:
    code = (
        "todo = [('m', 'echo', {'word': i, 'sleep': 0.3 - i / 20}) for i in range(6)]\n"
        "result = [r['result'] for r in call_tools(todo)]"
    )
    outcome = jail.run(code)
    assert outcome.result == list(range(6))
    assert outcome.wall_s < 1.2  # one after the other it is 1.05 s of sleep alone
    assert 0.25 < outcome.tool_s <= outcome.wall_s
    starts = [call.start_s for call in outcome.calls]
    assert max(starts) - min(starts) < 0.25


def test_call_tools_raises_or_returns_errors(jail: Jail) -> None:
    todo = "[('m', 'price', {'ticker': t}) for t in 'AZB']"
    error = jail.run(f"result = call_tools({todo})").error
    assert error is not None
    assert (error.kind, error.message, error.line) == ("tool", "unknown ticker 'Z'", 1)
    code = f"r = call_tools({todo}, return_errors=True)\nresult = [isinstance(x, ToolError) for x in r], str(r[1])"
    assert jail.result(code) == [[False, True, False], "unknown ticker 'Z'"]


def test_a_server_error_is_told_to_the_block_and_counted_apart(jail: Jail) -> None:
    outcome = jail.run("try:\n    call_tool('m', 'down')\nexcept ToolError as e:\n    result = str(e)")
    assert outcome.result == "m has died"
    assert outcome.server_errors == ("m has died",)
    assert outcome.calls[0].error == "m has died"


def test_any_other_exception_of_the_caller_is_ours(jail: Jail) -> None:
    with pytest.raises(SandboxError, match=r"calling m\.bug: KeyError"):
        jail.run("result = call_tool('m', 'bug')")
    jail.clean()


def test_stdout_is_kept_bounded_and_without_terminal_escapes(jail: Jail) -> None:
    outcome = jail.run("print('hi \\x1b[31m')\nresult = 1")
    assert outcome.stdout == "hi \\x1b[31m\n"
    outcome = jail.run("for i in range(100_000):\n    print('spam')\nresult = 1")
    assert outcome.stdout.startswith("spam\nspam\n")
    assert outcome.stdout.endswith("[cut: 500,000 characters were printed, the limit is 4,096]")


# Limits ---------------------------------------------------------------------------------------------


def test_cpu_limit(jail: Jail) -> None:
    error = jail.attack("result = 0\nwhile True:\n    result += 1", "cpu_limit").error
    assert error is not None
    assert error.line in (2, 3)
    assert error.message == f"The block used more than 1 s of CPU time (stopped at line {error.line})."


def test_cpu_limit_in_one_long_c_call(jail: Jail) -> None:
    jail.attack("result = sum(range(10**12))", "cpu_limit")


def test_cpu_limit_against_swallowed_exceptions(jail: Jail) -> None:
    code = (
        "result = 0\nwhile True:\n    try:\n        while True:\n            pass\n"
        "    except BaseException:\n        pass"
    )
    jail.attack(code, "cpu_limit")


def test_cpu_limit_against_an_ignored_signal(jail: Jail) -> None:
    code = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nresult = 0\nwhile True:\n    pass"
    jail.attack(code, "cpu_limit")


def test_wall_limit_while_sleeping(jail: Jail) -> None:
    limits = Limits(wall_s=0.5)
    error = jail.attack("import time\ntime.sleep(3600)\nresult = 1", "wall_limit", limits=limits).error
    assert error is not None
    assert error.message == "The block ran longer than 0.5 s."


def test_wall_limit_names_the_tool_waited_for(jail: Jail) -> None:
    code = "call_tool('m', 'echo')\nresult = call_tool('m', 'echo', {'sleep': 60})"
    outcome = jail.attack(code, "wall_limit", limits=Limits(wall_s=0.6))
    assert outcome.error is not None
    assert outcome.error.message.startswith("The block ran longer than 0.6 s; 0.")
    assert outcome.error.message.endswith("s of it waiting for m.echo.")
    assert [call.ok for call in outcome.calls] == [True, False]
    assert outcome.calls[1].error == "not finished when the block ended"


def test_tool_limit_can_be_caught(jail: Jail) -> None:
    code = "try:\n    call_tool('m', 'echo', {'sleep': 60})\nexcept ToolError as e:\n    result = str(e)"
    outcome = jail.run(code, Limits(tool_s=0.2))
    assert outcome.result == "m.echo did not answer within 0.2 s."
    assert outcome.calls[0].error == outcome.result


def test_memory_limit(jail: Jail) -> None:
    error = jail.attack("result = len([0] * 10**10)", "memory_limit").error
    assert error is not None
    assert error.message == "The block used more than 512 MiB of memory."
    assert error.line == 1


def test_memory_limit_reached_in_small_steps(jail: Jail) -> None:
    code = "x = []\nwhile True:\n    x.append('y' * 1_000_000)\nresult = 1"
    jail.attack(code, "memory_limit", limits=Limits(memory_mb=256))


def test_memory_limit_with_swallowed_memory_errors(jail: Jail) -> None:
    code = (
        "x = []\nwhile True:\n    try:\n        x.append(bytes(10**8))\n"
        "    except MemoryError:\n        pass\nresult = 1"
    )
    jail.attack(code, "cpu_limit", "memory_limit", "crashed")


def test_call_limit(jail: Jail) -> None:
    code = "result = 0\nfor i in range(1_000_000):\n    call_tool('m', 'echo')"
    outcome = jail.attack(code, "call_limit", limits=Limits(max_calls=20))
    assert outcome.error is not None
    assert outcome.error.message == "The block made more than 20 tool calls."
    assert len(outcome.calls) == 20


def test_parallel_limit_holds_whatever_the_block_does(jail: Jail) -> None:
    open_now, most = 0, 0

    async def slow(_server: str, _tool: str, _params: dict[str, Any]) -> Any:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.05)
        open_now -= 1

    code = (
        "import threading\nthreads = [threading.Thread(target=call_tool, args=('m', 't')) for _ in range(12)]\n"
        "for t in threads:\n    t.start()\nfor t in threads:\n    t.join()\nresult = 1"
    )
    outcome = jail.wait(jail.executor.run(code, slow, Limits(max_parallel=3)))
    assert (outcome.result, len(outcome.calls), most) == (1, 12, 3)


def test_code_limit(jail: Jail) -> None:
    jail.attack("result = 1" + " " * 100, "message_too_large", limits=Limits(code_chars=50))


def test_result_limit(jail: Jail) -> None:
    jail.attack("result = 'x' * 200", "result_too_large", limits=Limits(result_chars=100))


def test_frame_limit_of_params(jail: Jail) -> None:
    code = "result = call_tool('m', 'echo', {'word': 'x' * 2_000_000})"
    jail.attack(code, "message_too_large", limits=Limits(frame_mb=1))


def test_frame_limit_of_replies_can_be_caught(jail: Jail) -> None:
    code = "try:\n    call_tool('m', 'big', {'size': 2_000_000})\nexcept ToolError as e:\n    result = str(e)"
    assert jail.result(code, Limits(frame_mb=1)) == "m.big answered with 2,000,030 bytes, the limit is 1 MiB."


def test_large_replies_in_parallel_do_not_deadlock(jail: Jail) -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def work(_):\n    return sum(len(r['result']) for r in call_tools([('m', 'big', {'size': 10**6})] * 6))\n"
        "with ThreadPoolExecutor(3) as pool:\n    result = list(pool.map(work, range(3)))"
    )
    assert jail.result(code) == [6_000_000] * 3


def test_all_calls_together_carry_a_bounded_number_of_bytes(jail: Jail) -> None:
    code = "result = 0\nwhile True:\n    result += len(call_tool('m', 'big', {'size': 10**6})['result'])"
    outcome = jail.attack(code, "message_too_large", limits=Limits(frame_mb=1))
    assert outcome.error is not None
    assert outcome.error.message == "The block's tool calls carried more than 8 MiB in all."
    assert sum(call.bytes for call in outcome.calls) < 10 * 2**20


# Attacks --------------------------------------------------------------------------------------------


def refused(call: str, set_up: str = "") -> str:
    """A block that makes one raw system call through ctypes and reports its return value and errno."""
    return (
        "import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"{set_up}\nvalue = libc.syscall({call})\n"
        "result = [value, errno.errorcode.get(ctypes.get_errno())]"
    )


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("socket", "41, 2, 1, 0"),
        ("connect", "42, 3, 0, 0"),
        ("sendmsg", "46, 3, 0, 0"),
        ("fork", "57"),
        ("vfork", "58"),
        ("execve", "59, b'/bin/sh', 0, 0"),
        ("kill", "62, 1, 9"),
        ("tgkill", "234, 1, 1, 9"),
        ("ptrace", "101, 0, 0, 0, 0"),
        ("unshare", "272, 0x10000000"),
        ("mount", "165, 0, 0, 0, 0, 0"),
        ("setns", "308, 3, 0"),
        ("bpf", "321, 0, 0, 0"),
        ("io_uring_setup", "425, 1, 0"),
        ("pidfd_open", "434, 1, 0"),
        ("process_vm_readv", "310, 1, 0, 0, 0, 0, 0"),
        ("memfd_create", "319, b'x', 0"),
        ("keyctl", "250, 0, 0, 0, 0, 0"),
        ("a forking clone", "56, 17, 0, 0, 0, 0"),
        ("a namespace clone", "56, 0x10010f00 | 17, 0, 0, 0, 0"),
        ("an AF_INET socketpair", "53, 2, 1, 0, 0"),
        ("F_SETOWN", "72, 3, 8, 1"),
        ("F_SETSIG", "72, 3, 10, 9"),
        ("setting a limit", "302, 0, 0, ctypes.byref((ctypes.c_uint64 * 2)(9, 9)), 0"),
        ("prctl", "157, 1, 0, 0, 0, 0"),
        ("seccomp", "317, 0, 0, 0"),
    ],
)
def test_the_filter_refuses(jail: Jail, name: str, call: str) -> None:
    assert jail.result(refused(call)) == [-1, "EPERM"], name


def test_the_filter_refuses_to_open_for_writing(jail: Jail) -> None:
    for flags in ("1", "2", "0o100", "0o20200000"):
        assert jail.result(refused(f"257, -100, b'/guest.py', {flags}, 0o600")) == [-1, "EACCES"]


def test_the_x32_interface_kills(jail: Jail) -> None:
    jail.attack(refused("0x40000000 + 39"), "crashed")


def test_the_whole_table_of_system_calls(jail: Jail) -> None:
    """Of the calls 0-469, none outside the policy does anything: every other one says EPERM."""
    code = (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nopen_calls = []\n"
        "for n in range(470):\n"
        "    if n in SKIP:\n        continue\n"
        "    ctypes.set_errno(0)\n"
        "    v = libc.syscall(n, -1, 0, 0, 0, 0, 0)\n"
        "    if not (v == -1 and ctypes.get_errno() == 1):\n        open_calls.append(n)\n"
        "result = open_calls"
    )
    by_argument = {16, 53, 56, 72, 257, 302}  # tested one by one above
    # 335 and 336, the kernel's own probe returns, are exempt from any filter and end the caller by a signal
    skip = {*runpy.run_path(str(GUEST))["MACHINES"]["x86_64"].allowed(), *by_argument, 335, 336}
    open_calls = jail.result(code.replace("SKIP", repr(skip)))
    assert open_calls == [435]  # clone3 says ENOSYS, so that libc falls back


def test_fork(jail: Jail) -> None:
    error = jail.attack("import posix\nresult = posix.fork()", "runtime").error
    assert error is not None
    assert error.type == "PermissionError"


def test_a_fork_bomb_that_ignores_refusals(jail: Jail) -> None:
    code = "import posix\nresult = 0\nwhile True:\n    try:\n        posix.fork()\n    except OSError:\n        pass"
    jail.attack(code, "cpu_limit")


def test_a_thread_bomb(jail: Jail) -> None:
    code = (
        "import threading, time\nresult = 0\nwhile True:\n    threading.Thread(target=time.sleep, args=(60,)).start()"
    )
    jail.attack(code, "runtime", "memory_limit", "crashed", "cpu_limit")


def test_a_subprocess(jail: Jail) -> None:
    code = "Popen = __import__('subprocess').Popen\nresult = Popen(['/bin/sh', '-c', 'true'])"
    jail.attack(code, "runtime")


def test_a_network_connection(jail: Jail) -> None:
    code = "s = __import__('socket')\nresult = s.create_connection(('127.0.0.1', 22), 1)"
    error = jail.attack(code, "runtime").error
    assert error is not None
    assert "use call_tool" in error.message


def test_an_address_lookup(jail: Jail) -> None:
    jail.attack("import urllib.request\nresult = urllib.request.urlopen('http://example.org').read()", "runtime")


def test_reading_the_password_file(jail: Jail) -> None:
    error = jail.attack("result = open('/etc/passwd').read()", "runtime").error
    assert error is not None
    assert error.type == ("FileNotFoundError" if jail.confinement == "bwrap" else "PermissionError")


def test_reading_processes(jail: Jail) -> None:
    jail.attack("result = open('/proc/1/environ').read()", "runtime")


def test_the_project_is_not_readable(jail: Jail) -> None:
    jail.attack(f"result = open({str(ROOT / 'pyproject.toml')!r}).read()", "runtime")
    jail.attack(f"import pathlib\nresult = list(pathlib.Path({str(ROOT)!r}).iterdir())", "runtime")


def test_the_root_holds_the_interpreter_and_nothing_else(jail: Jail) -> None:
    if jail.confinement == "landlock":
        jail.attack("import posix\nresult = posix.listdir('/')", "runtime")
        return
    top = jail.result("import posix\nresult = sorted(posix.listdir('/'))")
    prefix = Path(sys.base_prefix).resolve().parts[1]
    assert set(top) <= {"guest.py", "lib", "lib64", "usr", prefix}


def test_writing_a_file(jail: Jail) -> None:
    error = jail.attack("open('/usr/x', 'w').write('x')\nresult = 1", "runtime").error
    assert error is not None
    assert error.type == "PermissionError"


def test_the_environment_is_empty(jail: Jail) -> None:
    os.environ["HYPERTOOL_TEST_SECRET"] = "hunter2"
    code = (
        "import ctypes, posix\nlibc = ctypes.CDLL(None)\nlibc.getenv.restype = ctypes.c_char_p\n"
        "result = dict(posix.environ), dict(__import__('os').environ), str(libc.getenv(b'HYPERTOOL_TEST_SECRET'))"
    )
    try:
        assert jail.result(code)[1:] == [{}, "None"]
    finally:
        del os.environ["HYPERTOOL_TEST_SECRET"]
    jail.clean()


def test_native_code_through_ctypes(jail: Jail) -> None:
    code = "import ctypes\nresult = ctypes.CDLL(None).system(b'touch /tmp/x')"
    assert jail.result(code) != 0
    jail.clean()


def test_a_wild_pointer(jail: Jail) -> None:
    jail.attack("import ctypes\nresult = ctypes.string_at(8)", "crashed")


def test_the_object_graph_leads_into_an_empty_machine(jail: Jail) -> None:
    code = (
        "found = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close']\n"
        "result = found[0].__init__.__globals__['system']('true')"
    )
    assert jail.result(code) != 0
    jail.clean()


def test_exiting_without_an_answer(jail: Jail) -> None:
    jail.attack("import posix\nresult = 1\nposix._exit(0)", "crashed")


def test_killing_itself(jail: Jail) -> None:
    jail.attack("import ctypes\nresult = 1\nctypes.CDLL(None).abort()", "crashed")


def test_patched_builtins(jail: Jail) -> None:
    code = (
        "import builtins, json, math, traceback\n"
        "for name in ('len', 'isinstance', 'str', 'dict', 'type', 'print', 'int', 'sorted'):\n"
        "    setattr(builtins, name, None)\n"
        "json.dumps = json.encoder.JSONEncoder = math.isfinite = traceback.walk_tb = None\n"
        "result = [1, 2.5, {'a': 'b'}]"
    )
    assert jail.result(code) == [1, 2.5, {"a": "b"}]
    jail.attack(code + "\n1 / 0", "runtime")


def test_patched_guest(jail: Jail) -> None:
    code = "g = call_tool.__globals__\nfor k in ('Converter', 'failure', 'text_of'):\n    g[k] = None\nresult = [1]"
    assert jail.result(code) == [1]
    jail.clean()


def test_writing_to_every_inherited_descriptor(jail: Jail) -> None:
    code = (
        "import posix\nfor fd in range(64):\n    try:\n        posix.write(fd, b'\\xff' * 64)\n"
        "    except OSError:\n        pass\nresult = 1"
    )
    jail.attack(code, "message_too_large", "crashed")


def test_deeply_nested_text(jail: Jail) -> None:
    jail.attack("a = []\nfor _ in range(200_000):\n    a = [a]\nresult = len(str(a))", "runtime", "crashed")


RAW = (
    "import json, posix\n"
    "deep = {}\nfor _ in range(90):\n    deep = {'a': deep}\n"
    "def raw(data):\n    posix.write(3, len(data).to_bytes(4, 'big') + data)\n"
)


@pytest.mark.parametrize(
    "send",
    [
        "raw(b'[' * 100_000)",
        "raw(b'{\"op\":\"done\",\"result\":' + b'[' * 500 + b']' * 500 + b'}')",
        "raw(b'not json')",
        "raw(b'\\xff\\xfe')",
        "raw(b'[1]')",
        "raw(b'{}')",
        'raw(b\'{"op":"done"}\')',
        'raw(b\'{"op":"done","result":NaN}\')',
        'raw(b\'{"op":"done","result":"\\\\ud800"}\')',
        "raw(b'{\"op\":\"done\",\"result\":' + b'9' * 5000 + b'}')",
        'raw(b\'{"op":"fail","kind":"wall_limit"}\')',
        'raw(b\'{"op":"fail","kind":[]}\')',
        'raw(b\'{"op":"call","id":1,"server":["m"],"tool":"echo","params":{}}\')',
        'raw(b\'{"op":"call","id":1,"server":"m","tool":null,"params":{}}\')',
        'raw(b\'{"op":"call","id":1,"server":"m","tool":"echo","params":[]}\')',
        'raw(b\'{"op":"call","id":true,"server":"m","tool":"echo","params":{}}\')',
        'raw(b\'{"op":"call","server":"m","tool":"echo","params":{}}\')',
        '[raw(b\'{"op":"call","id":1,"server":"m","tool":"echo","params":{}}\') for _ in range(2)]',
        "raw(b'%b' % json.dumps({'op': 'call', 'id': 1, 'server': 'm', 'tool': 'echo', 'params': deep}).encode())",
    ],
)
def test_hostile_frames(jail: Jail, send: str) -> None:
    jail.attack(f"{RAW}{send}\nimport time\ntime.sleep(60)\nresult = 1", "crashed")


def test_a_frame_that_claims_to_be_huge(jail: Jail) -> None:
    code = "import posix, time\nposix.write(3, b'\\xff\\xff\\xff\\xff')\ntime.sleep(60)\nresult = 1"
    jail.attack(code, "message_too_large")


def test_a_frame_that_never_ends(jail: Jail) -> None:
    code = "import posix, time\nposix.write(3, b'\\0\\0\\1\\0{')\ntime.sleep(60)\nresult = 1"
    jail.attack(code, "wall_limit", limits=Limits(wall_s=0.5))


def test_a_forged_answer_obeys_the_limits(jail: Jail) -> None:
    code = f"{RAW}raw(json.dumps({{'op': 'done', 'result': 'x' * 100_000}}).encode())\nresult = 1"
    jail.attack(code, "result_too_large")


def test_a_forged_failure_is_cut_and_escaped(jail: Jail) -> None:
    code = (
        f"{RAW}raw(json.dumps({{'op': 'fail', 'kind': 'runtime', 'type': 'E\\x1b', 'message': 'm' * 10**6,\n"
        "    'line': 'x', 'frames': [[1, 'f', 's' * 999], 5, [1]] * 9, 'stdout': 'o' * 10**6}).encode())\n"
        "result = 1"
    )
    outcome = jail.attack(code, "runtime")
    assert outcome.error is not None
    assert outcome.error.type == "E\\x1b"
    assert len(outcome.error.message) == 4_000
    assert len(outcome.stdout) <= 4_200
    assert all(len(source) <= 160 for _, _, source in outcome.error.frames)


def test_replies_nobody_reads_do_not_pile_up(jail: Jail) -> None:
    """A block that asks and never reads is held at max_parallel replies, then ends by the clock."""
    code = (
        f"{RAW}import time\ncall = {{'op': 'call', 'server': 'm', 'tool': 'big', 'params': {{'size': 10**6}}}}\n"
        "for i in range(100):\n    raw(json.dumps({**call, 'id': i}).encode())\n"
        "time.sleep(60)\nresult = 1"
    )
    outcome = jail.attack(code, "wall_limit", limits=Limits(wall_s=1))
    assert len(outcome.calls) <= 8


# Processes ------------------------------------------------------------------------------------------


def test_sixteen_blocks_at_once_read_back_only_their_own_word(jail: Jail) -> None:
    async def all_of_them() -> list[Outcome]:
        codes = [
            f"import time\nwords = []\nfor i in range(5):\n"
            f"    words.append(call_tool('m', 'echo', {{'word': 'w{n}-' + str(i), 'sleep': 0.02}})['result'])\n"
            "result = words"
            for n in range(16)
        ]
        codes[3], codes[7] = "result = 0\nwhile True:\n    pass", "import posix\nresult = 1\nposix._exit(1)"
        return await asyncio.gather(*(jail.executor.run(code, tools, Limits(cpu_s=1)) for code in codes))

    outcomes = jail.wait(all_of_them())
    for n, outcome in enumerate(outcomes):
        if n in (3, 7):
            assert outcome.error is not None
        else:
            assert outcome.result == [f"w{n}-{i}" for i in range(5)]


def test_eight_threads_in_each_of_twelve_blocks(jail: Jail) -> None:
    code = (
        "import threading, time\nthreads = [threading.Thread(target=time.sleep, args=(0.3,)) for _ in range(8)]\n"
        "for t in threads:\n    t.start()\nresult = sum(t.is_alive() for t in threads)"
    )

    async def all_of_them() -> list[Outcome]:
        return await asyncio.gather(*(jail.executor.run(code, tools, QUICK) for _ in range(12)))

    assert [outcome.result for outcome in jail.wait(all_of_them())] == [8] * 12


def test_cancelling_the_run_kills_the_block_and_its_calls(jail: Jail) -> None:
    cancelled = asyncio.Event()

    async def hang(_server: str, _tool: str, _params: dict[str, Any]) -> Any:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def scene() -> set[int]:
        before = await settled()
        task = asyncio.create_task(jail.executor.run("result = call_tool('m', 'x')", hang, Limits()))
        await asyncio.sleep(0.5)
        assert len(descendants() - before) == 1  # the child forked ahead, if there was one, had other limits
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cancelled.is_set()
        return await left_over(before | await forked_ahead(jail.executor))

    assert jail.wait(scene()) == set()
    jail.clean()


@pytest.mark.parametrize("code", ["time.sleep(3600)\nresult = 1", "while True: pass\nresult = 1"])
def test_a_block_that_ignores_its_channel_is_killed_at_the_end(jail: Jail, code: str) -> None:
    async def scene() -> set[int]:
        before = await settled()
        work = jail.executor.run(f"import time\n{code}", tools, Limits(wall_s=0.3, cpu_s=60))
        outcome = await work
        assert outcome.error is not None
        assert outcome.error.kind == "wall_limit"
        return await left_over(before | await forked_ahead(jail.executor))

    assert jail.wait(scene()) == set()


def test_threads_do_not_outlive_the_answer(jail: Jail) -> None:
    async def scene() -> set[int]:
        before = await settled()
        code = "import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()\nresult = 1"
        assert (await jail.executor.run(code, tools, QUICK)).result == 1
        return await left_over(before | await forked_ahead(jail.executor))

    assert jail.wait(scene()) == set()


def test_landlock_leaves_the_names_of_files_but_no_power_of_root(jail: Jail) -> None:
    """What is weaker without namespaces, as docs/sandbox.md says: metadata can be asked for, contents cannot."""
    if jail.confinement == "bwrap":
        assert jail.result("import os\nresult = os.path.exists('/etc/passwd')") is False
        return
    assert jail.result("import os\nresult = os.path.exists('/etc/passwd')") is True
    blocks = [process for process in jail.wait(settled()) if GUEST.name in command_line(process)]
    assert blocks
    for process in blocks:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
        for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(status[capabilities], 16) == 0, capabilities
        assert status["NoNewPrivs"] == "1"


def test_the_zygote_lives_in_namespaces_of_its_own(jail: Jail) -> None:
    if jail.confinement == "landlock":
        return
    assert jail.result("import posix\nresult = posix.getuid(), posix.getppid(), posix.uname().nodename") == [
        65534,
        1,
        "jail",
    ]
    zygote = max(process for process in jail.wait(settled()) if "/guest.py" in command_line(process))
    for kind in ("user", "pid", "net", "mnt", "ipc", "uts"):
        ours, theirs = Path(f"/proc/self/ns/{kind}"), Path(f"/proc/{zygote}/ns/{kind}")
        assert ours.readlink() != theirs.readlink(), kind


def test_cancelling_at_any_moment_leaves_a_working_executor(jail: Jail) -> None:
    async def scene() -> None:
        for step in range(25):
            task = asyncio.create_task(jail.executor.run("result = call_tool('m', 'tickers')", tools, QUICK))
            await asyncio.sleep(step / 1500)
            task.cancel()
            await asyncio.wait({task})

    jail.wait(scene())
    jail.clean()


def test_no_process_remains_after_aclose() -> None:
    async def scene() -> None:
        before = descendants()
        async with own_executor() as executor:
            await forked_ahead(executor)  # so that this block takes it
            hanging = asyncio.create_task(executor.run("import time\ntime.sleep(99)\nresult = 1", tools, Limits()))
            await asyncio.sleep(0.5)
            assert len(descendants() - before) == 3  # bubblewrap, zygote, block
        assert descendants() <= before
        outcome = await hanging
        assert outcome.error is not None
        assert outcome.error.kind == "crashed"
        with pytest.raises(SandboxError, match="closed"):
            await executor.run("result = 1", tools, Limits())

    asyncio.run(scene())


def test_a_killed_zygote_ends_its_blocks_and_is_replaced() -> None:
    async def scene() -> None:
        before = descendants()
        async with own_executor() as executor:
            code = "import time\ntime.sleep(99)\nresult = 1"
            running = [asyncio.create_task(executor.run(code, tools, Limits())) for _ in range(3)]
            await asyncio.sleep(0.5)
            zygotes = [p for p in descendants() - before if command_line(p).startswith(sys.base_prefix)]
            zygotes = zygotes or [p for p in descendants() - before if "/guest.py" in command_line(p)]
            os.kill(min(zygotes), signal.SIGKILL)
            for outcome in await asyncio.gather(*running):
                assert outcome.error is not None
                assert outcome.error.kind == "crashed"
            assert (await executor.run("result = 5", tools, Limits())).result == 5
        assert descendants() <= before

    asyncio.run(scene())


def test_a_zygote_that_cannot_come_back_is_a_sandbox_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        before = await settled()
        async with own_executor() as executor:
            jailed = {p for p in descendants() - before if "/guest.py" in command_line(p)}
            monkeypatch.setenv("PATH", "/nonexistent")
            os.kill(min(jailed), signal.SIGKILL)  # bubblewrap, and with it the zygote and the child forked ahead
            await asyncio.sleep(0.3)
            started = time.perf_counter()
            with pytest.raises(SandboxError, match="apt-get install bubblewrap"):
                await executor.run("result = 5", tools, Limits())
            assert time.perf_counter() - started >= 1.0  # it waited before the second try

    asyncio.run(scene())


def test_the_death_of_the_parent_ends_the_jail() -> None:
    program = (
        "import asyncio, time\nfrom hypertool.sandbox import JailExecutor\n"
        "async def main():\n    await JailExecutor().start()\n    print('up', flush=True)\n    time.sleep(60)\n"
        "asyncio.run(main())"
    )
    before = descendants()
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        jailed = descendants() - before - {parent.pid}
        assert jailed
        parent.kill()
    for _ in range(60):
        alive = [p for p in jailed if command_line(p)]
        if not alive:
            break
        time.sleep(0.05)
    assert alive == []


def test_without_bubblewrap_start_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ExecutorUnavailable, match="apt-get install bubblewrap"):
        asyncio.run(JailExecutor().start())


def test_refused_namespaces_are_an_error_with_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before = descendants()
    with pytest.raises(ExecutorUnavailable, match="No permissions to create new namespace"):
        asyncio.run(JailExecutor().start())
    assert descendants() <= before
