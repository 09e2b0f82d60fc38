"""What results are called for the eye, and the names that lines of Python give to values."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import NamedTuple

# What names of functions have in them that differentiate what they are given.
_DERIVATIVES = ("grad", "jac", "hess", "jvp", "vjp", "hvp", "vhp", "laplacian", "divergence")


class Title(NamedTuple):
    """What a result of a graph is, in the user's names; it means nothing to what computes it.

    `state` is the name of the state that it becomes the new value of. `by` is the name of what it
    is the gradient by, `of` the name of what it is the gradient of, and `at` where that is written.
    Names are empty where they are not known. `order` is how often the gradient was taken by that.
    """

    state: str = ""
    by: str = ""
    of: str = ""
    at: str = ""
    order: int = 1


UNTITLED = Title()


def generated_name(function: object) -> str:
    """Return a name for code generated from `function`: `grad_energy` for `grad(energy)`."""
    found = getattr(function, "generated_name", None)
    return found if isinstance(found, str) else getattr(function, "__name__", "f")


def target_name(line: str) -> str:
    """The name that a line of Python gives to the last thing that it computes; empty if none.

    A function that is written in the line computes something else than the line does, and so does
    an expression that stands in it to be differentiated.
    """
    found = assignment(line)
    if found is None or any(map(_computes_between, ast.walk(found[1]))):
        return ""
    return found[0]


def _computes_between(node: ast.AST) -> bool:
    """Whether something that the line computes is a function's, or what is differentiated in it."""
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
    """The name and the expression of a line of Python that gives one name to one value."""
    try:
        (statement,) = ast.parse(line).body
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
