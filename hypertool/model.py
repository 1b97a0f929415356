"""What answers: any OpenAI-compatible chat endpoint, or a scripted expert that plays the same part.

Both give a `Completion`: one assistant message plus how it was read. A tool call the server could not parse
gets a second chance here, and is counted as repaired or failed, never taken for a decision to answer.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from openai import APIError, APIStatusError, AsyncOpenAI

from hypertool.errors import ModelError

Message = dict[str, Any]
Parse = Literal["clean", "repaired", "failed"]

CALL_OPEN, CALL_CLOSE = "<tool_call>", "</tool_call>"


class ContextOverflow(ModelError):
    """The prompt does not fit the model's context. Ends an episode; it is not an infrastructure failure."""


@dataclass(frozen=True)
class Completion:
    """`message` is ready to be appended to the chat; `parse` says how its tool calls were read."""

    message: Message
    parse: Parse = "clean"


class Model(Protocol):
    """One episode's partner."""

    async def complete(self, messages: list[Message], tools: list[dict[str, Any]]) -> Completion: ...


class ScriptedModel:
    """Plays an expert: a generator that yields assistant messages and is sent observation texts.

    One instance per episode. The expert sees exactly the tool messages a model would see.
    """

    def __init__(self, expert: Generator[Message, list[str], None]) -> None:
        self._expert = expert
        self._begun = False

    async def complete(self, messages: list[Message], tools: list[dict[str, Any]]) -> Completion:
        """The expert's next message. Raises ModelError if the script has ended."""
        observations: list[str] = []
        for message in reversed(messages):
            if message["role"] != "tool":
                break
            observations.insert(0, message["content"])
        try:
            reply = self._expert.send(observations) if self._begun else next(self._expert)
        except StopIteration:
            raise ModelError("the scripted expert ended without an answer") from None
        self._begun = True
        return Completion(reply)


class EndpointModel:
    """A chat-completions endpoint. Thread of no state: one instance serves any number of episodes."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        max_tokens: int,
        temperature: float,
        seed: int,
        timeout_s: float,
        api_key: str = "none",
    ) -> None:
        self._client = AsyncOpenAI(base_url=base_url, api_key=api_key, timeout=timeout_s, max_retries=3)
        self._model = model
        self._options: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed}

    async def complete(self, messages: list[Message], tools: list[dict[str, Any]]) -> Completion:
        """Raises ContextOverflow, or ModelError for anything else the endpoint refuses."""
        try:
            reply = await self._client.chat.completions.create(
                model=self._model,
                messages=messages,  # type: ignore[arg-type]
                tools=tools,  # type: ignore[arg-type]
                **self._options,
            )
        except APIStatusError as error:
            text = str(error)
            if error.status_code == 400 and ("context" in text or "max_tokens" in text):
                raise ContextOverflow(text[:500]) from error
            raise ModelError(f"the endpoint answered {error.status_code}: {text[:500]}") from error
        except APIError as error:
            raise ModelError(f"the endpoint failed: {type(error).__name__}: {error}") from error
        message = reply.choices[0].message
        calls = [
            (call.function.name, call.function.arguments)
            for call in message.tool_calls or []
            if call.type == "function"
        ]
        return read_completion(message.content or "", calls)

    async def first_model(self) -> str:
        """The name of the first model served. Raises ModelError if the endpoint is unreachable."""
        try:
            page = await self._client.models.list()
        except APIError as error:
            raise ModelError(
                f"no model endpoint at {self._client.base_url}: {type(error).__name__}; start one: make serve MODEL=..."
            ) from error
        return page.data[0].id

    async def close(self) -> None:
        await self._client.close()


def read_completion(content: str, calls: list[tuple[str, str]]) -> Completion:
    """Turn raw text and parsed calls into a message; re-encode arguments so that history stays valid JSON."""
    parse: Parse = "clean"
    if calls:
        decoded = [(name, decode_arguments(arguments)) for name, arguments in calls]
        if any(arguments is None for _, arguments in decoded):
            return Completion({"role": "assistant", "content": content.strip()}, "failed")
        good = [(name, arguments) for name, arguments in decoded if arguments is not None]
    elif CALL_OPEN in content:
        content, good, parse = second_chance(content)
    else:
        return Completion({"role": "assistant", "content": content.strip()})
    message: Message = {"role": "assistant", "content": content.strip()}
    if good:
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
            }
            for number, (name, arguments) in enumerate(good)
        ]
    return Completion(message, parse)


def decode_arguments(arguments: str) -> dict[str, Any] | None:
    """Arguments as an object, also when encoded twice; None if they are not an object."""
    value: Any = arguments
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = json.loads(value or "{}", strict=False)
            except ValueError:
                return None
    return value if isinstance(value, dict) else None


def second_chance(text: str) -> tuple[str, list[tuple[str, dict[str, Any]]], Parse]:
    """Read tool calls the server gave up on: raw newlines, stray braces, a closing tag inside the code.

    Returns (text before the calls, calls, "repaired" or "failed"). A cut or broken call is not guessed at.
    """
    body = text.rsplit("</think>", 1)[-1]
    before, *parts = body.split(CALL_OPEN)
    decoder = json.JSONDecoder(strict=False)
    calls: list[tuple[str, dict[str, Any]]] = []
    for part in _rejoin(parts):
        start = part.find("{")
        if start < 0:
            return text, [], "failed"
        try:
            value, _ = decoder.raw_decode(part, start)
        except ValueError:
            return text, [], "failed"
        arguments = value.get("arguments")
        if isinstance(arguments, str):
            arguments = decode_arguments(arguments)
        if not isinstance(value.get("name"), str) or not isinstance(arguments, dict):
            return text, [], "failed"
        calls.append((value["name"], arguments))
    return before, calls, "repaired"


def _rejoin(parts: list[str]) -> list[str]:
    """Parts that were split at an opening tag inside a string belong to the part before them."""
    whole: list[str] = []
    for part in parts:
        if whole and not part.lstrip().startswith("{"):
            whole[-1] += CALL_OPEN + part
        else:
            whole.append(part)
    return whole
