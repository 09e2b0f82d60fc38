"""Where a branch or a loop is built: in a program, or on tensors, where Python runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primgraph import tree
from primgraph.errors import PrimgraphError
from primgraph.functional.applied import in_program
from primgraph.functional.world import InProgram, as_tensor, is_array, world_of
from primgraph.ir.builder import Builder
from primgraph.ir.primitive import active_recorder
from primgraph.ir.primitive import recording as into
from primgraph.operators.variable import Variable
from primgraph.source import caller


def in_world(build: Callable[..., Any], run: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """`build` on the arguments, in containers, in their program; else `run` on tensors of them.

    Errors name the user's line.
    """
    try:
        world = world_of(*arguments)
        if isinstance(world, InProgram):
            with into(world.recorder):
                return world.given_back(build(*arguments))
        leaves, structure = tree.flatten(list(arguments))
        given = [as_tensor(leaf) if is_array(leaf) else leaf for leaf in leaves]
        return world.given_back(run(*tree.unflatten(structure, given)))
    except PrimgraphError as error:
        source = caller()
        raise error.located([f"written here:  {source}   {source.text}"]) from None


def own(leaf: Any) -> Variable:
    """An array, a tensor or a variable as a variable of what is being recorded."""
    builder = active_recorder()
    assert isinstance(builder, Builder)
    return in_program(builder, leaf)
