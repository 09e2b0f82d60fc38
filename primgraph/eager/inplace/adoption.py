"""Capture tensors in a function being traced: they become inputs of its graph."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, final

from primgraph.base.grad_mode import is_on
from primgraph.base.providers import late
from primgraph.eager.node import Holder, numbers
from primgraph.errors import BuildError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.operators.variable import Variable, handle_of

if TYPE_CHECKING:
    from primgraph.numpy import changing
else:
    changing = late("primgraph.numpy.changing")


T = TypeVar("T", bound=Holder)


class Trainable(Protocol):
    """Object that behaves differently in training and in evaluation, such as a layer."""

    training: bool


@final
class Adoption(Generic[T]):
    """Tensors captured while tracing a function, with the graph inputs that stand for them.

    While it is entered, operations on tensors are recorded in `builder`. `modes` maps each called
    layer to its training flag. The function may change tensors in place that it made itself, and
    with `keeps_changes` others, too, to which `changed` gives new values.
    """

    __slots__ = ("_begun", "_keeps_changes", "_known", "builder", "modes", "tensors", "values")

    def __init__(self, builder: Builder, keeps_changes: bool = False) -> None:
        self.builder = builder
        self.tensors: list[T] = []
        self.values: list[Value] = []
        self._known: dict[int, Variable] = {}
        self.modes: dict[int, tuple[Trainable, bool]] = {}
        self._keeps_changes = keeps_changes
        # The number of the first node that the function may make.
        self._begun = next(numbers)

    def note(self, layer: Trainable) -> None:
        """Record the training mode of a layer that is called."""
        self.modes.setdefault(id(layer), (layer, layer.training))

    def variable(self, tensor: T) -> Variable:
        """Return the variable that stands for a tensor; its value is read at each call."""
        found = self._known.get(id(tensor))
        if found is None:
            self._require_unchanged_base(tensor)
            value = self.builder.input(tensor.type)
            self.tensors.append(tensor)
            self.values.append(value)
            found = self._known[id(tensor)] = handle_of(self.builder, value)
            if isinstance(found, changing.ChangingArray):
                found.refusal = self._refusal(tensor)
        return found

    def change(self, tensor: T, value: Variable) -> None:
        """Let `value`, of the type of `tensor`, stand for it from now on.

        Raises `BuildError` for a tensor that calls of the function are not to change.
        """
        known = self.variable(tensor)
        refusal = self._refusal(tensor)
        if refusal and not (refusal == _LEAF and not is_on.get()):
            raise BuildError(refusal, hint="y = x.clone() has elements of its own")
        if isinstance(known, changing.ChangingArray):
            known.refusal = ""
            known.change_to(value)
            known.refusal = refusal
        else:
            self._known[id(tensor)] = value

    def changed(self) -> list[tuple[T, Value]]:
        """Return the tensors from outside of the function that it changed, and their values."""
        found = [(tensor, self._known[id(tensor)].value) for tensor in self.tensors]
        pairs = zip(found, self.values, strict=True)
        return [(t, new) for (t, new), old in pairs if new is not old and not self._is_made_here(t)]

    def _is_made_here(self, tensor: T) -> bool:
        return tensor.node.number > self._begun

    def _refusal(self, tensor: Any) -> str:
        """The reason why the function cannot change a tensor in place; empty if it can."""
        if tensor.requires_grad and tensor.is_leaf:
            return _LEAF
        if self._is_made_here(tensor):
            return ""
        if not self._keeps_changes:
            return (
                f"the function changes a tensor {tensor.type} that is no argument of it and was "
                "made outside, which a function that is differentiated or vectorized cannot"
            )
        if getattr(tensor._alias, "storage", None) is not None:
            return f"{tensor.type} shares the elements of another tensor, which is to be changed"
        return ""

    def _require_unchanged_base(self, tensor: Any) -> None:
        """Raise `BuildError` for a view of a tensor that was changed in the function."""
        storage = getattr(tensor._alias, "storage", None)
        base = None if storage is None else storage.owner()
        known = self._known.get(id(base))
        if known is not None and known.value not in self.values:
            raise BuildError(
                f"{tensor.type} shares elements with a tensor that the function changed before",
                hint="take the view after the change, within the function",
            )


_LEAF = "a leaf Variable that requires grad is being used in an in-place operation."

# What stands for the tensors of a family in functions that are traced, where it has other manners.
stand_ins: dict[type, type[Variable]] = {}


def stand_in_class(family: type) -> type[Variable]:
    """Return the class of the variables that stand for tensors of a family."""
    return next((stand_ins[kind] for kind in family.__mro__ if kind in stand_ins), Variable)


adopting: ContextVar[Adoption[Any] | None] = ContextVar("primgraph_adopting", default=None)
