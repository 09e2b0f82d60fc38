"""Accumulate gradients into `.grad` of all tensors atomically, even if interrupted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from primgraph.base.atomic import Call, call_all
from primgraph.eager.derivatives import recording
from primgraph.eager.derivatives.differentiable import Alias, Differentiable
from primgraph.eager.derivatives.reverse import release_calls, sum_of, unshared_node
from primgraph.eager.node import Node, lock
from primgraph.eager.run import add_to_evaluation


def accumulate(
    received: Sequence[tuple[Differentiable[Any], Node]], way: Iterable[Node] = ()
) -> None:
    """Add each gradient to the `.grad` of its tensor, and release the tape `way`.

    The post-accumulate hooks are called afterwards.
    """
    with lock:
        calls, changed = _accumulation_calls(received)
        call_all([*calls, *release_calls(way, changed)])
    for holder in {id(holder): holder for holder, _ in received}.values():
        holder.call_after()


def clear_grad(tensors: Iterable[Differentiable[Any]]) -> None:
    """Set the gradient of each tensor to None."""
    kept = [t.kept() for t in tensors if t.grad is not None]
    # Keep the replaced gradients alive until all calls are done.
    before = [own.gradient for own in kept]
    call_all([(setattr, own, "gradient", None) for own in kept])
    del before


def _accumulation_calls(
    received: Sequence[tuple[Differentiable[Any], Node]],
) -> tuple[list[Call], set[int]]:
    """Return the calls that add gradients, and the ids of the tensors whose values these change.

    One tensor may receive several gradients, and one tensor may be the `.grad` of several.
    """
    made: dict[int, Differentiable[Any]] = {}
    totals: dict[int, tuple[Differentiable[Any], Node]] = {}
    calls: list[Call] = []
    for holder, node in received:
        own, gradient = holder.kept(), holder.received(node)
        known = made.get(id(own), own.gradient)
        total = unshared_node(gradient)
        if known is not None:
            total = sum_of(totals.get(id(known), (known, known.node))[1], gradient)
        if known is None or (recording.is_on.get() and total.tracked):
            found = made[id(own)] = holder.family(total)
            calls.append((setattr, own, "gradient", found))
            add_to_evaluation(found)
        else:
            totals[id(known)] = known, total
            add_to_evaluation(known)
    stored: dict[Alias, Node] = {}
    for tensor, total in totals.values():
        calls += tensor.storing(total, stored)
    return calls, set(totals)
