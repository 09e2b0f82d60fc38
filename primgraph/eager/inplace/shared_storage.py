"""Tensors whose elements are those of states of programs, too: whoever changes them, both see it.

Nobody is told of a change. Whoever reads a tensor looks whether a scope holds another array by
now, and a scope that is read asks the tensors, each by comparing what it has with what it had.

Only tensors that stand for states look: reading `node` of any other is reading a slot. That makes
two kinds of tensors, and one of the first kind becomes one of the second when it first stands for a
state, while users hold it. So it stays the object that it is, and `_share` gives it another class:
one of the same name and family, with a property where the first has the slot.
"""

from __future__ import annotations

from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.atomic import Call, call_all
from primgraph.eager.derivatives.differentiable import Differentiable
from primgraph.eager.node import Node, given
from primgraph.eager.run import compute
from primgraph.eager.tensor import Tensor
from primgraph.errors import NotDifferentiable
from primgraph.initializers import Assign
from primgraph.operators.variable import Variable
from primgraph.program.program import Program, program_of
from primgraph.program.run import state_values
from primgraph.program.sharing import Share

Array: TypeAlias = np.ndarray[Any, Any]

# The slot itself, which is there in tensors of both kinds: the node that a tensor had when it was
# changed or read last.
_slot: Any = vars(Differentiable)["last_node"]


class _Standing:
    """What tensors that stand for states have before all others: they show what was stored last."""

    __slots__ = ()

    _shares: list[Share]

    @property
    def node(self) -> Node:
        for share in self._shares:
            news = share.news()
            if news is not None:
                before: Node = _slot.__get__(self)
                node = given(news.array, before.tracked)
                node.holder = before.holder
                noted = (setattr, share, "agreed", node)
                call_all([*news.calls, (_slot.__set__, self, node), noted])
        found: Node = _slot.__get__(self)
        return found

    @node.setter
    def node(self, node: Node) -> None:
        # What was stored before is older: this reads it.
        _ = self.node
        call_all([(_slot.__set__, self, node), *self._bringing()])

    def showing(self, node: Node) -> list[Call]:
        """The calls that let this tensor, and states, show `node`, for `call_all`."""
        calls: list[Call] = super().showing(node)  # type: ignore[misc]
        return [*calls, *self._bringing()]

    def _bringing(self) -> list[Call]:
        """The calls that note that scopes are to have what the tensor has."""
        waiting = [(s.desk, s.name) for s in self._shares]
        return [(desk.waiting.__setitem__, name, desk.guests[name]) for desk, name in waiting]


_kinds: dict[type[Tensor], type[Tensor]] = {}


def _standing(kind: type[Tensor]) -> type[Tensor]:
    """The class that tensors of class `kind` get when they first stand for a state.

    What is computed with them, and copies of them, are as with tensors of `kind` itself.
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
    found = _kinds[kind] = type(kind.__name__, (_Standing, kind), members)
    return found


@final
class _Lodger:
    """A tensor in a scope."""

    __slots__ = ("_brought", "share", "tensor")

    def __init__(self, tensor: Tensor, share: Share) -> None:
        self.tensor = tensor
        self.share = share
        self._brought: Node | None = None

    def brought(self) -> Array | None:
        """The array of the tensor, where the scope has another one."""
        node = self._brought = self.tensor.node
        if node is self.share.agreed:
            return None
        if node.array is None:
            compute([node])
        array = np.asarray(node.array, order="C")
        self.share.hand(array)
        return array

    def is_settled(self) -> bool:
        """Whether the tensor has what the scope got last."""
        self.share.agreed = self._brought
        return _slot.__get__(self.tensor) is self._brought


def tensor_of(variable: Variable) -> Tensor:
    """The tensor that has the elements of a state; the same one each time.

    It requires a gradient if the state is trainable. Raises `BuildError` for a variable that
    belongs to no program.
    """
    known = tensor_there(variable)
    if known is not None:
        return known
    program = program_of(variable)
    state = program.states[variable.value]
    (array,) = state_values(program, program.scope, [state])
    tensor = Tensor(given(array, state.trainable))
    _share(tensor, program, state.name)
    return tensor


def tensor_there(variable: Variable) -> Tensor | None:
    """The tensor that has the elements of a state, if there is one yet."""
    program = program_of(variable)
    lodger = program.scope.guest(program.states[variable.value].name)
    return lodger.tensor if isinstance(lodger, _Lodger) else None


def state_of(tensor: Tensor, program: Program) -> Variable | None:
    """The state of `program` that has the elements of `tensor`, if there is one."""
    for share in shares(tensor):
        variable = program.variable(share.name) if share.is_of(program.scope) else None
        if variable is not None and variable.value in program.states:
            return variable
    return None


def made_state(tensor: Tensor, program: Program, name: str) -> Variable:
    """A new state of `program` that has the elements of `tensor`, a leaf; also at first.

    Raises `NotDifferentiable` for a tensor that is no leaf, `BuildError` for a name that is taken.
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
    """What `tensor` has in common with scopes."""
    return tensor._shares if isinstance(tensor, _Standing) else []


def label_of(tensor: Tensor) -> str:
    """The name of a parameter: that in a program, or else where it is in a layer; empty without."""
    names = [share.name for share in shares(tensor)]
    return names[0] if names else getattr(tensor, "_label", "")


def _share(tensor: Tensor, program: Program, name: str) -> None:
    """Let `tensor` stand for the state of that name, too."""
    share = Share(program.scope, name)
    if not isinstance(tensor, _Standing):
        tensor._shares = []
        tensor.__class__ = _standing(type(tensor))
    node = tensor.node
    # Of scopes that are gone the tensor has all by now.
    tensor._shares = [*(s for s in tensor._shares if s.is_alive), share]
    share.desk.guests[name] = _Lodger(tensor, share)
    tensor.node = node
    if len(tensor._shares) > 1:
        for one in tensor._shares:
            one.desk.scattered[one.name] = one.desk.guests[one.name]
