"""Who lets a tool call happen: reads run, writes ask, irreversible calls need approval by name.

A policy looks only at a tool's side-effect class (`ToolSpec.effect`, the server's own annotation) and at what
the user said beforehand. What is left goes to `ask`: MCP elicitation in `hypertool serve`, any callback in the
library, nobody in batch runs. A refused call is an ordinary tool failure that says how to allow it.

    approval = Approval.parse(["write", "git.git_reset"])
    approval = Approval("read", ask=my_callback)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from hypertool.errors import ConfigError, ToolRefused, nearest
from hypertool.tools import Effect, Params, ToolSpec

Level = Literal["read", "write", "all"]
"""The strongest effect that runs without asking; `all` includes irreversible calls."""

LEVELS: tuple[Level, ...] = get_args(Level)
_RUNS: dict[Level, tuple[Effect, ...]] = {
    "read": ("read",),
    "write": ("read", "write"),
    "all": ("read", "write", "irreversible"),
}


@dataclass(frozen=True)
class ApprovalRequest:
    """One call that waits for a decision."""

    spec: ToolSpec
    params: Params

    @property
    def name(self) -> str:
        return f"{self.spec.server}.{self.spec.name}"


Ask = Callable[[ApprovalRequest], Awaitable[bool | str]]
"""The decision: True approves a write; an irreversible call is approved only by its own name, `server.tool`."""


@dataclass(frozen=True)
class Approval:
    """What runs without asking, and whom to ask about the rest."""

    level: Level = "write"
    named: frozenset[str] = frozenset()
    """Tools approved beforehand by name, as `server.tool`, whatever their effect."""
    ask: Ask | None = None

    @classmethod
    def parse(cls, words: Iterable[str], ask: Ask | None = None) -> Approval:
        """From command-line words: at most one level and any number of `server.tool`. Raises ConfigError."""
        levels = [word for word in words if "." not in word]
        for word in levels:
            if word not in LEVELS:
                raise ConfigError(
                    f"unknown approval {word!r}. {nearest(word, LEVELS)}"
                    f"Give {', '.join(LEVELS)}, or the name of one tool as server.tool."
                )
        if len(set(levels)) > 1:
            raise ConfigError(f"two approval levels, {' and '.join(levels)}; give one")
        level = next((known for known in LEVELS if known in levels), cls.level)
        return cls(level, frozenset(word for word in words if "." in word), ask)

    async def check(self, spec: ToolSpec, params: Params) -> None:
        """Return if the call may happen. Raises ToolRefused, whose text the model reads."""
        request = ApprovalRequest(spec, params)
        if spec.effect in _RUNS[self.level] or request.name in self.named:
            return
        if self.ask is not None:
            said = await self.ask(request)
            if said == request.name or (said is True and spec.effect == "write"):
                return
            raise ToolRefused(f"{request.name} was not run: {_does(spec)}, and it was not approved.")
        wider = "all" if spec.effect == "irreversible" else "write"
        raise ToolRefused(
            f"{request.name} was not run: {_does(spec)}, and this run approves only {self.level} calls. "
            f"To allow it: --approve {request.name}, or --approve {wider}."
        )


def _does(spec: ToolSpec) -> str:
    return "its effect cannot be undone" if spec.effect == "irreversible" else "it may change something"
