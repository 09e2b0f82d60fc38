"""Simplification of arithmetic: terms that are structurally zero, and signs of zeros.

`0.0 * x` is zero if `x` is finite, and a sum does not change by it if its sign is of no importance:
because the sum cannot be -0.0, or because no result depends on the sign of its zeros. Matrices with
structural zeros are full of such terms. The caller checks that the factors `finite` were, and uses
other code if not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from primgraph.codegen.ops.spelling.numbers import CONSTANT, WORDS, Number, Numbers


class Simplified(NamedTuple):
    """Results, and values that must be finite for the results to be right."""

    results: list[Number]
    finite: list[Number]


def simplify(results: Sequence[Number], new: Numbers) -> Simplified:
    """Return equal results with fewer operations, and values to check."""
    order = in_order([*results, *new.required])
    signed = _signed_zeros(order, results)
    found: dict[Number, Number] = {}
    dropped: dict[Number, None] = {}
    for x in order:
        new.step, new.unsigned = x.step, x.unsigned
        args = [found[a] for a in x.args]
        rule = None if x in signed else _FREE.get(x.word)
        simpler = None if rule is None else rule(new, dropped, *args)
        if simpler is None:
            same = all(a is b for a, b in zip(args, x.args, strict=True))
            simpler = x if same else new(x.word, *args)
        found[x] = simpler
    made = [found[x] for x in results]
    dropped.update(dict.fromkeys(found[x] for x in new.required))
    used = set(in_order([*made, *dropped]))
    dropped.update(dict.fromkeys(y for x in new.finite if (y := found.get(x)) in used))
    return Simplified(made, _checks(made, [x for x in _reasons(dropped) if x.word != CONSTANT]))


def in_order(results: Iterable[Number]) -> list[Number]:
    """Return everything that results are computed from, operands first."""
    seen, waiting = set(results), list(results)
    for x in waiting:
        waiting += [a for a in x.args if a not in seen]
        seen.update(x.args)
    return sorted(seen, key=lambda x: x.place)


def _signed_zeros(order: Sequence[Number], results: Sequence[Number]) -> set[Number]:
    """Return the values whose zeros must have NumPy's sign, as it reaches a result."""
    signed = {x for x in results if not x.unsigned}
    for x in reversed(order):
        if x in signed and not x.least:
            signed.update(a for a in _operands_with_sign(x) if not a.unsigned)
    return signed


def _operands_with_sign(x: Number) -> Iterator[Number]:
    """Yield the operands that decide the sign of a zero.

    A sum is -0.0 only if all its terms are, so that one that is never -0.0 decides alone. A sum or
    difference of two numbers is 0.0 if one is not zero.
    """
    if x.word in ("+", "-") and (x.args[0].least or x.args[1].least):
        return
    safe = [a for a in x.args[: 1 + (x.word == "+")] if not a.negative_zero]
    if x.word in ("+", "-") and safe:
        yield min(safe, key=lambda a: a.word != CONSTANT)
    elif x.args:
        yield from (x.args[k] for k in WORDS[x.word].signed)


# Rules that may change the sign of a zero.

_Rule = Callable[..., Number | None]


def _add(new: Numbers, dropped: dict[Number, None], x: Number, y: Number) -> Number | None:
    for a, b in ((x, y), (y, x)):
        if a.is_zero:
            return b
    return None


def _sub(new: Numbers, dropped: dict[Number, None], x: Number, y: Number) -> Number | None:
    if y.is_zero:
        return x
    if x.is_zero:
        return new("-x", y)
    return new("-x", new("+", x.args[0], y)) if x.word == "-x" else None


def _mul(new: Numbers, dropped: dict[Number, None], x: Number, y: Number) -> Number | None:
    for a, b in ((x, y), (y, x)):
        if a.is_zero and b.word != CONSTANT:
            dropped[b] = None
            return new.constant(0.0)
    return None


def _div(new: Numbers, dropped: dict[Number, None], x: Number, y: Number) -> Number | None:
    if not x.is_zero:
        return None
    # It is finite if `y` is a number other than zero.
    dropped[new("/", new.constant(0.0), new("-x", y) if y.word == "-x" else y)] = None
    return new.constant(0.0)


def _neg(new: Numbers, dropped: dict[Number, None], x: Number) -> Number | None:
    return new("-", x.args[1], x.args[0]) if x.word == "-" else None


_FREE: dict[str, _Rule] = {"+": _add, "-": _sub, "*": _mul, "/": _div, "-x": _neg}


# Checks.

_LARGEST = 1e300


def _reasons(dropped: Iterable[Number]) -> dict[Number, None]:
    """Return values that are finite only if all `dropped` ones are: sums and products of bounded
    functions are, if the operands of these are numbers."""
    dropped = list(dropped)
    sources: dict[Number, dict[Number, None]] = {}
    for x in in_order(dropped):
        if x.args and WORDS[x.word].bound < math.inf:
            # Its operand is finite if it is, and the other way round, or only the first.
            sources[x] = {x.args[0] if WORDS[x.word].spreads else x: None}
        else:
            sources[x] = {y: None for a in x.args if a in sources for y in sources[a]}
    found: dict[Number, None] = {}
    for x in dropped:
        found.update(sources[x] if x.most < _LARGEST else {x: None})
    return found


def _checks(results: Sequence[Number], dropped: Iterable[Number]) -> list[Number]:
    """Return values that are finite only if all `dropped` ones are.

    Results tell of what they are computed from by operations that keep special values.
    """
    left = set(dropped)
    if not left:
        return []
    zeros = {x.args[1]: x for x in left if x.word == "/" and x.args[0].is_zero}
    told = {x: left.intersection(_told_by(x, zeros)) for x in dict.fromkeys(results)}
    found: list[Number] = []
    while told:
        best = max(told, key=lambda x: len(told[x] & left))
        if left.isdisjoint(told[best]):
            break
        found.append(best)
        left -= told.pop(best)
    # Values that tell of others come behind them.
    for x in sorted(left, key=lambda x: -x.place):
        if x in left:
            found.append(x)
            left -= _told_by(x, zeros)
    return found


def _told_by(x: Number, zeros: Mapping[Number, Number]) -> set[Number]:
    """Return the values that are finite if `x` is; `zeros` are quotients, by their divisor."""
    seen, waiting = {x}, [x]
    for y in waiting:
        told = [y.args[k] for k in WORDS[y.word].spreads] if y.args else []
        if y.word == "/" and y.args[1] in zeros:
            told.append(zeros[y.args[1]])
        waiting += [a for a in told if a not in seen]
        seen.update(told)
    return seen
