"""The loop over real parts: echo servers, the jail, scripted partners. Every way to end has its own status."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import Live

from hypertool import metrics, prompts, trajectory
from hypertool.agent import Budget, run_episode
from hypertool.errors import ConfigError
from hypertool.interface import Toolbox
from hypertool.model import EndpointModel, Model, ScriptedModel
from hypertool.rollout import play, task_specs
from hypertool.runs import Run, provenance
from hypertool.sandbox import Limits
from hypertool.tasks import Task
from hypertool.trajectory import Trajectory
from hypertool.verify import reject_reason

Message = dict[str, Any]
TASK = Task.from_dict(
    {
        "task_id": "t1",
        "question": "How many rows?",
        "output_format": {"n": "[NUMBER]"},
        "mcp_servers": [{"name": "echo", "tools": ["typed", "fail", "echo", "big"]}],
        "evaluators": [{"func": "json"}, {"func": "json -> get(n)", "op": "=", "value": 3}],
    }
)
BLOCK = 'rows = call_tool("echo", "typed", {"rows": 3})["result"]["rows"]\nresult = {"n": len(rows)}\n'


def turn(name: str, arguments: Message) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": "So.",
        "tool_calls": [{"id": "call_0", "type": "function", "function": function}],
    }


def say(text: str) -> Message:
    return {"role": "assistant", "content": text}


def count(text: str) -> int:
    return len(text.split())


def episode(live: Live, arm: str, model: Model, budget: Budget | None = None) -> Trajectory:
    pool, executor = live.parts
    toolbox = Toolbox(pool, executor, task_specs(TASK, pool.specs()), Limits(wall_s=20))
    return live.run(run_episode(TASK, arm, model, toolbox, budget or Budget(), count, name="m"))


def script(*messages: Message) -> ScriptedModel:
    def expert() -> Generator[Message, list[str], None]:
        for message in messages:  # noqa: UP028  (a tuple cannot be sent observations)
            yield message

    return ScriptedModel(expert())


def solver(arm: str) -> Generator[Message, list[str], None]:
    if arm == "hypertool":
        (text,) = yield turn("hypertool", {"code": BLOCK})
        value = json.loads(text)["result"]
    else:
        (text,) = yield turn("echo__typed", {"rows": 3})
        value = {"n": len(json.loads(text)["rows"])}
    yield say(f"Done.\n<answer>{json.dumps(value)}</answer>")


@pytest.mark.parametrize("arm", prompts.ARMS)
def test_an_expert_solves_the_task_in_each_arm(live: Live, arm: str) -> None:
    row = episode(live, arm, ScriptedModel(solver(arm)))
    assert (row.status, row.answer) == ("finished", '{"n": 3}')
    assert metrics.outer_calls(row) == metrics.inner_calls(row) == 1
    (call,) = row.turns[0].calls
    assert call.inner[0].params == {"rows": 3}
    assert [message["role"] for message in row.messages] == ["system", "user", "assistant", "tool", "assistant"]
    rendered = [
        prompts.render_chat(row.messages[:end], json.loads(row.tools), add_generation_prompt=True) for end in (2, 4)
    ]
    assert [t.prompt_tokens for t in row.turns] == [count(text) for text in rendered]


def test_mistakes_become_observations_and_the_episode_goes_on(live: Live) -> None:
    row = episode(
        live,
        "hypertool",
        script(
            turn("hypertool", {"code": 'result = call_tool("echo", "fail", {"reason": "no row 7"})'}),
            turn("hypertool", {"code": "result = (1"}),
            turn("hypertool", {"cod": "result = 1"}),
            turn("echo__typed", {"rows": 3}),
            turn("hypertool", {"code": 'result = call_tool("other", "echo", {"text": "x"})'}),
            say('<answer>{"n": 3}</answer>'),
        ),
    )
    calls = [call for turn_ in row.turns for call in turn_.calls]
    assert [call.error_kind for call in calls] == ["tool", "syntax", "arguments", "unknown_tool", "tool"]
    observations = [call.observation for call in calls]
    assert "no row 7" in observations[0]
    assert json.loads(observations[1])["error"]["line"] == 1
    assert "takes one argument, code" in observations[2]
    assert "unknown tool 'echo__typed'" in observations[3]
    assert "unknown server 'other'" in observations[4]
    assert row.status == "finished"
    assert reject_reason(row) == "unresolved_failure"


def test_an_atomic_failure_shows_the_servers_text(live: Live) -> None:
    row = episode(live, "react", script(turn("echo__fail", {"reason": "closed"}), say("<answer>{}</answer>")))
    (call,) = row.turns[0].calls
    assert not call.ok
    assert "closed" in call.observation
    assert row.messages[3]["content"] == call.observation


def test_long_observations_are_cut_with_a_mark(live: Live) -> None:
    row = episode(live, "react", script(turn("echo__big", {"megabytes": 1}), say("<answer>{}</answer>")))
    (call,) = row.turns[0].calls
    assert call.observation.endswith("[... cut: 65536 of 1000000 characters shown]")
    assert call.inner[0].bytes > 1_000_000


def test_budgets_end_an_episode_by_their_own_names(live: Live) -> None:
    again = [turn("echo__echo", {"text": "x"})] * 9
    assert episode(live, "react", script(*again), Budget(max_turns=3)).status == "exhausted"
    assert episode(live, "react", script(*again), Budget(max_outer_calls=2)).status == "exhausted"
    assert episode(live, "react", script(*again), Budget(max_inner_calls=2)).status == "exhausted"
    row = episode(live, "react", script(*again), Budget(context_tokens=120))
    assert row.status == "context_overflow"


def test_no_answer_tag_is_no_answer(live: Live) -> None:
    row = episode(live, "react", script(say("It is 3.")))
    assert (row.status, row.answer) == ("finished", None)


@pytest.fixture
def endpoint() -> Iterator[Callable[[int, Message], str]]:
    """A stand-in endpoint that answers every request with one status and body."""
    servers: list[HTTPServer] = []

    def start(status: int, body: Message) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/v1"

    yield start
    for server in servers:
        server.shutdown()


def ask(url: str) -> EndpointModel:
    return EndpointModel(url, "m", max_tokens=10, temperature=0.0, seed=0, timeout_s=5)


def reply(content: str) -> Message:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


def test_an_unreadable_call_is_counted_and_never_an_answer(live: Live, endpoint: Callable[[int, Message], str]) -> None:
    broken = '<tool_call>\n{"name": "hypertool", "arguments": {"code": "print("hi")"}}\n</tool_call>'
    row = episode(live, "hypertool", ask(endpoint(200, reply(broken))))
    assert row.status == "parse_failed"
    assert [turn_.parse for turn_ in row.turns] == ["failed"] * 3
    assert row.answer is None


def test_endpoint_failures_have_their_own_outcomes(live: Live, endpoint: Callable[[int, Message], str]) -> None:
    refused = {"error": {"message": "This model's maximum context length is 10 tokens"}}
    assert episode(live, "react", ask(endpoint(400, refused))).status == "context_overflow"
    row = episode(live, "react", ask(endpoint(422, {"error": {"message": "bad request"}})))
    assert row.status == "infra_error"
    assert "422" in (row.error or "")
    row = episode(live, "react", ask("http://127.0.0.1:9/v1"))
    assert row.status == "infra_error"


def test_a_run_resumes_and_plays_only_what_is_missing(live: Live, tmp_path: Path) -> None:
    tasks = [Task.from_dict({**TASK.raw, "task_id": f"t{number}"}) for number in range(4)]
    played: list[str] = []

    def model_for(task: Task, arm: str) -> Model:
        played.append(task.task_id)
        return ScriptedModel(solver(arm)) if len(played) != 2 else script()

    async def once() -> tuple[Run, list[Trajectory]]:
        run = Run.open(tmp_path / "results", "hypertool", 0, {"arm": "hypertool"}, provenance(tmp_path))
        options: dict[str, Any] = {
            "name": "m",
            "count": count,
            "budget": Budget(),
            "limits": Limits(),
            "concurrency": 1,
        }
        return run, await play(run, tasks, "hypertool", model_for, live.parts, **options)

    run, rows = live.run(once())
    assert [row.status for row in rows] == ["finished", "infra_error", "finished", "finished"]
    assert played == ["t0", "t1", "t2", "t3"]
    again, rows = live.run(once())
    assert again.folder == run.folder
    assert played[4:] == ["t1"]
    assert [row.passed for row in rows] == [True] * 4
    values = again.finish()
    assert (values["n"], values["passed"], values["infra_errors"]) == (4, 4, 0)
    assert (
        Run.open(tmp_path / "results", "hypertool", 0, {"arm": "hypertool"}, provenance(tmp_path)).folder != run.folder
    )


def test_a_task_that_needs_an_absent_tool_is_refused_before_it_is_played() -> None:
    with pytest.raises(ConfigError, match="'t1' needs a tool that is not there"):
        task_specs(TASK, [])


def test_a_server_that_dies_makes_the_episode_infrastructure_not_failure(live: Live, tmp_path: Path) -> None:
    row = {**TASK.raw, "mcp_servers": [{"name": "echo"}]}
    code = 'try:\n    call_tool("echo", "die", {})\nexcept ToolError as error:\n    result = str(error)'
    turns = {"hypertool": turn("hypertool", {"code": code}), "react": turn("echo__die", {})}
    options: dict[str, Any] = {"name": "m", "count": count, "budget": Budget(), "limits": Limits()}
    for arm, first in turns.items():
        run = Run.open(tmp_path, arm, 0, {"arm": arm}, provenance(tmp_path))
        model = script(first, say('<answer>{"n": 0}</answer>'))
        tasks = [Task.from_dict(row)]
        (episode_,) = live.run(play(run, tasks, arm, lambda _task, _arm, m=model: m, live.parts, **options))  # type: ignore[misc]
        assert episode_.status == "infra_error"
        assert "died during die" in (episode_.error or "")
        assert list(trajectory.read(run.trajectories_path)) == [episode_]
        assert run.finish()["n"] == 0
