"""The loop: ask the model, run what it calls, show it the observation, until it answers.

The history the loop builds is the trajectory and, later, the training example; nothing is rewritten.
Every way to end has its own status: finished, exhausted (a budget ran out), context_overflow, parse_failed,
and infra_error for faults that are not the model's. None of them is scored as another.
"""

from __future__ import annotations

import json
import time
import traceback
from dataclasses import dataclass
from typing import Any

from hypertool.errors import HyperToolError, nearest
from hypertool.interface import Toolbox
from hypertool.model import Completion, ContextOverflow, Message, Model
from hypertool.prompts import (
    TokenCount,
    completion_text,
    exposed_tools,
    render_chat,
    system_prompt,
    user_prompt,
)
from hypertool.tasks import Task
from hypertool.trajectory import OuterCall, Trajectory, Turn, extract_answer

PARSE_RETRIES = 2
UNREADABLE = (
    "Error: the tool call could not be read as JSON. "
    'Send <tool_call>{"name": ..., "arguments": {...}}</tool_call> again.'
)


@dataclass(frozen=True)
class Budget:
    """When an episode is stopped by force. The paper: 50 outer calls, 128k tokens of context (its §4)."""

    max_turns: int = 60
    max_outer_calls: int = 50
    max_inner_calls: int = 500
    context_tokens: int = 131_072
    observation_chars: int = 65_536


async def run_episode(
    task: Task,
    arm: str,
    model: Model,
    toolbox: Toolbox,
    budget: Budget,
    count: TokenCount,
    *,
    name: str,
    trial: int = 0,
) -> Trajectory:
    """Play one task in one arm. `count` gives Qwen3 tokens of a text; `name` is how results call the model.

    Never raises for the model's or the infrastructure's faults: the trajectory carries them.
    """
    tools = exposed_tools(arm, toolbox.specs)
    trajectory = Trajectory(
        task_id=task.task_id,
        arm=arm,
        model=name,
        trial=trial,
        world=task.world,
        template=task.template,
        split=task.split,
        messages=[
            {"role": "system", "content": system_prompt(arm, toolbox.specs)},
            {"role": "user", "content": user_prompt(task.question, task.output_format)},
        ],
        tools=json.dumps(tools, ensure_ascii=False),
    )
    started = time.perf_counter()
    try:
        await _loop(trajectory, tools, model, toolbox, budget, count)
    except ContextOverflow as error:
        trajectory.status, trajectory.error = "context_overflow", str(error)
    except HyperToolError as error:
        trajectory.status, trajectory.error = "infra_error", f"{type(error).__name__}: {error}"
    except Exception:
        trajectory.status, trajectory.error = "infra_error", traceback.format_exc(limit=-6)
    trajectory.seconds = round(time.perf_counter() - started, 4)
    return trajectory


async def _loop(
    trajectory: Trajectory,
    tools: list[dict[str, Any]],
    model: Model,
    toolbox: Toolbox,
    budget: Budget,
    count: TokenCount,
) -> None:
    messages = trajectory.messages
    names = [tool["function"]["name"] for tool in tools]
    outer = inner = unreadable = 0
    while True:
        if len(trajectory.turns) >= budget.max_turns or outer >= budget.max_outer_calls:
            trajectory.status = "exhausted"
            return
        prompt_tokens = count(render_chat(messages, tools, add_generation_prompt=True))
        if prompt_tokens >= budget.context_tokens:
            trajectory.status = "context_overflow"
            trajectory.error = f"prompt of {prompt_tokens} tokens, limit {budget.context_tokens}"
            return
        started = time.perf_counter()
        completion = await model.complete(messages, tools)
        messages.append(completion.message)
        calls: list[OuterCall] = []
        for request in completion.message.get("tool_calls", []):
            call = await _run(request, names, toolbox, budget)
            calls.append(call)
            messages.append({"role": "tool", "tool_call_id": request["id"], "content": call.observation})
        trajectory.turns.append(
            Turn(
                prompt_tokens=prompt_tokens,
                completion_tokens=count(completion_text(completion.message)),
                seconds=round(time.perf_counter() - started, 4),
                parse=completion.parse,
                calls=tuple(calls),
            )
        )
        outer += len(calls)
        inner += sum(len(call.inner) for call in calls)
        if inner >= budget.max_inner_calls:
            trajectory.status = "exhausted"
            return
        if completion.parse == "failed":
            unreadable += 1
            if unreadable > PARSE_RETRIES:
                trajectory.status = "parse_failed"
                return
            messages.append({"role": "user", "content": UNREADABLE})
        elif not calls:
            _finish(trajectory, completion)
            return


async def _run(request: Message, names: list[str], toolbox: Toolbox, budget: Budget) -> OuterCall:
    name, arguments = request["function"]["name"], json.loads(request["function"]["arguments"])
    if name not in names:
        text = f"Error: unknown tool {name!r}. {nearest(name, names)}Tools: {', '.join(names)}."
        return OuterCall(name, arguments, text, ok=False, error_kind="unknown_tool")
    return await toolbox.run(name, arguments, budget.observation_chars)


def _finish(trajectory: Trajectory, completion: Completion) -> None:
    trajectory.status = "finished"
    trajectory.answer = extract_answer(completion.message["content"])
