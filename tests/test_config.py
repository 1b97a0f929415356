"""Three sources of a value, and one clear error for a key or type that does not exist."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from hypertool import config
from hypertool.errors import ConfigError


@dataclass(frozen=True)
class Settings:
    name: str = "a"
    rate: float = 1.0
    many: tuple[str, ...] = ()
    count: int = 3


def test_default_file_command_line(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("rate: 2\nmany: [x, y]\ncount: 4\n")
    assert config.load(Settings, path, ["count=5", "name=b"]) == Settings("b", 2.0, ("x", "y"), 5)
    assert config.load(Settings, None, ["many=x"]).many == ("x",)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["cuont=1"], r"unknown key 'cuont'. Did you mean 'count'\?"),
        (["count=many"], r"count is 'many' \(str\), expected int"),
        (["count"], "is not key=value"),
    ],
)
def test_errors_name_the_change(overrides: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        config.load(Settings, None, overrides)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such config file"):
        config.load(Settings, tmp_path / "none.yaml")
