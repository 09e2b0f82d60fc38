"""Lines of Python that assign values to names: the names, and the operation that computes each."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple, TypeAlias, final

from primgraph.codegen.ir.schedule import Step
from primgraph.ir.frontend.result_names import assignment
from primgraph.ir.frontend.syntax import parse
from primgraph.ir.primitive import Op, loaded_ops
from primgraph.ir.views import Expand, Permute, Reshape
from primgraph.primitives.elementwise import (
    abs_,
    add,
    cast,
    div,
    integer_pow,
    mul,
    neg,
    power,
    rsqrt,
    sqrt,
    sub,
)
from primgraph.primitives.indexing import gather
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.logic import select
from primgraph.primitives.reductions import reduce_max, reduce_min, reduce_prod, reduce_sum
from primgraph.primitives.shapes import (
    broadcast,
    concat,
    permute,
    reshape,
    reverse,
    slice_,
    split,
)

# The primitives into which a Python operator may be rewritten.
_SUMS: frozenset[Op] = frozenset({add, sub, neg})
_PRODUCTS: frozenset[Op] = frozenset({mul, div, integer_pow, power, sqrt, rsqrt, neg})
_KINDS: dict[type[ast.AST], frozenset[Op]] = {
    ast.Add: _SUMS,
    ast.Sub: _SUMS,
    ast.Mult: _PRODUCTS,
    ast.Div: _PRODUCTS,
    ast.Pow: _PRODUCTS,
    ast.MatMult: frozenset({matmul}),
    ast.USub: frozenset({neg, sub, mul}),
}

# The primitives that operators are unless they are rewritten.
_OWN: dict[type[ast.AST], Op] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.Div: div,
    ast.MatMult: matmul,
    ast.USub: neg,
}

# The primitives that a part of an array may be.
PARTS: frozenset[Op] = frozenset({slice_, gather, split, reverse, reshape, broadcast, permute})

# Primitives of functions whose names differ.
_CALLED: dict[str, Op] = {
    "sum": reduce_sum,
    "prod": reduce_prod,
    "max": reduce_max,
    "amax": reduce_max,
    "min": reduce_min,
    "amin": reduce_min,
    "where": select,
    "concatenate": concat,
    "astype": cast,
    "square": mul,
    "absolute": abs_,
    "negative": neg,
    "subtract": sub,
    "multiply": mul,
    "divide": div,
    "dot": matmul,
    "broadcast_to": broadcast,
    "transpose": permute,
    "take": gather,
}


class Operation(NamedTuple):
    """The last operation of a line: possible primitives, the operator, and its occurrences.

    `ops` is empty for a function that is neither a primitive nor an operator. `own` is the
    primitive that is computed unless it is rewritten, and `alone` says that it occurs once.
    """

    ops: frozenset[Op]
    operator: str
    times: int
    own: Op | None = None
    alone: bool = False

    def computes(self, op: Op) -> bool:
        """Return whether `op` computes the operation as it is written."""
        return self.own is op


@lru_cache(maxsize=4096)
def parse_assignments(line: str) -> tuple[tuple[str, Operation], ...]:
    """Return the names that a Python line assigns one value each, and the last operations."""
    found = assignment(line)
    pairs = [found] if found is not None else [*_paired(parse_statement(line))]
    known = [(name, _last_operation(expression)) for name, expression in pairs]
    return tuple([(name, last) for name, last in known if last is not None])


@lru_cache(maxsize=4096)
def parse_unpacking(line: str) -> tuple[str, ...]:
    """Return the names to which a Python line unpacks one value; "" stands for other targets."""
    match parse_statement(line):
        case ast.Assign([ast.Tuple(targets) | ast.List(targets)], value):
            single = not isinstance(value, ast.Tuple | ast.List)
            return _names(targets) if single else ()
    return ()


def operation_of(node: ast.expr) -> tuple[Op | None, list[ast.expr]]:
    """Return the primitive that an operator or a function is, and its operands.

    It is None for other expressions, and for functions with options.

    >>> operation_of(ast.parse("a @ b", mode="eval").body)[0].name
    'matmul'
    """
    if isinstance(node, ast.BinOp):
        return _OWN.get(type(node.op)), [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return _OWN.get(type(node.op)), [node.operand]
    if isinstance(node, ast.Call) and not node.keywords:
        name = _function(node)
        return _CALLED.get(name) or loaded_ops().get(name), node.args
    return None, []


def parse_statement(line: str) -> ast.stmt | None:
    """Return the only statement on a line."""
    try:
        (statement,) = parse(line).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return statement


def _paired(statement: ast.stmt | None) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names and expressions of `a, b = x, y`."""
    match statement:
        case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
            for target, value in zip(targets, values, strict=True):
                if isinstance(target, ast.Name):
                    yield target.id, value


def _names(targets: Sequence[ast.expr]) -> tuple[str, ...]:
    if any(isinstance(t, ast.Starred) for t in targets):
        return ()
    return tuple([t.id if isinstance(t, ast.Name) else "" for t in targets])


def _last_operation(expression: ast.expr) -> Operation | None:
    """Return the last operation of an expression; None if it has several values or none."""
    if any(isinstance(n, ast.Lambda) for n in ast.walk(expression)):
        return None
    if isinstance(expression, ast.Call):
        name = _function(expression)
        calls = [n for n in ast.walk(expression) if isinstance(n, ast.Call)]
        op = _CALLED.get(name) or loaded_ops().get(name)
        if op is not None:
            times = sum(_function(n) == name for n in calls)
            return Operation(frozenset({op}), name, times, op, times == 1)
        # An unknown function may compute anything, so it has to be the only operation of the line.
        arguments = [*expression.args, *(k.value for k in expression.keywords)]
        plain = all(isinstance(a, ast.Name | ast.Attribute | ast.Constant) for a in arguments)
        return Operation(frozenset(), name, 1) if plain else None
    if isinstance(expression, ast.Subscript):
        return Operation(PARTS, "", 0)
    if isinstance(expression, ast.Attribute):
        return Operation(PARTS, "", 0) if expression.attr in ("T", "mT") else None
    kinds = _kind_of(expression)
    same = [n for n in ast.walk(expression) if kinds and _kind_of(n) == kinds]
    if not same:
        return None
    assert isinstance(expression, ast.BinOp | ast.UnaryOp)
    equal = [n for n in same if type(getattr(n, "op", None)) is type(expression.op)]
    own = _OWN.get(type(expression.op))
    return Operation(kinds, "", len(same), own, len(equal) == 1)


def _kind_of(node: ast.AST) -> frozenset[Op]:
    """Return the primitives that an operator may be; empty for other nodes."""
    if isinstance(node, ast.BinOp | ast.UnaryOp):
        return _KINDS.get(type(node.op), frozenset())
    return frozenset()


def _function(call: ast.Call) -> str:
    name: str = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name


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
