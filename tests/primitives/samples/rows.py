"""Rows of samples: how a primitive is called, what it refuses, and references for its values.

A row tells on what the primitive is called, where its operands are drawn from, and what is
refused. Types are texts as in `f64[2,3]`; the dtype `x` stands for each dtype of the row. What a
row leaves out has a default that suits elementwise functions of floats.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.text import brief_text

Interval = tuple[float, float]
Union = tuple[Interval, ...]

FLOATS = ("f64", "f32", "f16")
INTS = ("i64", "i32", "i8", "u64", "u8")
NUMBERS = FLOATS + INTS
EVERYTHING = (*NUMBERS, "bool")

REAL: Union = ((-2.0, 2.0),)
POSITIVE: Union = ((0.3, 2.5),)
NONZERO: Union = ((-2.0, -0.4), (0.4, 2.0))
INSIDE: Union = ((-0.9, 0.9),)
ABOVE_ONE: Union = ((1.2, 3.0),)
NATURAL: Union = ((0.0, 5.0),)

SHAPES = ("", "0", "1", "3", "2,3", "2,0,3")

# Derivatives of such a function are compared with differences, for want of an analytic one.
DIFFERENCES = "differences"


class Call:
    """The operands of one call, types or arrays, and its parameters."""

    def __init__(self, *operands: str | np.ndarray, **params: Any) -> None:
        self.operands = operands
        self.params = params

    def __str__(self) -> str:
        shown = [a if isinstance(a, str) else f"{a.dtype}{list(a.shape)}" for a in self.operands]
        return " ".join([*shown, *(f"{k}={brief_text(v)}" for k, v in self.params.items())])


class Refused:
    """A call with this type rule's error."""

    def __init__(self, error: type[Exception], *operands: str, **params: Any) -> None:
        self.error = error
        self.call = Call(*operands, **params)


@dataclass(frozen=True)
class Row:
    """All samples of one primitive.

    `domain` has an interval, or several, for each operand, the last one serving the rest.
    `reference` is an expression that shares no code with the primitive; None where the primitive
    is the NumPy function of the same name. `analytic` agrees with the primitive on real arrays
    and takes complex ones; None where the primitive's own meaning does. `made_fit` makes of the
    numbers that were drawn for operand `i` such as the primitive takes.
    """

    calls: Sequence[Call]
    refused: Sequence[Refused]
    dtypes: Sequence[str] = FLOATS
    domain: Sequence[Union] = (REAL,)
    reference: Callable[..., Any] | None = None
    analytic: Callable[..., Any] | str | None = None
    made_fit: Callable[[int, np.ndarray], np.ndarray] = lambda i, x: x


def elementwise(
    operands: int = 1,
    domain: Union | Sequence[Union] = REAL,
    dtypes: Sequence[str] = FLOATS,
    **details: Any,
) -> Row:
    """The row of a primitive on `operands` equal types; `details` are those of `Row`."""
    refused = []
    if "bool" not in dtypes:
        refused.append(Refused(DTypeError, *["bool[3]"] * operands))
    if "i64" not in dtypes:
        refused.append(Refused(DTypeError, *["i64[3]"] * operands))
    if operands == 2:
        refused += unequal("f64[3]")
    intervals = domain if isinstance(domain[0][0], tuple) else (domain,)
    calls = [Call(*[f"x[{shape}]"] * operands) for shape in SHAPES]
    return Row(calls, refused, dtypes, intervals, **details)


def unequal(type: str) -> list[Refused]:
    """Pairs of types that are not broadcast and not promoted."""
    other = "i8[3]" if type != "i8[3]" else "f64[3]"
    return [
        Refused(ShapeError, type, "f64[1]"),
        Refused(ShapeError, "f64[]", type),
        Refused(ShapeError, type, "f64[1,3]"),
        Refused(DTypeError, type, other),
    ]


def regular(i: int, x: np.ndarray) -> np.ndarray:
    """The first operand with a large diagonal, so that matrices are far from singular."""
    return x + 4 * np.eye(x.shape[-1], dtype=x.dtype) if i == 0 else x


def factor(i: int, x: np.ndarray) -> np.ndarray:
    """The first operand as a factor of Cholesky: a lower triangle with a real diagonal."""
    x = regular(i, np.tril(x))
    return np.tril(x, -1) + x.real * np.eye(x.shape[-1], dtype=x.dtype) if i == 0 else x


def lines(
    function: Callable[[list[Any]], list[Any]], x: np.ndarray, axis: int, dtype: Any = None
) -> np.ndarray:
    """What `function` makes of each line along `axis`."""
    turned = np.moveaxis(np.asarray(x), axis, -1)
    flat = turned.reshape(-1, turned.shape[-1]) if turned.size else turned.reshape(0, 1)
    found = np.array([function(line.tolist()) for line in flat], dtype or np.asarray(x).dtype)
    return np.moveaxis(found.reshape(turned.shape), -1, axis)


def along_axis(dtypes: Sequence[str], **details: Any) -> Row:
    """The row of a function along one axis."""
    calls = [
        Call("x[1]", axis=0),
        Call("x[5]", axis=0),
        Call("x[2,3]", axis=0),
        Call("x[2,3]", axis=1),
        Call("x[2,0,3]", axis=1),
    ]
    refused = [
        Refused(ShapeError, "f64[]", axis=0),
        Refused(ShapeError, "f64[3]", axis=1),
        Refused(ShapeError, "f64[3]", axis=-1),
    ]
    if "bool" not in dtypes:
        refused.append(Refused(DTypeError, "bool[3]", axis=0))
    return Row(calls, refused, dtypes, **details)
