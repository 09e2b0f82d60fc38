"""Arguments of a function of SymPy: containers of symbols, as types, names and values."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any, final

from primgraph import tree
from primgraph.errors import ArgumentError
from primgraph.interop.sympy.matrices import entries, is_explicit
from primgraph.interop.sympy.rules import Expr, Operand
from primgraph.program.trace import dim, spec

_ARRAYS = frozenset({"MatrixSymbol", "IndexedBase", "ArraySymbol"})
_SCALARS = frozenset({"Symbol", "AppliedUndef", "Derivative"})


@final
class Arguments:
    """Parameters of a function: examples for `trace`, and the symbols whose values they give.

    `examples` are types of arrays in the containers of `args`, by names of parameters.
    """

    def __init__(self, args: Any, dtype: Any) -> None:
        self._dtype = dtype
        # Symbols that are sizes of arrays.
        self._sizes: dict[Expr, Operand] = {}
        self._leaves, structure = tree.flatten(_parameters(args))
        self.examples = tree.unflatten(structure, [self._example(leaf) for leaf in self._leaves])
        # All expressions that have values.
        self.known = {symbol for leaf in self._leaves for symbol in _symbols(leaf)}
        if len(self.known) < sum(len(_symbols(leaf)) for leaf in self._leaves):
            raise ArgumentError("from_sympy: a symbol is in args twice")
        self.known.update(self._sizes)

    def _example(self, leaf: Any) -> Any:
        """Return the type of the array that gives values to a symbol, or to those of a matrix."""
        is_array = _is_of(leaf, _ARRAYS)
        for symbol in _symbols(leaf):
            if not is_array and not _is_of(symbol, _SCALARS):
                raise ArgumentError(
                    f"from_sympy: args has {symbol!s:.60}, which is {type(symbol).__name__}, not a "
                    "symbol, a function such as q(t), its derivative, or a matrix of these",
                    hint="replace a subexpression by a symbol: expr.subs(part, Symbol('s'))",
                )
        if is_array and leaf.shape is None:
            hint = f"IndexedBase({str(leaf)!r}, shape=(3,))"
            raise ArgumentError(f"from_sympy: {leaf} of args has no shape", hint=hint)
        shape = leaf.shape if is_array or is_explicit(leaf) else ()
        return spec(tuple([self._size(size) for size in shape]), self._dtype)

    def _size(self, size: Any) -> Any:
        """Return a dimension: an integer, or a symbolic size of the symbol's name."""
        if isinstance(size, int) or size.is_Integer:
            return int(size)
        if not _is_of(size, {"Symbol"}):
            raise ArgumentError(f"from_sympy: a size is an integer or a symbol, not {size}")
        self._sizes[size] = dim(size.name)
        return size.name

    def values(self, arguments: Mapping[str, Any]) -> dict[Expr, Operand]:
        """Return the value of every symbol, for arguments like `examples`."""
        found = dict(self._sizes)
        # Empty lists are leaves here, and containers among the arguments.
        arrays = [array for array in tree.leaves(arguments) if 0 not in array.shape]
        leaves = [leaf for leaf in self._leaves if _symbols(leaf)]
        for leaf, array in zip(leaves, arrays, strict=True):
            if is_explicit(leaf):
                flat = array.reshape(-1)
                found |= {symbol: flat[i] for i, symbol in enumerate(entries(leaf))}
            else:
                found[leaf] = array
        return found


def _parameters(args: Any) -> dict[str, Any]:
    """Return the parameters by name, where `args` is one, a list or a dict of parameters."""
    if isinstance(args, Mapping):
        return {str(name): parameter for name, parameter in args.items()}
    found: dict[str, Any] = {}
    for parameter in args if isinstance(args, list | tuple) else [args]:
        symbols = [symbol for leaf in tree.leaves(parameter) for symbol in _symbols(leaf)]
        name = _common_name([str(symbol) for symbol in symbols]) or f"arg{len(found)}"
        while name in found:
            name += "_"
        found[name] = parameter
    return found


def _symbols(leaf: Expr) -> Sequence[Expr]:
    """Return the entries of a matrix, or a symbol itself."""
    return entries(leaf) if is_explicit(leaf) else [leaf]


def _is_of(expr: Any, classes: frozenset[str] | set[str]) -> bool:
    return not classes.isdisjoint([parent.__name__ for parent in type(expr).__mro__])


def _common_name(names: Sequence[str]) -> str:
    """Return a name for a parameter of these symbols, such as q for q1(t) and q2(t)."""
    words = [re.sub(r"\W+", "_", re.sub(r"\(\w*\)$", "", name)).strip("_") for name in names]
    found = words[0] if words else ""
    while not all(word.startswith(found) for word in words):
        found = found[:-1]
    found = found if len(words) == 1 else found.rstrip("_0123456789")
    return found if found.isidentifier() and not keyword.iskeyword(found) else ""
