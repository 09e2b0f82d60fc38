"""Names of operands: the user's line and the steps that it became, side by side.

A line such as `residual = u_t + u * u_x` names what it reads, if its steps are the operations that
are written: derivatives, and values that other functions return, have no other names.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import permutations
from typing import TypeAlias, final

from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.targets.text.assignments import operation_of, parse_statement
from primgraph.ir.views import Expand, Permute, Reshape

# Values by the names that the line has for them.
Bound: TypeAlias = "dict[str, int]"

# Maximum number of comparisons for one value: operands of sums and products are tried both ways.
_MOST = 500


@lru_cache(maxsize=4096)
def written_expressions(line: str) -> tuple[ast.expr, ...]:
    """Return the expressions whose values a Python line assigns or returns.

    >>> [ast.unparse(x) for x in written_expressions("a, b = x + y, f(z)")]
    ['x + y', 'f(z)']
    """
    match parse_statement(line):
        case ast.Assign([ast.Name()], value) | ast.Return(ast.expr() as value):
            return tuple(value.elts) if isinstance(value, ast.Tuple) else (value,)
        case ast.Assign([ast.Tuple()], ast.Tuple(values)):
            return tuple(values)
    return ()


@final
class OperandNames:
    """The operands of one line, whose steps compute values from others."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.made: Mapping[int, Step] = {v: s for s in steps for v in s.outputs}
        self._left = 0

    def bound(self, expression: ast.expr, value: int) -> Bound | None:
        """Return the values of the names in an expression, if it is what computes `value`.

        A name alone is nothing that is computed here.
        """
        if isinstance(expression, ast.Name):
            return None
        self._left = _MOST
        return self._match(expression, value, {})

    def _match(self, node: ast.expr, value: int, known: Bound) -> Bound | None:
        value, self._left = self._whole(value), self._left - 1
        if self._left < 0:
            return None
        if isinstance(node, ast.Name):
            return {**known, node.id: value} if known.get(node.id, value) == value else None
        step = self.made.get(value)
        if isinstance(node, ast.Constant):
            is_number = step is not None and type(step.number) in (int, float)
            return known if is_number and step is not None and step.number == node.value else None
        if step is None:
            return None
        if isinstance(node, ast.Attribute):
            how = step.form.seen[0] if node.attr == "T" and step.op.is_view else None
            is_turned = isinstance(how, Permute) and how.axes == tuple(range(len(how.axes)))[::-1]
            return self._match(node.value, step.inputs[0], known) if is_turned else None
        op, operands = operation_of(node)
        if op is not step.op or len(operands) != len(step.inputs):
            return None
        orders = permutations(step.inputs) if step.op.commutative else (step.inputs,)
        return next(filter(None, (self._match_all(operands, vs, known) for vs in orders)), None)

    def _match_all(
        self, nodes: Sequence[ast.expr], values: Sequence[int], known: Bound
    ) -> Bound | None:
        found: Bound | None = known
        for node, value in zip(nodes, values, strict=True):
            found = None if found is None else self._match(node, value, found)
        return found

    def _whole(self, value: int) -> int:
        """Return the value of which `value` is a view that only has other axes of size 1."""
        step = self.made.get(value)
        while step is not None and step.op.is_view:
            how, source = step.form.seen[0], step.operands[0].shape
            alike = [n for n in source if n != 1] == [n for n in step.results[0].shape if n != 1]
            if not isinstance(how, Expand | None) and not (isinstance(how, Reshape) and alike):
                break
            (value,) = step.inputs
            step = self.made.get(value)
        return value
