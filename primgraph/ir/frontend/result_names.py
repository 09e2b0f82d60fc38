"""Titles of results, and names that lines of Python assign to values."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import NamedTuple

from primgraph.ir.frontend.syntax import parse

# Substrings of the names of differentiating functions.
_DERIVATIVES = ("grad", "jac", "hess", "jvp", "vjp", "hvp", "vhp", "laplacian", "divergence")


class Title(NamedTuple):
    """Title of a graph's result in the user's names, without effect on the computation.

    `state` is the state that it is the new value of. For a gradient, `by` names the input, `of` the
    output, `at` the line, and `order` counts how often it was taken by that input. `name` is the
    variable that the user's function returns. Unknown names are empty.
    """

    state: str = ""
    by: str = ""
    of: str = ""
    at: str = ""
    order: int = 1
    name: str = ""

    @property
    def is_plain(self) -> bool:
        """Return whether the result is neither a new state nor a gradient."""
        return not self.state and not self.by and not self.of and not self.at


UNTITLED = Title()


# The automatic name of a value: its op, the index of its equation, its output.
_AUTOMATIC = re.compile(r"(\w+)_(0|[1-9]\d{0,11})\.tmp_(0|[1-9]\d{0,11})")


def automatic_name(op: str, place: int, output: int) -> str:
    """Return the name of an output of the equation at `place`, which has no given name."""
    return f"{op}_{place}.tmp_{output}"


def read_automatic_name(name: str) -> tuple[str, int, int]:
    """Return the op, place and output of an automatic name; the place is -1 for other names."""
    found = _AUTOMATIC.fullmatch(name)
    return ("", -1, 0) if found is None else (found[1], int(found[2]), int(found[3]))


def generated_name(function: object) -> str:
    """Return a name for code generated from `function`: `grad_energy` for `grad(energy)`."""
    found = getattr(function, "generated_name", None)
    return found if isinstance(found, str) else getattr(function, "__name__", "f")


def target_name(line: str) -> str:
    """Return the name that a line of Python assigns to its last result; empty if none.

    It is also empty if the line contains a lambda, or differentiates an expression.
    """
    found = assignment(line)
    if found is None or any(map(_computes_between, ast.walk(found[1]))):
        return ""
    return found[0]


def _computes_between(node: ast.AST) -> bool:
    """Return whether a node is a lambda or assignment expression, or a differentiated
    expression."""
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Lambda | ast.NamedExpr)
    function: str = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if not any(part in function.lower() for part in _DERIVATIVES):
        return False
    given = [*node.args, *(k.value for k in node.keywords)]
    return any(
        isinstance(n, ast.Call | ast.BinOp | ast.UnaryOp) for a in given for n in ast.walk(a)
    )


@lru_cache(maxsize=4096)
def assignment(line: str) -> tuple[str, ast.expr] | None:
    """Return name and expression of a line of Python that assigns one value to one name."""
    try:
        (statement,) = parse(line).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    match statement:
        case ast.Assign([ast.Name(name)], value):
            return name, value
        case ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
            return name, value
        case ast.AugAssign(ast.Name(name) as target, op, value):
            return name, ast.BinOp(target, op, value)
    return None
