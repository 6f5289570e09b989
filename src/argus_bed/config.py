"""The settings of a study: ``argus-bed.toml``, the environment, flags.

Precedence, highest first: ``--set`` and the other flags, ``ARGUS_BED_<KEY>`` in the
environment, the file, the defaults. Keys are the same in all three: ``decide_at`` is
``--set policy.decide_at=0.99``, ``ARGUS_BED_DECIDE_AT=0.99``, or ``decide_at = 0.99``
under ``[policy]``. Relative paths in the file start at the file's own folder.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from argus_bed.errors import ConfigError, FileRejected
from argus_bed.quantity import parse
from argus_bed.study.policy import Policy

FILE_NAME = "argus-bed.toml"
PREFIX = "ARGUS_BED_"
MAX_BYTES = 1_000_000
SHOWN = 200
"""Characters of a value that a message shows."""
RESERVED = frozenset({"CONFIG", "FORMAT", "DEBUG", "COMPLETE"})
"""Variables of the command line itself, not settings of a study."""


class StudySection(BaseModel):
    """``[study]``: what the question is about and where its answers are kept."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(default="study", min_length=1, max_length=200)
    workload: str | None = Field(default=None, min_length=1)
    ledger: str = Field(default=".argus-bed/ledger.db", min_length=1)
    hypotheses: list[str] | None = None
    probes: list[str] | None = None
    folders: list[str] = Field(default_factory=list)
    seed: int = Field(default=0, ge=0, lt=2**63)
    max_causes: Literal[1, 2] = 1
    target: Literal["cause", "parameters", "joint"] = "cause"


SECTIONS: dict[str, type[BaseModel]] = {"study": StudySection, "policy": Policy}


@dataclass(frozen=True)
class Config:
    """The settings that a command runs with. ``home`` is where relative paths start."""

    study: StudySection
    policy: Policy
    home: Path
    file: Path | None = None

    def path(self, text: str) -> Path:
        """A path of the configuration, seen from the current folder."""
        return self.home / Path(text).expanduser()

    @property
    def ledger(self) -> str | Path:
        """Where the ledger is: a database address, or a path."""
        where = self.study.ledger
        return where if "://" in where else self.path(where)

    @property
    def workload(self) -> str | None:
        """The workload's address, its file seen from the current folder."""
        text = self.study.workload
        if text is None or not _is_file(text):
            return text
        return str(self.path(text))

    @property
    def needed_workload(self) -> str:
        """The workload's address. Raises `ConfigError` if none was given."""
        if self.workload is None:
            raise ConfigError(
                f"{self._name}: no workload; give --workload FILE, or let `argus-bed init` "
                "write an argus-bed.toml and a workload.py"
            )
        return self.workload

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders with the user's own hypotheses and probes.

        Raises
        ------
        ConfigError : one of them is not there.
        """
        found = []
        for text in self.study.folders:
            folder = self.path(text)
            if not folder.is_dir():
                raise ConfigError(
                    f"{self._name}: [study] folders = {text!r}: no such folder"
                    f"{_nearest(folder.name, _children(folder.parent))}"
                )
            found.append(str(folder.absolute()))
        return tuple(found)

    @property
    def _name(self) -> str:
        return str(self.file) if self.file else "settings"


def load(
    file: Path | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    sets: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    start: Path | None = None,
) -> Config:
    """Put the settings together.

    Parameters
    ----------
    file : the file to read; if None, the nearest ``argus-bed.toml`` from ``start`` (the
        current folder) upwards, if there is one.
    flags : ``{"study.name": value}``; None values are passed over.
    sets : ``section.key=value`` as a person writes it.
    environ : where ``ARGUS_BED_*`` is looked up (default: the process's own).

    Raises
    ------
    ConfigError, FileRejected : with the file, line, section, value and nearest known key.
    """
    path = file if file is not None else find(start or Path.cwd())
    text, table = (None, {}) if path is None else _read(path)
    home = Path() if path is None else path.parent
    where = _Source(path, text)
    values = where.sections(table)
    for section, key, value, origin in (
        *_from_environment(os.environ if environ is None else environ),
        *_from_sets(sets),
    ):
        values[section][key] = value
        where.origins[section, key] = origin
    for dotted, value in (flags or {}).items():
        if value is not None:
            section, key = dotted.split(".")
            values[section][key] = value
            where.origins[section, key] = "--study" if key == "name" else f"--{key}"
            if (key == "workload" and _is_file(value)) or (key == "ledger" and "://" not in value):
                # a path on the command line starts at the current folder
                values[section][key] = os.path.relpath(Path(value).expanduser(), home)
    study = where.build(StudySection, "study", values["study"])
    policy = where.build(Policy, "policy", values["policy"])
    return Config(study=study, policy=policy, home=home, file=path)


def _is_file(address: str) -> bool:
    """Whether a workload's address is a file (``workload.py``, ``file.py:name``), no module."""
    place = address.rpartition(":")[0] or address
    return place.endswith(".py") or "/" in place


def find(start: Path) -> Path | None:
    """The nearest configuration file at ``start`` or above it."""
    for folder in (start, *start.parents):
        candidate = folder / FILE_NAME
        if candidate.is_symlink() or candidate.exists():
            return Path(os.path.relpath(candidate))
    return None


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    text = read_text(path, MAX_BYTES)
    if not text.strip():
        raise FileRejected(f'{path} is empty; write [study] and workload = "workload.py" into it')
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def read_text(path: Path, limit: int) -> str:
    """The text of an ordinary file of at most ``limit`` bytes.

    Raises
    ------
    FileRejected : missing, a folder, a device, a loop of links, too large, not UTF-8.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise FileRejected(f"{path} is a folder; a file is wanted")
        if not stat.S_ISREG(status.st_mode):
            raise FileRejected(f"{path} is not an ordinary file")
        if status.st_size > limit:
            raise FileRejected(
                f"{path} has {status.st_size:,} bytes; more than {limit:,} are not read"
            )
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileRejected(
            f"{path} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}"
        ) from error
    except FileNotFoundError:
        near = _nearest(path.name, _children(path.parent))
        raise FileRejected(f"{path}: no such file{near}") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise FileRejected(f"{path}: {reason.lower()}") from error


def _children(folder: Path) -> list[str]:
    try:
        return [child.name for child in folder.iterdir()]
    except OSError:
        return []


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def _keys() -> dict[str, str]:
    """Every key with its section. Keys are unique across sections."""
    return {key: name for name, kind in SECTIONS.items() for key in kind.model_fields}


def _from_environment(
    environ: Mapping[str, str],
) -> list[tuple[str, str, Any, str]]:
    known = _keys()
    found = []
    for variable in sorted(environ):
        bare = variable.removeprefix(PREFIX)
        if not variable.startswith(PREFIX) or bare in RESERVED:
            continue
        key = bare.lower()
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"; did you mean {PREFIX}{near[0].upper()}?" if near else ""
            raise ConfigError(f"unknown variable {variable} in the environment{hint}")
        value = _spoken(known[key], key, environ[variable])
        found.append((known[key], key, value, variable))
    return found


def _from_sets(sets: Sequence[str]) -> list[tuple[str, str, Any, str]]:
    known = _keys()
    found = []
    for text in sets:
        name, equals, value = text.partition("=")
        section, _, key = name.strip().rpartition(".")
        if not equals:
            raise ConfigError(f"--set {text}: write --set section.key=value")
        if key not in known or section not in ("", known[key]):
            spelled = [f"{s}.{k}" for k, s in known.items()]
            near = f"; did you mean {known[key] + '.' + key!r}?" if key in known else ""
            near = near or _nearest(name, spelled) or _nearest(key, known)
            raise ConfigError(f"--set {text}: unknown key {name!r}{near}")
        origin = f"--set {name}"
        found.append((known[key], key, _spoken(known[key], key, value), origin))
    return found


def _spoken(section: str, key: str, text: str) -> Any:
    """A value written without TOML's quotes: ``0.9``, ``true``, ``gil_held,gc_pause``."""
    annotation = str(SECTIONS[section].model_fields[key].annotation)
    several = re.search(r"\b(list|tuple|frozenset|set)\b", annotation) is not None
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        value = text.strip()
    if several and not isinstance(value, list):
        return [part.strip() for part in text.split(",") if part.strip()]
    if "str" in annotation and not isinstance(value, str | list):
        return text.strip()
    return value


class _Source:
    """Knows where each value came from, so that a complaint can say it."""

    def __init__(self, path: Path | None, text: str | None) -> None:
        self.path, self.text = path, text
        self.origins: dict[tuple[str, str], str] = {}

    def sections(self, table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The file's tables, checked to be ones that exist."""
        values: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
        for name, content in table.items():
            if name not in SECTIONS:
                known = _keys()
                belongs = f"; {name!r} goes under [{known[name]}]" if name in known else ""
                near = belongs or _nearest(name, SECTIONS) or f"; known: {', '.join(SECTIONS)}"
                kind = "section" if isinstance(content, Mapping) else "key"
                raise ConfigError(f"{self.where('', name)}: unknown {kind} {name!r}{near}")
            if not isinstance(content, Mapping):
                raise ConfigError(f"{self.where('', name)}: {name!r} is a section; write [{name}]")
            values[name] = dict(content)
        return values

    def where(self, section: str, key: str) -> str:
        """``argus-bed.toml, line 7``, or the flag or variable that set the key."""
        if (section, key) in self.origins:
            return self.origins[section, key]
        if self.path is None or self.text is None:
            return "settings"
        inside = ""
        for number, line in enumerate(self.text.splitlines(), 1):
            if header := re.match(r"\s*\[+\s*([\w.\"' -]+?)\s*\]", line):
                inside = header[1]
                if not section and inside.split(".")[0] == key:
                    return f"{self.path}, line {number}"
            elif inside == section and re.match(rf"\s*[\"']?{re.escape(key)}\b", line):
                return f"{self.path}, line {number}"
        return str(self.path)

    def build[M: BaseModel](self, kind: type[M], section: str, values: Mapping[str, Any]) -> M:
        """Check one section against its model."""
        plain = {k: self._seconds(section, k, v) for k, v in values.items()}
        for key in plain:
            if key not in kind.model_fields:
                near = _nearest(key, kind.model_fields)
                other = _keys().get(key)
                spelled = f"; known: {', '.join(sorted(kind.model_fields))}"
                hint = f"; it goes under [{other}]" if other else near or spelled
                raise ConfigError(
                    f"{self.where(section, key)}: unknown key {key!r} in [{section}]{hint}"
                )
        try:
            return kind.model_validate(plain)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = str(first["loc"][0]) if first["loc"] else ""
            said = repr(plain.get(key))
            said = said if len(said) <= SHOWN else f"{said[:SHOWN]}..."
            shown = f"{key} = {said}: " if key in plain else ""
            raise ConfigError(
                f"{self.where(section, key)}: [{section}] {shown}{_plain(first)}"
            ) from None

    def _seconds(self, section: str, key: str, value: Any) -> Any:
        """Durations may be written with a unit: ``budget_s = "10min"``."""
        if not (key.endswith("_s") and isinstance(value, str)):
            return value
        try:
            return parse(value, "step_time")
        except Exception as error:
            raise ConfigError(
                f"{self.where(section, key)}: [{section}] {key} = {value!r}: not a "
                'duration; write seconds as a number, or for example "10min"'
            ) from error


_WORDS = {
    "string_type": "text in quotes is wanted",
    "int_type": "a whole number is wanted",
    "int_from_float": "a whole number is wanted",
    "int_parsing": "a whole number is wanted",
    "float_type": "a number is wanted",
    "float_parsing": "a number is wanted",
    "bool_type": "true or false is wanted",
    "bool_parsing": "true or false is wanted",
    "list_type": 'a list is wanted, such as ["a", "b"]',
    "tuple_type": 'a list is wanted, such as ["a", "b"]',
    "finite_number": "a finite number is wanted",
    "missing": "this key must be given",
}


def _plain(error: Mapping[str, Any]) -> str:
    """One pydantic complaint in plain words."""
    kind = str(error["type"])
    if kind in _WORDS:
        return _WORDS[kind]
    message = str(error["msg"]).removeprefix("Value error, ")
    for start, instead in (("Input should be ", "it must be "), ("String should ", "it must ")):
        if message.startswith(start):
            return instead + message.removeprefix(start)
    return message
