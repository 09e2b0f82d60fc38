"""Choice between forward and reverse mode, and recording of their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from primgraph.base.interpreter_limits import uncollected
from primgraph.base.providers import late, provider
from primgraph.derivatives.request import Request, value_name
from primgraph.derivatives.subgraph import Path, reached_by
from primgraph.errors import NotDifferentiable
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.gradient_names import Line
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import recording
from primgraph.ir.rebuild import full_value
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.control import Flow, flow_of
from primgraph.primitives.elementwise import add, as_function_of, mul
from primgraph.primitives.linear_algebra.products import CONTRACTS
from primgraph.transforms.dataflow.activity import dependence_bits
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.optimize.edits import bind

if TYPE_CHECKING:
    from primgraph.derivatives import symmetry
    from primgraph.transforms import batch_graphs
    from primgraph.transforms.jacobians import unit_vectors
else:
    symmetry = late("primgraph.derivatives.symmetry")
    batch_graphs = late("primgraph.transforms.batch_graphs")
    unit_vectors = late("primgraph.transforms.jacobians.unit_vectors")


@uncollected
def reverse(
    request: Request, seeds: Sequence[Value | None], count: int | None, *, lenient: bool
) -> list[Value | None]:
    """Return one cotangent for each input of `request`, from those of its outputs.

    Forward mode is used if the Jacobian is its own transpose: if it is diagonal, and through
    gradients by the same inputs. Raises `NotDifferentiable` if no output depends on an input,
    unless `lenient`.
    """
    path = request.path
    if not lenient:
        _refuse_independent(request, path)
    if not path.wrt:
        return [None] * len(request.inputs)
    alone = count is None and not request.apart and request.call is None
    passed = symmetry.gradients_passed(request) if alone and not path.is_diagonal else {}
    if passed:
        results = _reverse_through_gradients(request, path, seeds, passed)
    else:
        by_input = dict(
            zip(path.wrt, _compute_cotangents(request, path, seeds, count), strict=True)
        )
        results = [by_input.get(v) for v in request.sources]
    if alone:
        symmetry.note_joint(request, path, seeds, results)
    return results


def _compute_cotangents(
    request: Request, path: Path, seeds: Sequence[Value | None], count: int | None
) -> list[Value]:
    """Return the cotangents of `path.wrt`."""
    diagonal = request.call is None and (path.is_diagonal or _is_looped(path))
    if diagonal and len(seeds) == 1:
        if count is None and path.wrt == request.inputs:
            seed = None if seeds[0] is None else _seed(request.builder, seeds[0])
            (found,) = forward(request, [seed])
            return [] if found is None else [found]
        return record(path, path.jvp(), seeds, count=count)
    if diagonal and count is None:
        return [_diagonal_gradient(request, path, seeds)]
    return record(path, path.vjp(), seeds, count=count)


def _is_looped(path: Path) -> bool:
    """Return whether loops lead from one number to others: forward mode stores no steps of
    these."""
    kind = path.moved[0].type
    if len(path.moved) > 1 or kind.size != 1 or any(v.type != kind for v in path.graph.outputs):
        return False
    return any(flow_of(eqn) in (Flow.ROWS, Flow.TEST) for eqn in path.graph.body)


def _reverse_through_gradients(
    request: Request, path: Path, seeds: Sequence[Value | None], passed: symmetry.Passed
) -> list[Value | None]:
    """Apply reverse mode up to the gradients in `passed`, and forward mode through these."""
    builder, count = request.builder, len(request.inputs)
    before = replace(request, inputs=[*request.inputs, *passed], apart=True)
    cts = reverse(before, seeds, None, lenient=True)
    terms: list[list[Value]] = [[] if ct is None else [ct] for ct in cts[:count]]
    found = {v: ct for v, ct in zip(passed, cts[count:], strict=True) if ct is not None}
    for joint in dict.fromkeys(passed[v] for v in found):
        by_input = dict(zip(joint.inputs, joint.gradients, strict=True))
        # A gradient by several inputs is transposed along one of them.
        by_gradient = {g: x for x, g in by_input.items() if g in found}
        given = {x: found[g] for g, x in by_gradient.items() if g is not None}
        ends = {i: g for i, x in enumerate(request.inputs) if (g := by_input[x]) is not None}
        after = replace(request, outputs=list(ends.values()), inputs=list(given))
        along = [_seed(builder, ct) for ct in given.values()]
        for i, part in zip(ends, forward(after, along), strict=True):
            terms[i] += [] if part is None else [part]
    with recording(builder):
        results = [reduce(add, parts) if parts else None for parts in terms]
    # The contribution of the only gradient by the only input is complete.
    if None not in results and count == 1 and request.outputs == list(passed):
        return results
    return _complete(request, path, seeds, results)


def _seed(builder: Builder, value: Value) -> Value | None:
    """Return a cotangent as a seed without formal dependences; None for ones."""
    *_, value = _equal_values(builder, value)
    return None if full_value(builder, value) == 1 else value


def _equal_values(builder: Builder, value: Value) -> Iterator[Value]:
    """Yield `value`, and the values that it equals but for formal dependences."""
    yield value
    while (eqn := builder.definition(value)) and eqn.op.formal and not eqn.op.own_slope:
        value = eqn.inputs[0]
        yield value


def _complete(
    request: Request, path: Path, seeds: Sequence[Value | None], results: Sequence[Value | None]
) -> list[Value | None]:
    """Make the results functions of everything that outputs depend on, with zeros for missing
    ones."""
    whole = _whole(request.builder, path.reached, request.outputs, seeds)
    with recording(request.builder):
        found = [
            filled_constant(0, x.type) if v is None and x in path.wrt else v
            for x, v in zip(request.inputs, results, strict=True)
        ]
        if whole is None:
            return found
        return [None if v is None else as_function_of(v, whole) for v in found]


def _refuse_independent(request: Request, path: Path) -> None:
    """Raise if no output depends on an input, unless because of its own flag."""
    reached = path.reached
    if not request.constants.isdisjoint(request.inputs):
        reached = reached_by(request.builder, request.inputs, request.outputs, request.constants)
    if any(reached):
        return
    value, *others = request.outputs
    among = f", and none of {len(others)} others does" if others else ""
    raise NotDifferentiable(
        f"{value_name('output', value)}, {value.type}, does not depend on the inputs{among}",
        hint="pg.explain(y, x) tells why; ask for zeros with materialize_grads",
    )


def _diagonal_gradient(request: Request, path: Path, seeds: Sequence[Value | None]) -> Value:
    """Return the gradient for a diagonal Jacobian: one forward pass for all outputs."""
    slopes = record(path, path.jvp(), [None])
    with recording(request.builder):
        parts = [d if s is None else mul(s, d) for s, d in zip(seeds, slopes, strict=True)]
        return reduce(add, parts)


@uncollected
def forward(request: Request, seeds: Sequence[Value | None]) -> list[Value | None]:
    """Return one tangent for each output of `request`, from those of its inputs."""
    path = request.path
    if not path.wrt:
        return [None] * len(request.outputs)
    further = _further(request, path, seeds)
    if further is not None:
        return further
    with recording(request.builder):
        total: dict[Value, Value | None] = {}
        for value, seed in zip(request.sources, seeds, strict=True):
            if value in total:
                total[value] = add(
                    *(
                        filled_constant(1, value.type) if s is None else s
                        for s in (total[value], seed)
                    )
                )
            else:
                total[value] = seed
    found = record(path, path.jvp(), [total[v] for v in path.wrt])
    if request.call is not None:
        return [*found]
    results = [v if r else None for v, r in zip(found, path.reached, strict=True)]
    _note_lines(request, seeds, results)
    return results


# From this order on, repeated derivatives along a line may be computed at once. With more equations
# than the second number this starts one order later, as comparing both ways takes time.
_ORDER_AT_ONCE, _SMALL = 2, 500


def _further(
    request: Request, path: Path, seeds: Sequence[Value | None]
) -> list[Value | None] | None:
    """Compute derivatives of derivatives along the same line by Taylor mode.

    None if an output is no such derivative, if the order is low, or if Taylor mode takes no fewer
    equations. It usually takes fewer: applying the rules to their own results doubles the equations
    each time.
    """
    known = [] if request.call else _known_lines(request, path, seeds)
    if not known:
        return None
    order = known[0].order + 1
    bases = replace(request, outputs=[line.base for line in known])
    jets = provider("Taylor mode")
    most = _equations(path.linear("tangent")[0], seeds)
    results: list[Value | None] | None = jets.short_line_derivatives(
        bases, seeds, order, lambda graph: _equations(graph, seeds) < most
    )
    if results is None:
        return None
    _note(request, [line._replace(order=line.order + 1) for line in known], results)
    return results


def _known_lines(request: Request, path: Path, seeds: Sequence[Value | None]) -> list[Line]:
    """Return the known lines of the outputs, if all have the same, sufficient order along the line
    of the seeds; empty otherwise."""
    lines = [_line_of(request.builder, v) for v in request.outputs]
    wanted = _line(request, seeds)
    if wanted is None or None in lines:
        return []
    known = [line for line in lines if line is not None]
    if any(line._replace(base=wanted.base, order=1) != wanted for line in known):
        return []
    orders = {line.order + 1 for line in known}
    least = _ORDER_AT_ONCE + (len(path.graph.body) > _SMALL)
    return known if len(orders) == 1 and min(orders) >= least else []


def way_of(request: Request) -> tuple[str, int | None]:
    """Describe how `reverse` treats the only output, with ones as cotangents, and count its
    equations. Empty for plain reverse mode, None if cotangents decide."""
    path = request.path
    (y,) = request.outputs
    passed: symmetry.Passed = {}
    if path.is_diagonal:
        words = "forward mode: each element depends on one"
    elif _is_looped(path):
        words = "forward mode: one number goes through a loop"
    else:
        passed = symmetry.gradients_passed(request)
        if not passed:
            return "", None
        words = "forward mode through a gradient, whose derivative is its own transpose"
        if y not in passed:
            return words, None
    most = _equations(path.linear("tangent")[0], [None])
    known = _known_lines(request, path, [None]) if path.wrt == request.inputs else []
    if known:
        order = known[0].order + 1
        fewest = most

        def count_equations(graph: Graph) -> bool:
            nonlocal fewest
            fewest = min(_equations(graph, [None]), most)
            return False

        jets = provider("Taylor mode")
        jets.short_line_derivatives(
            replace(request, outputs=[known[0].base]), [None], order, count_equations
        )
        if fewest < most:
            return f"Taylor mode, as derivative {order} along one line", fewest
    return words, most


def _equations(derivative: Graph, seeds: Sequence[Value | None]) -> int:
    """Count the equations of a derivative that computes its own intermediate values."""
    first = len(derivative.inputs) - len(seeds)
    return len(
        clean_up(bind(derivative, {first + i: 1.0 for i, s in enumerate(seeds) if s is None}))
    )


def _line(request: Request, seeds: Sequence[Value | None]) -> Line | None:
    """Return the line of the only input, with a `base` to be replaced; None if there is none."""
    if len(request.inputs) != 1 or request.apart:
        return None
    (x,), (seed,) = request.inputs, seeds
    if seed is not None and any(reached_by(request.builder, [x], [seed])):
        return None
    return Line(x, x, seed, 1, frozenset(request.constants))


def _line_of(builder: Builder, value: Value) -> Line | None:
    """Return the known line of `value`, or of the value behind formal dependences."""
    lines = (builder.lines.get(v) for v in _equal_values(builder, value))
    return next((line for line in lines if line is not None), None)


def _note_lines(
    request: Request, seeds: Sequence[Value | None], results: Sequence[Value | None]
) -> None:
    """Note in the builder which results are derivatives along a line."""
    line = _line(request, seeds)
    if line is None:
        return
    found = []
    for value in request.outputs:
        before = _line_of(request.builder, value)
        again = before is not None and before._replace(base=line.base, order=1) == line
        found.append(
            before._replace(order=before.order + 1)
            if before is not None and again
            else line._replace(base=value)
        )
    _note(request, found, results)


def _note(request: Request, lines: Sequence[Line], results: Sequence[Value | None]) -> None:
    builder = request.builder
    for line, value in zip(lines, results, strict=True):
        if value is not None and value not in request.inputs and builder.definition(value):
            builder.lines.setdefault(value, line)


def record(
    path: Path,
    derivative: Graph,
    seeds: Sequence[Value | None] = (),
    *,
    count: int | None = None,
    identity: bool = False,
) -> list[Value]:
    """Clean up `derivative`, taken along `path`, and record it on `seeds`; None stands for ones.

    With `count`, the seeds have a leading axis of that size, and so have all results. With
    `identity`, the last seed is all unit vectors in order.

    The results count as functions of everything that the outputs of the path depend on, even if the
    derivative is constant.
    """
    builder, given, first = path.builder, [*path.given, *seeds], len(path.given)
    present = {i: v for i, v in enumerate(given) if v is not None}
    has_products = any(op.fact(CONTRACTS) for op in derivative.ops)
    if has_products and unit_vectors.reads_structural_zeros(derivative):
        # Before seeds of ones are folded with the zeros beside them.
        derivative = clean_up(derivative)
    graph = clean_up(bind(derivative, {i: 1.0 for i in range(len(given)) if i not in present}))
    if identity:
        graph = clean_up(unit_vectors.multiply_around_units(graph, len(present) - 1))
    if count is not None:
        graph = clean_up(
            batch_graphs.batch(graph, count, [0 if i >= first else None for i in present])
        )
    plain = unit_vectors.drop_identity_products(graph, len(present) - 1) if identity else graph
    results = builder.inline(plain, list(present.values()), shared=True)
    complete = _depending_on_all(path, graph, present)
    if all(complete):
        return results
    whole = _whole(builder, path.reached, path.ends, seeds)
    if whole is None:
        return results
    with recording(builder):
        return [
            v if done else as_function_of(v, whole)
            for v, done in zip(results, complete, strict=True)
        ]


def _whole(
    builder: Builder, reached: Sequence[bool], ends: Sequence[Value], seeds: Sequence[Value | None]
) -> Value | None:
    """Return a value that depends on all reached `ends`, and on all seeds."""
    known = [v for v, r in zip(ends, reached, strict=True) if r]
    known += [v for v in seeds if v is not None]
    others = [v for v in dict.fromkeys(known) if _varies(builder, v)]
    with recording(builder):
        return reduce(as_function_of, others) if others else None


def _varies(builder: Builder, value: Value) -> bool:
    """Return whether `value` is a float, and not a constant of the program."""
    eqn = builder.definition(value)
    return value.type.is_inexact and (eqn is None or bool(eqn.inputs))


# Up to this many values, dependences of results are tracked one by one.
_MANY = 1024


def _depending_on_all(path: Path, graph: Graph, present: Mapping[int, Value]) -> list[bool]:
    """Return whether each output of `graph` depends differentiably on all that it should.

    That is on the seeds, and on the dependences of the outputs of `path`, without constants; False
    if there are very many. Values inside the path depend on what they depend on there.
    """
    free, needs = len(path.free), set(path.needs)
    wanted = [(i, v) for i, v in present.items() if i in needs or i >= free]
    varying = [i for i, v in wanted if _varies(path.builder, v)]
    if len(varying) > _MANY:
        return [False] * len(graph.outputs)
    bits = {place: 1 << n for n, place in enumerate(varying)}
    along = dependence_bits(
        path.graph, {path.graph.inputs[i]: bits[i] for i in varying if i < free}
    )
    bits |= {free - n: along.get(v, 0) for n, v in enumerate(reversed(path.inner), 1)}
    known = {v: bits.get(i, 0) for i, v in zip(present, graph.inputs, strict=True)}
    found = dependence_bits(graph, known)
    return [found.get(v, 0) == (1 << len(varying)) - 1 for v in graph.outputs]
