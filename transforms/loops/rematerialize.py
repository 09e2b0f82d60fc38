"""Rematerialisation: derivative rules of checkpoints, whose bodies recompute from operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import Linear
from primgraph.ir.slices import forward_slice
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.control import checkpoint
from primgraph.transforms.batch_graphs import batch
from primgraph.transforms.dataflow.activity import reached_values
from primgraph.transforms.linearize import Tangents, linearize
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.partial_eval import separate_linear
from primgraph.transforms.transpose import transpose_separated


@checkpoint.pushforward
def _pushforward(
    inputs: Sequence[Value], tangents: Mapping[int, Value], turned: bool, *, body: Graph
) -> Tangents:
    """Compute the tangents in a checkpoint of their own.

    In forward mode, clean-up merges it with the checkpoint of the primal values.
    """
    active = sorted(tangents)
    joint = linearize(body, active, role="cotangent" if turned else "tangent", closed=False)
    seeds = joint.inputs[len(inputs) :]
    count = len(body.outputs)
    floats = [k for k, v in enumerate(body.outputs) if v.type.is_inexact]
    found = reached_values(joint.body, seeds)
    ends = dict(zip(floats, joint.outputs[count:], strict=True))
    results = {k: d for k, d in ends.items() if d in found}
    if not results:
        return [None] * count
    slopes = dead_code(Graph(joint.inputs, joint.body, list(results.values()), body.name))
    made = checkpoint(*inputs, *[tangents[i] for i in active], body=slopes)
    by_place = dict(zip(results, made, strict=True))
    return [by_place.get(k) for k in range(count)]


@checkpoint.separate
def _separate(linear: tuple[bool, ...], *inputs: Value, body: Graph) -> list[Value]:
    """Split a checkpoint; both parts recompute their inputs, so that there are no residuals.

    Constant results are moved out of the body, where zeros are recognised.
    """
    seeds = [v for v, is_one in zip(body.inputs, linear, strict=True) if is_one]
    whole = separate_linear(body, seeds)
    ahead = forward_slice(whole.body, seeds)
    made = {v: eqn for eqn in whole.body for v in eqn.outputs}
    numbers = {k: made[v].number for k, v in enumerate(whole.outputs) if v in made}
    results = {
        k: filled_constant(n, whole.outputs[k].type) for k, n in numbers.items() if n is not None
    }
    for depends in (False, True):
        ends = [
            k for k, v in enumerate(whole.outputs)
            if k not in results and (v in ahead) is depends
        ]  # fmt: skip
        given = [i for i, is_one in enumerate(linear) if depends or not is_one]
        if ends:
            steps = [e for e in whole.body if depends or ahead.isdisjoint(e.inputs)]
            wanted = [whole.outputs[k] for k in ends]
            part = Graph([whole.inputs[i] for i in given], steps, wanted, body.name)
            found = checkpoint(*[inputs[i] for i in given], body=dead_code(part))
            results.update(zip(ends, found, strict=True))
    return [results[k] for k in range(len(body.outputs))]


@checkpoint.transpose
def _transpose(cts: Sequence[Value], *operands: Value | Linear, body: Graph) -> list[Value | None]:
    places = [i for i, v in enumerate(operands) if isinstance(v, Linear)]
    known = [v for v in operands if not isinstance(v, Linear)]
    turned = transpose_separated(body, places)
    plain = Graph(turned.inputs, turned.body, turned.outputs, body.name)
    found = checkpoint(*known, *cts, body=plain)
    results = dict(zip(places, found, strict=True))
    return [results.get(i) for i in range(len(operands))]


@checkpoint.batch
def _batch(flags: tuple[bool, ...], *operands: Value, body: Graph) -> tuple[Value, ...]:
    size = next(v.shape[0] for v, has in zip(operands, flags, strict=True) if has)
    many = batch(body, size, [0 if has else None for has in flags])
    return checkpoint(*operands, body=many)
