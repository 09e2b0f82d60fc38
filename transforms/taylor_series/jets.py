"""Jets: equations between Taylor series, and the operations on series that rules use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import product
from math import factorial, prod
from typing import Any, TypeAlias, final

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.params import Params, bits
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.rebuild import require_primitive
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.elementwise import SIGNS, add, div, mul, neg, sub
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.shapes import concat
from primgraph.transforms.dataflow.magnitudes import has_reciprocals
from primgraph.transforms.taylor_series.rules import TracedRules
from primgraph.transforms.taylor_series.series import Row, Rows, Series, scale_value

# Minimum order at which divisors are inspected, as several coefficients share a reciprocal.
_RECIPROCAL = 4
# Adds coefficients to a graph: of inputs at these positions and orders, up to an order. Returns the
# graph, and the orders of its further outputs by position.
Expand: TypeAlias = Callable[
    [Graph, int, Mapping[int, Sequence[int]]], tuple[Graph, dict[int, list[int]]]
]


@final
class _Node:
    """An equation between series, with the derivatives of its results once they are needed."""

    __slots__ = (
        "_jets",
        "_order",
        "_slopes",
        "_whole",
        "limit",
        "op",
        "operands",
        "params",
        "results",
    )

    def __init__(
        self,
        jets: Jets,
        op: Primitive[Any],
        operands: Sequence[Series],
        params: Params,
        limit: int,
    ) -> None:
        self._jets = jets
        self.op = op
        self.operands = operands
        self.params = params
        self.limit = limit
        self.results: tuple[Series, ...] = ()
        self._slopes: Sequence[Series | None] | None = None
        # For ops that are expanded as a whole: the order so far, and coefficients by result.
        self._order = 0
        self._whole: Mapping[int, Mapping[int, Value]] = {}

    @property
    def active(self) -> list[int]:
        """Return the positions of inexact operands that are not constant."""
        return [i for i, x in enumerate(self.operands) if x.type.is_inexact and not x.fixed]

    def slope(self, result: Series) -> Series | None:
        """Return the derivative of a result if JVP rules have given it."""
        if self._slopes is None or self.op.taylor_rule is not None:
            return None
        return self._slopes[self.results.index(result)]

    def row(self, k: int) -> Row:
        """Return coefficient `k` of each result."""
        op, params = self.op, dict(self.params)
        if op.linear == "each":
            x, y = self.operands
            if x is y and op.commutative:
                return (self._jets.square(op, x, k),)
            return (self._jets.convolution(op, x, y, k, k + 1),)
        linear = set(op.linear_operands(len(self.operands), params))
        if linear.issuperset(self.active) and (k or self.active):
            return self._linear_row(sorted(linear), k)
        if k == 0:
            if linear and all(self.operands[i][0] is None for i in linear):
                return [None] * len(self.results)
            return self._emit_node([x.first() for x in self.operands])
        if op.expansion_rule is not None:
            return self._whole_row(k)
        if op.taylor_rule is not None:
            z = self.results if op.multiple else self.results[0]
            found = op.taylor_rule(self._jets, k, z, *self.operands, **params)
            if found is not NotImplemented:
                return tuple(found) if op.multiple else (found,)
        if self._slopes is None:
            self._slopes = self._slopes_by_rules(sorted(linear))
        return [self._jets.integral(slope, k) for slope in self._slopes]

    def _whole_row(self, k: int) -> Row:
        """Return coefficient `k` of an op with bodies; compute all orders to the limit at once."""
        order = max(self.limit, k)
        if self._order < order:
            moving = {}
            for i in self.active:
                terms = {n: self.operands[i][n] for n in range(1, order + 1)}
                if any(terms.values()):
                    moving[i] = {n: v for n, v in terms.items() if v is not None}

            firsts = [x.first() for x in self.operands]
            rule = self.op.expansion_rule
            assert rule is not None

            def expand(graph: Graph, given: Mapping[int, Sequence[int]]) -> Any:
                return self._jets.expand(graph, order, given)

            self._order = order
            self._whole = rule(expand, firsts, moving, order, **dict(self.params)) if moving else {}
        return [self._whole.get(j, {}).get(k) for j in range(len(self.results))]

    def _linear_row(self, places: Sequence[int], k: int) -> Row:
        """Apply the primitive to the coefficients `k`; apply its rules if some are zero."""
        operands = self.operands
        given = {i: operands[i][k] for i in places if operands[i].type.is_inexact}
        present = [i for i, v in given.items() if v is not None]
        if not present:
            return [None] * len(self.results)
        rules = [self.op.jvp_rule(i) for i in present]
        if len(present) < len(given) and len(self.results) == 1 and None not in rules:
            first = [x.first() for x in operands]
            z = None if k == 0 else self.results[0].first()
            terms = [
                rule(z, *first, given[i], **dict(self.params))
                for i, rule in zip(present, rules, strict=True)
                if rule is not None
            ]
            return (self._jets.total(terms),)
        chosen = []
        for i, x in enumerate(operands):
            term = given[i] if i in given else x.first()
            chosen.append(filled_constant(0, x.type) if term is None else term)
        return self._emit_node(chosen)

    def _emit_node(self, operands: Sequence[Value]) -> Row:
        return self._jets.builder.emit(self.op, operands, dict(self.params))

    def _slopes_by_rules(self, linear: Sequence[int]) -> list[Series | None]:
        """Return the derivatives of the results, by the JVP rules."""
        op, active = self.op, self.active
        if op.pushforward_rule is not None:
            groups = [tuple(active)]
        else:
            together = tuple([i for i in linear if i in active])
            groups = [(i,) for i in active if i not in together]
            groups += [(i,) for i in together] if op.linear == "each" else [together]
        rules, results = self._jets.rules, tuple([z.type for z in self.results])
        types = tuple([x.type for x in self.operands])
        found: list[list[Series]] = [[] for _ in self.results]
        for places in groups:
            if not places:
                continue
            graph, present = rules.tangents(
                op, types, results, self.params, places, places[0] in linear
            )
            rates = [self._jets.rate(self.operands[i]) for i in places]
            given = (*self.results, *self.operands, *rates)
            known = self._jets.graph_series(graph, given, self.limit - 1)
            ends = iter(graph.outputs)
            for terms, has in zip(found, present, strict=True):
                if has:
                    terms.append(known[next(ends)])
        return [reduce(lambda x, y: self._jets.apply(add, x, y), t) if t else None for t in found]


def _negates(op: Op) -> bool:
    return op.fact(SIGNS) == (-1,)


@final
class Jets:
    """Series of Taylor coefficients up to `order`, recorded in a builder.

    Equal equations between the same series are shared: sine and cosine each occur in the derivative
    of the other. `expand` adds coefficients to graphs in parameters.
    """

    def __init__(self, builder: Builder, order: int, expand: Expand) -> None:
        self.builder = builder
        self.order = order
        self.expand = expand
        self.rules = TracedRules(builder)
        self._constants: dict[Value, Series] = {}
        self._nodes: dict[Any, _Node] = {}
        self._made_by: dict[Series, _Node] = {}
        self._rates: dict[Series, Series] = {}
        self._defined: dict[Series, Series] = {}
        self._displacements: dict[Series, Series] = {}
        # Whether the reciprocals of divisors are finite.
        self._divisors: dict[Value, bool] = {}

    def constant(self, value: Value) -> Series:
        """Return the series of a constant."""
        found = self._constants.get(value)
        if found is None:
            found = Series(value.type, lambda k, /: (value,), fixed=True)
            self._constants[value] = found
        return found

    def apply(self, op: Primitive[Any], *operands: Series, **params: Any) -> Series:
        """Return the series of a primitive with one result."""
        frozen = self.builder.params.frozen(params) if params else ()
        return self.apply_all(op, operands, frozen, self.order)[0]

    def apply_all(
        self,
        op: Primitive[Any],
        operands: Sequence[Series],
        params: Params,
        limit: int,
        values: tuple[Value, ...] = (),
    ) -> Sequence[Series]:
        """Return the series of all results of a primitive, for orders up to `limit`.

        `values`, if given, are the coefficients of order 0.
        """
        made = None if values or not _negates(op) else self._made_by.get(operands[0])
        if made is not None and _negates(made.op):
            return (made.operands[0],)
        key = (op.name, tuple(map(id, operands)), bits(params) if params else (), values)
        node = self._nodes.get(key)
        if node is not None:
            return node.results
        node = self._nodes[key] = _Node(self, op, operands, params, limit)
        types = self.builder.infer(op, tuple([x.type for x in operands]), params)
        known = not node.active or op.constant
        rows = Rows(lambda k: values if values and k == 0 else node.row(k))
        node.results = tuple(
            [Series(t, rows, j, fixed=known or not t.is_inexact) for j, t in enumerate(types)]
        )
        self._made_by.update((z, node) for z in node.results)
        return node.results

    def expand_function(
        self, function: Callable[..., Value], *operands: Series, **options: Hashable
    ) -> Series:
        """Return the series of `function`, which is traced into primitives."""
        graph = self.rules.function(function, tuple([x.type for x in operands]), options)
        return self.graph_series(graph, operands, self.order)[graph.outputs[0]]

    def graph_series(
        self, graph: Graph, operands: Sequence[Series], limit: int
    ) -> dict[Value, Series]:
        """Return the series of all values of a graph of primitives, without recording the graph."""
        known = dict(zip(graph.inputs, operands, strict=True))
        for eqn in graph.body:
            given = [known[v] for v in eqn.inputs]
            made = self.apply_all(require_primitive(eqn), given, eqn.params, limit)
            known.update(zip(eqn.outputs, made, strict=True))
        return known

    def rate(self, x: Series) -> Series:
        """Return the series of the derivative of `x`, shared with its defining rule if any."""
        found = self._rates.get(x)
        node = self._made_by.get(x)
        if found is None and node is not None:
            found = node.slope(x)
        if found is None:

            def find(k: int) -> Row:
                term = x[k + 1]
                return (None if term is None else scale_value(term, k + 1.0),)

            found = self._rates[x] = Series(x.type, Rows(find))
        return found

    def defined(self, x: Series, find: Callable[[int], Value | None]) -> Series:
        """Return the series that a rule needs beside `x`, of its type: `find(k)` is coefficient k.

        Later calls for the same `x` return the same series.
        """
        found = self._defined.get(x)
        if found is None:
            found = self._defined[x] = Series(x.type, Rows(lambda k: (find(k),)))
        return found

    def displacement(self, x: Series) -> Series:
        """Return the series of `x` without its value: its coefficient of order 0 is zero."""
        found = self._displacements.get(x)
        if found is None:
            rows = Rows(lambda k: (x[k] if k else None,))
            found = self._displacements[x] = Series(x.type, rows, fixed=x.fixed)
        return found

    def chain(
        self, k: int, operands: Sequence[Series], derivative: Callable[..., Value]
    ) -> Value | None:
        """Return coefficient `k >= 1` of a function whose partial derivatives are known.

        `derivative(*orders)` is the derivative of these orders by the operands, at their values.
        """
        terms = []
        for orders in product(range(k + 1), repeat=len(operands)):
            if 1 <= sum(orders) <= k:
                powers = [x for x, n in zip(operands, orders, strict=True) for _ in range(n)]
                steps = map(self.displacement, powers)
                factor = reduce(lambda x, y: self.apply(mul, x, y), steps)[k]
                if factor is not None:
                    weight = 1.0 / prod(map(factorial, orders))
                    terms.append(derivative(*orders) * scale_value(factor, weight))
        return self.total(terms)

    def integral(self, slope: Series | None, k: int) -> Value | None:
        """Return coefficient `k >= 1` of the integral of `slope`."""
        term = None if slope is None else slope[k - 1]
        return term if term is None or k == 1 else term / float(k)

    def total(self, terms: Iterable[Value | None]) -> Value | None:
        """Return the sum of the terms that are not zero, or None."""
        present = [v for v in terms if v is not None]
        return reduce(add, present) if present else None

    def difference(self, x: Value | None, y: Value | None) -> Value | None:
        if x is None or y is None:
            return x if y is None else neg(y)
        return sub(x, y)

    def convolution(
        self, op: Primitive[Any], x: Series, y: Series, k: int, count: int, start: int = 0
    ) -> Value | None:
        """Return the sum of `op(x[i], y[k - i])` for `count` values of i from `start` on.

        Matrix products are joined: one product of concatenated matrices computes the sum.
        """
        pairs = []
        for i in range(start, start + count):
            a, b = x[i], y[k - i]
            if a is not None and b is not None:
                pairs.append((a, b))
        if op is matmul and len(pairs) > 1:
            left, right = zip(*pairs, strict=True)
            last = len(x.type.shape) - 1
            pairs = [(concat(*left, axis=last), concat(*right, axis=last - 1))]
        return self.total(self.builder.emit(op, pair, {})[0] for pair in pairs)

    def square(self, op: Primitive[Any], x: Series, k: int, start: int = 0) -> Value | None:
        """Return coefficient `k` of the square of `x`, from coefficients of order `start` on."""
        if k < 2 * start:
            return None
        half = self.convolution(op, x, x, k, (k + 1) // 2 - start, start)
        middle = self.convolution(op, x, x, k, 1, k // 2) if k % 2 == 0 else None
        return self.total([None if half is None else half * 2.0, middle])

    def quotient(self, rest: Value, by: Value) -> Value:
        """Return `rest / by`, where `by` is common to the coefficients of all orders.

        Multiplying by the reciprocal takes a third of the time. It is used if no divisor is so
        small that its reciprocal is infinite.
        """
        if self.order < _RECIPROCAL or by.type.is_complex:
            return div(rest, by)
        safe = self._divisors.get(by)
        if safe is None:
            safe = self._divisors[by] = has_reciprocals(by, self.builder.definition)
        return mul(rest, div(filled_constant(1, by.type), by)) if safe else div(rest, by)

    def is_line(self, x: Series, k: int) -> bool:
        """Return whether coefficients 2 to `k` of `x` are zero."""
        return all(x[i] is None for i in range(2, k + 1))
