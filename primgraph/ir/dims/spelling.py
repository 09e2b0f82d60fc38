"""Text of symbolic sizes, and hints for code that needs one as a number."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from primgraph.base.providers import provider
from primgraph.ir.dims.polynomial import (
    FLOOR,
    Atom,
    Polynomial,
    divide_polynomials,
    make_size,
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
        factors = [_atom_text(a, alone) for a, p in monomial for _ in range(p)]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+" if text else ""
        text += sign + "*".join(factors)
    return text


def _atom_text(atom: Atom, alone: bool) -> str:
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
            others = make_size({monomial[:place] + monomial[place + 1 :]: coefficient})
            # The factors of `-k * y * (x // y)` other than the floor.
            factor = (
                divide_polynomials(others, y)[0] if isinstance(y, Polynomial) else _exact(others, y)
            )
            if type(factor) is int and factor and product(factor, y) == others:
                whole = dim - others * make_size({((atom, 1),): 1})
                if whole == -factor * x:
                    return x, y, -factor
    return None


def _exact(x: int, y: int) -> int:
    return x // y if type(x) is int and x % y == 0 else 0


def for_a_number() -> str:
    """Return the hint for code that iterates over a symbolic size, or takes a length."""
    user_expression = provider("expressions of users")
    nodes = user_expression.expressions()
    match nodes[:1]:
        case [ast.Call(func=ast.Name(id="len"), args=[operand])]:
            return f"{user_expression.text_of(operand)}.shape[0], which is a size"
    # Python reports the whole loop for iteration, but the expression for a call.
    if not any(map(_loops, nodes[:1])) and all(
        g.iter not in nodes for n in nodes for g in _loops(n)
    ):
        return ""
    return (
        "pg.scan(f, state, x), which goes through the rows of x, pg.fori_loop(0, n, f, state), "
        "which counts, or pg.map(f, x), which keeps what f gives"
    )


def _loops(node: ast.AST) -> Sequence[ast.For | ast.comprehension]:
    if isinstance(node, ast.For):
        return [node]
    comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return node.generators if isinstance(node, comprehensions) else []
