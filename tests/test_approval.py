"""Which calls run, which ask, which are refused; and what one Toolbox remembers of failures and odd arguments."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import Live

from hypertool.approval import Approval, ApprovalRequest, Ask
from hypertool.errors import ConfigError
from hypertool.interface import Toolbox
from hypertool.sandbox import Limits
from hypertool.trajectory import OuterCall

ERASE = 'result = call_tool("echo", "erase", {"what": "x"})["result"]'
ECHO = 'result = call_tool("echo", "echo", {"text": "x"})["result"]'
READ = 'result = call_tool("echo", "die_once", {"marker": "/"})["result"]'


def toolbox(live: Live, approval: Approval | None = None) -> Toolbox:
    pool, executor = live.parts
    return Toolbox(pool, executor, pool.specs(["echo"]), Limits(), approval=approval)


def observe(live: Live, box: Toolbox, code: str) -> tuple[OuterCall, dict[str, Any]]:
    call = live.run(box.run("hypertool", {"code": code}, 10_000))
    return call, json.loads(call.observation)


def answering(answer: bool | str, asked: list[str]) -> Ask:
    async def ask(request: ApprovalRequest) -> bool | str:
        asked.append(request.name)
        return answer

    return ask


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (["read"], [True, False, False]),
        ([], [True, True, False]),
        (["write"], [True, True, False]),
        (["read", "echo.erase"], [True, False, True]),
        (["all"], [True, True, True]),
    ],
)
def test_what_runs_without_asking(live: Live, words: list[str], runs: list[bool]) -> None:
    box = toolbox(live, Approval.parse(words))
    assert [observe(live, box, code)[1]["status"] for code in (READ, ECHO, ERASE)] == runs


def test_a_refusal_is_recorded_as_one_and_says_how_to_allow_it(live: Live) -> None:
    call, told = observe(live, toolbox(live, Approval("read")), ECHO)
    assert told["error"]["kind"] == "tool"
    assert "--approve echo.echo, or --approve write" in told["error"]["message"]
    assert [(inner.ok, inner.failure) for inner in call.inner] == [(False, "refused")]


def test_an_irreversible_call_is_approved_only_by_its_name(live: Live) -> None:
    asked: list[str] = []
    for answer, runs in ((True, False), (False, False), ("echo.echo", False), ("echo.erase", True)):
        box = toolbox(live, Approval("read", ask=answering(answer, asked)))
        assert observe(live, box, ERASE)[1]["status"] is runs, answer
    box = toolbox(live, Approval("read", ask=answering(True, asked)))
    assert observe(live, box, ECHO)[1] == {"status": True, "result": "x"}
    assert asked == ["echo.erase"] * 4 + ["echo.echo"]


def test_nobody_is_asked_about_a_call_that_cannot_be_made(live: Live) -> None:
    asked: list[str] = []
    call, told = observe(
        live,
        toolbox(live, Approval("read", ask=answering(True, asked))),
        'result = call_tool("echo", "erase", {})',
    )
    assert "missing required parameter 'what'" in told["error"]["message"]
    assert call.inner[0].failure == "arguments"
    assert asked == []


def test_atomic_calls_obey_the_same_policy(live: Live) -> None:
    call = live.run(toolbox(live).run("echo__erase", {"what": "x"}, 1000))
    assert call.ok  # without a policy everything runs: throw-away worlds
    call = live.run(toolbox(live, Approval("write")).run("echo__erase", {"what": "x"}, 1000))
    assert (call.ok, call.inner[0].failure) == (False, "refused")


@pytest.mark.parametrize("words", [["wirte"], ["read", "all"]])
def test_bad_approvals_are_named(words: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"Did you mean 'write'|two approval levels"):
        Approval.parse(words)


def test_the_same_failure_again_is_counted(live: Live) -> None:
    box = toolbox(live)
    code = 'result = call_tool("echo", "fail", {"reason": "closed"})'
    seen = [observe(live, box, code)[1]["error"].get("repeats", 0) for _ in range(3)]
    assert seen == [0, 1, 2]
    assert "repeats" not in observe(live, box, code.replace("closed", "open"))[1]["error"]
    calls = [live.run(box.run("echo__fail", {"reason": "closed"}, 1000)) for _ in range(2)]
    assert [call.repeats for call in calls] == [0, 1]


def test_an_undeclared_argument_is_passed_on_with_a_hint(live: Live) -> None:
    code = ECHO.replace('"x"}', '"x", "texte": 1}')
    call, told = observe(live, toolbox(live), code)
    assert told["status"] is True
    assert "no parameter 'texte' is declared" in told["hints"][0]
    assert "Did you mean 'text'?" in told["hints"][0]
    assert call.inner[0].ok
