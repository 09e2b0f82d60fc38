"""What a tensor stands for: an array, or the step that gives it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from operator import attrgetter
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol, final
from weakref import ref

import numpy as np

from primgraph.base.atomic import Call
from primgraph.base.locks import make_lock
from primgraph.ir.types import TensorType

if TYPE_CHECKING:
    from primgraph.eager.steps import Step

numbers = count()

# Nodes of one family have their inputs in common; where these are more, they are gone through once.
MANY = 4

# Held by whoever goes through nodes or drops how they were computed: threads may share them.
lock = make_lock()


class Holder(Protocol):
    """A tensor, as far as nodes and derivatives look at it."""

    @property
    def node(self) -> Node: ...

    @property
    def type(self) -> TensorType: ...

    @property
    def requires_grad(self) -> bool: ...

    @property
    def retains_grad(self) -> bool: ...

    @property
    def has_hooks(self) -> bool: ...

    def hooked(self, gradient: Node) -> Node: ...

    def showing(self, node: Node) -> list[Call]: ...


class Passed(ABC):
    """A call of a function that has rules of its own for its gradients.

    The nodes of its results stand on what it computed, and on its arguments, along which alone
    derivatives go.
    """

    @abstractmethod
    def pull(self, cotangents: Mapping[int, Node], *, tracked: bool) -> list[tuple[Node, Node]]:
        """What the rules make of the cotangents of some results: those of arguments, beside these.

        With `tracked` derivatives go through what they record.
        """

    @abstractmethod
    def step(self, node: Node) -> Step:
        """The step of one of the results, in whose place the rules are recorded in a graph."""


@final
class Node:
    """A value: `array`, where it is known, or else the result of `step` on `inputs`.

    A node never changes what it stands for; its array comes when it is asked for. `tracked` tells
    that derivatives go through it. One without a step is given, or forgotten: `spent` tells that
    derivatives went through it for the last time, or for a constant, that it stands on what is
    older than the last look. Nodes are numbered as they are made, so that each stands behind what
    it is computed from. `place` is the code and the instruction of the user's that made it, and
    `holder` the tensor that shows it, as long as there is one. `base` is the holder of what this is
    a view of in NumPy. `passed` is the call of a function with rules of its own that gave this,
    through which gradients go back by these. `former` is there for leaves that a tensor showed
    before it was changed, and gives that tensor.
    """

    # Set for few: others do not have it.
    former: Callable[[], Holder | None]

    __slots__ = (
        "array",
        "base",
        "former",
        "holder",
        "inputs",
        "number",
        "passed",
        "place",
        "spent",
        "step",
        "tracked",
        "type",
    )

    def __init__(
        self,
        type: TensorType,
        step: Step | None,
        inputs: tuple[Node, ...],
        tracked: bool,
        place: tuple[CodeType, int] | None,
        array: np.ndarray[Any, Any] | None = None,
    ) -> None:
        self.type = type
        self.step = step
        self.inputs = inputs
        self.tracked = tracked
        self.spent = False
        self.place = place
        self.array = array
        self.holder: ref[Holder] | None = None
        self.base: ref[Holder] | None = None
        self.passed: Passed | None = None
        self.number = next(numbers)

    @property
    def is_leaf(self) -> bool:
        """Whether derivatives take it as given."""
        if not self.tracked:
            return True
        return not self.spent if self.step is None else not self.step.reaching

    @property
    def is_held(self) -> bool:
        """Whether a tensor shows it."""
        return self.holder is not None and self.holder() is not None


def given(array: np.ndarray[Any, Any], tracked: bool = False) -> Node:
    """The node of an array that nobody else changes."""
    return Node(TensorType(array.shape, array.dtype), None, (), tracked, None, array)


def forget(node: Node) -> None:
    """Drop how a node was computed, where it is known and no derivative can ask for it."""
    if node.array is None or node.step is None:
        return
    if not node.tracked or not node.step.reaching or (node.spent and node.holder is not None):
        node.step, node.inputs, node.passed = None, (), None


def unknown(roots: Iterable[Node]) -> list[Node]:
    """What has to be computed for `roots`, in order: nodes without arrays that they depend on.

    With a derivative comes all that it is taken through, also where the arrays are known.
    """
    waiting = [n for n in roots if n.array is None]
    found = set(waiting)
    # What derivatives are taken through, from where these are found.
    through: set[Node] = set()
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if node.step is not None and node.step.derives:
            through.add(node)
        if len(node.inputs) > MANY and _are_seen(node.inputs, seen):
            continue
        for other in node.inputs:
            if other.array is None and other not in found:
                found.add(other)
                waiting.append(other)
    waiting = list(through)
    seen.clear()
    while waiting:
        inputs = waiting.pop().inputs
        if len(inputs) > MANY and _are_seen(inputs, seen):
            continue
        for other in inputs:
            if other.step is None or other in through or not (other.tracked or other.array is None):
                continue
            through.add(other)
            waiting.append(other)
    found |= through
    return sorted(found, key=_number)


def _are_seen(inputs: tuple[Node, ...], seen: set[int]) -> bool:
    """Whether inputs are among those that have been gone through; they are from now on."""
    known = id(inputs) in seen
    seen.add(id(inputs))
    return known


_number = attrgetter("number")
