"""Implicit differentiation: solutions of equations as a primitive.

The tangent of a solution of `z = f(c, z)` or `f(c, z) = 0` solves the linearized equation. Its
cotangent solves the transposed one. Both are `solution` equations again, so that derivatives of all
orders exist. The iteration itself is not differentiated. See S. Bai, J. Z. Kolter, V. Koltun, Deep
equilibrium models, 2019, and M. Blondel and others, Efficient and modular implicit differentiation,
2022.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value, map_bodies
from primgraph.ir.interpret import interpret
from primgraph.ir.params import bits
from primgraph.ir.primitive import Linear, active_recorder, primitive
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.ir.types import BOOL, INT64, TensorType
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.control import EQUATION, flops_of
from primgraph.primitives.elementwise import add
from primgraph.primitives.shapes import broadcast
from primgraph.transforms.batch_graphs import batch
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.linearize import Tangents, linearize
from primgraph.transforms.loops.krylov import SOLVERS
from primgraph.transforms.loops.solver_loops import iteration, most_steps, own_size
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.transpose import transpose

# Methods: repeated calls of f for `z = f(z)`; Newton steps, or steps given by the user, for `f(z) =
# 0`; or a `z` that is known to begin with, for its derivatives.
METHODS = ("repeat", "newton", "given", "known")

# Cache of iteration graphs for the interpreter, by parameters and types.
_KEPT = 256
_iterations: dict[Any, Graph] = {}


def _solution(*arrays: Any, **params: Any) -> list[Any]:
    types = tuple([TensorType(a.shape, a.dtype) for a in arrays])
    key = (types, bits(tuple(sorted(params.items()))))
    if key not in _iterations:
        if len(_iterations) >= _KEPT:
            del _iterations[next(iter(_iterations))]
        plain = {k: lower(v) if isinstance(v, Graph) else v for k, v in params.items()}
        _iterations[key] = iteration(types, NOWHERE, **plain)
    return list(interpret(_iterations[key], *arrays))


def _flops(
    *types: TensorType, body: Graph, step: Graph | None, consts: int, lead: int, **params: Any
) -> int:
    """Return the FLOPs of one step, as the number of steps is unknown."""
    if step is not None:
        return flops_of(step) + (flops_of(body) if params["linear"] else 0)
    if params["method"] == "known":
        return 0
    if params["method"] == "repeat" or params.get("solver", "dense") != "dense":
        return flops_of(body)
    n = own_size(types[consts:], lead)
    samples = 1
    for extent in types[consts].shape[:lead]:
        samples *= extent
    return flops_of(body) * (n + 1) + samples * (2 * n**3 // 3 + 2 * n**2)


def _linear_operands(*, consts: int, linear: int, **params: Any) -> tuple[int, ...]:
    return tuple(range(consts - linear, consts))


@primitive(
    impl=_solution,
    linear=_linear_operands,
    multiple=True,
    singular=True,
    has_bodies=True,
    flops=_flops,
)
def solution(
    *types: TensorType,
    body: Graph,
    step: Graph | None,
    consts: int,
    linear: int,
    lead: int,
    method: str,
    tolerance: float,
    damping: float,
    limit: int,
    strict: bool,
    checked: bool = False,
    solver: str = "dense",
) -> tuple[TensorType, ...]:
    """Solve `z = body(*consts, *z)` or `body(*consts, *z) = 0`.

    Return `z`, whether it converged, and the number of steps. Operands are the `consts` and the
    initial state. `method` "repeat" is for the first equation, the others are for the second one;
    see `iteration`. Arrays of `z` have `lead` leading axes of samples that are solved
    independently, and so have the other results.

    Linear equations, those of Newton's steps and of derivatives, are solved with their dense
    matrix, or by another `solver` from products with it: "cg", "bicgstab" or "gmres"; see `krylov`.

    The body is linear in `z` and the last `linear` constants: such a solution is linear in these
    constants. Its `step` is a preconditioner: it multiplies arrays as `z` by about the inverse of
    the matrix. Without convergence the run raises `LinAlgError` if `checked`; the result is NaN if
    `strict`, else the last state.
    """
    if method not in METHODS:
        raise ArgumentError(f"solution is found by {', '.join(METHODS)}, not by {method!r:.60}")
    if solver not in SOLVERS:
        raise ArgumentError(f"solution: a solver is {', '.join(SOLVERS)}, not {solver!r:.60}")
    if not 0 <= linear <= consts < len(types) or lead < 0 or limit < 1:
        raise ShapeError(f"solution has {len(types)} operands, not {consts} constants")
    state = types[consts:]
    samples = state[0].shape[:lead]
    for z in state:
        if not z.is_float:
            raise DTypeError(f"solution: what is looked for is of floats, not {z}")
        if z.ndim < lead or z.shape[:lead] != samples:
            raise ShapeError(f"solution: {z} has not the samples of {state[0]}")
    for graph in (body, step):
        if graph is not None and (graph.input_types != types or graph.output_types != state):
            raise ShapeError("solution: a body does not take the operands, or gives other types")
    return (*state, TensorType(samples, BOOL), TensorType(samples, INT64))


solution.declare(EQUATION, lambda *, body, consts, **params: (body, consts))


@solution.pushforward
def _pushforward(
    inputs: Sequence[Value],
    tangents: Mapping[int, Value],
    turned: bool,
    *,
    body: Graph,
    consts: int,
    **params: Any,
) -> Tangents:
    """Return `dz = df/dc dc + df/dz dz` for `z = f(c, z)`; `0 = df/dc dc + df/dz dz` for a root."""
    present = sorted(i for i in tangents if i < consts)
    count = len(inputs) - consts
    if not present:
        return [None] * (count + 2)
    z = solution(*inputs, body=body, consts=consts, **params)[:count]
    places = [*present, *range(consts, consts + count)]
    joint = linearize(body, places, role="cotangent" if turned else "tangent", closed=False)
    graph = Graph(joint.inputs, joint.body, joint.outputs[count:], body.name)
    given = [*inputs[:consts], *z, *[tangents[i] for i in present]]
    near = _preconditioner(params["step"], graph, consts) if params["linear"] else None
    found = _linear_solution(dead_code(graph), near, given, len(present), params)
    return [*found, None, None]


@solution.transpose
def _transpose(
    cts: Sequence[Value],
    *inputs: Value | Linear,
    body: Graph,
    consts: int,
    **params: Any,
) -> list[Value | None]:
    """Return `B' y` with `y = A' y + ct`, for `z = A z + B c`; `0 = A' y + ct` for a root.

    `A'` is the transpose of `A`.
    """
    count = len(inputs) - consts
    places = [i for i, x in enumerate(inputs[:consts]) if isinstance(x, Linear)]
    known = [x for x in inputs[:consts] if not isinstance(x, Linear)]
    turned = transpose(body, [*places, *range(consts, len(inputs))])
    outer = active_recorder()
    builder = Builder(body.name, outer.source)
    for value in turned.inputs[: len(known)]:
        builder.share_input(value)
    with builder:
        seeds = [builder.input(ct.type) for ct in cts[:count]]
        y = [builder.input(ct.type) for ct in cts[:count]]
        found = builder.inline(turned, [*turned.inputs[: len(known)], *y])
        ends = [add(a, b) for a, b in zip(found[len(places) :], seeds, strict=True)]
    graph = dead_code(builder.graph(ends))
    near = params["step"]
    if near is not None:
        near = transpose(near, [*places, *range(consts, len(inputs))])
        near = near.with_outputs(near.outputs[len(places) :])
    near = _preconditioner(near, graph, len(known))
    solved = _linear_solution(graph, near, [*known, *cts[:count]], count, params)
    assert isinstance(outer, Builder)
    back = dead_code(turned.with_outputs(turned.outputs[: len(places)]))
    results = dict(zip(places, outer.inline(back, [*known, *solved]), strict=True))
    return [results.get(i) for i in range(len(inputs))]


@solution.batch
def _batch(
    flags: tuple[bool, ...],
    *inputs: Value,
    body: Graph,
    step: Graph | None,
    consts: int,
    lead: int,
    **params: Any,
) -> tuple[Value, ...]:
    """Solve the samples independently; those that are done wait for the others."""
    size = next(v.shape[0] for v, has in zip(inputs, flags, strict=True) if has)
    axes = [0 if has or i >= consts else None for i, has in enumerate(flags)]
    init = [
        v if has else broadcast(v, shape=(size, *v.shape), new_axes=(0,))
        for v, has in zip(inputs[consts:], flags[consts:], strict=True)
    ]
    return solution(
        *inputs[:consts],
        *init,
        body=batch(body, size, axes),
        step=None if step is None else batch(step, size, axes),
        consts=consts,
        lead=lead + 1,
        **params,
    )


def _preconditioner(step: Graph | None, graph: Graph, consts: int) -> Graph | None:
    """Return the preconditioner of an equation, of other constants, as a graph of the same inputs.

    The first `consts` inputs are those of `step`, and the last ones are the arrays to multiply.
    """
    if step is None:
        return None
    builder = Builder(step.name, active_recorder().source)
    with builder:
        own = [builder.input(t) for t in graph.input_types]
        return builder.graph(
            builder.inline(step, [*own[:consts], *own[consts - len(step.inputs) :]])
        )


def _linear_solution(
    graph: Graph,
    near: Graph | None,
    given: Sequence[Value],
    linear: int,
    params: Mapping[str, Any],
) -> tuple[Value, ...]:
    """Solve an equation that is linear in the last `linear` constants, starting from zeros.

    Constants that the graph and the preconditioner `near` do not read are left out.
    """
    consts = len(given)
    graphs = [g for g in (graph, near) if g is not None]
    read = {i for g in graphs for i in _inputs_read(g)}
    kept = [i for i in range(consts) if i in read or i >= consts - linear]
    kept += range(consts, len(graph.inputs))
    state = graph.inputs[consts:]
    body, *steps = [Graph([g.inputs[i] for i in kept], g.body, g.outputs, g.name) for g in graphs]
    method = "repeat" if params["method"] == "repeat" else "newton"
    limit = params["limit"]
    if not params["linear"] and params.get("solver", "dense") != "dense":
        limit = most_steps(own_size([v.type for v in state], params["lead"]), limit)
    return solution(
        *[given[i] for i in kept[: -len(state)]],
        *map(zeros_like, state),
        body=body,
        consts=len(kept) - len(state),
        **{
            **params,
            "step": steps[0] if steps else None,
            "linear": linear,
            "method": method,
            "limit": limit,
        },
    )[: len(state)]


def _inputs_read(graph: Graph) -> list[int]:
    read = {v for e in graph.body for v in e.inputs}.union(graph.outputs)
    return [i for i, v in enumerate(graph.inputs) if v in read]


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def expand_solutions(graph: Graph) -> Graph:
    """Replace solutions by the loops that compute them.

    The result must not be differentiated, as that would differentiate the iteration.
    """
    if not graph.has_bodies:
        return graph
    builder, moved = rebuild(graph)
    with builder:
        for eqn in graph.body:
            if eqn.op is solution:
                builder.source = eqn.source or NOWHERE
                types = tuple([v.type for v in eqn.inputs])
                loop = expand_solutions(iteration(types, builder.source, **eqn.kwargs))
                found = builder.inline(loop, [moved[v] for v in eqn.inputs])
                moved.update(zip(eqn.outputs, found, strict=True))
                continue
            copy(builder, map_bodies(eqn, expand_solutions), moved)
    return builder.graph([moved[v] for v in graph.outputs])
