"""Taylor mode: transform a graph into its value and derivatives along a curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import final

from primgraph.errors import MissingRuleError, OptionError
from primgraph.ir.builder import Builder
from primgraph.ir.facts.ranges import Range
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.rebuild import derived_source, keep, origin_lines, rebuild, require_primitive
from primgraph.primitives.constants import filled_constant
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.dataflow.masks.masks import Masking, masks_of
from primgraph.transforms.dataflow.region_interface import is_mark
from primgraph.transforms.linearize import differentiable_values
from primgraph.transforms.loops import taylor_loops  # noqa: F401
from primgraph.transforms.taylor_series.jets import Jets
from primgraph.transforms.taylor_series.series import Row, Rows, Series, scale_value


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
    return expand_series(graph, order, wrt, seeds=seeds, given=given)[0]


def expand_series(
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
    places = differentiable_values(graph, wrt)
    orders = [range(1, order + 1)] * len(places) if seeds is None else seeds
    builder, moved = rebuild(graph)
    with builder:
        series = _Propagation(builder, order)
        for value, present in zip(places, orders, strict=True):
            known = {k: builder.input(value.type) for k in present}
            series.seeds[value] = {k: scale_value(d, 1 / unit(k)) for k, d in known.items()}
        series.follow(graph, moved, given)
        outputs = [moved[v] for v in graph.outputs]
        for value in graph.outputs:
            if value.type.is_inexact:
                outputs += series.derivatives(value, unit)
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
        series = _Propagation(builder, order)
        for i in sorted(given):
            value = graph.inputs[i]
            series.seeds[value] = {k: builder.input(value.type) for k in given[i]}
        series.follow(graph, moved, dict)
        outputs, present = [moved[v] for v in graph.outputs], {}
        for j, value in enumerate(graph.outputs):
            if value.type.is_inexact:
                found = series.coefficients(value)
                outputs += found.values()
                present[j] = list(found)
    return builder.graph(outputs, f"{graph.name}_jet"), present


@final
class _Propagation:
    """Series of the values of a graph, which follow from those of the values in `seeds`."""

    def __init__(self, builder: Builder, order: int) -> None:
        self.builder = builder
        self.order = order
        self.seeds: dict[Value, dict[int, Value]] = {}
        self._jets = Jets(builder, order, _with_coefficients)
        self._series: dict[Value, Series] = {}

    def follow(
        self,
        graph: Graph,
        moved: dict[Value, Value],
        given: Callable[[], Mapping[Value, Range]],
    ) -> None:
        """Record values and coefficients of all equations of `graph`."""
        sources = list(self.seeds)
        masks = Masking(masks_of(graph, sources, given), graph, moved)
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
            scale_value(known[k], unit(k)) if k in known else filled_constant(0, value.type)
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
            return (self._jets.total([seeds.get(k), None if own is None else own[k]]),)

        return Series(value.type, Rows(find))

    def _push(self, eqn: Equation, moved: Mapping[Value, Value], masks: Masking) -> None:
        """Record the series of the results of `eqn`, and compute their coefficients."""
        op = require_primitive(eqn)
        if op.constant or not any(v.type.is_inexact for v in eqn.outputs):
            return
        given = [self._series.get(v) or self._jets.constant(moved[v]) for v in eqn.inputs]
        opened, operands = eqn, given
        if op.pushforward_rule is not None:
            opened, places = masks.open_bodies(eqn)
            operands = [self._jets.constant(moved[v]) for v in opened.inputs]
            for i, series in zip(places, given, strict=True):
                operands[i] = series
        operands = self._mask_operands(eqn, operands, masks)
        plain = opened is eqn and all(x is y for x, y in zip(operands, given, strict=True))
        values = tuple([moved[v] for v in eqn.outputs]) if plain else ()
        try:
            results = self._jets.apply_all(op, operands, opened.params, self.order, values)
            for k in range(1, self.order + 1):
                for series in results:
                    series[k]
        except MissingRuleError as error:
            raise error.located(origin_lines(eqn)) from None
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

            return Series(x.type, Rows(find), fixed=x.fixed)

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

            return Series(z.type, Rows(find))

        return [series_of(v, z) for v, z in zip(values, results, strict=True)]
