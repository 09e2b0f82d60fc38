"""Capture tensors in a function being traced: they become inputs of its graph."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar, final

from primgraph.eager.node import Holder
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.operators.variable import Variable

T = TypeVar("T", bound=Holder)


class Trainable(Protocol):
    """Object that behaves differently in training and in evaluation, such as a layer."""

    training: bool


@final
class Adoption(Generic[T]):
    """Tensors captured while tracing a function, with the graph inputs that stand for them.

    While it is entered, operations on tensors are recorded in `builder`. `modes` maps each called
    layer to its training flag.
    """

    __slots__ = ("_known", "builder", "modes", "tensors", "values")

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.tensors: list[T] = []
        self.values: list[Value] = []
        self._known: dict[int, Variable] = {}
        self.modes: dict[int, tuple[Trainable, bool]] = {}

    def note(self, layer: Trainable) -> None:
        """Record the training mode of a layer that is called."""
        self.modes.setdefault(id(layer), (layer, layer.training))

    def variable(self, tensor: T) -> Variable:
        """Return the variable that stands for a tensor; its value is read at each call."""
        found = self._known.get(id(tensor))
        if found is None:
            value = self.builder.input(tensor.type)
            self.tensors.append(tensor)
            self.values.append(value)
            found = self._known[id(tensor)] = Variable(self.builder, value)
        return found


# What stands for the tensors of a family in functions that are traced, where it has other manners.
stand_ins: dict[type, type[Variable]] = {}


def stand_in_class(family: type) -> type[Variable]:
    """Return the class of the variables that stand for tensors of a family."""
    return next((stand_ins[kind] for kind in family.__mro__ if kind in stand_ins), Variable)


adopting: ContextVar[Adoption[Any] | None] = ContextVar("primgraph_adopting", default=None)
