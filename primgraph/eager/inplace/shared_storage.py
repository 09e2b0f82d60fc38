"""Tensors that share elements with program states: a change of one shows in the other.

Changes are detected by comparison. Reading a tensor checks whether a scope holds another array, and
reading a scope checks its tensors.

Only tensors that stand for states do this: for all others reading `node` reads a slot. A tensor
that users hold may become shared later. So `_share` changes its class to one of the same name and
family, with a property in place of the slot.
"""

from __future__ import annotations

from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.atomic import Call, call_all
from primgraph.eager.derivatives.differentiable import Differentiable
from primgraph.eager.node import Node, array_node
from primgraph.eager.run import compute
from primgraph.eager.tensor import Tensor
from primgraph.errors import NotDifferentiable
from primgraph.initializers import Assign
from primgraph.operators.variable import Variable
from primgraph.program.inputs import state_values
from primgraph.program.program import Program, program_of
from primgraph.program.sharing import Share

Array: TypeAlias = np.ndarray[Any, Any]

# The slot itself, present in both classes: the node at the last change or read.
_slot: Any = vars(Differentiable)["last_node"]


class _StateMixin:
    """Mixin of tensors that stand for states: reading `node` fetches the latest stored array."""

    __slots__ = ()

    _shares: list[Share]

    @property
    def node(self) -> Node:
        for share in self._shares:
            news = share.replaced_array()
            if news is not None:
                before: Node = _slot.__get__(self)
                node = array_node(news.array, before.tracked)
                node.holder = before.holder
                noted = (setattr, share, "agreed", node)
                call_all([*news.calls, (_slot.__set__, self, node), noted])
        found: Node = _slot.__get__(self)
        return found

    @node.setter
    def node(self, node: Node) -> None:
        # Read first: a pending change by the scope is older than this one.
        _ = self.node
        call_all([(_slot.__set__, self, node), *self._notify_calls()])

    def showing(self, node: Node) -> list[Call]:
        """Return the calls that let this tensor, and its states, show `node`, for `call_all`."""
        calls: list[Call] = super().showing(node)  # type: ignore[misc]
        return [*calls, *self._notify_calls()]

    def _notify_calls(self) -> list[Call]:
        """Return the calls that notify scopes of the tensor's new value."""
        waiting = [(s.desk, s.name) for s in self._shares]
        return [(desk.waiting.__setitem__, name, desk.guests[name]) for desk, name in waiting]


_kinds: dict[type[Tensor], type[Tensor]] = {}


def _state_class(kind: type[Tensor]) -> type[Tensor]:
    """Return the class of tensors of class `kind` that stand for a state.

    Results and copies of such tensors are of `kind` itself.
    """
    found = _kinds.get(kind)
    if found is not None:
        return found
    members = {
        "__slots__": (),
        "__module__": kind.__module__,
        "family": kind.family,
        "plain": kind.plain,
    }
    found = _kinds[kind] = type(kind.__name__, (_StateMixin, kind), members)
    return found


@final
class _TensorObserver:
    """Entry of a tensor in the shared storage of a scope."""

    __slots__ = ("_brought", "share", "tensor")

    def __init__(self, tensor: Tensor, share: Share) -> None:
        self.tensor = tensor
        self.share = share
        self._brought: Node | None = None

    def changed_array(self) -> Array | None:
        """Return the tensor's array if the scope holds another one, else None."""
        node = self._brought = self.tensor.node
        if node is self.share.agreed:
            return None
        if node.array is None:
            compute([node])
        array = np.asarray(node.array, order="C")
        self.share.hand(array)
        return array

    def is_settled(self) -> bool:
        """Return whether the tensor still has the array that the scope received last."""
        self.share.agreed = self._brought
        return _slot.__get__(self.tensor) is self._brought


def tensor_of(variable: Variable) -> Tensor:
    """Return the tensor that shares the elements of a state; always the same object.

    It requires a gradient if the state is trainable. Raises `BuildError` for a variable that
    belongs to no program.
    """
    known = find_shared_tensor(variable)
    if known is not None:
        return known
    program = program_of(variable)
    state = program.states[variable.value]
    (array,) = state_values(program, program.scope, [state])
    tensor = Tensor(array_node(array, state.trainable))
    _share(tensor, program, state.name)
    return tensor


def find_shared_tensor(variable: Variable) -> Tensor | None:
    """Return the tensor that shares the elements of a state, if it exists."""
    program = program_of(variable)
    lodger = program.scope.guest(program.states[variable.value].name)
    return lodger.tensor if isinstance(lodger, _TensorObserver) else None


def state_of(tensor: Tensor, program: Program) -> Variable | None:
    """Return the state of `program` that shares the elements of `tensor`, or None."""
    for share in shares(tensor):
        variable = program.variable(share.name) if share.is_of(program.scope) else None
        if variable is not None and variable.value in program.states:
            return variable
    return None


def create_shared_state(tensor: Tensor, program: Program, name: str) -> Variable:
    """Create a state of `program` that shares the elements of `tensor`, a leaf.

    The tensor's value is also the initial value. Raises `NotDifferentiable` for a tensor that is
    not a leaf, `BuildError` for a name in use.
    """
    if not tensor.is_leaf:
        raise NotDifferentiable(
            f"{tensor.type} is computed from tensors that require grad, and cannot be a parameter",
            hint="x.detach() has the same elements and is a leaf",
        )
    first = Assign(tensor._array())
    variable = program.state(name, tensor.type, first, tensor.requires_grad)
    _share(tensor, program, name)
    return variable


def shares(tensor: Tensor) -> list[Share]:
    """Return the shared storages of `tensor`."""
    return tensor._shares if isinstance(tensor, _StateMixin) else []


def label_of(tensor: Tensor) -> str:
    """Return a parameter's name in a program, or else its path in a layer; empty if it has none."""
    names = [share.name for share in shares(tensor)]
    return names[0] if names else getattr(tensor, "_label", "")


def _share(tensor: Tensor, program: Program, name: str) -> None:
    """Let `tensor` stand for the state `name`, too."""
    share = Share(program.scope, name)
    if not isinstance(tensor, _StateMixin):
        tensor._shares = []
        tensor.__class__ = _state_class(type(tensor))
    node = tensor.node
    # The tensor already has the latest value of scopes that were deleted.
    tensor._shares = [*(s for s in tensor._shares if s.is_alive), share]
    share.desk.guests[name] = _TensorObserver(tensor, share)
    tensor.node = node
    if len(tensor._shares) > 1:
        for one in tensor._shares:
            one.desk.scattered[one.name] = one.desk.guests[one.name]
