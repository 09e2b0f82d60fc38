"""Check user-defined rules against finite differences, and against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from primgraph.base.user_lines import definition_line
from primgraph.custom.function import Function
from primgraph.custom.static import is_operand
from primgraph.custom.traced import TracedCall, TracedSlope
from primgraph.eager.derivatives.backward import grad
from primgraph.eager.node import array_node
from primgraph.eager.tensor import Tensor
from primgraph.errors import WRITTEN, ArgumentError, CheckError
from primgraph.inspect.check import Array, Level, first_difference, richardson, split_complex
from primgraph.inspect.complex_step import widen_floats
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.containers import flatten_value
from primgraph.ir.frontend.signature import UNFIT, checked_late
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.operators.promotion import lift
from primgraph.program.trace import trace
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.edits import dead_code

_SEED = 0x5EED
_BY_DIFFERENCES = 1e-6
# Scales of seeds for cotangent rules: a linear rule scales with them.
_SIZES = (1.0, 64.0)


@checked_late
def check_rules(function: Callable[..., Any] | type[Function], args: Sequence[Any]) -> None:
    """Compare the rules of custom functions with the functions, and with each other.

    `function` is a custom function, a subclass of `Function`, or a function that calls some. Each
    custom function that is called for `args` is checked at its arguments, by all float arrays;
    complex arrays by real and imaginary parts. Rules for tangents and cotangents are compared with
    derivatives of the function, by a complex step or by differences, as in `check_grads`, in
    float64. If both are given they must be adjoint: `<u, J v>` equals `<J' u, v>`. The value that a
    rule returns must be that of the function. A function that looks at numbers runs on tensors, and
    its backward rule is compared with differences.

    Raises `CheckError`, an AssertionError, with the line of the rule that differs, the first
    element and both numbers; `ArgumentError` where no custom function is called.

    >>> @pg.custom_jvp
    ... def cube(x):
    ...     return x**3
    >>> @cube.defjvp
    ... def cube_jvp(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return x**3, 3.0 * x**2 * dx
    >>> pg.check_rules(cube, [np.array([-1.0, 2.0])])
    """
    of_class = isinstance(function, type) and issubclass(function, Function)
    call: Any = function.apply if of_class else function  # type: ignore[union-attr]
    if not callable(call):
        raise ArgumentError(f"check_rules takes a function, not {function!r:.60}")
    if not isinstance(args, list | tuple):
        raise ArgumentError(f"check_rules takes arguments in a list or tuple, not {args!r:.60}")
    arrays = [np.asarray(a) for a in args if is_operand(a)]
    try:
        graph = trace(lambda *given: call(*_fill_operands(args, given)), *arrays)
    except UNFIT as error:
        _check_on_tensors(call, args, error)
        return
    found = {
        eqn.kwargs["call"]: eqn.inputs[1 : 1 + eqn.kwargs["count"]]
        for eqn in graph.body
        if eqn.op.own_slope == "given"
    }
    if not found:
        raise ArgumentError(f"check_rules: {function!r:.60} calls no custom function")
    for custom, operands in found.items():
        assert isinstance(custom, TracedCall)
        _check(custom, interpret(graph.with_outputs(operands), *arrays))


def _check_on_tensors(call: Callable[..., Any], args: Sequence[Any], error: Exception) -> None:
    """Compare gradients of a function of tensors with finite differences.

    `error` says why it cannot be traced, and is raised if it does not run on tensors either.
    """
    rng = np.random.default_rng(_SEED)
    wide = [np.asarray(a, _widest(a)) if _is_float(a) else a for a in args]
    tensors: list[Any] = [Tensor(array_node(a, tracked=True)) if _is_float(a) else a for a in wide]
    try:
        results = _floats(call(*tensors))
    except UNFIT:
        raise error from None
    u = [_draw_array(rng, r.shape, r.dtype) for r in results]
    places = [i for i, t in enumerate(tensors) if isinstance(t, Tensor)]
    ends = [i for i, r in enumerate(results) if r.requires_grad]
    if not places or not ends:
        raise ArgumentError("check_rules needs float arguments, and results that depend on them")
    found = grad(
        [results[i] for i in ends],
        [tensors[i] for i in places],
        [Tensor(array_node(u[i])) for i in ends],
        materialize_grads=True,
    )
    for place, gradient in zip(places, found, strict=True):
        assert gradient is not None
        mine, expected = gradient.numpy().reshape(-1), _slopes(call, wide, u, place)
        largest = float(np.max(np.abs(expected), initial=1.0))
        bad = first_difference(mine, expected, np.full(mine.size, _BY_DIFFERENCES * largest))
        if bad is not None:
            raise CheckError(
                f"the derivative by argument {place} at element {bad} is {mine[bad].item()!r} on "
                f"tensors, but central differences give {expected[bad].item()!r}"
            )


def _slopes(call: Callable[..., Any], args: Sequence[Any], u: Sequence[Array], place: int) -> Array:
    """Return the derivatives of a function's results, times `u`, by each element of an argument.

    For complex elements: the derivative by the real part, minus i times that by the imaginary part.
    """

    def evaluate_at(element: int, shift: float, along: complex = 1.0) -> list[Array]:
        moved = [np.array(a) if _is_float(a) else a for a in args]
        moved[place].reshape(-1)[element] += shift * along
        values = _floats(call(*[Tensor(array_node(a)) if _is_float(a) else a for a in moved]))
        products = [np.real(v.numpy() * a).sum() for v, a in zip(values, u, strict=True)]
        return [np.array(products).sum()]

    flat = args[place].reshape(-1)
    found = [richardson(partial(evaluate_at, k), float(x.real))[0] for k, x in enumerate(flat)]
    if flat.dtype.kind != "c":
        return np.array(found)
    turned = [
        richardson(partial(evaluate_at, k, along=1j), float(x.imag))[0] for k, x in enumerate(flat)
    ]
    return np.array(found) - 1j * np.array(turned)


def _is_float(argument: Any) -> bool:
    return is_operand(argument) and np.dtype(argument.dtype).kind in "fc"


def _widest(argument: Any) -> Any:
    return np.complex128 if np.dtype(argument.dtype).kind == "c" else np.float64


def _draw_array(rng: np.random.Generator, shape: Any, dtype: np.dtype[Any]) -> Array:
    """Draw random numbers, complex for complex dtypes."""
    found = np.asarray(rng.standard_normal(shape))
    return found + 1j * rng.standard_normal(shape) if dtype.kind == "c" else found


def _floats(found: Any) -> list[Tensor]:
    """Return the float tensors in the result of a function."""
    _, leaves = flatten_value(found, lambda item: isinstance(item, Tensor))
    return [t for t in leaves if isinstance(t, Tensor) and t.dtype.kind in "fc"]


def _fill_operands(args: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    waiting = iter(given)
    return [next(waiting) if is_operand(a) else a for a in args]


def _check(call: TracedCall, arrays: Sequence[Array]) -> None:
    """Check the rules of one call at these arrays."""
    definition = call.definition
    count = len(call.operands)
    closure, arrays = arrays[count:], arrays[:count]
    body = _bind_constants(lower(call.body()), count, closure)
    plain = dead_code(body.with_outputs(body.outputs[i] for i in call.floats))
    level = Level.from_graph(plain, arrays)
    values, known, source, limits = level.expected_jacobian()
    rng = np.random.default_rng(_SEED)
    u = [rng.standard_normal(v.shape) for v in level.graph.outputs]
    v = [rng.standard_normal(level.graph.inputs[i].shape) for i in level.wrt]
    push, pull = (
        None
        if graph is None
        else split_complex(
            widen_floats(_with_results(plain, _bind_constants(graph, count, closure))), seeds
        )
        for graph, seeds in zip(TracedSlope(call).rules(), (None, count), strict=True)
    )
    if push is not None:
        with _Naming(call, definition.pushes):
            level.check_forward(1, push, known, limits, source)
    if pull is not None:
        with _Naming(call, definition.pulls):
            for size in _SIZES:
                level.check_reverse(1, pull, [size * a for a in u], known, limits, source)
    if push is not None and pull is not None:
        with _Naming(call, definition.pulls):
            level.check_adjoint(1, push, pull, u, v, values)
    for rule, graph in call.returned_graphs():
        with _Naming(call, rule):
            _check_value(body, _bind_constants(lower(graph), count, closure), arrays)


def _bind_constants(graph: Graph, first: int, arrays: Sequence[Array]) -> Graph:
    """Return `graph` with these arrays as constants for its inputs from `first` on."""
    if not arrays:
        return graph
    builder = Builder(graph.name)
    last = first + len(arrays)
    inputs = [builder.input(v.type, v.hint) for v in (*graph.inputs[:first], *graph.inputs[last:])]
    with builder:
        values = [lift(a).value for a in arrays]
    return builder.graph(builder.inline(graph, [*inputs[:first], *values, *inputs[first:]]))


def _with_results(plain: Graph, rule: Graph) -> Graph:
    """Convert a rule of operands, results and seeds to one of operands and seeds."""
    builder = Builder(plain.name)
    operands = [builder.input(v.type, v.hint) for v in plain.inputs]
    results = builder.inline(plain, operands)
    rest = rule.inputs[len(operands) + len(results) :]
    seeds = [builder.input(v.type) for v in rest]
    return builder.graph(builder.inline(rule, [*operands, *results, *seeds]))


def _check_value(body: Graph, claimed: Graph, arrays: Sequence[Array]) -> None:
    pairs = zip(interpret(claimed, *arrays), interpret(body, *arrays), strict=True)
    for number, (found, expected) in enumerate(pairs):
        slack = 64 * np.finfo(found.dtype).eps if found.dtype.kind in "fc" else 0.0
        limit = np.full(expected.size, slack * float(np.max(np.abs(expected), initial=0.0)))
        place = first_difference(found.reshape(-1), expected.reshape(-1), limit)
        if place is not None:
            pair = found.reshape(-1)[place].item(), expected.reshape(-1)[place].item()
            raise CheckError(
                f"result {number} is {pair[0]!r} by the rule, but the function gives {pair[1]!r}"
            )


class _Naming:
    """Context manager that adds the function, and the line of its rule, to errors."""

    def __init__(self, call: TracedCall, rule: Callable[..., Any] | None) -> None:
        self._name = call.definition.name
        self._rule = rule

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, CheckError):
            source = None if self._rule is None else definition_line(self._rule)
            origin = [] if source is None else [f"{WRITTEN}  {source}   {source.text}"]
            hint = (
                "at a kink differences need not agree: choose arrays off it" if error.hint else ""
            )
            fault = error.message.removeprefix("order 1: ")
            raise CheckError(f"{self._name}: {fault}", origin=origin, hint=hint) from None
