"""Random numbers and clocks in functions that are traced: they are read once, and warned of.

Copies of functions find these in the place of `random`, `time` and `datetime`, their functions and
their classes. They do what the originals do, and warn where a compiled function would keep a
number for all its calls.
"""

from __future__ import annotations

import datetime
import pickle
import sys
import time
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from types import FunctionType, ModuleType
from typing import Any, final

import numpy as np

from primgraph.base.atomic import Setting
from primgraph.base.records import dataclass
from primgraph.base.user_lines import caller, definition_line, is_own_name
from primgraph.operators.variable import Variable

_RANDOM = "draw with pg.random.normal(key, shape) and its kind, or pass the numbers as an argument"
_TIME = "pass the time as an argument"


class TracingWarning(UserWarning):
    """Warning that `pg.jit` or `pg.trace` traced a function of more than its arguments.

    A random number or a time was read, or an array that the function finds elsewhere has changed
    since it was compiled, which is seen when it is compiled again, and with PRIMGRAPH_DEBUG=1 at
    each call. The compiled function keeps what was there in all its calls. Or the function assigned
    a traced value to an attribute, an entry of a dict or a global, which happens while it is traced
    only: pass the state as an argument, and return the new one. Numbers that differ from call to
    call are arguments, or are drawn by a key:

        import numpy as np
        import primgraph as pg

        noisy = pg.jit(lambda key, x: x + pg.random.normal(key, x.shape))
        print(noisy(7, np.zeros(3)).shape)
    """


# The name of the function that is being traced by `pg.jit` or `pg.trace`.
traced_name: ContextVar[str] = ContextVar("primgraph_traced_name", default="")


def warn_of_fixed(what: str, hint: str = _RANDOM) -> None:
    """Warn that the result of a call is fixed, if a function is being traced."""
    name = traced_name.get()
    if name:
        place = caller()
        _warn(f"{what} is called while {name!r} is traced", hint, place.file, place.line)


def _warn(what: str, hint: str, file: str, line: int) -> None:
    text = f"{what}: what is compiled of it keeps what it gave; {hint}"
    warnings.warn_explicit(text, TracingWarning, file, line)


@contextmanager
def warn_of_randomness(
    name: str, mentioned: Callable[[], Mapping[str, Any]], function: Any
) -> Iterator[None]:
    """Warn of what a function draws and keeps in the context, other than its result.

    `mentioned` returns the objects that it mentions, by name: generators among them may draw, and
    attributes and entries of others may keep a variable. Calls of what stands for modules warn.
    """
    found = mentioned()
    generators = {key: value for key, value in found.items() if is_generator(value)}
    before = {key: pickle.dumps(generator) for key, generator in generators.items()}
    kept = {id(variable): variable for _, variable in _variables_in(found)}
    with Setting(traced_name, name):
        yield
    for key, generator in generators.items():
        if pickle.dumps(generator) != before[key]:
            place = definition_line(function) or caller()
            what = f"{key!r}, a {type(generator).__name__}, draws while {name!r} is traced"
            _warn(what, _RANDOM, place.file, place.line)
    paths = [path for path, variable in _variables_in(mentioned()) if id(variable) not in kept]
    if paths:
        place = definition_line(function) or caller()
        verb = "keeps" if len(paths) == 1 else "keep"
        listed = ", ".join(paths[:_NAMED]) + (", ..." if len(paths) > _NAMED else "")
        text = (
            f"{listed} {verb} a variable of the traced function {name!r}: what is compiled of it "
            "does not assign there when it is called; pass the state as an argument, and return "
            "the new one"
        )
        warnings.warn_explicit(text, TracingWarning, place.file, place.line)


# Maximum numbers of objects that are searched for variables, and of those that a warning names.
_SEARCHED = 1000
_NAMED = 3


def _variables_in(found: Mapping[str, Any]) -> Iterator[tuple[str, Variable]]:
    """Yield variables among objects, their attributes and entries, with their paths.

    The arguments of a call, modules, functions and primgraph's own objects are not searched.
    """
    waiting: deque[tuple[str, Any]] = deque(found.items())
    seen: set[int] = set()
    while waiting and len(seen) < _SEARCHED:
        path, value = waiting.popleft()
        if isinstance(value, Variable):
            yield path, value
        elif id(value) not in seen:
            seen.add(id(value))
            waiting += _parts_of(path, value)


def _parts_of(path: str, value: Any) -> list[tuple[str, Any]]:
    """Return the attributes of an object of the user's, or the entries of a container."""
    if type(value) is dict:
        return [(f"{path}[{key!r:.60}]", part) for key, part in value.items()]
    if type(value) in (list, tuple) and "." in path:
        return [(f"{path}[{i}]", part) for i, part in enumerate(value)]
    kind = type(value)
    if isinstance(value, type | ModuleType | FunctionType) or is_own_name(kind.__module__):
        return []
    return [(f"{path}.{key}", part) for key, part in getattr(value, "__dict__", {}).items()]


# Captured arrays of more bytes are not looked at.
_LARGEST = 1 << 24


@final
@dataclass(frozen=True, slots=True)
class Captured:
    """An array that a function found elsewhere when it was traced, and a checksum of it then."""

    name: str
    array: np.ndarray[Any, Any]
    checksum: int

    @classmethod
    def from_values(cls, found: Mapping[str, Any]) -> tuple[Captured, ...]:
        """Return those of the arrays in `found` that are not too large to be looked at again."""
        arrays = {n: a for n, a in found.items() if type(a) is np.ndarray and a.nbytes <= _LARGEST}
        return tuple([cls(n, a, _checksum(a)) for n, a in arrays.items() if a.dtype != object])

    def warn_of_change(self, name: str) -> None:
        """Warn if the array is another one now; a compiled function keeps the former numbers."""
        if _checksum(self.array) != self.checksum:
            place = caller()
            text = (
                f"the array {self.name!r}, which {name!r} found when it was traced, has changed: "
                "the compiled function keeps the former numbers; pass it as an argument, or call "
                "clear_cache()"
            )
            warnings.warn_explicit(text, TracingWarning, place.file, place.line)


def _checksum(array: np.ndarray[Any, Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data) if array.size else 0


def is_generator(value: Any) -> bool:
    """Whether a value is a generator of random numbers, whose state tells whether it drew."""
    # Modules that nobody has loaded have no generators.
    known, python = sys.modules.get("numpy.random"), sys.modules.get("random")
    kinds = () if known is None else (known.Generator, known.RandomState)
    return isinstance(value, kinds if python is None else (python.Random, *kinds))


@final
class _Watched:
    """A module or class, some of whose functions warn."""

    def __init__(self, original: Any, names: frozenset[str], hint: str) -> None:
        self._original = original
        self._names = names
        self._hint = hint

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._original, name)
        if name in self._names:
            return _watched_call(found, f"{self._original.__name__}.{name}", self._hint)
        return warning_stand_in(found)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._original(*args, **kwargs)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._original)


def _watched_call(function: Callable[..., Any], what: str, hint: str) -> Callable[..., Any]:
    return partial(_call, function, what, hint)


def _call(function: Callable[..., Any], what: str, hint: str, *args: Any, **kwargs: Any) -> Any:
    warn_of_fixed(what, hint)
    return function(*args, **kwargs)


_CLOCKS = frozenset(
    name
    for name in dir(time)
    if name.removesuffix("_ns")
    in ("clock_gettime", "monotonic", "perf_counter", "process_time", "thread_time", "time")
)
_NOW = frozenset(("now", "today", "utcnow"))


@cache
def _stand_ins(has_random: bool) -> dict[int, Any]:
    """Return the stand-ins by the identities of originals, which their modules keep."""
    watched: list[tuple[Any, frozenset[str], str]] = [(time, _CLOCKS, _TIME)]
    if has_random:
        random = sys.modules["random"]
        names = {name for name in random.__all__ if name.islower()}
        watched.append((random, frozenset(names - {"getstate", "seed", "setstate"}), _RANDOM))
    found: dict[int, Any] = {
        id(getattr(module, name)): _watched_call(
            getattr(module, name), f"{module.__name__}.{name}", hint
        )
        for module, names, hint in watched
        for name in names
    }
    found.update((id(module), _Watched(module, names, hint)) for module, names, hint in watched)
    found[id(datetime)] = _Watched(datetime, frozenset(), _TIME)
    for kind in (datetime.datetime, datetime.date):
        found[id(kind)] = _Watched(kind, _NOW, _TIME)
    return found


def warning_stand_in(value: Any) -> Any:
    """Return what warns in the place of a module, class or function; `value` itself for others."""
    return _stand_ins("random" in sys.modules).get(id(value), value)
