"""Play tasks in an arm and append every episode to a run: the same code for training data and evaluation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hypertool.agent import Budget, run_episode
from hypertool.errors import ConfigError, ToolCallError, innermost
from hypertool.interface import Toolbox
from hypertool.model import Model
from hypertool.pool import Pool
from hypertool.prompts import TokenCount
from hypertool.runs import Run
from hypertool.sandbox import Executor, Limits
from hypertool.scoring import Op, evaluate
from hypertool.tasks import Task
from hypertool.tools import ToolSpec, find
from hypertool.trajectory import Trajectory

ModelFor = Callable[[Task, str], Model]  # (task, arm) -> this episode's model
Progress = Callable[[Trajectory], None]


def task_specs(task: Task, specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """The tools a task may use, in the servers' order. Raises ConfigError if a server or tool is missing."""
    wanted: list[ToolSpec] = []
    for server, tools in task.servers.items():
        available = [spec for spec in specs if spec.server == server]
        if tools is None:
            wanted.extend(available)
            continue
        try:
            wanted.extend(find(specs, server, tool) for tool in tools)
        except ToolCallError as error:
            raise ConfigError(f"task {task.task_id!r} needs a tool that is not there: {error}") from error
    if not wanted:
        raise ConfigError(f"task {task.task_id!r} names no server of this run: {', '.join(task.servers) or 'none'}")
    names = [spec.exposed_name for spec in wanted]
    if len(set(names)) != len(names):
        raise ConfigError(f"task {task.task_id!r}: two tools share an exposed name; rename a server")
    return wanted


async def play(
    run: Run,
    tasks: Sequence[Task],
    arm: str,
    model_for: ModelFor,
    parts: tuple[Pool, Executor],
    *,
    name: str,
    count: TokenCount,
    budget: Budget,
    limits: Limits,
    trials: int = 1,
    concurrency: int = 4,
    ops: dict[str, Op] | None = None,
    progress: Progress | None = None,
) -> list[Trajectory]:
    """Play what `run` lacks, score it, append it. Returns every episode of the run, old and new.

    Raises ConfigError for a task that cannot be played here, or a disk that is full.
    """
    pool, executor = parts
    specs = pool.specs()
    chosen = {task.task_id: (task, task_specs(task, specs)) for task in tasks}
    keys = [(task.task_id, arm, trial) for trial in range(trials) for task in tasks]
    gate = asyncio.Semaphore(concurrency)

    async def one(key: tuple[str, str, int]) -> None:
        task, tools = chosen[key[0]]
        async with gate:
            toolbox = Toolbox(pool, executor, tools, limits)
            row = await run_episode(task, arm, model_for(task, arm), toolbox, budget, count, name=name, trial=key[2])
            row.checks = evaluate(task, row.answer, ops)
            passed = [check["passed"] for check in row.checks]
            row.score = sum(passed) / len(passed) if passed else None
            row.passed = bool(passed) and all(passed) and row.status == "finished"
            faults = [fault for turn in row.turns for call in turn.calls for fault in call.server_errors]
            if faults and not row.passed:  # the fault may be why: not the model's failure, to be played again
                row.status, row.error = "infra_error", faults[0]
            run.append(row)
            if progress is not None:
                progress(row)

    try:
        async with asyncio.TaskGroup() as group:
            for key in run.missing(keys):
                group.create_task(one(key))
    except BaseExceptionGroup as errors:
        raise innermost(errors) from errors
    wanted = set(keys)
    return [row for row in run.load() if row.key in wanted]
