"""`backward` and `grad` with the names and rules of torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from primgraph.eager.array_elements import elements_of
from primgraph.eager.derivatives.accumulation import accumulate
from primgraph.eager.derivatives.differentiable import D, Differentiable
from primgraph.eager.derivatives.reach import keep_reached
from primgraph.eager.derivatives.reverse import (
    collect_tape,
    gradients_through_hooks,
    holder_of,
    receiver_of,
    spend,
    unshared_node,
    used_tape,
)
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.node import Node, array_node
from primgraph.eager.run import compute, origin_of
from primgraph.errors import ArgumentError, BuildError, NotDifferentiable, OptionError, ShapeError
from primgraph.operators.variable import Variable

# What to do where nothing is put into tensors.
_RESULTS = "gradients are results here: pg.grad(loss, w), or pg.value_and_grad(f) of a function"

# One tensor, or several.
Several: TypeAlias = Differentiable[D] | Sequence[Differentiable[D]]


def backward(
    tensors: Several[D],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Several[D] | None = None,
) -> None:
    """Add the gradients of `sum_i <grad_tensors[i], tensors[i]>` to `.grad` of leaves.

    These are the leaves that require a gradient and the tensors that retain theirs, or `inputs`
    alone. Tensors of one element need no seed. The recorded graph is dropped unless `retain_graph`,
    which defaults to `create_graph`; with `create_graph` the gradients can be differentiated again.

    Raises `NotDifferentiable` for a tensor that does not require a gradient, `ShapeError` for a
    seed that is missing or of another shape, `BuildError` for a graph that was dropped, and in a
    traced function, as of `pg.jit`.
    """
    nodes = [t.node for t in list_tensors(tensors)]
    if adopting.get() is not None:
        raise BuildError(
            "backward in a function that is traced would be done now, and not at each call",
            hint=_RESULTS,
        )
    _require_tracked(nodes, "tensors", " and was not computed from a tensor that does")
    # Compute pending in-place updates of the previous step, so that steps do not pile up.
    compute([])
    known = seeds_of(nodes, grad_tensors)
    members = None if inputs is None else _some(inputs)
    way = collect_tape(nodes, inputs=[t.node for t in members or ()])
    wanted = _receiving_nodes(way, members)
    wanted = keep_reached(wanted, nodes, way)
    found = gradients_through_hooks(way, nodes, wanted, known, tracked=create_graph)
    received = []
    for node, gradient in zip(wanted, found, strict=True):
        holder = receiver_of(node)
        if isinstance(holder, Differentiable) and gradient is not None:
            received.append((holder, gradient))
    spent: Sequence[Node] = ()
    if not (create_graph if retain_graph is None else retain_graph):
        spent = way if members is None else used_tape(way, wanted)
    accumulate(received, spent)


def _some(inputs: Several[D]) -> list[Differentiable[D]]:
    members: list[Differentiable[D]] = list_tensors(inputs)
    if not members:
        raise ArgumentError("inputs argument to backward() cannot be empty.")
    return members


def _receiving_nodes(
    way: Sequence[Node], members: Sequence[Differentiable[D]] | None
) -> list[Node]:
    """Return the nodes whose gradients `backward` adds to `.grad`: those of `members`, if given."""
    if members is None:
        return [n for n in way if n.is_leaf or _retains(n)]
    receiving = {id(t) for t in members}
    former = [n for n in way if holder_of(n) is None and n.is_leaf]
    return [
        *dict.fromkeys(t.node for t in members),
        *(n for n in former if id(receiver_of(n)) in receiving),
    ]


def grad(
    outputs: Several[Any],
    inputs: Several[D],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    no_grad_vars: Several[Any] | None = None,
    only_inputs: bool = True,
) -> tuple[D | None, ...]:
    """Return the gradients of `sum_i <grad_outputs[i], outputs[i]>` by `inputs`, in a tuple.

    `.grad` does not change. With `is_grads_batched`, seeds and gradients have one more leading
    axis. Outputs of one element need no seed. An input that no output depends on is an error, None
    with `allow_unused`, or zeros with `materialize_grads`. The recorded graph is dropped unless
    `retain_graph`, which defaults to `create_graph`. Tensors in `no_grad_vars` are constants; as
    inputs they count as unused. `only_inputs` is True, as in torch.

    Raises `NotDifferentiable` for tensors that do not require a gradient and unused inputs,
    `ShapeError` for seeds, `BuildError` for what has been dropped before, `OptionError` for
    `materialize_grads` with `allow_unused=False`, for `only_inputs=False`, and where there are no
    inputs.

    >>> x = pg.tensor([1.0, 2.0], requires_grad=True)
    >>> pg.autograd.grad(pg.sum(x * x), x)
    (tensor([2., 4.]),)
    """
    _require_options(materialize_grads, allow_unused, only_inputs)
    nodes, wanted = [t.node for t in list_tensors(outputs)], list_tensors(inputs)
    _require_tracked(nodes, "outputs")
    starts = _nodes_of_inputs(wanted)
    cut = [] if no_grad_vars is None else [t.node for t in list_tensors(no_grad_vars)]
    way = collect_tape(nodes, cut, starts)
    seeds = seeds_of(nodes, grad_outputs, batched=is_grads_batched)
    count = _extent(seeds) if is_grads_batched else None
    options: dict[str, Any] = {"tracked": create_graph, "count": count, "cut": cut}
    found = gradients_through_hooks(way, nodes, starts, seeds, **options)
    if not (create_graph if retain_graph is None else retain_graph):
        spend(used_tape(way, starts))
    if allow_unused:
        reached = set(keep_reached(starts, nodes, way))
        found = [g if n in reached else None for n, g in zip(starts, found, strict=True)]
    if materialize_grads:
        found = _with_zeros(starts, found, count, create_graph)
    elif not allow_unused:
        _require_used(starts, found)
    return _tensors(wanted, found)


def _require_options(materialize_grads: bool, allow_unused: bool | None, only_inputs: bool) -> None:
    if not only_inputs:
        raise OptionError(
            "grad gives the gradients of its inputs only", hint="use backward for all leaves"
        )
    if materialize_grads and allow_unused is False:
        raise OptionError("grad cannot both refuse unused inputs and give zeros for them")


def _tensors(
    inputs: Sequence[Differentiable[D]], found: Sequence[Node | None]
) -> tuple[D | None, ...]:
    pairs = zip(inputs, found, strict=True)
    return tuple([None if g is None else t.family(unshared_node(g)) for t, g in pairs])


def _nodes_of_inputs(inputs: Sequence[Differentiable[Any]]) -> list[Node]:
    if not inputs:
        raise OptionError("grad requires non-empty inputs.")
    nodes = [t.node for t in inputs]
    _require_tracked(nodes, "inputs")
    return nodes


def _with_zeros(
    nodes: Sequence[Node], found: Sequence[Node | None], count: int | None, tracked: bool
) -> list[Node | None]:
    return [g or _zeros(n, count, tracked) for n, g in zip(nodes, found, strict=True)]


def _zeros(node: Node, count: int | None, tracked: bool) -> Node:
    shape = node.type.shape if count is None else (count, *node.type.shape)
    return array_node(np.zeros(shape, node.type.dtype), tracked)


def _require_tracked(nodes: Sequence[Node], role: str, more: str = "") -> None:
    for i, node in enumerate(nodes):
        if not node.tracked:
            raise NotDifferentiable(
                f"element {i} of {role}, {node.type}, does not require grad{more}",
                origin=origin_of(node),
                hint="pg.tensor(x, requires_grad=True) makes a tensor that gradients are taken by",
            )


def _require_used(nodes: Sequence[Node], gradients: Sequence[Node | None]) -> None:
    for i, (node, gradient) in enumerate(zip(nodes, gradients, strict=True)):
        if gradient is None:
            raise NotDifferentiable(
                f"element {i} of inputs, {node.type}, appears to not have been used by the outputs",
                origin=origin_of(node),
                hint="Set allow_unused=True if this is the desired behavior.",
            )


def _extent(seeds: Sequence[Node | None]) -> int:
    """Return the batch size of the seeds."""
    counts = {s.type.shape[0] for s in seeds if s is not None}
    if len(counts) != 1:
        raise ShapeError(f"the seeds of one batch have one extent, not {sorted(counts)}")
    (count,) = counts
    return count


def _retains(node: Node) -> bool:
    holder = holder_of(node)
    return holder is not None and holder.retains_grad


def list_tensors(tensors: Any) -> list[Differentiable[Any]]:
    """Return one tensor, or several in a list, tuple or iterator, as a list.

    Raises `ArgumentError` for anything else.
    """
    if isinstance(tensors, Differentiable):
        tensors = [tensors]
    if isinstance(tensors, list | tuple | Iterator):
        found: list[Any] = list(tensors)
        if all(isinstance(t, Differentiable) for t in found):
            return found
        tensors = next(t for t in found if not isinstance(t, Differentiable))
    raise ArgumentError(
        f"expected a tensor or a list of tensors, not {type(tensors).__name__} {tensors!r:.60}",
        hint=_RESULTS if isinstance(tensors, Variable) else "",
    )


def seeds_of(
    nodes: Sequence[Node], seeds: Any, *, batched: bool = False, ones: bool = False
) -> list[Node | None]:
    """Return the seeds for `nodes`; with `ones`, None stands for ones of any shape.

    Raises `ArgumentError` for a wrong number, `ShapeError` for a seed that is missing or does not
    fit.
    """
    if seeds is None:
        seeds = [None] * len(nodes)
    elif not isinstance(seeds, list | tuple):
        seeds = [seeds]
    if len(seeds) != len(nodes):
        raise ArgumentError(f"got {len(nodes)} tensors and {len(seeds)} gradients")
    return [
        None if s is None and ones else _seed(n, s, batched)
        for n, s in zip(nodes, seeds, strict=True)
    ]


def _seed(node: Node, seed: Any, batched: bool) -> Node | None:
    if seed is None:
        if node.type.is_complex:
            raise NotDifferentiable(
                f"grad can be implicitly created only for real scalar outputs: this is {node.type}",
                origin=origin_of(node),
                hint="pass a seed, or take the gradient of a real number such as pg.real(y)",
            )
        if node.type.size != 1 or batched:
            raise ShapeError(
                f"grad can be implicitly created only for scalar outputs: this one is {node.type}",
                origin=origin_of(node),
                hint="pass a seed of its shape, or take the gradient of a sum",
            )
        return None
    if isinstance(seed, Differentiable):
        found = seed.node
    else:
        found = array_node(np.array(elements_of(seed, node.type.dtype)))
    known = found.type
    shape = known.shape[1:] if batched else known.shape
    if shape != node.type.shape or (batched and not known.shape):
        raise ShapeError(
            f"Mismatch in shape: the seed is {known}, and the output is {node.type}",
            origin=origin_of(node),
        )
    return found if known.dtype == node.type.dtype else seed.astype(node.type.dtype).node
