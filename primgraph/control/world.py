"""Choice between recording a branch or loop in a program, and running it on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primgraph import tree
from primgraph.api.call_in_world import in_program
from primgraph.api.world import InProgram, as_tensor, is_array, world_of
from primgraph.base.user_lines import caller
from primgraph.eager.node import numbers
from primgraph.eager.tensor import Tensor
from primgraph.errors import PrimgraphError
from primgraph.ir.builder import Builder
from primgraph.ir.primitive import active_recorder
from primgraph.ir.primitive import recording as into
from primgraph.operators.call import handed_out
from primgraph.operators.shape.shaping import reshape
from primgraph.operators.variable import Variable


def call_in_world(
    build: Callable[..., Any], run: Callable[..., Any], arguments: Sequence[Any]
) -> Any:
    """Call `build` on the arguments in their program, or `run` on tensors of them.

    Errors name the user's line.
    """
    try:
        world = world_of(*arguments)
        if isinstance(world, InProgram):
            with into(world.recorder):
                active_recorder().begin_call()
                found, form = tree.flatten(build(*arguments))
                results = handed_out([_brought_in(leaf) for leaf in found])
                return world.convert_results(tree.unflatten(form, results))
        leaves, structure = tree.flatten(list(arguments))
        given = [as_tensor(leaf) if is_array(leaf) else leaf for leaf in leaves]
        before = next(numbers)
        found, form = tree.flatten(run(*tree.unflatten(structure, given)))
        return world.convert_results(tree.unflatten(form, [_other_than(before, t) for t in found]))
    except PrimgraphError as error:
        source = caller()
        raise error.located([f"written here:  {source}   {source.text}"]) from None


def _other_than(before: int, leaf: Any) -> Any:
    """Return `leaf`, or a copy of a tracked tensor older than node number `before`."""
    if isinstance(leaf, Tensor) and leaf.node.tracked and leaf.node.number < before:
        return reshape(leaf, leaf.shape)
    return leaf


def _brought_in(leaf: Any) -> Any:
    """Return a result as a variable of the active builder if it belongs to an outer program."""
    outside = isinstance(leaf, Variable) and leaf.recorder is not active_recorder()
    return own(leaf) if outside else leaf


def own(leaf: Any) -> Variable:
    """Return an array, a tensor or a variable as a variable of the active builder."""
    builder = active_recorder()
    assert isinstance(builder, Builder)
    return in_program(builder, leaf)
