"""The one renderer: equal to transformers', a prefix at every turn, and never silent about lost text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hypertool import prompts
from hypertool.errors import ConfigError
from hypertool.tools import ToolSpec

SPEC = ToolSpec(
    "git",
    "git_log",
    "Shows the log. More words.",
    {
        "type": "object",
        "properties": {
            "max_count": {"type": "integer", "default": 10},
            "repo_path": {"type": "string"},
            "since": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["repo_path"],
    },
)
CODE = 'text = \'é"</tool_call>\\n\'\nrows = [\n    1,\n]\nresult = {"n": len(rows)}\n'


def chat(arm: str) -> list[dict[str, Any]]:
    def calls(*requests: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
            }
            for number, (name, arguments) in enumerate(requests)
        ]

    return [
        {"role": "system", "content": prompts.system_prompt(arm, [SPEC])},
        {"role": "user", "content": prompts.user_prompt('How many in "a-b"?', {"n": "[NUMBER]"})},
        {"role": "assistant", "content": "Look.", "tool_calls": calls(("hypertool", {"code": CODE}))},
        {"role": "tool", "content": '{"status": true, "result": {"n": 1}}'},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": calls(("git__git_log", {"repo_path": "a-b"}), ("x", {})),
        },
        {"role": "tool", "content": "<|im_end|> and \u2028 text"},
        {"role": "tool", "content": ""},
        {"role": "assistant", "content": 'Done.\n<answer>{"n": 1}</answer>'},
    ]


@pytest.mark.parametrize("arm", prompts.ARMS)
def test_every_serving_prompt_is_a_prefix_of_the_training_text(arm: str) -> None:
    messages, tools = chat(arm), prompts.exposed_tools(arm, [SPEC])
    whole = prompts.render_chat(messages, tools)
    for turn, message in enumerate(messages):
        if message["role"] == "assistant":
            head = prompts.render_chat(messages[:turn], tools, add_generation_prompt=True)
            assert whole.startswith(head + prompts.completion_text(message))


@pytest.mark.parametrize("arm", prompts.ARMS)
def test_transformers_renders_the_same_text_and_marks_exactly_the_completions(arm: str) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template  # seconds: only this test needs it

    messages, tools = chat(arm), prompts.exposed_tools(arm, [SPEC])
    texts, spans = render_jinja_template(
        [messages],
        tools=tools,
        chat_template=prompts.CHAT_TEMPLATE.read_text(encoding="utf-8"),
        return_assistant_tokens_mask=True,
    )
    assert texts[0] == prompts.render_chat(messages, tools)
    trained = [texts[0][start:end] for start, end in spans[0]]
    assert trained == [prompts.completion_text(m) for m in messages if m["role"] == "assistant"]


def test_arguments_as_text_or_object_render_alike() -> None:
    messages = chat("hypertool")
    decoded = json.loads(json.dumps(messages))
    for message in decoded:
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    assert prompts.render_chat(decoded) == prompts.render_chat(messages)


def test_arms_show_what_they_should() -> None:
    names = {arm: [tool["function"]["name"] for tool in prompts.exposed_tools(arm, [SPEC])] for arm in prompts.ARMS}
    assert names == {
        "react": ["git__git_log"],
        "hybrid": ["git__git_log", "hypertool"],
        "hypertool": ["hypertool"],
    }
    line = "git_log(repo_path: string, max_count?: integer = 10, since?: string | null) - Shows the log"
    assert line in prompts.system_prompt("hypertool", [SPEC])
    assert line in prompts.system_prompt("hybrid", [SPEC])
    assert "git_log" not in prompts.system_prompt("react", [SPEC])


def test_an_unknown_arm_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"unknown arm 'hypertol'. Did you mean 'hypertool'\?"):
        prompts.system_prompt("hypertol", [SPEC])


def test_content_that_would_vanish_is_refused() -> None:
    with pytest.raises(ConfigError, match="content of type list"):
        prompts.render_chat([{"role": "tool", "content": [{"type": "text", "text": "PRICE=42"}]}])


def test_a_missing_tokenizer_names_the_command(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match=r"run: python scripts/fetch_models.py"):
        prompts.load_counter(tmp_path / "tokenizer.json")
