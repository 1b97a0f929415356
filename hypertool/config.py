"""Frozen configs from three sources, no more: defaults in the class, one YAML, `key=value` on the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from hypertool.errors import ConfigError, nearest

T = TypeVar("T")


def load(cls: type[T], path: Path | None = None, overrides: Iterable[str] = ()) -> T:
    """Build the dataclass `cls`. Raises ConfigError for an unknown key (naming the nearest) or a wrong type."""
    values: dict[str, Any] = {}
    if path is not None:
        values.update(_read(path))
        _check_keys(cls, values, str(path))
    for override in overrides:
        key, separator, text = override.partition("=")
        if not separator:
            raise ConfigError(f"{override!r} is not key=value")
        _check_keys(cls, {key: None}, "command line")
        values[key] = yaml.safe_load(text)
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.name in values:
            values[field.name] = _coerce(field, values[field.name])
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{path or 'command line'}: {field.name} is not set and has no default")
    return cls(**values)


def _read(path: Path) -> dict[str, Any]:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such config file") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: a config is a mapping of keys to values")
    return data


def _check_keys(cls: type[Any], values: dict[str, Any], where: str) -> None:
    valid = [field.name for field in dataclasses.fields(cls)]
    for key in values:
        if key not in valid:
            raise ConfigError(f"{where}: unknown key {key!r}. {nearest(key, valid)}Keys: {', '.join(valid)}.")


def _coerce(field: dataclasses.Field[Any], value: Any) -> Any:
    """Check scalar types by the default's type; an int passes for a float; a list becomes a tuple."""
    default = field.default if field.default is not dataclasses.MISSING else None
    if isinstance(value, list):
        return tuple(value)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(default, tuple) and isinstance(value, str):
        return (value,)
    if default is not None and not isinstance(value, type(default)):
        raise ConfigError(f"{field.name} is {value!r} ({type(value).__name__}), expected {type(default).__name__}")
    return value
