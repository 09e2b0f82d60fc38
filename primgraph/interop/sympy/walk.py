"""The walk over expressions of SymPy: a check of everything, then the values, each once.

Both walks use stacks of their own, so that expressions may be nested to any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

from primgraph.errors import ArgumentError
from primgraph.interop.lacking import Lacking
from primgraph.interop.sympy.binders import BINDERS, Binder
from primgraph.interop.sympy.functions import FUNCTIONS
from primgraph.interop.sympy.matrices import MATRICES
from primgraph.interop.sympy.rules import Expr, Operand, Rule, function, is_number, number

_RULES: dict[str, Rule | Binder] = {**FUNCTIONS, **MATRICES, **BINDERS}
_SYMBOLS = frozenset({"Symbol", "MatrixSymbol", "IndexedBase", "ArraySymbol", "Idx"})


@final
class Rules:
    """The rules by class of SymPy; those of the user's `functions`, by name, come first."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._given = functions
        self._found: dict[type, Rule | Binder | None] = {}

    def of(self, expr: Expr) -> Rule | Binder | None:
        """Return the rule of an expression, None if there is none."""
        kind = type(expr)
        if kind not in self._found:
            self._found[kind] = self._find(kind)
        rule = self._found[kind]
        return rule if rule is not None and rule.supports(expr) else None

    def _find(self, kind: type) -> Rule | Binder | None:
        compute = self._given.get(kind.__name__) or getattr(kind, "_imp_", None)
        if compute is not None:
            return replace(function(compute), folds=False)
        # Function("gamma") makes a class that is not of SymPy, whatever its name.
        own = [c.__name__ for c in kind.__mro__ if str(c.__module__).startswith("sympy.")]
        return next((_RULES[name] for name in own if name in _RULES), None)


def require_known(roots: Sequence[Expr], leaves: Container[Expr], rules: Rules) -> None:
    """Raise the error that lists every operator that is lacking, or every symbol without a value.

    `leaves` are the expressions that have values.
    """
    lacking = Lacking("from_sympy", "SymPy")
    bound: set[Expr] = set()
    unbound: list[Expr] = []
    # By identity: comparing expressions is recursive.
    visited: dict[int, Expr] = {}
    stack = list(reversed(roots))
    while stack:
        expr = stack.pop()
        if id(expr) in visited:
            continue
        visited[id(expr)] = expr
        if _is_leaf(expr, leaves):
            continue
        rule = rules.of(expr)
        if rule is None and _is_symbol(expr):
            unbound.append(expr)
            continue
        if rule is None and type(expr).__name__ != "Tuple":
            lacking.add(type(expr).__name__, _text(expr))
        if isinstance(rule, Binder):
            bound.update(rule.variables(expr))
        stack.extend(reversed(_parts(rule, expr)))
    lacking.require_none()
    missing = dict.fromkeys(str(symbol) for symbol in unbound if symbol not in bound)
    if missing:
        raise ArgumentError(
            f"from_sympy: the expressions have symbols that are not in args: {', '.join(missing)}",
            hint="add them to args, or substitute numbers for them: expr.subs(...)",
        )


def _parts(rule: Rule | Binder | None, expr: Expr) -> Sequence[Expr]:
    if isinstance(rule, Binder):
        return rule.parts(expr)
    return expr.args if rule is None else rule.operands(expr)


def _is_leaf(expr: Expr, leaves: Container[Expr]) -> bool:
    """Return whether an expression has a value; mutable matrices have no hash, and none."""
    return type(expr).__hash__ is not None and expr in leaves


def _is_symbol(expr: Expr) -> bool:
    return not _SYMBOLS.isdisjoint([parent.__name__ for parent in type(expr).__mro__])


def _text(expr: Expr) -> str:
    """Return the text of an expression, or nothing for one that is long."""
    stack, count = [expr], 0
    while stack and count < 30:
        count += 1
        stack.extend(getattr(stack.pop(), "args", ()))
    return "" if stack else str(expr)


@final
class Walk:
    """Values of expressions, where `leaves` have given values."""

    def __init__(self, rules: Rules, leaves: Mapping[Expr, Operand]) -> None:
        self._rules, self._leaves = rules, leaves
        # Values by identity, with the expressions, which stay alive so that identities stay theirs.
        self._values: dict[int, tuple[Expr, Operand]] = {}

    def value(self, root: Expr) -> Operand:
        """Return the value of an expression."""
        values = self._values
        stack: list[tuple[Expr, Sequence[Expr] | None]] = [(root, None)]
        while stack:
            expr, operands = stack[-1]
            if id(expr) in values:
                stack.pop()
                continue
            rule = None if _is_leaf(expr, self._leaves) else self._rules.of(expr)
            if not isinstance(rule, Rule):
                values[id(expr)] = expr, self._bound_value(expr, rule)
            elif operands is None:
                operands = rule.operands(expr)
                stack[-1] = expr, operands
                stack.extend([(part, None) for part in reversed(operands)])
            else:
                found = [values[id(part)][1] for part in operands]
                values[id(expr)] = expr, _compute(rule, expr, found)
        return values[id(root)][1]

    def _bound_value(self, expr: Expr, rule: Binder | None) -> Operand:
        if rule is not None:
            return rule.record(expr, self._inside)
        return self._leaves[expr]

    def _inside(self, expr: Expr, given: Mapping[Expr, Operand]) -> Operand:
        """Return the value of a part where the variables of its binders have values."""
        return (
            Walk(self._rules, {**self._leaves, **given}).value(expr) if given else self.value(expr)
        )


def _compute(rule: Rule, expr: Expr, values: Sequence[Operand]) -> Operand:
    """Return the value of an expression; SymPy evaluates those of numbers alone, exactly."""
    if rule.folds and values and all(is_number(value) for value in values):
        found = number(expr)
        if found is not None:
            return found
    return rule.build(expr, values)
