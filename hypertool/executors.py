"""Choose what runs a block on this machine. Isolation is never traded away: no executor is an error.

`auto` takes the first that works of `jail-bwrap` (namespaces) and `jail-landlock` (weaker, needs none). One
asked for by name is never replaced by another: runs under different isolation are not the same experiment.
"""

from __future__ import annotations

from collections.abc import Callable

from hypertool.errors import ConfigError, ExecutorUnavailable, nearest
from hypertool.sandbox import Executor, JailExecutor

EXECUTORS: dict[str, Callable[[int], Executor]] = {
    "jail-bwrap": lambda max_blocks: JailExecutor(max_blocks, "bwrap"),
    "jail-landlock": lambda max_blocks: JailExecutor(max_blocks, "landlock"),
}
"""In the order in which `auto` tries them."""
AUTO = "auto"


async def open_executor(name: str = AUTO, max_blocks: int = 16) -> Executor:
    """Return a started executor; its `name` goes into the run record. The caller closes it.

    Raises ExecutorUnavailable with the reason of every one tried, ConfigError for an unknown name.
    """
    if name != AUTO and name not in EXECUTORS:
        raise ConfigError(f"unknown executor {name!r}. {nearest(name, EXECUTORS)}Valid: {AUTO}, {', '.join(EXECUTORS)}")
    if name != AUTO:
        return await _started(name, max_blocks)
    reasons = []
    for candidate in EXECUTORS:
        try:
            return await _started(candidate, max_blocks)
        except ExecutorUnavailable as error:
            reasons.append(f"{candidate}: {error}")
    raise ExecutorUnavailable("nothing here can isolate a block, so none will run.\n  " + "\n  ".join(reasons))


async def probe() -> dict[str, str]:
    """Start and stop every executor: its name and why it does not work here, empty where it does."""
    found = {}
    for name in EXECUTORS:
        try:
            executor = await _started(name, max_blocks=1)
        except ExecutorUnavailable as error:
            found[name] = str(error)
        else:
            await executor.aclose()
            found[name] = ""
    return found


async def _started(name: str, max_blocks: int) -> Executor:
    executor = EXECUTORS[name](max_blocks)
    await executor.start()
    return executor
