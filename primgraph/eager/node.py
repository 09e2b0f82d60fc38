"""Nodes of the eager graph: an array, or the step that computes it."""

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

# Nodes of one family share the tuple of inputs; longer tuples than this are traversed only once.
MANY = 4

# Held while traversing nodes or dropping their history: threads may share them.
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


class CustomRuleCall(ABC):
    """A call of a function that has rules of its own for its gradients.

    The nodes of its results stand on what it computed, and on its arguments, along which alone
    derivatives go.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the function."""

    @abstractmethod
    def pull(self, cotangents: Mapping[int, Node], *, tracked: bool) -> list[tuple[Node, Node]]:
        """Apply the rules to cotangents of results; return arguments with their cotangents.

        With `tracked` derivatives go through what they record.
        """

    @abstractmethod
    def step(self, node: Node) -> Step:
        """The step of one of the results, in whose place the rules are recorded in a graph."""


@final
class Node:
    """Value of the eager graph: `array`, once computed, or the result of `step` on `inputs`.

    A node's value never changes; its array is computed on demand. `tracked` says that derivatives
    go through it. A node without a step is given, or its history was dropped. `spent` says that its
    tape was released or, for a constant, that it depends on nodes older than the last evaluation.
    Numbers increase with creation, so that a node follows its inputs. `place` is the code object
    and instruction of the user that created it. `holder` is the tensor that shows it, while alive.
    `base` is the holder of its base if it would be a view in NumPy. `passed` is the call of a
    function with custom rules that returned it. `former` exists for leaves that a tensor showed
    before an in-place change, and returns that tensor; for others it returns one with the hooks
    of the tensor that shows or showed them. `released` and `born` exist for nodes whose
    tape was released: the step that computed them, or the name of the function with custom rules,
    and the number of the node with the tape.
    """

    # Set for few: others do not have it.
    former: Callable[[], Holder | None]
    released: Step | str | None
    born: int

    __slots__ = (
        "array",
        "base",
        "born",
        "former",
        "holder",
        "inputs",
        "number",
        "passed",
        "place",
        "released",
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
        self.passed: CustomRuleCall | None = None
        self.number = next(numbers)

    @property
    def is_leaf(self) -> bool:
        """Return whether derivatives treat it as given."""
        if not self.tracked:
            return True
        return not self.spent if self.step is None else not self.step.reaching

    @property
    def is_held(self) -> bool:
        """Return whether a tensor shows it."""
        return self.holder is not None and self.holder() is not None


def array_node(array: np.ndarray[Any, Any], tracked: bool = False) -> Node:
    """Return the node of an array that is not modified elsewhere."""
    return Node(TensorType(array.shape, array.dtype), None, (), tracked, None, array)


def forget(node: Node) -> None:
    """Drop the history of a node if its array is known and it is not tracked."""
    if node.array is None or node.step is None:
        return
    if not node.tracked or not node.step.reaching or (node.spent and node.holder is not None):
        node.step, node.inputs, node.passed = None, (), None


def nodes_to_compute(roots: Iterable[Node]) -> list[Node]:
    """Return the nodes to compute for `roots`, in order: nodes without arrays that they depend on.

    A derivative step needs its whole tape, including nodes with known arrays.
    """
    waiting = [n for n in roots if n.array is None]
    found = set(waiting)
    # Nodes on tapes, starting from the derivative steps.
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
    """Return whether `inputs` were seen before, and mark them as seen."""
    known = id(inputs) in seen
    seen.add(id(inputs))
    return known


_number = attrgetter("number")
