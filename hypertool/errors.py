"""Who should act: five errors, one value that goes to the model, and the boundary that assigns blame.

    ConfigError   you: a config, a flag or a file is wrong
    ServerError   an MCP server: it did not start, died or hangs
    SandboxError  our machinery: the jail could not run the block
    ModelError    the model endpoint: unreachable, refused, or out of its own limits
    ToolCallError a tool said no; inside a block it becomes a catchable `ToolError`
                  (subclasses: BadArguments, ToolTimeout, ToolRefused)

A fault of the model's own code is not an exception: it is a `BlockError` value inside an observation.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal


class HyperToolError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(HyperToolError):
    """The user has to change a config, a flag or a file; the message names the change."""


class ServerError(HyperToolError):
    """An MCP server could not be started, died, or stopped answering. Counted as infrastructure."""


class SandboxError(HyperToolError):
    """Our own machinery failed to run a block. Counted as infrastructure, never as the model's fault."""


class ExecutorUnavailable(SandboxError):
    """No isolation can be had on this machine; the message says what to install."""


class ModelError(HyperToolError):
    """The model endpoint failed. Counted as infrastructure, apart from wrong answers."""


CallFailure = Literal["arguments", "tool", "timeout", "refused", "server", "unfinished"]
"""Why one tool call gave no value: our check of its arguments, the tool itself, its clock, nobody's approval, a
server fault (infrastructure), or the end of the block."""


class ToolCallError(HyperToolError):
    """A tool call failed in a way the caller can react to: the server's own text, or one of the kinds below."""

    failure: CallFailure = "tool"


class BadArguments(ToolCallError):
    """The call names no known tool, or its arguments do not fit the schema. The server never saw it."""

    failure = "arguments"


class ToolTimeout(ToolCallError):
    """The tool did not answer in time; whether the call took effect is unknown."""

    failure = "timeout"


class ToolRefused(ToolCallError):
    """A tool call was not made because nobody approved it. The server never saw it."""

    failure = "refused"


BlockErrorKind = Literal[
    "syntax",
    "no_result",
    "unsupported",
    "tool",
    "runtime",
    "result_type",
    "result_too_large",
    "cpu_limit",
    "memory_limit",
    "wall_limit",
    "call_limit",
    "message_too_large",
    "crashed",
]


@dataclass(frozen=True)
class BlockError:
    """Why a block has no result. Goes to the model as an observation; never raised.

    `frames` are (line, function, source) of the block's own lines, outermost first.
    """

    kind: BlockErrorKind
    type: str  # exception class for tool and runtime faults, else a CamelCase form of the kind
    message: str
    line: int | None = None
    source: str | None = None
    frames: tuple[tuple[int, str, str], ...] = ()


def nearest(name: str, valid: Iterable[str]) -> str:
    """A `Did you mean 'x'? ` hint (with trailing space), or an empty string when nothing is close."""
    close = difflib.get_close_matches(name, list(valid), n=1, cutoff=0.5)
    return f"Did you mean {close[0]!r}? " if close else ""


def innermost(error: BaseException) -> BaseException:
    """The first leaf of nested ExceptionGroups: anyio wraps causes, and a group's own text says nothing."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@contextmanager
def boundary(blame: type[HyperToolError], what: str) -> Iterator[None]:
    """Re-raise any foreign exception as `blame`, prefixed by `what`; our own errors pass unchanged."""
    try:
        yield
    except HyperToolError:
        raise
    except Exception as error:
        cause = innermost(error)
        if isinstance(cause, HyperToolError):
            raise cause from error
        raise blame(f"{what}: {type(cause).__name__}: {cause}") from error
