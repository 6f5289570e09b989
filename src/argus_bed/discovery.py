"""Finds hypotheses and probes: one file each, in the library, in entry points, in folders."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import traceback
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from argus_bed.errors import ConfigError


def discover[T](kind: type[T], package: str, folders: Iterable[str] = ()) -> dict[str, T]:
    """Every instance of ``kind`` by its ``name``; a later source replaces an earlier one.

    Sources in order: modules of ``package``, entry points of the group of that name, and
    ``*.py`` files in ``folders``. Names beginning with an underscore are passed over.

    Raises
    ------
    ConfigError : a file does not load; the message names the file, line and reason.
    """
    found: dict[str, T] = {}
    for module in _modules(package, folders):
        for thing in vars(module).values():
            if isinstance(thing, kind):
                found[thing.name] = thing  # type: ignore[attr-defined]
    return found


def _modules(package: str, folders: Iterable[str]) -> Iterable[ModuleType]:
    home = importlib.import_module(package)
    for info in sorted(pkgutil.iter_modules(home.__path__), key=lambda m: m.name):
        if not info.name.startswith("_"):
            yield importlib.import_module(f"{package}.{info.name}")
    for entry in entry_points(group=package):
        loaded = entry.load()
        yield (
            loaded if isinstance(loaded, ModuleType) else importlib.import_module(loaded.__module__)
        )
    for folder in folders:
        for path in sorted(Path(folder).glob("*.py")):
            if not path.name.startswith("_"):
                yield load_file(path)


def load_file(path: Path) -> ModuleType:
    """Import a file by its path.

    Raises
    ------
    ConfigError : the file cannot be read or raises while it loads.
    """
    name = f"argus_bed_user_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"{path}: not a Python file that can be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ConfigError(f"{path}, line {error.lineno}: {error.msg}") from error
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f.lineno for f in frames if f.filename == spec.origin]
        where = f", line {lines[-1]}" if lines else ""
        raise ConfigError(
            f"{path}{where}: {type(error).__name__}: {' '.join(str(error).split())[:400]}"
        ) from error
    return module
