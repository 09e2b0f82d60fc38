"""Rows of rules: each one at its level and not below, from the two sides that it says are equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from program_tolerance import same_bits

import primgraph as pg
from primgraph.base.debug_mode import debug
from primgraph.errors import PrimgraphError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.types import TensorType
from primgraph.primitives import elementwise as e
from primgraph.primitives import logic
from primgraph.primitives.constants import filled_constant
from primgraph.transforms import dead_code, simplify
from primgraph.transforms.optimize.simplify import FAMILIES, _sweep
from primgraph.transforms.rewrite.functions import STABLE
from primgraph.transforms.rewrite.row_conditions import floats, power_of_two, single
from primgraph.transforms.rewrite.rows import rows
from primgraph.transforms.rewrite.rule import Family, Rule, Table
from primgraph.transforms.rewrite.sink_moves import LAST
from primgraph.transforms.rewrite.terms import (
    Applied,
    Condition,
    Row,
    Term,
    Unknown,
    a,
    b,
    c,
    is_number,
    term,
    words,
    x,
    y,
    z,
)

BOOL = np.dtype(np.bool_)
DTYPES = [np.dtype(name) for name in ("f8", "f4", "f2", "c16", "i8", "i4", "u1", "?")]

(_exp,) = words(e.exp)

# Stands for either zero.
ZERO = term(0)

# The rules that rows have become, by the row.
RULES: dict[Row, list[Rule]] = {}
for _family in (*FAMILIES, STABLE, LAST):
    for _rule in (rule for listed in _family.rules.values() for rule in listed):
        if _rule.row is not None:
            RULES.setdefault(_rule.row, []).append(_rule)


def parts(given: Term) -> list[Term]:
    """A term and all its parts, in order."""
    inner = given.operands if isinstance(given, Applied) else ()
    return list(dict.fromkeys([given, *(p for t in inner for p in parts(t))]))


def unknowns(given: Term) -> list[Unknown]:
    """The unknowns of a term, in order."""
    return [p for p in parts(given) if isinstance(p, Unknown)]


def written(given: Term, values: dict[Term, Any], like: TensorType, turned: bool = False) -> Value:
    """`given` recorded by its primitives, a number as an array like what it stands beside.

    With `turned` operands that may change places have done so.
    """
    if isinstance(given, Unknown) and not given.number:
        found: Value = values[given]
        return found
    if not isinstance(given, Applied):
        number = values[given] if isinstance(given, Unknown) else values.get(given, given.value)
        return filled_constant(number, like.with_dtype(BOOL) if isinstance(number, bool) else like)
    made = {t: written(t, values, like, turned) for t in given.operands if not is_number(t)}
    beside = list(made.values())[-1].type if made else like
    operands = [made[t] if t in made else written(t, values, beside) for t in given.operands]
    if turned and given.op.commutative:
        operands.reverse()
    result: Value = given.op(*operands, **dict(given.params))
    return result


@dataclass(frozen=True, slots=True)
class Case:
    """A row with types and numbers for its unknowns, and a zero where it says 0 on the left."""

    row: Row
    types: tuple[np.dtype, ...]
    numbers: tuple[float, ...]
    zero: float = 0.0

    def values(self, builder: Builder, shape: tuple[int, ...]) -> dict[Term, Any]:
        """Inputs for the unknown values, and the numbers."""
        free = unknowns(self.row.left)
        pairs = zip([u for u in free if not u.number], self.types, strict=True)
        inputs = {u: builder.input(TensorType(shape, d), u.name) for u, d in pairs}
        return inputs | dict(zip([u for u in free if u.number], self.numbers, strict=True))

    def graphs(self, shape: tuple[int, ...], turned: bool = False) -> tuple[Graph, Graph]:
        """The left and the right side."""
        with Builder() as builder:
            values = self.values(builder, shape)
            like = builder.inputs[0].type
            left = written(self.row.left, {ZERO: self.zero, **values}, like, turned)
            right = written(self.row.right, values, left.type)
            sides = builder.graph([left]), builder.graph([right])
        return dead_code(sides[0]), dead_code(sides[1])

    def holds(self) -> bool:
        """Whether the conditions of the row hold, if every value has one reader."""
        with Builder() as builder:
            values = self.values(builder, ())
            type = written(self.row.left, values, builder.inputs[0].type).type
            return all(self._holds(c, builder, values, type) for c in self.row.conditions)

    def _holds(
        self, asked: Condition, builder: Builder, values: dict[Term, Any], type: TensorType
    ) -> bool:
        things: list[Any] = []
        for given in asked.terms:
            value = written(given, values, type)
            if is_number(given):
                feeds = [np.ones((), d) for d in self.types]
                things.append(interpret(builder.graph([value]), *feeds)[0].item())
            else:
                things.append(value)
        return asked.holds(Asked(type), *things)


@dataclass(frozen=True, slots=True)
class Asked:
    """What conditions ask, where nothing is read twice."""

    type: TensorType

    def single(self, value: Value) -> bool:
        return True


def admitted(row: Row) -> list[tuple[np.dtype, ...]]:
    """The dtypes of the unknown values that the primitives of both sides take, and the row."""
    count = len([u for u in unknowns(row.left) if not u.number])
    found = {}
    anywhere = any(rule.any_dtype for rule in RULES[row])
    for dtype in DTYPES if anywhere else [d for d in DTYPES if d.kind != "c"]:
        for types in product((dtype, BOOL), repeat=count):
            try:
                case = Case(row, types, (1,) * (len(unknowns(row.left)) - count))
                case.graphs((1,))
            except PrimgraphError:
                continue
            found[types] = None
    return list(found)


def special(dtype: np.dtype) -> np.ndarray:
    """Numbers at which rows fail that are not exact."""
    if dtype.kind == "f":
        info = np.finfo(dtype)
        odd = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.1, -0.7, 3.0]
        tiny = info.smallest_subnormal
        return np.array([*odd, tiny, -3 * tiny, info.max, -info.max, info.tiny], dtype)
    if dtype.kind == "c":
        odd = [(0.0, -0.0), (-0.0, 0.0), (1.0, -0.0), (0.3, -1.7), (np.inf, 1.0), (0.0, -np.inf)]
        return np.array([complex(*pair) for pair in (*odd, (np.nan, 1.0), (-0.0, np.nan))], dtype)
    return np.array([True, False]) if dtype.kind == "b" else whole(dtype)


def whole(dtype: np.dtype) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.array([info.min, info.max, 0, 1, 2, 3, 7], dtype)


def plain(dtype: np.dtype) -> np.ndarray:
    """Numbers of which few operations overflow or underflow."""
    if dtype.kind == "c":
        return np.array([1.0, -1.0, 0.3 - 0.7j, 1.7j, 1.1 + 1.3j], dtype)
    if dtype.kind != "f":
        return special(dtype)
    return np.array([0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 1 / 3, 1.7, 1.1, -1.3], dtype)


def of_powers(dtype: np.dtype) -> list[Any]:
    """Numbers of rows: special ones, powers of two on either side of 1, and a few others."""
    if dtype.kind == "b":
        return [True, False]
    if dtype.kind == "c":
        return [0j, 1 + 0j, 0.5 - 2j]
    if dtype.kind != "f":
        return [n.item() for n in whole(dtype)]
    info = np.finfo(dtype)
    odd = [0.0, -0.0, 1.0, -1.0, 2.0, -4.0, 0.25, 0.1, -1.1, 3.0, np.inf, np.nan]
    edge = [info.max, info.tiny, info.smallest_subnormal, 2.0 ** (info.maxexp - 1)]
    return [dtype.type(n).item() for n in (*odd, *edge)]


def cases(row: Row) -> Iterator[Case]:
    """The row for all its dtypes, and all numbers for which its conditions hold."""
    count = len([u for u in unknowns(row.left) if u.number])
    zeros = (0.0, -0.0) if ZERO in parts(row.left) else (0.0,)
    for types in admitted(row):
        # Of pairs of numbers one in three.
        chosen = list(product(of_powers(types[0]), repeat=count))[:: 3 if count > 1 else 1]
        for numbers in chosen:
            if Case(row, types, numbers).holds():
                yield from (Case(row, types, numbers, zero) for zero in zeros)


def grid(numbers: Sequence[np.ndarray]) -> list[np.ndarray]:
    """All combinations."""
    return [axis.reshape(-1) for axis in np.meshgrid(*numbers)]


def everything(graph: Graph) -> Graph:
    """The same graph, which gives whatever it computes."""
    return graph.with_outputs([v for eqn in graph.body for v in eqn.outputs] or graph.outputs)


def settled(graph: Graph, feeds: Sequence[np.ndarray]) -> np.ndarray:
    """Where all numbers on the way are finite, and neither overflow nor underflow is near."""
    fine = np.ones(feeds[0].shape, bool)
    for found in interpret(everything(graph), *feeds):
        if found.dtype.kind in "fc":
            info = np.finfo(found.dtype)
            size = np.abs(found)
            fine &= np.isfinite(found) & ((size == 0) | ((size > info.tiny) & (size < info.max)))
    return fine


def unsigned(found: np.ndarray) -> np.ndarray:
    """The same with one zero only."""
    return np.where(found == 0, np.zeros((), found.dtype), found)


@cache
def only(row: Row) -> Table:
    """A table of this row alone."""
    return Table(lambda op: RULES[row] if op is row.left.op else [])


def rewritten(graph: Graph, row: Row) -> Graph:
    """What the row alone makes of a graph."""
    return _sweep(graph, lambda *_: None, (only(row), only(row)))[0]


# Fast rows of which no ordinary numbers are known that tell them from finite ones.
UNTOLD = {
    "power(x, 0.5)": "the C library rounds as the root does, as far as it has been tried",
    "power(x, -0.5)": "and then divides",
    "sqrt(x * x)": "the root of a rounded square is rounded back to the number",
}


def is_symmetry(row: Row) -> bool:
    """Whether the row says that a function is even or odd.

    The C library keeps to that in the numbers tried here, but nobody has promised it.
    """
    inner = row.left.operands[0]
    negated = isinstance(inner, Applied) and inner.op is e.neg
    return negated and len(row.left.operands) == 1 and row.level == "fast"


def different(case: Case) -> int:
    """At how many special numbers the sides differ, after a look at what the row makes of each."""
    feeds = grid([special(d) for d in case.types])
    shape = feeds[0].shape
    left, right = case.graphs(shape)
    assert left.output_types == right.output_types
    before, after = (interpret(g, *feeds)[0] for g in (left, right))
    for turned in (False, True):
        graph = case.graphs(shape, turned)[0]
        changed = rewritten(graph, case.row)
        assert changed != graph, f"{graph}\nis not rewritten"
        assert np.all(same_bits(interpret(changed, *feeds)[0], after))
    return int(np.sum(~same_bits(before, after)))


def sides_where_plain(
    case: Case, feeds: list[np.ndarray] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """What both sides compute where nothing special occurs, zeros without a sign."""
    feeds = grid([plain(d) for d in case.types]) if feeds is None else feeds
    sides = case.graphs(feeds[0].shape)
    fine = settled(sides[0], feeds) & settled(sides[1], feeds)
    left, right = (unsigned(interpret(g, *feeds)[0][fine]) for g in sides)
    return left, right


def rounds_somewhere(row: Row) -> bool:
    """Return whether the sides differ at any of many ordinary numbers.

    NumPy has functions of its own for some processors, so that nothing is known of a few numbers.
    """
    rng = np.random.default_rng(5)
    for case in cases(row):
        drawn = [rng.uniform(0.05, 1.0, 2000) * rng.choice([-1, 1, 2], 2000) for _ in case.types]
        feeds = [x.astype(d) for x, d in zip(drawn, case.types, strict=True)]
        left, right = sides_where_plain(case, feeds)
        if left.dtype.kind in "fc" and not np.all(same_bits(left, right)):
            return True
    return False


@pytest.mark.parametrize("row", RULES, ids=lambda row: f"{row.level}: {row}")
def test_a_row_holds_at_its_level_and_not_below(row: Row) -> None:
    """Of all combinations of special numbers, for all dtypes that the row takes.

    "exact": the same bits; integers are, at every level. "finite": up to the sign of zeros, where
    nothing special is near. "fast": up to rounding, there. What is not exact has numbers that show
    it, and what is fast has some where nothing special is near.
    """
    with debug(False):
        check(row)


def check(row: Row) -> None:
    """All of that, of one row."""
    tried, anywhere, where_plain = 0, 0, 0
    for case in cases(row):
        tried += 1
        count = different(case)
        if row.level == "exact" or case.types[0].kind not in "fc":
            assert count == 0, case
            continue
        anywhere += count
        left, right = sides_where_plain(case)
        rounded = int(np.sum(~same_bits(left, right)))
        where_plain += rounded
        if row.level == "finite":
            assert rounded == 0, case
        elif all(1e-3 < abs(n) < 1e3 for n in case.numbers):
            tolerance = 200 * np.finfo(left.dtype).eps
            np.testing.assert_allclose(right, left, tolerance, tolerance, err_msg=str(case))
    assert tried, "no dtype or number fits"
    if row.level != "exact" and not is_symmetry(row):
        assert anywhere, "it is exact"
    if row.level == "fast" and not is_symmetry(row) and str(row.left) not in UNTOLD:
        assert where_plain or rounds_somewhere(row), "it is finite"


# The language of rows.


def test_rows_are_read_as_they_are_written() -> None:
    exp, select = words(e.exp, logic.select)
    texts = {
        "x + -0.0": x + -0.0,
        "(x + y) * z": (x + y) * z,
        "x - (y - z)": x - (y - z),
        "x - y - z": x - y - z,
        "-(x * y)": -(x * y),
        "x / -y": x / -y,
        "-x**2": -(x**2),
        "(-x)**2": (-x) ** 2,
        "c * exp(1 - x)": c * exp(1 - x),
        "~(x & y) | True": ~(x & y) | True,
        "x ^ y & z": x ^ (y & z),
        "select(~x, 0, y)": select(~x, 0, y),
    }
    for text, given in texts.items():
        assert str(given) == text
    family = Family()
    rows(family, "fast")(x * y + x * z, x * (y + z), floats(x), single(x * y), why="shorter")
    (row,) = {rule.row for rule in family.rules[e.add]}
    assert str(row) == "x * y + x * z -> x * (y + z)   if floats(x), single(x * y)"


@pytest.mark.parametrize(
    ("left", "count"),
    [
        (x - y, 1),
        (x + x, 1),
        (x + y, 1),
        (x + -y, 2),
        (x * y + x * z, 4),
        (a * (b * x), 4),
        (_exp(x) * _exp(y), 1),
        (x * y - z * y, 4),
    ],
)
def test_a_row_is_looked_for_in_every_order_of_operands_that_differs(
    left: Applied, count: int
) -> None:
    family = Family()
    rows(family, "exact")(left, x)
    assert len(family.rules[left.op]) == count


def test_a_condition_that_is_not_the_same_for_both_orders_keeps_them_apart() -> None:
    family = Family()
    rows(family, "exact")(a * b * x, x, power_of_two(a))
    assert len(family.rules[e.mul]) == 4


@pytest.mark.parametrize(
    ("left", "right", "condition"),
    [
        (x, y, floats(x)),
        (a + b, x, floats(x)),
        (x + 1, y, floats(x)),
        (x + 1, x * c, floats(x)),
        (x + 1, x, floats(y)),
        (x + 1, x, single(x * y)),
        (x + 1, x, power_of_two(a)),
    ],
)
def test_rows_that_make_something_of_nothing_are_refused(
    left: Term, right: Term, condition: Condition
) -> None:
    with pytest.raises(pg.ArgumentError, match=r"does not occur on the left|rewrites what"):
        rows(Family(), "exact")(left, right, condition)


def test_a_row_of_the_user_is_applied_before_others() -> None:
    circle = Family()
    sin, cos = words(e.sin, e.cos)
    rows(circle, "fast")(sin(x) * sin(x) + cos(x) * cos(x), 1)
    graph = pg.transforms.lower(
        pg.trace(lambda x: pg.cos(x) * pg.cos(x) + pg.sin(x) * pg.sin(x), pg.spec(3))
    )
    assert [eqn.op.name for eqn in simplify(graph, "fast", extra=circle).body] == ["full"]
    assert "sin" in str(simplify(graph, "exact", extra=circle))


def test_parameters_count() -> None:
    """A power is not another one, as the whole and as a part."""
    powers = Family()
    exp = words(e.exp)[0]
    rows(powers, "exact")(x**3, x)
    rows(powers, "exact")(exp(x**5), x)
    for n, inner, left in ((3, False, 0), (4, False, 1), (5, True, 0), (6, True, 2)):
        with Builder() as builder:
            value = e.integer_pow(builder.input(TensorType((), np.dtype("f8"))), n=n)
            graph = builder.graph([e.exp(value) if inner else value])
        assert len(simplify(graph, extra=powers)) == left
