"""Print symbolic sizes as text."""

from __future__ import annotations

import re

from primgraph.ir.dims.polynomial import (
    FLOOR,
    Atom,
    Polynomial,
    divided,
    made,
    product,
    terms_of,
)

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def text_of(dim: Polynomial) -> str:
    found = remainder(dim)
    if found is not None and found[2] == 1:
        return f"mod({found[0]},{found[1]})"
    text = ""
    for monomial, coefficient in dim.terms:
        alone = coefficient == 1 and len(monomial) == monomial[0][1] == 1 if monomial else False
        factors = [_spelled(a, alone) for a, p in monomial for _ in range(p)]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+" if text else ""
        text += sign + "*".join(factors)
    return text


def _spelled(atom: Atom, alone: bool) -> str:
    if isinstance(atom, str):
        return atom
    kind, x, y = atom
    if kind != FLOOR:
        return f"{kind}({x},{y})"
    left, right = (str(v) if _is_word(v) else f"({v})" for v in (x, y))
    return f"{left}//{right}" if alone else f"({left}//{right})"


def _is_word(extent: int) -> bool:
    """Return whether a size is one word: a nonnegative number or a name."""
    return (type(extent) is int and extent >= 0) or NAME.fullmatch(str(extent)) is not None


def remainder(dim: int) -> tuple[int, int, int] | None:
    """Return `x`, `y` and `k` if `dim` is `k * (x % y)`, else None."""
    for monomial, coefficient in terms_of(dim).items():
        for place, (atom, power) in enumerate(monomial):
            if isinstance(atom, str) or atom[0] != FLOOR or power != 1:
                continue
            _, x, y = atom
            others = made({monomial[:place] + monomial[place + 1 :]: coefficient})
            # The factors of `-k * y * (x // y)` other than the floor.
            factor = divided(others, y)[0] if isinstance(y, Polynomial) else _exact(others, y)
            if type(factor) is int and factor and product(factor, y) == others:
                whole = dim - others * made({((atom, 1),): 1})
                if whole == -factor * x:
                    return x, y, -factor
    return None


def _exact(x: int, y: int) -> int:
    return x // y if type(x) is int and x % y == 0 else 0
