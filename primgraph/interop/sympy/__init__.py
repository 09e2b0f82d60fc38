"""Expressions of SymPy as functions of arrays, with derivatives of any order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from primgraph import tree
from primgraph.interop.imported import Imported
from primgraph.interop.lacking import check_version
from primgraph.interop.sympy.arguments import Arguments
from primgraph.interop.sympy.matrices import as_array, constants
from primgraph.interop.sympy.walk import Rules, Walk, require_known
from primgraph.program.trace import spec, trace

__all__ = ["from_sympy"]

_NUMBERS = (int, float, complex)


def from_sympy(
    exprs: Any,
    args: Any,
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    dtype: Any = None,
    name: str = "f",
) -> Imported:
    """Return the function that computes `exprs` from values of `args`.

    `exprs` is an expression, a matrix or array, or a list, tuple or dict of these; results have the
    same containers. `args` is a list of parameters, or a dict of parameters by name. A parameter is
    a symbol, a function of time or its derivative, whose value is a number; a matrix or
    `sympy.Array` of these, whose value is an array of the same shape; a `MatrixSymbol` or
    `IndexedBase`, whose sizes may be symbols; or a list, tuple or dict of parameters.

    Symbols are real, or complex with a complex `dtype`; the default is the default dtype.
    `functions` computes functions of SymPy, by name, that have no meaning here. `name` is the name
    of the graph, and of the function in generated code.

    Raises `UnsupportedError` for operators that are lacking, and `ArgumentError` for symbols that
    are not in `args`; both list all.

    >>> import sympy
    >>> x, y = sympy.symbols("x y")
    >>> f = pg.interop.from_sympy(sympy.sin(x) * y, [x, y])
    >>> print(f(0.5, 2.0).round(3), pg.grad(f)(0.5, 2.0).round(3))
    0.959 1.755
    """
    check_version("sympy", str(sys.modules["sympy"].__version__))
    arguments, rules = Arguments(args, dtype), Rules(functions or {})
    roots, structure = tree.flatten(exprs)
    expressions = [root for root in roots if not isinstance(root, _NUMBERS)]
    require_known(expressions, arguments.known, rules)

    def record(**given: Any) -> Any:
        walk = Walk(rules, arguments.values(given))
        found = [root if isinstance(root, _NUMBERS) else walk.value(root) for root in roots]
        return tree.unflatten(structure, [as_array(value) for value in found])

    record.__name__ = name
    token = constants.set(spec((), dtype).dtype)
    try:
        return Imported(trace(record, rebind=False, **arguments.examples))
    finally:
        constants.reset(token)
