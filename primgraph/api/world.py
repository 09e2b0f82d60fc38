"""Where a function is called: on tensors, which arrays become for that, or in a program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from primgraph import tree
from primgraph.api.call_in_world import Applied, Computed, Flat, Recorded, in_program
from primgraph.base.grad_mode import is_on
from primgraph.eager.run import compute
from primgraph.eager.tensor import Tensor, tensor
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.dlpack import is_exchanged
from primgraph.ir.primitive import Recorder, active_recorder, innermost
from primgraph.operators.call import body_being_built, constant
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable


class World(ABC):
    """What a transformed function is called on, and how that gives back what it has computed."""

    @abstractmethod
    def apply(self, name: str, function: Flat, leaves: Sequence[Any]) -> Applied:
        """`function`, called on arrays of its own that are equal to `leaves`."""

    @abstractmethod
    def bring(self, leaf: Any) -> Handle:
        """An array as what functions are called on here."""

    @abstractmethod
    def given_back(self, value: Any) -> Any:
        """`value`, a container of what was computed, as the caller gets it."""


@final
@dataclass(frozen=True, slots=True)
class InProgram(World):
    """Variables: what is computed is recorded into their program."""

    recorder: Recorder

    def apply(self, name: str, function: Flat, leaves: Sequence[Any]) -> Applied:
        return Recorded(name, function, [in_program(self.recorder, leaf) for leaf in leaves])

    def bring(self, leaf: Any) -> Handle:
        return in_program(self.recorder, leaf)

    def given_back(self, value: Any) -> Any:
        return value if is_on.get() else tree.map(constant, value)


@final
@dataclass(frozen=True, slots=True)
class OnTensors(World):
    """Tensors. Where the caller has `arrays`, these become tensors, and are given back again,
    unless derivatives may be asked for of what was computed: it depends on tensors elsewhere."""

    arrays: bool

    def apply(self, name: str, function: Flat, leaves: Sequence[Any]) -> Applied:
        return Computed(name, function, [as_tensor(leaf) for leaf in leaves])

    def bring(self, leaf: Any) -> Handle:
        return as_tensor(leaf)

    def given_back(self, value: Any) -> Any:
        if not self.arrays:
            return value
        found, structure = tree.flatten(value)
        nodes = [t.node for t in found if isinstance(t, Tensor)]
        if any(n.tracked for n in nodes):
            return value
        compute(nodes)
        arrays = [t.numpy() if isinstance(t, Tensor) else t for t in found]
        return tree.unflatten(structure, arrays)


def world_of(*given: Any) -> World:
    """Where a function of these containers is called.

    Variables among them, or a program that is being built, make it the program's: what else there
    is becomes a constant of that. Else there are tensors, or arrays alone.
    """
    return world_among([*handles_in(given)])


def world_among(found: Sequence[Handle]) -> World:
    """Where a function is called that has these tensors and variables among its arguments."""
    for handle in found:
        if isinstance(handle, Variable):
            # In a body, variables of the programs around it are captured by the body.
            body = body_being_built()
            return InProgram(handle.recorder if body is None else body)
    if innermost.get() is not None:
        return InProgram(active_recorder())
    return OnTensors(arrays=not found)


def handles_in(value: Any) -> Iterator[Handle]:
    """The tensors and variables in containers; what cannot be looked into has none."""
    try:
        found = tree.leaves(value)
    except ArgumentError:
        return iter(())
    return (leaf for leaf in found if isinstance(leaf, Handle))


def as_tensor(leaf: Any) -> Tensor:
    """A tensor of that array, or that tensor."""
    return leaf if isinstance(leaf, Tensor) else tensor(leaf)


def is_array(leaf: Any) -> bool:
    """Whether a leaf of a container is an array or a number."""
    if isinstance(leaf, Handle | np.ndarray | np.generic | int | float | complex):
        return True
    return hasattr(leaf, "__array__") or is_exchanged(leaf)
