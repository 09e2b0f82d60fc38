"""Gradient check: compare derivatives with complex steps, finite differences, and each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from primgraph import tree
from primgraph.api.arguments import parameter_names
from primgraph.api.world import as_tensor
from primgraph.eager.derivatives import recording
from primgraph.eager.derivatives.other_modes import argument, graph_between
from primgraph.eager.run import compute
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, CheckError, FeedError, InternalError, OptionError
from primgraph.inspect.complex_step import STEP, evaluate, knows, widen_floats
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import call_user_function, checked_late
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Primitive
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.sizes import fit_to_arrays
from primgraph.ir.slices import backward_slice, drop_formal
from primgraph.ir.types import FLOAT64, Shape
from primgraph.primitives.parts import complex_, imag, real
from primgraph.program.program import Program
from primgraph.program.trace import is_container, trace
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.pullback import pushforward
from primgraph.transforms.transpose import transpose

Array: TypeAlias = np.ndarray[Any, Any]

# Step of central differences for an element of size one, and tolerances of these and of the other
# methods: relative to the largest derivative, and to the largest value.
_DIFFERENCE = 2e-3
_SEED = 0x5DEECE66D
_BY_DIFFERENCES, _BY_COMPLEX_STEP, _BY_ROUNDING = (1e-6, 1e-10), (1e-9, 1e-14), 1e-10


@checked_late
def check_grads(
    function: Callable[..., Any] | Graph | Program,
    inputs: Sequence[Any] | Mapping[str, Any],
    order: int = 2,
    modes: Collection[str] = ("forward", "reverse"),
) -> None:
    """Compare all derivatives up to `order`, in every mixture of `modes`, with independent ones.

    `function` is a function of variables or a graph, with one array, or container of arrays, in
    `inputs` for each argument. With tensors in `inputs` it is a function of tensors; its operations
    on these, and on tensors that it closes over, are checked. It may also be a program, with arrays
    by name, whose last results are differentiated. Derivatives are by all float inputs, at these
    arrays, in float64 for any dtype; other inputs are constant. Complex inputs and outputs count as
    two real ones, their parts. A derivative of higher order is taken along random directions, and
    differentiated again by each element of the inputs.

    The independent derivatives are complex-step derivatives (W. Squire and G. Trapp, Using complex
    variables to estimate derivatives of real functions, 1998) if all primitives are known and none
    has a kink nearby. Otherwise they are central differences with one step of Richardson's
    extrapolation. At a kink, differences may disagree with the chosen derivative. With both modes,
    `<u, J v>` and `<J' u, v>` are compared too, to rounding.

    The cost is one evaluation of function and derivative for each element of the inputs, doubled
    for each further order.

    Raises `CheckError`, an AssertionError, with the first input, element and order that differ and
    both numbers; `MissingRuleError` for a missing rule; `OptionError` for an unknown mode or an
    order below one; `ArgumentError` for inputs or outputs without floats.

    >>> pg.check_grads(pg.tanh, [np.array([0.5, 1.0])])
    """
    chosen = tuple(modes)
    known = all(isinstance(m, str) and m in ("forward", "reverse") for m in chosen)
    if not chosen or not known or isinstance(modes, str | Mapping):
        raise OptionError(f"modes are some of 'forward' and 'reverse', not {modes!r}")
    if order < 1:
        raise OptionError(f"the order of a derivative is at least 1, not {order}")
    graph, arrays = _graph_of(function, inputs)
    # A seed unlikely to be used for the inputs: directions equal to them detect less.
    rng = np.random.default_rng(_SEED)
    levels = [Level.from_graph(graph, arrays)]
    for number in range(1, order + 1):
        following: list[Level] = []
        for level in levels:
            following += level.check_derivatives(number, chosen, rng)
        levels = following


def _graph_of(
    function: Callable[..., Any] | Graph | Program, inputs: Any
) -> tuple[Graph, list[Array]]:
    """Return the graph of `function`, and an array for each of its inputs."""
    if isinstance(function, Program):
        if not isinstance(inputs, Mapping):
            raise ArgumentError(f"inputs of a program are arrays by name, not {inputs!r:.60}")
        graph = function.graph()
        known = {**function.state_dict(), **inputs}
        missing = [v.hint for v in graph.inputs if v.hint not in known]
        if missing:
            raise FeedError(f"check_grads: missing {', '.join(map(repr, missing))}")
        arrays = [np.asarray(known[v.hint]) for v in graph.inputs]
        return fit_to_arrays(graph, arrays), arrays
    listed = inputs if isinstance(inputs, list | tuple) else [inputs]
    if isinstance(function, Graph):
        arrays = [np.asarray(a) for a in function.in_order(listed, {})]
        return fit_to_arrays(function, arrays), arrays
    if not callable(function):
        raise ArgumentError(
            f"check_grads takes a function, graph or program, not {type(function).__name__}"
        )
    if any(isinstance(leaf, Tensor) for leaf in tree.leaves(listed)):
        return _record_function(function, listed)
    graph = trace(function, *(a if is_container(a) else np.asarray(a) for a in listed))
    return graph, [np.asarray(a) for a in graph.in_order(listed, {})]


def _record_function(
    function: Callable[..., Any], inputs: Sequence[Any]
) -> tuple[Graph, list[Array]]:
    """Return a function's operations on tensors as a graph, and the arrays of its inputs.

    Tensors that it closes over are inputs, too.
    """
    leaves, structure = tree.flatten([*inputs])
    given = [as_tensor(leaf) for leaf in leaves]
    nodes = [argument(t.node) if t.type.is_inexact else t.node for t in given]
    called = [t.family(n) for t, n in zip(given, nodes, strict=True)]
    with recording.enable_grad():
        result = call_user_function(function, *tree.unflatten(structure, called))
    outputs = [as_tensor(leaf).node for leaf in tree.leaves(result)]
    graph, used = graph_between(nodes, outputs)
    names = parameter_names(function, len(inputs))
    parts = zip(names, structure.parts, strict=True)
    titles = [path for name, part in parts for path in tree.paths_of(part, name)]
    for value, title in zip(graph.inputs, titles, strict=False):
        value.hint = title
    compute(used)
    return graph, [np.asarray(n.array) for n in used]


@dataclass(frozen=True, slots=True)
class Level:
    """Derivative to be differentiated again: a graph of inputs and directions.

    `wrt` are the positions of the inputs to differentiate by, `modes` how it was derived.
    """

    graph: Graph
    arrays: list[Array]
    wrt: list[int]
    modes: tuple[str, ...] = ()

    @staticmethod
    def from_graph(graph: Graph, arrays: Sequence[Array]) -> Level:
        lowered = lower(graph)
        kept = dead_code(lowered.with_outputs(v for v in lowered.outputs if v.type.is_inexact))
        if len(arrays) != len(kept.inputs):
            raise FeedError(f"{graph.name} takes {len(kept.inputs)} arrays, {len(arrays)} given")
        wide = split_complex(widen_floats(kept))
        # A real array fed for a complex input has no imaginary part.
        types = [v.type for v in kept.inputs]
        given = [np.asarray(a, t.dtype if t.is_complex else None)
                 for a, t in zip(arrays, types, strict=True)]  # fmt: skip
        wrt = [i for i, v in enumerate(wide.inputs) if v.type.is_float]
        if not wrt or not wide.outputs:
            raise ArgumentError(
                f"check_grads needs float inputs and outputs, and {graph!r} has not both"
            )
        return Level(wide, parts_of(given), wrt)

    def check_derivatives(
        self, order: int, modes: tuple[str, ...], rng: np.random.Generator
    ) -> list[Level]:
        """Check the derivatives of this level; return the next levels to differentiate."""
        jvp = pushforward(self.graph, self.wrt) if "forward" in modes else None
        vjp = self._pullback(jvp) if "reverse" in modes else None
        values, known, source, limits = self.expected_jacobian()
        v = [rng.standard_normal(self.graph.inputs[i].shape) for i in self.wrt]
        u = [rng.standard_normal(o.shape) for o in self.graph.outputs]
        if jvp is not None:
            self.check_forward(order, jvp, known, limits, source)
        if vjp is not None:
            self.check_reverse(order, vjp, u, known, limits, source)
        if jvp is not None and vjp is not None:
            self.check_adjoint(order, jvp, vjp, u, v, values)
        graphs = {"forward": (jvp, v), "reverse": (vjp, u)}
        return [
            Level(graph, [*self.arrays, *seeds], self.wrt, (mode, *self.modes))
            for mode, (graph, seeds) in graphs.items()
            if graph is not None
        ]

    def _pullback(self, jvp: Graph | None) -> Graph:
        """Return the graph of cotangents of the inputs."""
        linear = jvp
        if linear is None or any(_has_rules(eqn) for eqn in self.graph.body):
            linear = pushforward(self.graph, self.wrt, "cotangent")
        count = len(self.graph.inputs)
        return transpose(linear, range(count, count + len(self.wrt)))

    def expected_jacobian(self) -> tuple[float, list[Array], str, list[Array]]:
        """Return the largest value, the Jacobian by each input, the method that found these, and
        their tolerances."""
        values, known, source, slack = self._independent()
        return values, known, source, [_limit(columns, values, slack) for columns in known]

    def _independent(self) -> tuple[float, list[Array], str, tuple[float, float]]:
        """Like `expected`, with tolerances relative to the largest numbers."""
        values = interpret(self.graph, *self.arrays)
        largest = max((float(np.max(np.abs(a), initial=0.0)) for a in values), default=0.0)
        if knows(self.graph):
            columns = [self._columns(i, self._complex_step) for i in self.wrt]
            if all(c is not None for c in columns):
                found = [c for c in columns if c is not None]
                return largest, found, "a complex step gives", _BY_COMPLEX_STEP
        graph, arrays = self._stops_as_inputs()
        slope = partial(self._differences, graph, arrays)
        differences = [self._columns(i, slope) for i in self.wrt]
        found = [c for c in differences if c is not None]
        return largest, found, "central differences give", _BY_DIFFERENCES

    def _columns(self, place: int, slope: Callable[[int, int], list[Array] | None]) -> Array | None:
        size = self.arrays[place].size
        extent = sum(v.type.size for v in self.graph.outputs)
        matrix = np.empty((extent, size))
        for element in range(size):
            found = slope(place, element)
            if found is None:
                return None
            matrix[:, element] = np.concatenate([a.reshape(-1) for a in found])
        return matrix

    def _complex_step(self, place: int, element: int) -> list[Array] | None:
        """Return the derivatives by one element; None near a kink or a jump."""
        tangents = [np.zeros(np.shape(a)) for a in self.arrays]
        tangents[place].reshape(-1)[element] = 1.0
        known, smooth = evaluate(self.graph, self.arrays, tangents)
        return [np.imag(known[v]) / STEP for v in self.graph.outputs] if smooth else None

    def _differences(
        self, graph: Graph, arrays: Sequence[Array], place: int, element: int
    ) -> list[Array]:
        """Return the differences by one element, of what `_stops_as_inputs` returns."""
        array = np.asarray(self.arrays[place], np.float64)

        def evaluate_at(shift: float) -> list[Array]:
            moved = array.copy()
            moved.reshape(-1)[element] += shift
            return interpret(graph, *(moved if i == place else a for i, a in enumerate(arrays)))

        return richardson(evaluate_at, float(array.reshape(-1)[element]))

    def _stops_as_inputs(self) -> tuple[Graph, list[Array]]:
        """Return the graph with results of `stop_gradient` as inputs, and arrays for all inputs."""
        plain = drop_formal(self.graph)
        # A constant that stands where a primitive has no derivative is part of its formula, such as
        # the sum of squares of `root_of_squares`, and not a user's constant.
        formulas = {
            v
            for e in plain.body
            for i, v in enumerate(e.inputs)
            if isinstance(e.op, Primitive) and e.op.is_flat(i)
        }
        # Within a function with its own rules, nothing that it computes is differentiated.
        reached = {v for e in _differentiated(self.graph) for v in e.outputs}
        stops = [e for e in plain.body if e.op.stops and e.output in reached - formulas]
        held = [e.output for e in stops]
        values = interpret(plain.with_outputs(held), *self.arrays)
        stopped = set(held)
        body = [e for e in plain.body if stopped.isdisjoint(e.outputs)]
        graph = Graph([*plain.inputs, *held], body, plain.outputs, plain.name)
        return graph, [*self.arrays, *values]

    def check_forward(
        self, order: int, jvp: Graph, known: list[Array], limits: list[Array], source: str
    ) -> None:
        for number, place in enumerate(self.wrt):
            for element in range(self.arrays[place].size):
                tangents = [np.zeros(self.graph.inputs[i].shape) for i in self.wrt]
                tangents[number].reshape(-1)[element] = 1.0
                results = interpret(jvp, *self.arrays, *tangents)
                found = np.concatenate([a.reshape(-1) for a in results])
                expected = known[number][:, element]
                bad = first_difference(found, expected, limits[number][:, element])
                if bad is not None:
                    pair = float(found[bad]), float(expected[bad])
                    self._fail(order, "forward", place, element, pair, source, bad)

    def check_reverse(
        self,
        order: int,
        vjp: Graph,
        u: list[Array],
        known: list[Array],
        limits: list[Array],
        source: str,
    ) -> None:
        weights = np.concatenate([a.reshape(-1) for a in u])
        results = interpret(vjp, *self.arrays, *u)
        for number, place in enumerate(self.wrt):
            found = results[number].reshape(-1)
            with np.errstate(all="ignore"):
                expected = weights @ known[number]
                bad = first_difference(found, expected, np.abs(weights) @ limits[number])
            if bad is not None:
                pair = float(found[bad]), float(expected[bad])
                self._fail(order, "reverse", place, bad, pair, source)

    def check_adjoint(
        self,
        order: int,
        jvp: Graph,
        vjp: Graph,
        u: list[Array],
        v: list[Array],
        values: float,
    ) -> None:
        """Check that `<u, J v>` equals `<J' u, v>` to rounding: reverse mode is the transpose."""
        with np.errstate(all="ignore"):
            left, right = (
                np.concatenate([(a * b).reshape(-1) for a, b in zip(seeds, found, strict=True)])
                for seeds, found in (
                    (u, interpret(jvp, *self.arrays, *v)),
                    (v, interpret(vjp, *self.arrays, *u)),
                )
            )
            # If J itself cancels, as along the argument of a norm, rounding is relative to the
            # values.
            sizes = values * math.prod(sum(float(np.sum(np.abs(a))) for a in s) for s in (u, v))
            limit = _BY_ROUNDING * (np.sum(np.abs(left)) + np.sum(np.abs(right)))
            limit += _BY_COMPLEX_STEP[1] * sizes
            pair = float(np.sum(left)), float(np.sum(right))
        if first_difference(np.array(pair[:1]), np.array(pair[1:]), np.array([limit])) is not None:
            raise CheckError(
                f"{self._title(order)}: forward and reverse mode are not each other's transposes: "
                f"<u, J v> is {pair[0]!r}, <J' u, v> is {pair[1]!r}"
            )

    def _fail(
        self,
        order: int,
        mode: str,
        place: int,
        element: int,
        pair: tuple[float, float],
        source: str,
        output: int | None = None,
    ) -> None:
        shape, name = self.graph.inputs[place].shape, self.graph.inputs[place].hint
        of = "" if output is None else f" of {self._output(output)}"
        raise CheckError(
            f"{self._title(order)}: the derivative{of} by input {place} {name!r} at "
            f"{_index(element, shape)} is {pair[0]!r} in {mode} mode, but {source} {pair[1]!r}",
            hint="look at the rules of the primitives on the way, or choose inputs off the kinks",
        )

    def _output(self, element: int) -> str:
        """Return the name of an element, numbered through all outputs."""
        for number, value in enumerate(self.graph.outputs):
            if element < value.type.size:
                return f"output {number} at {_index(element, value.shape)}"
            element -= value.type.size
        raise InternalError("an element lies behind all outputs")

    def _title(self, order: int) -> str:
        over = f" of the {' over '.join(self.modes)} derivative" if self.modes else ""
        return f"order {order}{over}"


def richardson(at: Callable[[float], list[Array]], place: float) -> list[Array]:
    """Return central differences of `at`, a function of a shift, extrapolated once."""
    step = _DIFFERENCE * (1 + abs(place))
    ends = [at(s) for s in (step, -step, step / 2, -step / 2)]
    with np.errstate(all="ignore"):
        return [
            (4 * (c - d) / step - (a - b) / (2 * step)) / 3
            for a, b, c, d in zip(*ends, strict=True)
        ]


def split_complex(graph: Graph, seeds: int | None = None) -> Graph:
    """Return `graph` as a function between real and imaginary parts.

    Inputs from number `seeds` on are cotangents, and so are the outputs: paired with tangents by
    `Re(ct * dz)`, their imaginary parts change sign.
    """
    if not any(v.type.is_complex for v in (*graph.inputs, *graph.outputs)):
        return graph
    builder = Builder(graph.name, source=NOWHERE)
    values, results = [], list[Value]()
    with builder:
        for number, value in enumerate(graph.inputs):
            if not value.type.is_complex:
                values.append(builder.input(value.type, value.hint))
                continue
            half = value.type.with_dtype(FLOAT64)
            names = [f"{value.hint}.{part}" if value.hint else "" for part in ("real", "imag")]
            x, y = (builder.input(half, name) for name in names)
            turned = seeds is not None and number >= seeds
            values.append(complex_(x, -y if turned else y))
        for found in builder.inline(graph, values):
            if not found.type.is_complex:
                results.append(found)
                continue
            results += [real(found), imag(found) if seeds is None else -imag(found)]
    return builder.graph(results)


def parts_of(arrays: Sequence[Array]) -> list[Array]:
    """Split each complex array into real and imaginary part."""
    found: list[Array] = []
    for array in map(np.asarray, arrays):
        found += [np.real(array), np.imag(array)] if array.dtype.kind == "c" else [array]
    return found


def _differentiated(graph: Graph) -> Sequence[Equation]:
    """Return the equations between inputs and outputs without those inside custom functions."""

    def differentiated(eqn: Equation) -> Equation:
        if eqn.op.own_slope != "given":
            return eqn
        # The operands of the function come between one result and all results.
        operands = eqn.inputs[1 : 1 + eqn.kwargs["count"]]
        return Equation(eqn.op, operands, eqn.params, eqn.outputs, eqn.source)

    return backward_slice([*map(differentiated, graph.body)], graph.outputs)


def _has_rules(eqn: Equation) -> bool:
    """Return whether `eqn` has rules for both modes."""
    return isinstance(eqn.op, Primitive) and eqn.op.pushforward_rule is not None


def _index(element: int, shape: Shape) -> tuple[int, ...]:
    """Return the index of an element, numbered in row-major order."""
    return tuple(int(i) for i in np.unravel_index(element, shape))


def _limit(columns: Array, values: float, slack: tuple[float, float]) -> Array:
    """Return the tolerance of each derivative."""
    finite = np.abs(columns[np.isfinite(columns)])
    largest = float(np.max(finite, initial=0.0))
    return np.full(columns.shape, slack[0] * largest + slack[1] * values)


def first_difference(found: Array, expected: Array, limit: Array) -> int | None:
    """Return the first index where the numbers differ by more than `limit`; NaN equals NaN."""
    with np.errstate(all="ignore"):
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        places = np.flatnonzero(~(same | (np.abs(found - expected) <= limit)))
    return int(places[0]) if len(places) else None
