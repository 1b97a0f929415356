"""The `mcpServers` file that every MCP client uses: read, expanded and checked; nothing is started here.

    {"mcpServers": {"git":  {"command": "mcp-server-git", "args": ["-r", "${REPO}"], "cwd": "."},
                    "maps": {"url": "https://maps.example/mcp", "headers": {"Authorization": "Bearer ${KEY}"}}}}

Values of variables, `env` entries and `headers` whose name sounds like a secret are remembered, so
that the pool can keep them out of everything a server says.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hypertool.errors import ConfigError, nearest

KEYS = ("command", "args", "env", "cwd", "url", "headers", "timeout", "disabled", "type")
ELSEWHERE = ("alwaysAllow", "autoApprove", "description", "name", "transport", "envFile", "trust", "icon")
"""Keys of other clients that change nothing here; `transport` is a second spelling of `type`."""
HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")
SECRET = re.compile(r"key|token|secret|passw|credential|auth|cookie", re.IGNORECASE)
MIN_SECRET = 6  # shorter values ("1", "true") would tear holes into every reply


@dataclass(frozen=True)
class ServerConfig:
    """One entry of `mcpServers`, variables expanded and paths made absolute: a `command`, or a `url`."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    timeout_s: float | None = None
    """Seconds one call may take, where that is less than the run's own `tool_s`."""
    secrets: tuple[str, ...] = ()


def load_servers(path: Path) -> dict[str, ServerConfig]:
    """Read an `mcpServers` file, the form other MCP clients use.

    `${VAR}` is taken from the environment. A command with a slash is relative to the current folder, `cwd` to
    the file's folder. Entries with `disabled: true` are left out; unknown keys are named on stderr and ignored.
    Raises ConfigError naming the entry and the change to make; starts nothing.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_no_duplicates)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such servers file; give the path of an mcpServers JSON file") from None
    except (ValueError, OSError) as error:
        raise ConfigError(f"{path}: not a readable servers file: {error}") from error
    entries = data.get("mcpServers") if isinstance(data, dict) else None
    if not isinstance(entries, dict) or not entries:
        raise ConfigError(f'{path}: no servers; expected {{"mcpServers": {{"name": {{"command": ...}}}}}}')
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise ConfigError(f"{path}: server {name!r} is not an object")
    used = {name: _Entry(path, name, entry).read() for name, entry in entries.items() if not entry.get("disabled")}
    if not used:
        raise ConfigError(f'{path}: every server is disabled; remove one "disabled": true')
    return used


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the key {name!r} stands twice in one object; rename or remove one")
    return dict(pairs)


class _Entry:
    """One entry on its way to a ServerConfig; collects secrets while variables are expanded."""

    def __init__(self, path: Path, name: str, entry: dict[str, Any]) -> None:
        self.path, self.name, self.entry = path, name, entry
        self.where = f"{path}: server {name!r}"
        self.secrets: list[str] = []

    def read(self) -> ServerConfig:
        for key in self.entry:
            if key not in (*KEYS, *ELSEWHERE):
                print(f"hypertool: {self.where}: key {key!r} is ignored. {nearest(key, KEYS)}", file=sys.stderr)
        has_url, has_command = bool(self.entry.get("url")), bool(self.entry.get("command"))
        if has_url == has_command:
            what = "both a command and a url; keep one" if has_url else "no command and no url; add one of them"
            raise ConfigError(f"{self.where} has {what}")
        kind = self.entry.get("type", self.entry.get("transport"))
        if kind is not None and kind not in (HTTP if has_url else ("stdio",)):
            can = "streamable HTTP (type http)" if has_url else "stdio"
            raise ConfigError(f"{self.where} has type {kind!r}; with this entry only {can} works; change or drop it")
        timeout = self._timeout()
        env, headers = self._table("env"), self._table("headers")
        if has_url:
            url = self.expand(str(self.entry["url"]))
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
                raise ConfigError(f"{self.where}: url {url!r} is no http(s) address; correct it")
            return ServerConfig(
                self.name, url=url, headers=headers, timeout_s=timeout, secrets=tuple(dict.fromkeys(self.secrets))
            )
        command = self.expand(str(self.entry["command"]))
        if "/" in command:
            command = str(Path(command).absolute())
        if shutil.which(command) is None:
            raise ConfigError(f"{self.where}: command {command!r} was not found; install it or correct the path")
        args = self.entry.get("args", [])
        if not isinstance(args, list):
            raise ConfigError(f"{self.where}: args is {type(args).__name__}; give a list of strings")
        return ServerConfig(
            self.name,
            command,
            tuple(self.expand(str(arg)) for arg in args),
            env,
            self._cwd(),
            timeout_s=timeout,
            secrets=tuple(dict.fromkeys(self.secrets)),
        )

    def _timeout(self) -> float | None:
        timeout = self.entry.get("timeout")
        if timeout is None:
            return None
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0:
            raise ConfigError(f"{self.where}: timeout {timeout!r} is no positive number of seconds")
        return timeout / 1000 if timeout >= 1000 else float(timeout)  # other clients write milliseconds

    def _table(self, key: str) -> dict[str, str]:
        table = self.entry.get(key) or {}
        if not isinstance(table, dict):
            raise ConfigError(f"{self.where}: {key} is {type(table).__name__}; give an object of strings")
        made = {name: self.expand(str(value)) for name, value in table.items()}
        for name, value in made.items():
            if SECRET.search(name):
                self._secret(value)
                self._secret(value.removeprefix("Bearer "))
        return made

    def _cwd(self) -> str | None:
        cwd = self.entry.get("cwd")
        if cwd is None:
            return None
        folder = self.path.parent / self.expand(str(cwd))
        if not folder.is_dir():
            raise ConfigError(f"{self.where}: cwd {str(folder)!r} is no folder; build or create it first")
        return str(folder.absolute())

    def _secret(self, value: str) -> None:
        if len(value) >= MIN_SECRET:
            self.secrets.append(value)

    def expand(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            variable = match.group(1)
            if variable not in os.environ:
                raise ConfigError(f"{self.where}: variable {variable} is not set; run: export {variable}=...")
            found = os.environ[variable]
            if SECRET.search(variable):
                self._secret(found)
            return found

        return re.sub(r"\$\{(\w+)\}", value, text)
