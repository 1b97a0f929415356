"""What a block costs: latency by number of calls, throughput at 64 at once, and real servers against the bare SDK.

    make bench                                  # about 4 minutes; writes results/executor/
    make bench ARGS="--rounds 3 --out /tmp/x"   # a quick look

Every row is measured in this one run, candidates in turn within each round, so that the load of the machine hits
all alike; read the ratios. Three parts:
  latency     one block with 0, 1, 10, 100 calls of a trivial tool that lives in this process
  throughput  64 blocks in flight, five calls each: of a trivial tool, and of one that takes 50 ms (ideal 256 blocks/s);
              and one 50 ms call each (ideal 1,280 blocks/s)
  servers     one block with 10 trivial calls over a real stdio server, against the same 10 calls by `mcp.Client`
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from scipy import stats

from hypertool.executors import EXECUTORS
from hypertool.pool import Pool
from hypertool.runs import provenance
from hypertool.sandbox import Executor, JailExecutor, Limits, Outcome, ToolCaller
from hypertool.servers import ServerConfig

ROOT = Path(__file__).parents[1]
SERVER = [sys.executable, str(ROOT / "benchmarks" / "trivial_server.py")]
CALLS = (0, 1, 10, 100)
AT_ONCE, BLOCKS = 64, 256
TOOL_S = 0.05
BASELINE = "in-process exec"
LIMITS = Limits(max_calls=1000)
_numbers = itertools.count()


def code(calls: int) -> str:
    """A block that no cache has seen: a model does not write the same one twice."""
    loop = f"for n in range({calls}):\n    total += call_tool('b', 'add', {{'n': n}})['result']['n']"
    return f"# {next(_numbers)}\ntotal = 0\n{loop}\nresult = total"


async def trivial(server: str, tool: str, params: dict[str, Any]) -> Any:  # noqa: ARG001
    return {"status": True, "result": {"n": params["n"]}}


async def slow(server: str, tool: str, params: dict[str, Any]) -> Any:
    await asyncio.sleep(TOOL_S)
    return await trivial(server, tool, params)


class InProcess:
    """The baseline: `exec` in a thread of this process. No isolation whatsoever."""

    name, isolation = BASELINE, "none"

    async def start(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE)

    async def run(self, code: str, call: ToolCaller, limits: Limits) -> Outcome:
        loop = asyncio.get_running_loop()

        def call_tool(server: str, tool: str, params: dict[str, Any]) -> Any:
            return asyncio.run_coroutine_threadsafe(call(server, tool, params), loop).result(limits.tool_s)

        space: dict[str, Any] = {"call_tool": call_tool}
        await loop.run_in_executor(self._threads, exec, code, space)
        return Outcome(result=space["result"])

    async def aclose(self) -> None:
        pass


class FreshProcess:
    """A new interpreter in a new jail for every block: what the zygote saves."""

    name, isolation = "fresh process per block", "os"

    async def start(self) -> None:
        pass

    async def run(self, code: str, call: ToolCaller, limits: Limits) -> Outcome:
        executor = JailExecutor(max_blocks=1)
        try:
            return await executor.run(code, call, limits)
        finally:
            await executor.aclose()

    async def aclose(self) -> None:
        pass


class NotAhead(JailExecutor):
    """The jail without a child forked ahead."""

    def __init__(self, max_blocks: int) -> None:
        super().__init__(max_blocks)
        self.name = "jail-bwrap, not ahead"

    def _refill(self, order: dict[str, int]) -> None:
        pass


class Smolagents:
    """smolagents' interpreter, for scale: no boundary against hostile code by its own documentation."""

    name, isolation = "smolagents", "none"

    async def start(self) -> None:
        from smolagents.local_python_executor import LocalPythonExecutor  # optional: only where it is installed

        self._make = LocalPythonExecutor
        self._threads = ThreadPoolExecutor(AT_ONCE)

    async def run(self, code: str, call: ToolCaller, limits: Limits) -> Outcome:
        loop = asyncio.get_running_loop()

        def call_tool(server: str, tool: str, params: dict[str, Any]) -> Any:
            return asyncio.run_coroutine_threadsafe(call(server, tool, params), loop).result(limits.tool_s)

        def work() -> Any:
            executor = self._make([])
            executor.send_tools({"call_tool": call_tool})
            return executor(code).output

        return Outcome(result=await loop.run_in_executor(self._threads, work))

    async def aclose(self) -> None:
        pass


def spread(values: list[float]) -> dict[str, float]:
    return {
        "n": len(values),
        "median_ms": round(1000 * float(np.median(values)), 3),
        "p95_ms": round(1000 * float(np.percentile(values, 95)), 3),
    }


def ratio(values: list[float], base: list[float]) -> list[float]:
    """[median ratio of pairs, low, high]: bootstrap 95 % interval over pairs of the same round."""
    pairs = np.asarray(values) / np.asarray(base)
    if len(pairs) < 2 or np.ptp(pairs) == 0:
        return [float(np.median(pairs))] * 3
    interval = stats.bootstrap(
        (pairs,), np.median, n_resamples=2000, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    return [round(float(x), 3) for x in (np.median(pairs), interval.low, interval.high)]


async def timed(work: Awaitable[Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    value = await work
    return time.perf_counter() - began, value


async def run(executor: Executor, calls: int, tool: ToolCaller) -> float:
    seconds, outcome = await timed(executor.run(code(calls), tool, LIMITS))
    if outcome.result != sum(range(calls)):
        raise SystemExit(f"{executor.name} gave {outcome.error or outcome.result} for {calls} calls")
    return seconds


async def latency(executors: list[Executor], rounds: int, tick: Callable[[], None]) -> dict[str, Any]:
    times: dict[str, dict[int, list[float]]] = {e.name: {calls: [] for calls in CALLS} for e in executors}
    for _ in range(rounds):
        for calls in CALLS:
            for executor in executors:
                await asyncio.sleep(0.02)  # a model thinks between two blocks: what is forked ahead is ready
                times[executor.name][calls].append(await run(executor, calls, trivial))
        tick()
    return {
        name: {
            str(calls): {**spread(row[calls]), "vs_baseline": ratio(row[calls], times[BASELINE][calls])}
            for calls in CALLS
        }
        for name, row in times.items()
    }


async def throughput(executors: list[Executor], rounds: int, tick: Callable[[], None]) -> dict[str, Any]:
    """Blocks per second with AT_ONCE in flight; for the slow tool also the share of the ideal rate."""
    loads = {
        "trivial x5": (5, trivial, None),
        "50 ms x5": (5, slow, AT_ONCE / (5 * TOOL_S)),
        "50 ms x1": (1, slow, AT_ONCE / TOOL_S),
    }
    rates: dict[str, dict[str, list[float]]] = {e.name: {load: [] for load in loads} for e in executors}
    for _ in range(rounds):
        for load, (calls, tool, _) in loads.items():
            for executor in executors:
                gate = asyncio.Semaphore(AT_ONCE)

                async def one(executor: Executor, calls: int, tool: ToolCaller, gate: asyncio.Semaphore) -> None:
                    async with gate:
                        await run(executor, calls, tool)

                seconds, _ = await timed(asyncio.gather(*(one(executor, calls, tool, gate) for _ in range(BLOCKS))))
                rates[executor.name][load].append(BLOCKS / seconds)
        tick()
    made: dict[str, Any] = {}
    for name, row in rates.items():
        made[name] = {}
        for load, (_, _, ideal) in loads.items():
            cell = {"n": len(row[load]), "blocks_per_s": round(float(np.median(row[load])), 1)}
            if ideal:
                cell["share_of_ideal"] = ratio(row[load], [ideal] * len(row[load]))
            made[name][load] = cell
    return made


async def servers(executors: list[Executor], rounds: int, tick: Callable[[], None]) -> dict[str, Any]:
    """Ten calls over stdio: by the SDK's client alone, and in one block through the pool."""
    parameters = StdioServerParameters(command=SERVER[0], args=SERVER[1:])
    times: dict[str, list[float]] = {"SDK client": [], **{executor.name: [] for executor in executors}}
    async with (
        Client(stdio_client(parameters)) as client,
        Pool({"b": ServerConfig("b", SERVER[0], tuple(SERVER[1:]))}) as pool,
    ):
        await pool.start()
        specs = pool.specs()

        async def direct() -> None:
            for n in range(10):
                await client.call_tool("add", {"n": n})

        async def through(server: str, tool: str, params: dict[str, Any]) -> Any:
            return {"status": True, "result": (await pool.call(server, tool, params, LIMITS.tool_s)).value}

        assert [spec.name for spec in specs] == ["add"]
        await direct()
        for _ in range(rounds):
            await asyncio.sleep(0.02)
            times["SDK client"].append((await timed(direct()))[0])
            for executor in executors:
                await asyncio.sleep(0.02)
                times[executor.name].append(await run(executor, 10, through))
            tick()
    return {name: {**spread(row), "vs_sdk": ratio(row, times["SDK client"])} for name, row in times.items()}


async def candidates() -> tuple[list[Executor], dict[str, str]]:
    """Everything that works here, the baseline first, and why the rest does not."""
    found: list[Executor] = []
    absent: dict[str, str] = {}
    made: list[Executor] = [InProcess(), *(make(AT_ONCE) for make in EXECUTORS.values())]
    for executor in [*made, NotAhead(AT_ONCE), FreshProcess(), Smolagents()]:
        try:
            await executor.start()
            await run(executor, 1, trivial)
            found.append(executor)
        except Exception as error:
            absent[executor.name] = f"{type(error).__name__}: {error}".split("\n")[0]
    return found, absent


async def measure(rounds: int) -> dict[str, Any]:
    found, absent = await candidates()
    jails = [executor for executor in found if executor.isolation == "os" and executor.name.startswith("jail")]
    quick = [executor for executor in found if executor.name != FreshProcess.name]
    try:
        with Progress(console=Console(stderr=True)) as progress:

            def ticker(name: str, total: int) -> Callable[[], None]:
                task = progress.add_task(name, total=total)
                return lambda: progress.advance(task)

            heavy = max(3, rounds // 5)
            return {
                "absent": absent,
                "latency": await latency(found, rounds, ticker("latency", rounds)),
                "throughput": await throughput(quick, heavy, ticker("throughput", heavy)),
                "servers": await servers(jails, 3 * rounds, ticker("servers", 3 * rounds)),
            }
    finally:
        for executor in found:
            await executor.aclose()


def tables(result: dict[str, Any], console: Console) -> None:
    def interval(cell: list[float]) -> str:
        return f"{cell[0]:.2f} [{cell[1]:.2f}, {cell[2]:.2f}]"

    rows = Table(title="one block, ms: median (p95), and the ratio to in-process exec")
    for column in ("executor", *(f"{calls} calls" for calls in CALLS)):
        rows.add_column(column)
    for name, row in result["latency"].items():
        rows.add_row(
            name, *(f"{c['median_ms']:.1f} ({c['p95_ms']:.1f})  {c['vs_baseline'][0]:.1f}x" for c in row.values())
        )
    console.print(rows)
    rates = Table(title=f"{AT_ONCE} blocks in flight: blocks per second, share of the ideal rate")
    for column in ("executor", "trivial x5", "50 ms x5", "50 ms x1"):
        rates.add_column(column)
    for name, row in result["throughput"].items():
        cells = [
            f"{c['blocks_per_s']:.0f}" + (f"  {c['share_of_ideal'][0]:.0%}" if "share_of_ideal" in c else "")
            for c in row.values()
        ]
        rates.add_row(name, *cells)
    console.print(rates)
    real = Table(title="10 trivial calls over a stdio server, ms: median (p95), and the ratio to the SDK client alone")
    for column in ("how", "ms", "ratio [95 %]"):
        real.add_column(column)
    for name, row in result["servers"].items():
        real.add_row(name, f"{row['median_ms']:.1f} ({row['p95_ms']:.1f})", interval(row["vs_sdk"]))
    console.print(real)
    for name, why in result["absent"].items():
        console.print(f"not measured: {name} ({why})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25, help="rounds of the latency part (default 25)")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "results" / "executor", help="folder for the JSON and the tables"
    )
    arguments = parser.parse_args()
    result = {
        "command": f"make bench ARGS='--rounds {arguments.rounds}'",
        **provenance(ROOT),
        "machine": {"cpus": os.cpu_count(), "kernel": platform.release(), "load": os.getloadavg()},
        "rounds": arguments.rounds,
        "seed": 0,
        **asyncio.run(measure(arguments.rounds)),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "executor.json").write_text(json.dumps(result, indent=1) + "\n")
    tables(result, Console(width=150))
    print(f"written: {arguments.out / 'executor.json'}")


if __name__ == "__main__":
    main()
