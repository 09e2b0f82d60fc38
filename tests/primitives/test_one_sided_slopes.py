"""Slopes of functions of one and two operands at seams, against one-sided differences.

Where the differences of a function's own values from the left and from the right agree, it is
smooth, and its slope is what they agree on: at zeros of both signs, whole and half numbers, ties of
two operands, and where the implementation changes its formula. Where they differ there is a kink
or a jump, and docs/conventions.md has the rule. Second derivatives are compared in the same way
with differences of the slopes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph import special as sp
from primgraph.ir.interpret import interpret
from primgraph.transforms import lower

STEP = 1e-4
SEAMS = np.array(
    [0.0, -0.0, 0.25, -0.25, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.0, -2.0, 3.0, -3.0, 8.5, 20.0]
)
# Multiples of the step, of which two make a one-sided difference.
SHIFTS = (0.0, 1.0, 2.0, 0.5, -1.0, -2.0, -0.5)

# Functions of vectors, of pairs and of two numbers.
_OTHERS = {"SiciResult", "log_softmax", "logsumexp", "sici", "softmax", "zeta"}


def _takes_one_number(name: str) -> bool:
    """Whether a function of `pg.special` has one required parameter, a number."""
    if name in _OTHERS:
        return False
    parameters = inspect.signature(getattr(sp, name)).parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind < p.VAR_POSITIONAL]
    return len(required) == 1


UNARY: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(pg, name)
        for name in (
            "log", "log10", "log1p", "log2", "nan_to_num", "negative", "positive", "rad2deg",
            "real", "reciprocal", "relu", "round", "rsqrt", "scale", "sigmoid", "sign", "silu",
            "sin", "sinc", "sinh", "softplus", "sqrt", "square", "tan", "tanh", "trunc",
        )
    },
    **{name: getattr(sp, name) for name in sp.__all__ if _takes_one_number(name)},
    "sici": lambda x: sp.sici(x).si + sp.sici(x).ci,
    "wofz": lambda x: pg.real(sp.wofz(x)),
    "polygamma": lambda x: sp.polygamma(2, x),
    "multigammaln": lambda x: sp.multigammaln(x, 3),
    **{f"zeta {s}": partial(sp.zeta, s) for s in (1.5, 2.0)},
    **{
        f"{name} {v}": partial(getattr(sp, name), v)
        for name in ("iv", "ive", "jv", "kv", "kve", "yv")
        for v in (0.0, 1.0, 2.0, 0.5)
    },
    **{f"expn {n}": partial(sp.expn, n) for n in (0.0, 2.0)},
    **{
        f"hyp2f1 {given}": partial(sp.hyp2f1, *given)
        for given in ((0.5, 1.5, 2.0), (0.0, 1.0, 2.0), (-1.0, 2.0, -3.0), (-2.0, 3.0, 1.0))
    },
    **{
        f"hyp1f1 {given}": partial(sp.hyp1f1, *given)
        for given in ((0.5, 1.5), (0.0, 1.0), (-2.0, 2.0), (2.0, 0.5))
    },
    **{
        f"betainc {a} {b}": partial(sp.betainc, a, b) for a in (0.5, 1.0, 2.0) for b in (1.0, 3.0)
    },
}  # fmt: skip
BINARY: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(pg, name)
        for name in (
            "logaddexp", "logaddexp2", "maximum", "minimum", "mod", "multiply", "power",
            "remainder", "subtract",
        )
    },
    **{
        name: getattr(sp, name)
        for name in (
            "beta", "betaln", "binom", "boxcox", "boxcox1p", "comb", "gammainc", "gammaincc",
            "huber", "kl_div", "poch", "pseudo_huber", "rel_entr", "xlog1py", "xlogy",
        )
    },
}  # fmt: skip
# Those with first derivatives only: of the parameter 0, the shape, second ones are NaN.
FIRST = ("gammainc", "gammaincc")


def derivatives(function: Callable[..., Any], count: int, order: int) -> Callable[..., list[Any]]:
    """The function, its slopes by each operand, and the slopes of these."""

    def found(*xs: Any) -> list[Any]:
        value = function(*xs)
        first = pg.grad(pg.sum(value), list(xs), materialize_grads=True)
        second = [
            pg.grad(pg.sum(slope), x, materialize_grads=True)
            for slope in (first if order > 1 else ())
            for x in xs
        ]
        return [value, *first, *second]

    return found


def agreed(values: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the slope by differences, and where those of both sides and of half the step agree."""
    here, right, far_right, near_right, left, far_left, near_left = values
    sides = [
        (-3.0 * here + 4.0 * right - far_right) / (2.0 * step),
        (-3.0 * here + 4.0 * near_right - right) / step,
        (3.0 * here - 4.0 * left + far_left) / (2.0 * step),
        (3.0 * here - 4.0 * near_left + left) / step,
    ]
    spread = np.max(sides, axis=0) - np.min(sides, axis=0)
    smooth = np.isfinite(spread) & (spread <= 1e-5 * (1.0 + np.abs(sides[0])))
    return (sides[0] + sides[2]) / 2.0, smooth


def mismatches(
    function: Callable[..., Any], points: tuple[np.ndarray, ...], order: int
) -> Iterator[str]:
    """Tell the smooth points at which a derivative is something else than the differences."""
    count, size = len(points), points[0].size
    specs = [pg.spec((len(SHIFTS) * size,))] * count
    graph = lower(pg.trace(derivatives(function, count, order), *specs, rebind=False))
    for moved in range(count):
        step = STEP * np.maximum(1.0, np.abs(points[moved]))
        at = [
            np.concatenate([p + shift * step * (i == moved) for shift in SHIFTS])
            for i, p in enumerate(points)
        ]
        with np.errstate(all="ignore"):
            rows = [np.reshape(v, (len(SHIFTS), size)) for v in interpret(graph, *at)]
            pairs = [(0, 1 + moved)]
            if order > 1:
                pairs += [(1 + i, 1 + count + count * i + moved) for i in range(count)]
            right = np.ones(size, bool)
            for whole, slope in pairs:
                expected, smooth = agreed(rows[whole], step)
                close = np.abs(rows[slope][0] - expected) <= 3e-5 * (1.0 + np.abs(expected))
                wrong = right & smooth & ~close
                for k in np.flatnonzero(wrong):
                    place = ", ".join(str(p[k]) for p in points)
                    yield (
                        f"derivative {whole} by operand {moved} at ({place}): "
                        f"{rows[slope][0][k]}, differences {expected[k]}"
                    )
                if whole == 0:
                    right = smooth & ~wrong


@pytest.mark.parametrize("name", UNARY)
def test_smooth_points_of_one_operand_are_no_kinks(name: str) -> None:
    assert not list(mismatches(UNARY[name], (SEAMS,), 2))


@pytest.mark.parametrize("name", BINARY)
def test_smooth_points_of_two_operands_are_no_kinks(name: str) -> None:
    points = tuple(p.ravel() for p in np.meshgrid(SEAMS, SEAMS))
    assert not list(mismatches(BINARY[name], points, 1 if name in FIRST else 2))


VECTORS = [
    np.array(p) for p in ((0.0, 1.0, -2.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (2.0, 0.5, 1.0))
]
WEIGHTS = np.array([[0.7], [-1.3], [0.4]])

# Functions of vectors of three along the first axis.
ROWS: dict[str, Callable[..., Any]] = {
    **{
        f"norm {order}": partial(pg.norm, ord=order)
        for order in (-1, -2, -0.5, 0.5, 1, 1.5, 2, 3, np.inf, -np.inf)
    },
    **{
        name: getattr(pg, name)
        for name in (
            "log_softmax", "logcumsumexp", "logsumexp", "max", "mean", "min", "nancumprod",
            "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar",
            "prod", "ptp", "softmax", "std", "sum", "var",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_smooth_directions_of_vectors_are_no_kinks(name: str) -> None:
    def function(*elements: Any) -> Any:
        found = ROWS[name](pg.stack(list(elements)), axis=0)
        return found if found.ndim == 1 else pg.sum(found * WEIGHTS, axis=0)

    points = tuple(np.array(elements) for elements in zip(*VECTORS, strict=True))
    assert not list(mismatches(function, points, 1))


@pytest.mark.parametrize(
    "wrong", [lambda x: pg.sqrt(x**4), lambda x: pg.relu(x) - pg.relu(-x), pg.sign]
)
def test_the_sweep_finds_slopes_that_are_nan_or_those_of_a_kink(
    wrong: Callable[..., Any],
) -> None:
    found = list(mismatches(wrong, (SEAMS,), 1))
    assert [place.partition(" at ")[2].partition(":")[0] for place in found] == (
        [] if wrong is pg.sign else ["(0.0)", "(-0.0)"]
    )
