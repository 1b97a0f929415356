"""Between the host and one stdio server: when the host is gone, so is the server and everything it started.

Run by path as `python -I -S keeper.py COMMAND ARG...` and imported by nobody; standard library only. A server
whose host is killed outright sees its standard input close, and one that hangs does not look. The kernel tells
this process of its parent's death and hands it every orphan below it, and it ends them all.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE_S = 1.0


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def die_with_parent() -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def children() -> list[int]:
    """Process ids right below this one; orphans of the server arrive here."""
    with contextlib.suppress(OSError):
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    return []


def end_all() -> None:
    """Kill whatever is left below, generation by generation."""
    while left := children():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def main(command: list[str]) -> int:
    """Run the command until it ends or the host does. Returns the command's own exit status."""
    parent = os.getppid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)

    def stop(_: int, __: FrameType | None) -> None:
        raise SystemExit(143)

    signal.signal(signal.SIGTERM, stop)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before the kernel was told to say so
        return 143
    try:
        server = subprocess.Popen(command, preexec_fn=die_with_parent)
    except OSError as error:
        print(f"cannot start {command[0]!r}: {error.strerror}", file=sys.stderr)
        return 127
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # the streams are the server's alone, so that their ends mean something
        os.dup2(nothing, descriptor)
    try:
        return server.wait()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        server.terminate()
        end = time.monotonic() + GRACE_S
        while server.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        end_all()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
