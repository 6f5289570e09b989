"""Finds a workload by its address: ``workload.py``, ``file.py:name``, ``package.module:name``."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from argus_bed.discovery import load_file
from argus_bed.errors import ConfigError, UnknownName
from argus_bed.workload.model import Workload

DEFAULT_NAME = "workload"
SHOWN = 200  # characters of an address in a message


def load(address: str | Path) -> Workload:
    """The `Workload` at ``address``.

    Parameters
    ----------
    address : a file, or a module's dotted name, each with an optional ``:name`` of the
        object in it (default ``workload``).

    Raises
    ------
    ConfigError : no such file or module, it raises while it loads, or the object is of
        another kind. UnknownName : no object of that name in it.
    """
    place, name = _split(str(address))
    is_file = place.endswith(".py") or "/" in place
    if is_file:
        path = _file(place)
        module, place = load_file(path), str(path)
    else:
        module = _import(place)
    return _from(module, name, place)


def _file(place: str) -> Path:
    """The file at ``place``. Raises `ConfigError`."""
    shown = place if len(place) <= SHOWN else f"{place[:SHOWN]}..."
    try:
        path = Path(place).expanduser().resolve()
        there = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # too long, no home, a NUL byte
        raise ConfigError(f"workload {shown!r}: {_reason(error)}; give a file's path") from error
    if not there:
        raise ConfigError(f"{shown}: no such file; `argus-bed init` writes a workload.py")
    return path


def _reason(error: Exception) -> str:
    return ((error.strerror if isinstance(error, OSError) else "") or str(error)).lower()


def _split(address: str) -> tuple[str, str]:
    place, colon, name = address.rpartition(":")
    if not colon or not name.isidentifier():
        return address, DEFAULT_NAME
    return place, name


def _import(dotted: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path:  # a script's own folder is importable; so is ours
        sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{dotted}: {error}; a file is written with its ending, such as workload.py"
        ) from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise ConfigError(
            f"{dotted}: {last.filename}, line {last.lineno}: {type(error).__name__}: {error}"
        ) from error


def _from(module: ModuleType, name: str, place: str) -> Workload:
    found: Any = getattr(module, name, None)
    if found is None:
        known = [n for n, v in vars(module).items() if isinstance(v, Workload)]
        if not known:
            raise ConfigError(
                f"{place} holds no Workload; it should say: {name} = Workload(name=..., ...)"
            )
        raise UnknownName("workload", name, known)
    if not isinstance(found, Workload):
        raise ConfigError(f"{place}: {name} is a {type(found).__name__}, not a Workload")
    return found.at(f"{place}:{name}")
