"""Reading what a model wrote: clean, repaired or failed, and never a failure taken for an answer."""

from __future__ import annotations

import json

import pytest

from hypertool.model import decode_arguments, read_completion

CODE = "for t in ['A', 'B']:\n    r = call_tool('fin', 'get', {'t': t})\n"


def wrapped(body: str) -> str:
    return f"Plan.\n<tool_call>\n{body}\n</tool_call>"


def body(code: str) -> str:
    return json.dumps({"name": "hypertool", "arguments": {"code": code}})


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (wrapped(body(CODE)), [CODE]),
        (wrapped('{"name": "hypertool", "arguments": {"code": "x = 1\nprint(x)"}}'), ["x = 1\nprint(x)"]),
        (wrapped(body("s='</tool_call>'\nprint(s)")), ["s='</tool_call>'\nprint(s)"]),
        (wrapped(body("s='<tool_call>'\nprint(s)")), ["s='<tool_call>'\nprint(s)"]),
        (wrapped(body("print(1)") + "}"), ["print(1)"]),
        (wrapped("```json\n" + body("print(1)") + "\n```"), ["print(1)"]),
        ("<tool_call>\n" + body("print(1)"), ["print(1)"]),
        (wrapped('{"name": "hypertool", "arguments": "{\\"code\\": \\"print(1)\\"}"}'), ["print(1)"]),
        (wrapped(body("a")) + "\n" + wrapped(body("b")), ["a", "b"]),
        (
            "<think>\nI might <tool_call>" + body("bad") + "</tool_call>\n</think>\n" + wrapped(body("good")),
            ["good"],
        ),
    ],
)
def test_what_can_be_read_is_repaired_and_counted(text: str, codes: list[str]) -> None:
    completion = read_completion(text, [])
    assert completion.parse == "repaired"
    calls = completion.message["tool_calls"]
    assert [json.loads(call["function"]["arguments"])["code"] for call in calls] == codes


@pytest.mark.parametrize(
    "text",
    [
        wrapped('{"name": "hypertool", "arguments": {"code": "print("hi")"}}'),
        wrapped('{"name": "hypertool", "arguments": {"code": """print(1)"""}}'),
        wrapped('{"arguments": {"code": "print(1)"}}'),
        "<tool_call>\n" + body("print(1)\nfor i in range(3):")[:60],
        wrapped("nothing"),
    ],
)
def test_what_cannot_be_read_is_a_failure_not_an_answer(text: str) -> None:
    completion = read_completion(text, [])
    assert completion.parse == "failed"
    assert "tool_calls" not in completion.message


def test_text_without_a_call_is_an_answer() -> None:
    completion = read_completion("  <answer>1</answer>\n", [])
    assert (completion.parse, completion.message) == (
        "clean",
        {"role": "assistant", "content": "<answer>1</answer>"},
    )


def test_calls_the_server_parsed_are_reencoded_so_that_history_stays_valid() -> None:
    completion = read_completion("Plan.\n", [("hypertool", json.dumps(json.dumps({"code": "é"})))])
    assert completion.parse == "clean"
    assert completion.message["content"] == "Plan."
    assert completion.message["tool_calls"][0]["function"]["arguments"] == '{"code": "é"}'
    assert read_completion("", [("hypertool", '{"code": "')]).parse == "failed"


def test_arguments_that_are_no_object_are_refused() -> None:
    assert decode_arguments("[1]") is None
    assert decode_arguments("") == {}
