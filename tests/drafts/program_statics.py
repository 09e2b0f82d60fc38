"""Random static arguments of compiled functions: values that are equal for Python, and differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from program_draft import Choices

import primgraph as pg


class Level(IntEnum):
    """An enumeration whose members equal integers."""

    ZERO = 0
    ONE = 1


class Name(str):
    """A string of a class of its own."""

    __slots__ = ()


class Pair(NamedTuple):
    """A named tuple, which equals a plain one."""

    first: Any
    second: Any


@dataclass(frozen=True)
class Options:
    """A dataclass of static options, one of which does not count."""

    value: Any
    note: int = field(default=0, compare=False)


# Leaves of one row are equal for Python, or not equal to themselves.
_ALIKE: tuple[tuple[Callable[[], Any], ...], ...] = (
    (
        lambda: 1, lambda: 1.0, lambda: True, lambda: 1 + 0j, lambda: Level.ONE,
        lambda: np.float32(1), lambda: np.float64(1), lambda: np.int64(1), lambda: np.True_,
        lambda: Fraction(1), lambda: Decimal("1"), lambda: Decimal("1.0"), lambda: np.longdouble(1),
    ),
    (
        lambda: 0, lambda: 0.0, lambda: -0.0, lambda: False, lambda: 0j, lambda: complex(-0.0, 0.0),
        lambda: complex(0.0, -0.0), lambda: Level.ZERO, lambda: np.float32(0.0),
        lambda: np.float32(-0.0), lambda: np.float64(-0.0), lambda: Decimal("-0"),
    ),
    (
        lambda: float("nan"), lambda: np.float32("nan"), lambda: np.float64("nan"),
        lambda: complex(float("nan"), 0.0), lambda: np.datetime64("NaT"),
    ),
    (lambda: "a", lambda: Name("a"), lambda: np.str_("a")),
    (lambda: range(0), lambda: range(1, 1), lambda: range(0, 0, 2)),
    (lambda: None, lambda: int, lambda: float, lambda: np.dtype("f8"), lambda: "float64"),
)  # fmt: skip

_DEEPEST = 3
_CALLS = 30


class StaticValue:
    """A drawn value, made anew by each call: no part of it need be the same object."""

    def __init__(self, draw: Choices, depth: int = 0) -> None:
        self.kind = draw.choose(("leaf", "tuple", "pair", "options", "set"))
        if depth == _DEEPEST or draw.chance(0.3):
            self.kind = "leaf"
        self.row = draw.below(len(_ALIKE))
        self.place = draw.below(len(_ALIKE[self.row]))
        count = {"leaf": 0, "pair": 2, "options": 1}.get(self.kind, draw.below(4))
        self.parts = [StaticValue(draw, depth + 1) for _ in range(count)]

    def __call__(self) -> Any:
        parts = [part() for part in self.parts]
        if self.kind == "leaf":
            return _ALIKE[self.row][self.place]()
        if self.kind == "pair":
            return Pair(*parts)
        if self.kind == "options":
            return Options(*parts)
        return tuple(parts) if self.kind == "tuple" else frozenset(parts)

    def change(self, draw: Choices) -> None:
        """Put another leaf, or another container, in the place of one that may equal it."""
        if self.parts and draw.chance(0.8):
            draw.choose(self.parts).change(draw)
        elif self.kind in ("tuple", "pair") and len(self.parts) == 2:
            self.kind = "pair" if self.kind == "tuple" else "tuple"
        else:
            self.place = draw.below(len(_ALIKE[self.row]))


def described(value: Any) -> str:
    """Describe a value completely: its classes, and what they consist of."""
    kind = type(value).__qualname__
    if isinstance(value, tuple):
        return f"{kind}({', '.join(map(described, value))})"
    if isinstance(value, frozenset):
        return f"{kind}({', '.join(sorted(map(described, value)))})"
    if isinstance(value, Options):
        listed = [described(getattr(value, f.name)) for f in fields(value) if f.compare]
        return f"{kind}({', '.join(listed)})"
    return f"{kind} {value!r}"


def scaled(x: Any, static: Any) -> Any:
    """Return `x` times a number that differs for values that differ in any way."""
    return x * float(crc32(described(static).encode()))


def check_statics(seed: int, seen: Counter[str]) -> None:
    """Check that a compiled function gives what it gives uncompiled, whatever came before."""
    draw = Choices(np.random.default_rng((seed, 29)))
    compiled = pg.jit(scaled, static_argnames="static")
    x = np.array([1.0, 2.0])
    described_so_far: set[str] = set()
    first = StaticValue(draw)
    for _ in range(_CALLS):
        if draw.chance(0.3):
            first = StaticValue(draw)
        elif draw.chance(0.6):
            first.change(draw)
        value = first()
        if isinstance(value, Options) and draw.chance(0.3):
            value = replace(value, note=draw.below(9))
        described_so_far.add(described(value))
        np.testing.assert_array_equal(compiled(x, static=value), scaled(x, value))
        assert len(compiled.compilations) == len(described_so_far), "equal values compiled twice"
    seen["static values"] += len(described_so_far)
