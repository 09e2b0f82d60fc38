"""Tensors in a function that is being traced: they become its inputs, for as often as it is run."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar, final

from primgraph.eager.node import Holder
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.operators.variable import Variable

T = TypeVar("T", bound=Holder)


class Trainable(Protocol):
    """What computes one thing in training and another in evaluation, such as a layer."""

    training: bool


@final
class Adoption(Generic[T]):
    """The tensors that a traced function has found elsewhere, with the inputs that stand for them.

    While it is entered, whatever is computed with tensors is recorded in `builder`. `modes` has
    the layers that were called, and whether each was in training.
    """

    __slots__ = ("_known", "builder", "modes", "tensors", "values")

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.tensors: list[T] = []
        self.values: list[Value] = []
        self._known: dict[int, Variable] = {}
        self.modes: dict[int, tuple[Trainable, bool]] = {}

    def note(self, layer: Trainable) -> None:
        """Remember in which mode a layer is that is called."""
        self.modes.setdefault(id(layer), (layer, layer.training))

    def variable(self, tensor: T) -> Variable:
        """The variable that stands for a tensor, whatever this shows when the function is run."""
        found = self._known.get(id(tensor))
        if found is None:
            value = self.builder.input(tensor.type)
            self.tensors.append(tensor)
            self.values.append(value)
            found = self._known[id(tensor)] = Variable(self.builder, value)
        return found


# What stands for the tensors of a family in functions that are traced, where it has other manners.
stand_ins: dict[type, type[Variable]] = {}


def stand_in(family: type) -> type[Variable]:
    """The class of the handles that stand for tensors of that family."""
    return next((stand_ins[kind] for kind in family.__mro__ if kind in stand_ins), Variable)


adopting: ContextVar[Adoption[Any] | None] = ContextVar("primgraph_adopting", default=None)
