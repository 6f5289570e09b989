"""Records to plain JSON data and back, generic over frozen dataclasses.

``from_plain(type(x), to_plain(x)) == x`` for every dataclass whose fields are made of
strings, numbers, booleans, None, enums, tuples, frozen sets, mappings and dataclasses.
Text is deterministic: keys sorted, no spaces, ASCII only. NaN and infinity never enter.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping, Sequence, Set
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from argus_bed.errors import StorageError, ValueRejected

type Plain = bool | int | float | str | list[Plain] | dict[str, Plain] | None


def to_plain(value: Any, where: str = "value") -> Plain:
    """Turn a record into dicts, lists, strings, numbers, booleans and None.

    Raises
    ------
    ValueRejected : a number is not finite, or something has no place in JSON. The
        message says where, in the form ``Run.readings[2].value``.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return to_plain(value.value, where)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return _finite(float(value), where)
    if is_dataclass(value) and not isinstance(value, type):
        head = where if where != "value" else type(value).__name__
        return {f.name: to_plain(getattr(value, f.name), f"{head}.{f.name}") for f in fields(value)}
    if isinstance(value, Mapping):
        return {_key(k, where): to_plain(v, f"{where}[{k!r}]") for k, v in value.items()}
    if isinstance(value, Set):
        return [to_plain(v, where) for v in sorted(value)]
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [to_plain(v, f"{where}[{i}]") for i, v in enumerate(value)]
    raise ValueRejected(
        f"{where} is a {type(value).__name__}: the ledger keeps text, numbers, booleans, "
        "lists, mappings and records of these"
    )


def _finite(value: float, where: str) -> float:
    if math.isfinite(value):
        return value
    raise ValueRejected(
        f"{where} = {value}: the ledger keeps finite numbers; leave it out or use None"
    )


def _key(key: Any, where: str) -> str:
    if isinstance(key, str):
        return str(key.value) if isinstance(key, Enum) else key
    if isinstance(key, Integral) and not isinstance(key, bool):
        return str(int(key))
    raise ValueRejected(
        f"{where} has the key {key!r}: the keys of a mapping are text or whole numbers"
    )


def dumps(value: Any) -> str:
    """Deterministic JSON of a record. Raises as `to_plain` does."""
    return json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def loads(text: str) -> Any:
    """JSON text to plain data.

    Raises
    ------
    StorageError : the text is not JSON, or holds NaN or infinity.
    """

    def refuse(constant: str) -> Any:
        raise StorageError(
            f"the ledger holds {constant}, which it never writes: the file was edited"
        )

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise StorageError(f"the ledger holds {text[:60]!r}, which is not JSON: {error}") from error


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def from_plain[T](cls: type[T], data: Any) -> T:
    """Rebuild a ``cls`` from plain data.

    Raises
    ------
    StorageError : the data does not have the shape of ``cls``; the message says where.
    """
    built: T = _build(cls, data, getattr(cls, "__name__", str(cls)))
    return built


def _build(hint: Any, data: Any, where: str) -> Any:
    origin = get_origin(hint)
    if hint is Any or hint is object:
        return data
    if origin in (Union, types.UnionType):
        return _build_union(hint, data, where)
    if origin is Literal:
        return data if data in get_args(hint) else _misfit(where, data, f"one of {get_args(hint)}")
    if is_dataclass(hint) and isinstance(hint, type):
        return _build_record(hint, data, where)
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(data)
        except ValueError:
            return _misfit(where, data, f"one of {[m.value for m in hint]}")
    if origin is not None:
        return _build_generic(origin, get_args(hint), data, where)
    return _build_scalar(hint, data, where)


def _build_union(hint: Any, data: Any, where: str) -> Any:
    options = get_args(hint)
    if data is None and type(None) in options:
        return None
    rest = [o for o in options if o is not type(None)]
    for option in rest[:-1]:
        try:
            return _build(option, data, where)
        except StorageError:
            continue
    return _build(rest[-1], data, where)


def _build_record(cls: type, data: Any, where: str) -> Any:
    if not isinstance(data, Mapping):
        return _misfit(where, data, f"the fields of {cls.__name__}")
    hints, known = _hints(cls), {f.name: f for f in fields(cls)}
    if unknown := sorted(set(data) - set(known)):
        return _misfit(where, data, f"no field {unknown[0]!r}; was it written by a newer argus-bed")
    built = {n: _build(hints[n], v, f"{where}.{n}") for n, v in data.items()}
    for name, spec in known.items():
        if name not in built and spec.default is MISSING and spec.default_factory is MISSING:
            return _misfit(f"{where}.{name}", None, "there and is missing")
    return cls(**built)


def _build_generic(origin: Any, arguments: tuple[Any, ...], data: Any, where: str) -> Any:
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(data, Mapping):
            return _misfit(where, data, "a mapping")
        key, value = arguments
        return {
            (int(k) if key is int else _build(key, k, where)): _build(value, v, f"{where}[{k!r}]")
            for k, v in data.items()
        }
    if not isinstance(data, list | tuple):
        return _misfit(where, data, "a list")
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        if len(arguments) != len(data):
            return _misfit(where, data, f"{len(arguments)} entries")
        return tuple(
            _build(a, v, f"{where}[{i}]")
            for i, (a, v) in enumerate(zip(arguments, data, strict=True))
        )
    built = [_build(arguments[0], v, f"{where}[{i}]") for i, v in enumerate(data)]
    if origin is tuple or origin is Sequence:
        return tuple(built)
    return frozenset(built) if issubclass(origin, Set) else built


def _build_scalar(hint: Any, data: Any, where: str) -> Any:
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if hint in (None, type(None)):
        return None if data is None else _misfit(where, data, "empty")
    if isinstance(hint, type) and isinstance(data, hint):
        if isinstance(data, bool) and hint is not bool:
            return _misfit(where, data, f"a {hint.__name__}")
        return data
    return _misfit(where, data, f"a {getattr(hint, '__name__', hint)}")


def _misfit(where: str, data: Any, wanted: str) -> Any:
    shown = repr(data)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    raise StorageError(f"{where} = {shown} in the ledger: it should be {wanted}")
