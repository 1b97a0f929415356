"""The pool against a real stdio server: replies as code expects them, failures as they should be blamed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import runpy
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hypertool.errors import ConfigError, ServerError, ToolCallError, ToolTimeout
from hypertool.pool import Pool
from hypertool.servers import load_servers

RAW = Path(__file__).with_name("raw_server.py")


def with_pool(path: Path, use: Callable[[Pool], Awaitable[Any]], names: tuple[str, ...] = ("echo",)) -> Any:
    async def main() -> Any:
        async with Pool(load_servers(path)) as pool:
            await pool.start(names)
            return await use(pool)

    return asyncio.run(main())


def test_replies_as_code_expects_them(servers_file: Path) -> None:
    async def use(pool: Pool) -> dict[str, Any]:
        texts = ["007", "true", "1e5", "plain", '{"a": [1]}', "[1, 2]", "{broken", ""]
        values = {text: (await pool.call("echo", "echo", {"text": text}, 20)).value for text in texts}
        for rows in (0, 1, 2):
            values[f"typed{rows}"] = (await pool.call("echo", "typed", {"rows": rows}, 20)).value
            values[f"listed{rows}"] = (await pool.call("echo", "listed", {"rows": rows}, 20)).value
        values["picture"] = (await pool.call("echo", "picture", {}, 20)).value
        return values

    values = with_pool(servers_file, use)
    assert values["007"] == "007"
    assert values["true"] == "true"
    assert values["1e5"] == "1e5"
    assert values["plain"] == "plain"
    assert values['{"a": [1]}'] == {"a": [1]}
    assert values["[1, 2]"] == [1, 2]
    assert values["{broken"] == "{broken"
    assert values[""] == ""
    assert values["typed1"] == {"rows": [{"id": 0}]}
    assert [values[f"listed{rows}"] for rows in (0, 1, 2)] == [[], [{"id": 0}], [{"id": 0}, {"id": 1}]]
    assert values["picture"] == ["a dot", "[image image/png, 3 bytes]"]


def test_failures_are_blamed_on_the_tool_with_its_own_text(servers_file: Path) -> None:
    async def use(pool: Pool) -> None:
        with pytest.raises(ToolCallError, match="no such row 7"):
            await pool.call("echo", "fail", {"reason": "no such row 7"}, 20)
        with pytest.raises(ToolCallError, match=r"unknown tool 'ecko'. Did you mean 'echo'\?"):
            await pool.call("echo", "ecko", {}, 20)
        with pytest.raises(ToolCallError, match=r"unknown server 'echoo'. Did you mean 'echo'\?"):
            await pool.call("echoo", "echo", {}, 20)
        with pytest.raises(ToolCallError, match=r"missing required parameter 'text'.*\*text: string"):
            await pool.call("echo", "echo", {}, 20)
        with pytest.raises(ToolCallError, match="rows: 'many' is not of type 'integer'"):
            await pool.call("echo", "typed", {"rows": "many"}, 20)

    with_pool(servers_file, use)


def test_a_slow_tool_ends_at_its_limit_and_the_server_stays_usable(servers_file: Path) -> None:
    async def use(pool: Pool) -> float:
        started = time.monotonic()
        with pytest.raises(ToolCallError, match=r"echo.sleep did not answer within 1 s"):
            await pool.call("echo", "sleep", {"seconds": 4}, 1)
        elapsed = time.monotonic() - started
        assert (await pool.call("echo", "echo", {"text": "still here"}, 20)).value == "still here"
        return elapsed

    assert with_pool(servers_file, use) < 4


def test_a_server_that_hangs_is_replaced_and_one_that_is_slow_is_not(servers_file: Path) -> None:
    async def use(pool: Pool) -> list[str]:
        ids = [(await pool.call("echo", "process_id", {}, 20)).value]
        for tool in ("sleep", "freeze"):
            with pytest.raises(ToolTimeout, match=f"echo.{tool} did not answer within 0.5 s"):
                await pool.call("echo", tool, {"seconds": 30}, 0.5)
            ids.append((await pool.call("echo", "process_id", {}, 20)).value)
        with contextlib.suppress(TimeoutError):  # given up by the caller rather than by the pool
            async with asyncio.timeout(0.5):
                await pool.call("echo", "freeze", {"seconds": 30}, 20)
        return [*ids, (await pool.call("echo", "process_id", {}, 20)).value]

    before, slow, hung, given_up = with_pool(servers_file, use)
    assert before == slow
    assert len({slow, hung, given_up}) == 3


def test_every_form_of_reply(tmp_path: Path) -> None:
    """The conversion table of docs/interface.md; FORMS says what each reply must become."""
    entry = {"command": sys.executable, "args": [str(RAW)]}
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"raw": entry}}))
    forms = runpy.run_path(str(RAW))

    async def use(pool: Pool) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name in forms["FORMS"]:
            try:
                made[name] = (await pool.call("raw", name, {}, 20)).value
            except ToolCallError as error:
                made[name] = forms["FAILS"] + str(error)
        return made

    made = with_pool(path, use, ("raw",))
    for name, (_, _, value) in forms["FORMS"].items():
        if isinstance(value, str) and value.startswith(forms["FAILS"]):
            assert str(made[name]).startswith(value), name
        else:
            assert made[name] == value, name


def test_a_server_that_dies_is_blamed_restarted_and_the_call_not_repeated(servers_file: Path) -> None:
    async def use(pool: Pool) -> None:
        before = (await pool.call("echo", "process_id", {}, 20)).value
        with pytest.raises(ServerError, match="died during die"):
            await pool.call("echo", "die", {}, 20)
        after = (await pool.call("echo", "process_id", {}, 20)).value
        assert before != after

    with_pool(servers_file, use)


def test_only_a_tool_that_claims_to_be_read_only_is_called_again(servers_file: Path, tmp_path: Path) -> None:
    async def use(pool: Pool) -> str:
        return str((await pool.call("echo", "die_once", {"marker": str(tmp_path / "died")}, 20)).value)

    assert with_pool(servers_file, use) == "alive"


def test_effects_come_from_annotations_and_nothing_said_means_write(servers_file: Path) -> None:
    async def use(pool: Pool) -> dict[str, tuple[str, bool]]:
        return {spec.name: (spec.effect, spec.idempotent) for spec in pool.specs()}

    effects = with_pool(servers_file, use)
    assert effects["echo"] == ("write", False)
    assert effects["die_once"] == ("read", True)
    assert effects["erase"] == ("irreversible", False)


def test_secrets_of_the_servers_file_stay_out_of_replies_and_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_API_KEY", "sk-very-secret")
    script = str(Path(__file__).parent / "echo_server.py")
    entry = {"command": sys.executable, "args": [script], "env": {"SERVICE_TOKEN": "${FAKE_API_KEY}", "MODE": "plain"}}
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"echo": entry}}))

    async def use(pool: Pool) -> Any:
        environment = (await pool.call("echo", "environment", {}, 20)).value
        with pytest.raises(ToolCallError) as failed:
            await pool.call("echo", "fail", {"reason": "bad key sk-very-secret"}, 20)
        return environment, str(failed.value)

    environment, error = with_pool(path, use)
    assert environment["SERVICE_TOKEN"] == "[redacted]"
    assert environment["MODE"] == "plain"
    assert "bad key [redacted]" in error


def test_a_server_over_streamable_http(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = str(Path(__file__).parent / "echo_server.py")
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"web": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}}}))

    async def use(pool: Pool) -> Any:
        return (await pool.call("web", "typed", {"rows": 1}, 20)).value

    with pytest.raises(ServerError, match="'web' did not start"):
        with_pool(path, use, ("web",))
    with subprocess.Popen([sys.executable, script, "http", str(port)], stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
            assert with_pool(path, use, ("web",)) == {"rows": [{"id": 0}]}
        finally:
            server.kill()


def test_noise_on_stdout_and_large_replies_do_no_harm(servers_file: Path) -> None:
    async def use(pool: Pool) -> None:
        assert (await pool.call("echo", "noise", {}, 20)).value == "ok"
        assert len((await pool.call("echo", "big", {"megabytes": 16}, 60)).value) == 16_000_000
        assert (await pool.call("echo", "echo", {"text": "fine"}, 20)).value == "fine"

    with_pool(servers_file, use)


def test_calls_run_at_once_and_keep_apart(servers_file: Path) -> None:
    async def use(pool: Pool) -> None:
        words = [f"word-{number}" for number in range(200)]
        names = ["echo", "other"]
        replies = await asyncio.gather(
            *(pool.call(names[i % 2], "echo", {"text": word}, 60) for i, word in enumerate(words))
        )
        assert [reply.value for reply in replies] == words

    with_pool(servers_file, use, ("echo", "other"))


def test_a_server_that_cannot_start_shows_its_own_last_words(servers_file: Path) -> None:
    async def use(_: Pool) -> None:
        raise AssertionError("unreachable")

    with pytest.raises(ServerError, match=r"(?s)'broken' did not start.*cannot find my configuration"):
        with_pool(servers_file, use, ("broken",))


def test_servers_see_no_secret_of_the_host(servers_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SECRET_KEY", "leak")

    async def use(pool: Pool) -> dict[str, str]:
        value: dict[str, str] = (await pool.call("echo", "environment", {}, 20)).value
        return value

    assert "FAKE_SECRET_KEY" not in with_pool(servers_file, use)


def test_no_process_remains(servers_file: Path) -> None:
    async def use(pool: Pool) -> int:
        return int((await pool.call("echo", "process_id", {}, 20)).value)

    pid = with_pool(servers_file, use)
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the keeper needs Linux")
def test_a_killed_host_leaves_no_server_and_nothing_a_server_started(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    script = str(Path(__file__).parent / "echo_server.py")
    entry = {"command": sys.executable, "args": [script], "env": {"MARKER": str(marker)}}
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"echo": entry}}))
    code = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom hypertool.pool import Pool\n"
        "from hypertool.servers import load_servers\n"
        "async def main():\n"
        "    async with Pool(load_servers(Path(sys.argv[1]))) as pool:\n"
        "        await pool.call('echo', 'stay', {'seconds': 300}, 300)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)]) as host:
        while not (marker.exists() and marker.read_text()):
            assert host.poll() is None
            time.sleep(0.05)
        host.kill()
    pids = [int(pid) for pid in marker.read_text().split()]
    assert len(pids) == 2
    end = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not json", "not a readable servers file"),
        ("{}", "no servers"),
        ('{"mcpServers": {"a": {"args": []}}}', "no command and no url"),
        ('{"mcpServers": {"a": {"command": "python3", "url": "http://x"}}}', "both a command and a url"),
        ('{"mcpServers": {"a": {"url": "ftp://x"}}}', "no http"),
        ('{"mcpServers": {"a": {"url": "http://x/mcp", "type": "sse"}}}', "has type 'sse'"),
        ('{"mcpServers": {"a": {"command": "python3", "timeout": "soon"}}}', "no positive number"),
        ('{"mcpServers": {"a": {"command": "python3", "args": "x"}}}', "args is str"),
        ('{"mcpServers": {"a": {"command": "python3", "disabled": true}}}', "every server is disabled"),
        ('{"mcpServers": {"a": {"command": "no-such-program"}}}', "'no-such-program' was not found"),
        ('{"mcpServers": {"a": {"command": "python3", "args": ["${NO_SUCH_VAR}"]}}}', "NO_SUCH_VAR is not set"),
        ('{"mcpServers": {"a": {"command": "python3", "cwd": "nowhere"}}}', "is no folder"),
        ('{"mcpServers": {"a": {"command": "python3"}, "a": {"command": "python3"}}}', "stands twice"),
    ],
)
def test_a_bad_servers_file_is_one_clear_error(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "servers.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        load_servers(path)


def test_variables_and_folders_are_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", "value")
    (tmp_path / "data").mkdir()
    entry = {"command": "python3", "args": ["${WORD}"], "env": {"A": "x${WORD}"}, "cwd": "data"}
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"a": entry}}))
    config = load_servers(path)["a"]
    assert config.args == ("value",)
    assert config.env == {"A": "xvalue"}
    assert config.cwd == str(tmp_path / "data")


def test_keys_of_other_clients_are_honoured_or_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"type": "stdio", "command": "python3", "timeout": 30000, "alwaysAllow": ["x"], "comand": "y"}
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"a": entry, "off": {"command": "no-such-program", "disabled": True}}}))
    servers = load_servers(path)
    assert list(servers) == ["a"]
    assert servers["a"].timeout_s == 30
    told = capsys.readouterr().err
    assert "key 'comand' is ignored. Did you mean 'command'?" in told
    assert "alwaysAllow" not in told


def test_a_caller_that_gives_up_does_not_stop_the_server_from_being_replaced(servers_file: Path) -> None:
    async def use(pool: Pool) -> bool:
        before = (await pool.call("echo", "process_id", {}, 20)).value
        with pytest.raises(ToolTimeout):
            await pool.call("echo", "freeze", {"seconds": 600}, 0.3)
        for _ in range(100):  # each gives up long before the question and the new start can be over
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.3):
                    return bool((await pool.call("echo", "process_id", {}, 20)).value != before)
        return False

    assert with_pool(servers_file, use)
