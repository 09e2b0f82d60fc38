"""Mixed partial derivatives as sums of directional derivatives with rational weights.

The derivative of order k along v is the sum of all partial derivatives of that order, each times
`k!/a!` and `v**a` for a multi-index a. So a few directional derivatives determine the partial ones:
A. Griewank, J. Utke, A. Walther, Evaluating higher derivative tensors by forward propagation of
univariate Taylor series, Math. Comp. 69 (2000), 1117. The directions come from `2**k a! x**a = sum
over b <= a of (-1)**|b| C(a, b) ((a - 2 b) x)**k / C(k, a)`, in which v and -v are one direction.
That is about half the product of all `a_i + 1`; interpolation on a grid takes all directions of
order k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, product
from typing import TypeAlias

Index: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Directions:
    """Integer directions, and for each multi-index the weights of derivatives along them."""

    vectors: tuple[Index, ...]
    weights: tuple[dict[int, Fraction], ...]


# Limit of the elimination that checks whether existing directions suffice, in integer products.
_MOST = 20_000


def directions_for(indices: Sequence[Index]) -> Directions:
    """Return a few directions whose derivatives determine those at all `indices`.

    Indices of high order come first; their directions are reused for others where possible.
    """
    vectors: list[Index] = []
    found: dict[Index, dict[Index, Fraction]] = {(): {}}
    for a in sorted({*indices}, key=lambda a: (-sum(a), a)):
        if not any(a):
            found[a] = {}
            continue
        own = directions_for_index(a)
        known = None if own.keys() <= {*vectors} else _solution(vectors, a)
        if known is None:
            more = [v for v in own if v not in vectors]
            kept = _independent(vectors, more, sum(a))
            vectors += kept
            known = own if len(kept) == len(more) else _solution(vectors, a)
            assert known is not None
        found[a] = known
    places = {v: i for i, v in enumerate(vectors)}
    weights = [{places[v]: w for v, w in found[a].items()} for a in indices]
    return Directions(tuple(vectors), tuple(weights))


def directions_for_index(a: Index) -> dict[Index, Fraction]:
    """Return the directions for one multi-index, with their weights.

    Each direction has coprime entries, and its first nonzero entry is positive.
    """
    order = sum(a)
    found: dict[Index, Fraction] = {}
    for b in product(*(range(n + 1) for n in a)):
        v = [n - 2 * m for n, m in zip(a, b, strict=True)]
        divisor = reduce(math.gcd, v)
        if not divisor:
            continue
        divisor = divisor if next(n for n in v if n) > 0 else -divisor
        direction = tuple([n // divisor for n in v])
        ways = math.prod(map(math.comb, a, b)) * (-1) ** sum(b) * divisor**order
        weight = Fraction(ways, 2**order * math.factorial(order))
        found[direction] = found.get(direction, Fraction(0)) + weight
    return {v: w for v, w in found.items() if w}


def _independent(vectors: Sequence[Index], more: Sequence[Index], order: int) -> list[Index]:
    """Return the directions in `more` that are not determined by `vectors` at that order."""
    monomials = _monomials([*vectors, *more], order)
    if len(vectors) + len(more) <= len(monomials):
        return list(more)
    found: list[Index] = []
    for v in more:
        before = [*vectors, *found]
        rows = [[_power(u, m) for u in before] for m in monomials]
        if _solve(rows, [_power(v, m) for m in monomials]) is None:
            found.append(v)
    return found


def _solution(vectors: Sequence[Index], a: Index) -> dict[Index, Fraction] | None:
    """Return weights of derivatives along `vectors` that add up to that at `a`, or None."""
    if not vectors:
        return None
    order = sum(a)
    monomials = _monomials([*vectors, a], order)
    if len(monomials) * len(vectors) > _MOST:
        return None
    rows = [[_power(v, m) for v in vectors] for m in monomials]
    scale = Fraction(math.prod(map(math.factorial, a)), math.factorial(order))
    weights = _solve(rows, [scale if m == a else Fraction(0) for m in monomials])
    if weights is None:
        return None
    return {v: w for v, w in zip(vectors, weights, strict=True) if w}


def _monomials(vectors: Sequence[Index], order: int) -> list[Index]:
    """Return all multi-indices of that order in which some of `vectors` is nonzero."""
    size = len(vectors[0])
    places = [i for i in range(size) if any(v[i] for v in vectors)]
    return [
        tuple([chosen.count(i) for i in range(size)])
        for chosen in combinations_with_replacement(places, order)
    ]


def _power(v: Index, a: Index) -> Fraction:
    return Fraction(math.prod(n**m for n, m in zip(v, a, strict=True)))


def _solve(rows: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """Solve linear equations exactly, with zeros for free unknowns; None without a solution."""
    table = [[*row, b] for row, b in zip(rows, right, strict=True)]
    count = len(rows[0]) if rows else 0
    pivots: list[int] = []
    for column in range(count):
        place = next((i for i in range(len(pivots), len(table)) if table[i][column]), None)
        if place is None:
            continue
        at = len(pivots)
        table[at], table[place] = table[place], table[at]
        head = table[at][column]
        table[at] = [x / head for x in table[at]]
        for i, row in enumerate(table):
            if i != at and row[column]:
                factor = row[column]
                table[i] = [x - factor * y for x, y in zip(row, table[at], strict=True)]
        pivots.append(column)
    if any(row[-1] for row in table[len(pivots) :]):
        return None
    found = [Fraction(0)] * count
    for i, column in enumerate(pivots):
        found[column] = table[i][-1]
    return found
