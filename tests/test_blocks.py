"""blocks.py: what is told before anything runs, how code is rewritten, and which kind of program a block is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hypertool.blocks import STOP, block_type, check, compiled, named_servers

LIMIT = 65_536


def run(code: str) -> Any:
    """What a block leaves in `result`, with tools that echo, in this process (our own code only)."""

    class Stop(BaseException):
        pass

    space: dict[str, Any] = {STOP: Stop, "call_tool": lambda *call: call, "call_tools": list}
    try:
        waiting = eval(compiled(code), space)
        if waiting is not None:
            asyncio.run(waiting)
    except Stop:
        pass
    return space["result"]


def test_syntax_error_has_cpythons_text_and_line() -> None:
    error = check("x = 1\nrows = json.loads(call_tool('fx', 'convert', p)\nresult = rows", LIMIT)
    assert error is not None
    assert (error.kind, error.type, error.message, error.line) == (
        "syntax",
        "SyntaxError",
        "'(' was never closed",
        2,
    )
    assert error.source == "rows = json.loads(call_tool('fx', 'convert', p)"


def test_errors_of_the_compiler_are_syntax_errors_too() -> None:
    error = check("result = 1\nbreak", LIMIT)
    assert error is not None
    assert (error.kind, error.line, error.source) == ("syntax", 2, "break")


@pytest.mark.parametrize(
    "code", ["x\0y", "x = '\ud800'", "-" * 60_000 + "1", "(" * 5_000, "result = " + "1+" * 30_000 + "1"]
)
def test_code_that_no_compiler_takes_is_an_error_and_no_crash(code: str) -> None:
    error = check(code, LIMIT)
    assert error is not None
    assert error.kind == "syntax"


def test_code_too_long() -> None:
    error = check("result = 1" + " " * 100, 50)
    assert error is not None
    assert error.kind == "message_too_large"
    assert "110 characters" in error.message


@pytest.mark.parametrize(
    "code",
    [
        "result = 1",
        "result: int = 1",
        "result += 1",
        "(a, (b, *result)) = x",
        "if x:\n    pass\nelse:\n    result = 2",
        "print(result := 5)",
        "[y := 1 for z in s if (result := z)]",
        "for result in x:\n    pass",
        "with x as result:\n    pass",
        "import json as result",
        "from x import result",
        "def result():\n    pass",
        "class result:\n    pass",
        "match x:\n    case {'a': result}:\n        pass",
        "def main():\n    global result\n    result = 1\nmain()",
        "globals()['result'] = 1",
        "return 5",
        "for x in y:\n    if x:\n        return x",
    ],
)
def test_every_way_to_bind_result_counts(code: str) -> None:
    assert check(code, LIMIT) is None


@pytest.mark.parametrize(
    "code",
    [
        "x = 1",
        "",
        "def f():\n    result = 1\nf()\nx = 2",
        "def f():\n    return 1\nx = f()",
        "x = [result for result in y]",
        "print(result)",
        "class A:\n    result = 1",
    ],
)
def test_a_block_without_result_is_refused_before_it_runs(code: str) -> None:
    error = check(code, LIMIT)
    assert error is not None
    assert error.kind == "no_result"
    assert "nothing was run" in error.message


def test_a_last_expression_is_offered_as_result() -> None:
    error = check("x = 1\nsorted(x)", LIMIT)
    assert error is not None
    assert error.message.endswith("Assign it: result = sorted(x)")
    error = check("print({'a': 1})", LIMIT)
    assert error is not None
    assert error.message.endswith("Assign it: result = {'a': 1}")


def test_a_local_result_is_explained() -> None:
    error = check("def main():\n    result = 1\nmain_value = main()", LIMIT)
    assert error is not None
    assert "local variable" in error.message


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "import json, subprocess",
        "from socket import socket",
        "from os import system",
        "import os.path, os",
    ],
)
def test_imports_that_lead_nowhere_are_refused_with_the_reason(line: str) -> None:
    error = check(f"x = 1\n{line}\nresult = 1", LIMIT)
    assert error is not None
    assert (error.kind, error.type, error.line) == ("runtime", "ImportError", 2)
    assert "use call_tool" in error.message


@pytest.mark.parametrize(
    "line",
    [
        "from os.path import splitext",
        "from os import path",
        "import os.path as p",
        "import os; os.path.join('a', 'b')",
        "import shutil",
        "import ctypes",
    ],
)
def test_other_imports_are_left_to_the_jail(line: str) -> None:
    assert check(f"{line}\nresult = 1", LIMIT) is None


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("result = await call_tool('a', 'b', {})", ("a", "b", {})),
        ("result = [await call_tool('a', i) for i in 'xy']", [("a", "x"), ("a", "y")]),
        ("result = await call_tools([1, 2])", [1, 2]),
        (
            "import asyncio\nasync def f():\n    return await call_tool('a', 'b')\nresult = asyncio.run(f())",
            ("a", "b"),
        ),
        ("import asyncio\nasync def f():\n    return 7\nresult = await f()", 7),
        ("return 5", 5),
        ("return", None),
        ("if True:\n    return 1\nresult = 2", 1),
        ("for i in range(9):\n    if i == 3:\n        return i\nresult = -1", 3),
        ("try:\n    return 1\nexcept:\n    return 2", 1),
        ("try:\n    return 1\nexcept BaseException as e:\n    result = 2\nfinally:\n    x = 3", 1),
        ("try:\n    1 / 0\nexcept Exception:\n    return 'caught'\nresult = 1", "caught"),
        ("def f():\n    return 4\nresult = f()", 4),
    ],
)
def test_top_level_await_and_return(code: str, value: Any) -> None:
    assert check(code, LIMIT) is None
    assert run(code) == value


def test_rewriting_keeps_line_numbers() -> None:
    code = "x = await call_tool('a', 'b')\nif x:\n    return (1 /\n        0)\n"
    with pytest.raises(ZeroDivisionError) as caught:
        run(code)
    assert caught.traceback[-1].lineno + 1 == 3


@pytest.mark.parametrize(
    ("code", "servers"),
    [
        ("result = call_tool('a', 'b')", {"a"}),
        ("result = call_tool(server_name='a', tool_name='b')", {"a"}),
        ("def f(t):\n    return call_tool('a', t)\nresult = f('x') + call_tool('b', 'y')", {"a", "b"}),
        ("result = call_tools([('a', 'x', {}), ['b', 'y']])", {"a", "b"}),
        ("result = 1", set()),
        ("result = (", set()),
        ("for s in x:\n    result = call_tool(s, 'b')", None),
        ("result = call_tools(batch)", None),
        ("result = call_tools([('a', 'x') for y in z])", None),
        ("result = map(call_tool, a, b)", None),
        ("result = call_tool(*args)", None),
        ("result = call_tool(**args)", None),
        ("result = call_tool(tool_name='b')", None),
    ],
)
def test_named_servers(code: str, servers: set[str] | None) -> None:
    assert named_servers(code) == servers


ATOMIC = "import json\nr = call_tool('m', 'geocode', {'q': 'x'})\nresult = r['result']['lat']"
CHAINING = "a = call_tool('m', 'geocode', {'q': 'x'})\nk = a['id']\nresult = call_tool('m', 'details', {'id': k})"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ATOMIC, "Atomic"),
        ("return await call_tool('a', 'b', {})", "Atomic"),
        (CHAINING, "Chaining"),
        ("result = call_tool('a', 'x', {'v': call_tool('a', 'y')})", "Chaining"),
        (
            "r = call_tool('a', 'x')\nids = []\nids.append(r['id'])\nif ids:\n    "
            "result = call_tool('a', 'y', {'i': ids})",
            "Chaining",
        ),
        ("rows = call_tool('a', 'x')['rows']\nresult = [r['n'] for r in rows if r['ok']]", "Transform"),
        ("result = max(call_tool('a', 'x')['rows'])", "Transform"),
        ("for row in call_tool('a', 'x')['rows']:\n    result = row", "Transform"),
        ("result = sum(range(5))", "Transform"),
        ("result = [call_tool('a', 'x', {'i': i}) for i in range(3)]", "Aggregate"),
        ("r = {}\nfor t in 'ab':\n    r[t] = call_tool('a', 'x', {'t': t})\nresult = r", "Aggregate"),
        ("result = call_tools([('a', 'x'), ('a', 'y')])", "Aggregate"),
        ("result = list(map(lambda t: call_tool('a', t), 'xy'))", "Aggregate"),
        ("d = call_tool('a', 'x')\nw = call_tool('a', 'y')\nresult = sorted([d, w])", "Aggregate"),
        ("def get(t):\n    return call_tool('a', t)\nresult = [get(t) for t in 'xy']", "Helper"),
        ("class A:\n    pass\nresult = 1", "Helper"),
    ],
)
def test_block_type(code: str, kind: str) -> None:
    assert block_type(code) == kind
