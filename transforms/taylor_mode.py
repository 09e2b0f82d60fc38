"""Taylor mode: transform a graph into its value and derivatives along a curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, Protocol, TypeAlias, final

from primgraph.errors import MissingRuleError, OptionError
from primgraph.ir.builder import Builder
from primgraph.ir.facts.ranges import Range
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import Params, bits
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.rebuild import NOWHERE, derived_source, keep, rebuild, require_primitive, written
from primgraph.ir.types import TensorType
from primgraph.primitives.constants import filled
from primgraph.primitives.elementwise import SIGNS, add, div, mul, neg, sub
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.shapes import concat
from primgraph.transforms.dataflow.activity import depending
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.dataflow.magnitudes import has_reciprocals
from primgraph.transforms.dataflow.masks.masks import masks_of
from primgraph.transforms.dataflow.region_interface import is_mark
from primgraph.transforms.linearize import differentiated
from primgraph.transforms.loops import taylor_loops  # noqa: F401
from primgraph.transforms.masking import Masking

# Minimum order at which divisors are inspected, as several coefficients share a reciprocal.
_RECIPROCAL = 4
# One coefficient per result of an equation; None for zero everywhere.
Row: TypeAlias = Sequence[Value | None]


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def taylor(
    graph: Graph,
    order: int,
    wrt: Sequence[int | Value] | None = None,
    *,
    seeds: Sequence[Sequence[int]] | None = None,
    given: Callable[[], Mapping[Value, Range]] = dict,
) -> Graph:
    """Turn `f(x) -> y` into `f_jet(x, x', x'', ...) -> (y, y', y'', ...)`, to that order.

    For inputs x(t) on a curve, these are the derivatives by t at 0. `wrt` names the values that
    depend on t, as in `linearize`. `seeds` has, for each of them, the orders of the derivatives
    that are inputs, by default all up to `order`. The others are zero, and add no equations. For
    each float output there are `order` derivatives, behind all outputs, zeros where none of `wrt`
    reaches it.

    Linear equations are applied to each coefficient, products become convolutions, and other
    primitives use their JVP rule: of `y' = g(x, y) x'` coefficient k of y takes those of g and x'
    up to k - 1. If the functions in g are computed already, these are the known recurrences, with k
    products for coefficient k. A. Griewank and A. Walther, Evaluating Derivatives, 2nd edition,
    2008, chapter 13.

    Raises `NotDifferentiable` for an integer in `wrt`, `MissingRuleError` where a primitive has
    no rule, `OptionError` for an order below one.

    >>> print(pg.transforms.taylor(pg.trace(pg.exp, pg.spec(3)), 2, seeds=[[1]]))
    graph exp_jet(%x: f64[3], %0: f64[3]) {
      %1: f64[3] = exp(%x)
      %2: f64[3] = mul(%0, %1)
      %3: f64[3] = mul(%0, %2)
      %4: f64[3] = full(dtype=f64, shape=(3,), value=2.0)
      %5: f64[3] = div(%3, %4)
      %6: f64[3] = mul(%5, %4)
      return %1, %2, %6
    }
    """
    return expanded(graph, order, wrt, seeds=seeds, given=given)[0]


def expanded(
    graph: Graph,
    order: int,
    wrt: Sequence[int | Value] | None = None,
    *,
    seeds: Sequence[Sequence[int]] | None = None,
    given: Callable[[], Mapping[Value, Range]] = dict,
    unit: Callable[[int], int] = math.factorial,
) -> tuple[Graph, dict[Value, Value]]:
    """Return the graph of `taylor`, and the map from values of `graph` to its values.

    Inputs and results of order k are `unit(k)` times Taylor coefficients.
    """
    if order < 1:
        raise OptionError(f"derivatives have orders from 1 on, not {order}")
    places = differentiated(graph, wrt)
    orders = [range(1, order + 1)] * len(places) if seeds is None else seeds
    builder, moved = rebuild(graph)
    with builder:
        jets = Jets(builder, order)
        for value, present in zip(places, orders, strict=True):
            known = {k: builder.input(value.type) for k in present}
            jets.seeds[value] = {k: scaled(d, 1 / unit(k)) for k, d in known.items()}
        jets.follow(graph, moved, given)
        outputs = [moved[v] for v in graph.outputs]
        for value in graph.outputs:
            if value.type.is_inexact:
                outputs += jets.derivatives(value, unit)
    return builder.graph(outputs, f"{graph.name}_jet"), moved


def _with_coefficients(
    graph: Graph, order: int, given: Mapping[int, Sequence[int]]
) -> tuple[Graph, dict[int, list[int]]]:
    """Add Taylor coefficients to `graph`, for inputs at the positions and orders `given`.

    The nonzero coefficients of its outputs follow the outputs. Return the graph, and the orders by
    output position.
    """
    builder, moved = rebuild(graph)
    with builder:
        jets = Jets(builder, order)
        for i in sorted(given):
            value = graph.inputs[i]
            jets.seeds[value] = {k: builder.input(value.type) for k in given[i]}
        jets.follow(graph, moved, dict)
        outputs, present = [moved[v] for v in graph.outputs], {}
        for j, value in enumerate(graph.outputs):
            if value.type.is_inexact:
                found = jets.coefficients(value)
                outputs += found.values()
                present[j] = list(found)
    return builder.graph(outputs, f"{graph.name}_jet"), present


def scaled(value: Value, factor: float) -> Value:
    return value if factor == 1 else value * factor


class _Given(Protocol):
    def __call__(self, k: int, /) -> Row: ...


@final
class Series:
    """Taylor coefficients of one value, computed lazily.

    A `fixed` series has only the coefficient of order 0. Coefficients that are zero everywhere are
    None.
    """

    __slots__ = ("_place", "_row", "fixed", "type")

    def __init__(
        self, type: TensorType, row: _Given, place: int = 0, *, fixed: bool = False
    ) -> None:
        self.type = type
        self.fixed = fixed
        self._row = row
        self._place = place

    def __getitem__(self, k: int) -> Value | None:
        return None if self.fixed and k else self._row(k)[self._place]

    def first(self) -> Value:
        """Return the value itself, zeros if it is None."""
        found = self[0]
        return filled(0, self.type) if found is None else found


@final
class _Rows:
    """Memoised rows of coefficients by order, computed in order from 0."""

    __slots__ = ("_find", "_found")

    def __init__(self, find: Callable[[int], Row]) -> None:
        self._find = find
        self._found: list[Row] = []

    def __call__(self, k: int, /) -> Row:
        while len(self._found) <= k:
            self._found.append(self._find(len(self._found)))
        return self._found[k]


@final
class _Node:
    """An equation between series, with the derivatives of its results once they are needed."""

    __slots__ = (*("limit", "op", "operands", "order", "params", "results", "slopes", "whole"),)

    def __init__(
        self, op: Primitive[Any], operands: Sequence[Series], params: Params, limit: int
    ) -> None:
        self.op = op
        self.operands = operands
        self.params = params
        self.limit = limit
        self.results: tuple[Series, ...] = ()
        self.slopes: Sequence[Series | None] | None = None
        # For ops that are expanded as a whole: the order so far, and coefficients by result.
        self.order = 0
        self.whole: Mapping[int, Mapping[int, Value]] = {}

    @property
    def active(self) -> list[int]:
        """Return the positions of inexact operands that are not constant."""
        return [i for i, x in enumerate(self.operands) if x.type.is_inexact and not x.fixed]


def _negates(op: Op) -> bool:
    return op.fact(SIGNS) == (-1,)


@final
class Jets:
    """Series of the values of a graph, recorded in a builder.

    Equal equations between the same series are shared: sine and cosine each occur in the derivative
    of the other.
    """

    def __init__(self, builder: Builder, order: int) -> None:
        self.builder = builder
        self.order = order
        self.seeds: dict[Value, dict[int, Value]] = {}
        self._series: dict[Value, Series] = {}
        self._constants: dict[Value, Series] = {}
        self._nodes: dict[Any, _Node] = {}
        self._made_by: dict[Series, _Node] = {}
        self._rates: dict[Series, Series] = {}
        # Whether the reciprocals of divisors are finite.
        self._divisors: dict[Value, bool] = {}
        self._templates: dict[Any, tuple[Graph, list[bool]]] = {}
        self._traced: dict[Any, Graph] = {}

    # Propagation through the graph.

    def follow(
        self,
        graph: Graph,
        moved: dict[Value, Value],
        given: Callable[[], Mapping[Value, Range]],
    ) -> None:
        """Record values and coefficients of all equations of `graph`."""
        sources = list(self.seeds)
        active = depending(graph, sources, by_tangents=True)
        masks = Masking(masks_of(graph, active, sources, given), graph, moved)
        for value in graph.inputs:
            if value in self.seeds:
                self._series[value] = self._seed(moved[value], self.seeds[value], None)
        for eqn in graph.body:
            keep(self.builder, eqn, moved)
            if not self._series.keys().isdisjoint(eqn.inputs):
                for condition in masks.conditions(eqn):
                    keep(self.builder, condition, moved)
                with self._source_scope(eqn):
                    self._push(eqn, moved, masks)
            for value in eqn.outputs:
                if value in self.seeds:
                    own = self._series.get(value)
                    self._series[value] = self._seed(moved[value], self.seeds[value], own)
            if is_mark(eqn):
                held = self.builder.definition(moved[eqn.inputs[0]])
                assert held is not None
                moved[eqn.output] = held.inputs[0]

    def derivatives(self, value: Value, unit: Callable[[int], int]) -> list[Value]:
        """Return the derivatives of a value of the graph, of all orders, with zeros."""
        known = self.coefficients(value)
        return [
            scaled(known[k], unit(k)) if k in known else filled(0, value.type)
            for k in range(1, self.order + 1)
        ]

    def coefficients(self, value: Value) -> dict[int, Value]:
        """Return the nonzero coefficients of a value of the graph, by order."""
        series = self._series.get(value)
        if series is None:
            return {}
        terms = {k: series[k] for k in range(1, self.order + 1)}
        return {k: v for k, v in terms.items() if v is not None}

    @contextmanager
    def _source_scope(self, eqn: Equation) -> Iterator[None]:
        self.builder.source = derived_source(eqn, "tangent")
        yield

    def _seed(self, value: Value, seeds: Mapping[int, Value], own: Series | None) -> Series:
        """Return the series of a seeded value; `own` is the series it has as a result."""

        def find(k: int) -> Row:
            if k == 0:
                return (value,)
            return (self.total([seeds.get(k), None if own is None else own[k]]),)

        return Series(value.type, _Rows(find))

    def _push(self, eqn: Equation, moved: Mapping[Value, Value], masks: Masking) -> None:
        """Record the series of the results of `eqn`, and compute their coefficients."""
        op = require_primitive(eqn)
        if op.constant or not any(v.type.is_inexact for v in eqn.outputs):
            return
        given = [self._series.get(v) or self.constant(moved[v]) for v in eqn.inputs]
        opened, operands = eqn, given
        if op.pushforward_rule is not None:
            opened, places = masks.opened(eqn)
            operands = [self.constant(moved[v]) for v in opened.inputs]
            for i, series in zip(places, given, strict=True):
                operands[i] = series
        operands = self._mask_operands(eqn, operands, masks)
        plain = opened is eqn and all(x is y for x, y in zip(operands, given, strict=True))
        values = tuple([moved[v] for v in eqn.outputs]) if plain else ()
        try:
            results = self.apply_all(op, operands, opened.params, self.order, values)
            for k in range(1, self.order + 1):
                for series in results:
                    series[k]
        except MissingRuleError as error:
            raise error.located(written(eqn)) from None
        if not plain or eqn in masks.masks.results:
            results = self._mask_results(
                eqn, [moved[v] for v in eqn.outputs], operands, results, masks
            )
        for value, series in zip(eqn.outputs, results, strict=True):
            if value.type.is_inexact and any(series[k] for k in range(1, self.order + 1)):
                self._series[value] = series

    def _mask_operands(self, eqn: Equation, operands: list[Series], masks: Masking) -> list[Series]:
        """Return the operands, masked where they do not matter."""
        guarded, factors = masks.masks.tangents.get(eqn), masks.masks.factors.get(eqn)
        if guarded is None and factors is None:
            return operands

        def series_of(i: int, x: Series) -> Series:
            def find(k: int) -> Row:
                term = x[k]
                if term is None:
                    return (None,)
                if k == 0:
                    return (masks.factors(eqn, [y.first() for y in operands])[i],)
                return (masks.tangents(eqn, {i: term})[i],)

            return Series(x.type, _Rows(find), fixed=x.fixed)

        return [series_of(i, x) if x.type.is_inexact else x for i, x in enumerate(operands)]

    def _mask_results(
        self,
        eqn: Equation,
        values: Sequence[Value],
        operands: Sequence[Series],
        results: Sequence[Series],
        masks: Masking,
    ) -> Sequence[Series]:
        """Return the results as series of `values`, masked by the support of the active operand."""
        active = [i for i, x in enumerate(operands) if x.type.is_inexact and not x.fixed]
        alone = eqn in masks.masks.results and len(active) == 1

        def series_of(value: Value, z: Series) -> Series:
            def find(k: int) -> Row:
                if k == 0:
                    return (value,)
                term = z[k]
                if alone:
                    ((term,),) = masks.terms(eqn, {(active[0],): [term]})
                return (term,)

            return Series(z.type, _Rows(find))

        return [series_of(v, z) for v, z in zip(values, results, strict=True)]

    # Series operations that rules use.

    def constant(self, value: Value) -> Series:
        """Return the series of a constant."""
        found = self._constants.get(value)
        if found is None:
            found = Series(value.type, lambda k, /: (value,), fixed=True)
            self._constants[value] = found
        return found

    def apply(self, op: Primitive[Any], *operands: Series, **params: Any) -> Series:
        """Return the series of a primitive with one result."""
        frozen = self.builder._intern_params(params) if params else ()
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
        node = self._nodes[key] = _Node(op, operands, params, limit)
        types = self.builder.infer(op, tuple([x.type for x in operands]), params)
        known = not node.active or op.constant
        rows = _Rows(lambda k: values if values and k == 0 else self._row(node, k))
        node.results = tuple(
            [Series(t, rows, j, fixed=known or not t.is_inexact) for j, t in enumerate(types)]
        )
        self._made_by.update((z, node) for z in node.results)
        return node.results

    def through(
        self, function: Callable[..., Value], *operands: Series, **options: Hashable
    ) -> Series:
        """Return the series of `function`, which is traced into primitives."""
        key = (function, tuple([x.type for x in operands]), *options.items())
        if key not in self._traced:
            builder = Builder(function.__name__, source=self.builder.source or NOWHERE)
            with builder:
                found = function(*[builder.input(x.type) for x in operands], **options)
            self._traced[key] = builder.graph([found])
        graph = self._traced[key]
        return self._graph_series(graph, operands, self.order)[graph.outputs[0]]

    def _graph_series(
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
        if (
            found is None
            and node is not None
            and node.slopes is not None
            and node.op.taylor_rule is None
        ):
            found = node.slopes[node.results.index(x)]
        if found is None:

            def find(k: int) -> Row:
                term = x[k + 1]
                return (None if term is None else scaled(term, k + 1.0),)

            found = self._rates[x] = Series(x.type, _Rows(find))
        return found

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
        return mul(rest, div(filled(1, by.type), by)) if safe else div(rest, by)

    def is_line(self, x: Series, k: int) -> bool:
        """Return whether coefficients 2 to `k` of `x` are zero."""
        return all(x[i] is None for i in range(2, k + 1))

    # Coefficients of equations.

    def _row(self, node: _Node, k: int) -> Row:
        op, params = node.op, dict(node.params)
        if op.linear == "each":
            x, y = node.operands
            if x is y and op.commutative:
                return (self.square(op, x, k),)
            return (self.convolution(op, x, y, k, k + 1),)
        linear = set(op.linear_operands(len(node.operands), params))
        if linear.issuperset(node.active) and (k or node.active):
            return self._linear_row(node, sorted(linear), k)
        if k == 0:
            if linear and all(node.operands[i][0] is None for i in linear):
                return [None] * len(node.results)
            return self._emit_node(node, [x.first() for x in node.operands])
        if op.expansion_rule is not None:
            return self._whole_row(node, k)
        if op.taylor_rule is not None:
            z = node.results if op.multiple else node.results[0]
            found = op.taylor_rule(self, k, z, *node.operands, **params)
            if found is not NotImplemented:
                return tuple(found) if op.multiple else (found,)
        if node.slopes is None:
            node.slopes = self._slopes(node, sorted(linear))
        return [self.integral(slope, k) for slope in node.slopes]

    def _whole_row(self, node: _Node, k: int) -> Row:
        """Return coefficient `k` of an op with bodies; compute all orders to the limit at once."""
        order = max(node.limit, k)
        if node.order < order:
            moving = {}
            for i in node.active:
                terms = {n: node.operands[i][n] for n in range(1, order + 1)}
                if any(terms.values()):
                    moving[i] = {n: v for n, v in terms.items() if v is not None}

            firsts = [x.first() for x in node.operands]
            rule = node.op.expansion_rule
            assert rule is not None

            def expand(graph: Graph, given: Mapping[int, Sequence[int]]) -> Any:
                return _with_coefficients(graph, order, given)

            node.order = order
            node.whole = rule(expand, firsts, moving, order, **dict(node.params)) if moving else {}
        return [node.whole.get(j, {}).get(k) for j in range(len(node.results))]

    def _linear_row(self, node: _Node, places: Sequence[int], k: int) -> Row:
        """Apply the primitive to the coefficients `k`; apply its rules if some are zero."""
        operands = node.operands
        given = {i: operands[i][k] for i in places if operands[i].type.is_inexact}
        present = [i for i, v in given.items() if v is not None]
        if not present:
            return [None] * len(node.results)
        rules = [node.op.jvp_rule(i) for i in present]
        if len(present) < len(given) and len(node.results) == 1 and None not in rules:
            first = [x.first() for x in operands]
            z = None if k == 0 else node.results[0].first()
            terms = [
                rule(z, *first, given[i], **dict(node.params))
                for i, rule in zip(present, rules, strict=True)
                if rule is not None
            ]
            return (self.total(terms),)
        chosen = []
        for i, x in enumerate(operands):
            term = given[i] if i in given else x.first()
            chosen.append(filled(0, x.type) if term is None else term)
        return self._emit_node(node, chosen)

    def _emit_node(self, node: _Node, operands: Sequence[Value]) -> Row:
        return self.builder.emit(node.op, operands, dict(node.params))

    def _slopes(self, node: _Node, linear: Sequence[int]) -> list[Series | None]:
        """Return the derivatives of the results, by the JVP rules."""
        op, active = node.op, node.active
        if op.pushforward_rule is not None:
            groups = [tuple(active)]
        else:
            together = tuple([i for i in linear if i in active])
            groups = [(i,) for i in active if i not in together]
            groups += [(i,) for i in together] if op.linear == "each" else [together]
        found: list[list[Series]] = [[] for _ in node.results]
        for places in groups:
            if not places:
                continue
            graph, present = self._template(node, places, places[0] in linear)
            rates = [self.rate(node.operands[i]) for i in places]
            given = (*node.results, *node.operands, *rates)
            known = self._graph_series(graph, given, node.limit - 1)
            ends = iter(graph.outputs)
            for terms, has in zip(found, present, strict=True):
                if has:
                    terms.append(known[next(ends)])
        return [reduce(lambda x, y: self.apply(add, x, y), t) if t else None for t in found]

    def _template(
        self, node: _Node, places: tuple[int, ...], linear: bool
    ) -> tuple[Graph, list[bool]]:
        """Return a graph of the tangents of the results, and which results have one.

        Its inputs are results, operands, and tangents of the operands at `places`.
        """
        op, types = node.op, tuple([x.type for x in node.operands])
        key = (op.name, types, bits(node.params) if node.params else (), places)
        if key in self._templates:
            return self._templates[key]
        builder, params = Builder(op.name, source=self.builder.source or NOWHERE), dict(node.params)
        with builder:
            z = tuple([builder.input(s.type) for s in node.results])
            x = [builder.input(t) for t in types]
            dx = {i: builder.input(types[i]) for i in places}
            found: Sequence[Value | None]
            if op.pushforward_rule is not None:
                found = op.pushforward_rule(x, dx, False, **params)
            elif linear:
                lines = op.linear_operands(len(x), params)
                given = [
                    dx.get(i, filled(0, v.type) if i in lines and v.type.is_inexact else v)
                    for i, v in enumerate(x)
                ]
                found = builder.emit(op, given, params)
            else:
                found = self._apply_rule(
                    op, places[0], (z if op.multiple else z[0], *x), dx, params
                )
            outputs = [v for v in found if v is not None]
        result = builder.graph(outputs), [v is not None for v in found]
        self._templates[key] = result
        return result

    def _apply_rule(
        self,
        op: Primitive[Any],
        place: int,
        given: Sequence[Any],
        dx: Mapping[int, Value],
        params: Mapping[str, Any],
    ) -> Sequence[Value | None]:
        rule = op.jvp_rule(place)
        if rule is None:
            raise MissingRuleError(
                f"primitive {op.name} has no jvp rule for operand {place}",
                hint=f"declare one with @{op.name}.jvp({place})",
            )
        found = rule(*given, dx[place], **params)
        return found if op.multiple else (found,)
