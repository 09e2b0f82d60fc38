"""Worlds of function calls: tensors, to which arrays are converted, or a program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from primgraph import tree
from primgraph.api.call_in_world import Applied, Computed, Flat, Recorded, in_program
from primgraph.base.grad_mode import is_on
from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.dlpack import is_exchanged
from primgraph.ir.primitive import Recorder, active_recorder, innermost
from primgraph.operators.call import body_being_built, constant
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable

if TYPE_CHECKING:
    from primgraph.eager import run as eager_run
    from primgraph.eager import tensor as tensors
else:
    eager_run = late("primgraph.eager.run")
    tensors = late("primgraph.eager.tensor")


class World(ABC):
    """World in which a transformed function is called: conversion of arguments and results."""

    @abstractmethod
    def apply(self, name: str, function: Flat, leaves: Sequence[Any]) -> Applied:
        """Call `function` on distinct arrays equal to `leaves`."""

    @abstractmethod
    def convert_leaf(self, leaf: Any) -> Handle:
        """Convert an array to a handle of this world."""

    @abstractmethod
    def convert_results(self, value: Any) -> Any:
        """Convert `value`, a container of results, for the caller."""


@final
@dataclass(frozen=True, slots=True)
class InProgram(World):
    """World of variables: operations are recorded into their program."""

    recorder: Recorder

    def apply(self, name: str, function: Flat, leaves: Sequence[Any]) -> Applied:
        return Recorded(name, function, [in_program(self.recorder, leaf) for leaf in leaves])

    def convert_leaf(self, leaf: Any) -> Handle:
        return in_program(self.recorder, leaf)

    def convert_results(self, value: Any) -> Any:
        return value if is_on.get() else tree.map(constant, value)


@final
@dataclass(frozen=True, slots=True)
class OnTensors(World):
    """World of tensors. If the caller has `arrays`, these become tensors, and results become arrays
    again unless they are differentiable by captured tensors."""

    arrays: bool

    def apply(self, name: str, function: Flat, leaves: Sequence[Any]) -> Applied:
        return Computed(name, function, [as_tensor(leaf) for leaf in leaves])

    def convert_leaf(self, leaf: Any) -> Handle:
        return as_tensor(leaf)

    def convert_results(self, value: Any) -> Any:
        if not self.arrays:
            return value
        found, structure = tree.flatten(value)
        nodes = [t.node for t in found if isinstance(t, tensors.Tensor)]
        if any(n.tracked for n in nodes):
            return value
        eager_run.compute(nodes)
        arrays = [t._array().copy() if isinstance(t, tensors.Tensor) else t for t in found]
        return tree.unflatten(structure, arrays)


def world_of(*given: Any) -> World:
    """Return the world for a function of these containers.

    With variables among them, or while a program is built, it is that program, and other values
    become constants of it. Otherwise it is that of tensors, or of arrays only.
    """
    return world_of_arguments([*handles_in(given)])


def world_of_arguments(found: Sequence[Handle]) -> World:
    """Return the world for a function with these tensors and variables among its arguments."""
    for handle in found:
        if isinstance(handle, Variable):
            # A body captures variables of enclosing programs.
            body = body_being_built()
            return InProgram(handle.recorder if body is None else body)
    if innermost.get() is not None:
        return InProgram(active_recorder())
    return OnTensors(arrays=not found)


def handles_in(value: Any) -> Iterator[Handle]:
    """Yield the tensors and variables in containers; none for objects that cannot be flattened."""
    try:
        found = tree.leaves(value)
    except ArgumentError:
        return iter(())
    return (leaf for leaf in found if isinstance(leaf, Handle))


def as_tensor(leaf: Any) -> tensors.Tensor:
    """Convert an array to a tensor; return a tensor as it is."""
    return leaf if isinstance(leaf, tensors.Tensor) else tensors.tensor(leaf)


def is_array(leaf: Any) -> bool:
    """Return whether a leaf is an array or a number."""
    if isinstance(leaf, Handle | np.ndarray | np.generic | int | float | complex):
        return True
    return hasattr(leaf, "__array__") or is_exchanged(leaf)
