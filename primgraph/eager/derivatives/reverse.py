"""Gradients through a record that hooks may change, and that is dropped when it is used up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import final

import numpy as np

from primgraph.base.atomic import Call, call_all
from primgraph.eager.derivatives.gradient_nodes import gradients, path
from primgraph.eager.node import Holder, Node, Passed, given, lock
from primgraph.eager.run import along
from primgraph.eager.steps import same, sum_of_two
from primgraph.errors import BuildError


def holder_of(node: Node) -> Holder | None:
    """The tensor that shows a node, if there is one."""
    return None if node.holder is None else node.holder()


def receiver_of(node: Node) -> Holder | None:
    """The tensor that the gradient by a node is for: the one that shows it, or for a leaf that it
    showed before it was changed, as long as it requires a gradient."""
    holder = holder_of(node)
    if holder is None and node.is_leaf and hasattr(node, "former"):
        former: Holder | None = node.former()
        return former if former is not None and former.requires_grad else None
    return holder


def unheld(node: Node) -> Node:
    """The node, or another one of that value where a tensor shows it: it goes on to do so."""
    if not node.is_held:
        return node
    if node.array is not None and not node.tracked:
        return given(node.array)
    return Node(node.type, same(node.type), (node,), node.tracked, node.place, node.array)


def recorded(
    nodes: Sequence[Node], cut: Sequence[Node] = (), inputs: Sequence[Node] = ()
) -> list[Node]:
    """What derivatives go through, but for what lies behind `cut`.

    Raises `BuildError` where some of it has been dropped. What led to the one of `inputs` may be,
    if there is no other one: nothing behind it is asked for.
    """
    with lock:
        found = path(nodes, cut, ready=False)
    end = next(iter(inputs)) if len(set(inputs)) == 1 else None
    if any(n.spent for n in found if n is not end):
        raise BuildError(
            "Trying to backward through the graph a second time: what was recorded has been "
            "dropped",
            hint="Specify retain_graph=True when calling backward or grad the first time",
        )
    return found


def through_hooks(
    way: Sequence[Node],
    outputs: Sequence[Node],
    inputs: Sequence[Node],
    seeds: Sequence[Node | None],
    *,
    tracked: bool,
    count: int | None = None,
    cut: Sequence[Node] = (),
    behind: Set[Node] | None = None,
) -> list[Node | None]:
    """The gradients by `inputs`, where those of tensors with hooks are what the hooks give.

    What comes before a tensor gets what its hooks have made of the gradient, and what was given
    to a function with rules of its own what these make of it; seeds of batches, of which there are
    `count`, go through such functions by their rules in a graph. Nothing passes the nodes in `cut`.
    Rules are asked for what depends on `inputs` only where it is known to be `behind` these.
    """
    passed = False
    # What is asked for has to be found in its gradients when these are differentiated, too: a
    # graph with the way to it does not tell it from equal values on that way.
    hooked = tracked and any(not n.is_leaf or n.array is None for n in inputs)
    for node in way:
        if node.passed is not None:
            passed = True
        # What no tensor shows any more has no hooks, unless one that shows another value has them.
        if not hooked and (node.is_held or node.is_leaf):
            hooked = _is_hooked(node)
    if not hooked and not (passed and count is None):
        known = None if passed else way
        return gradients(outputs, inputs, seeds, tracked=tracked, count=count, cut=cut, way=known)
    regions = _Regions(way, frozenset(inputs), tracked, count, cut, behind)
    for node, seed in zip(outputs, seeds, strict=True):
        regions.deliver(node, _ones(node, count) if seed is None else seed)
    regions.run()
    return [regions.totals.get(n) for n in inputs]


@final
class _Regions:
    """The way of a derivative, cut at stops: tensors with hooks, results of functions with rules of
    their own, and what is asked for.

    The level of a node is how many stops come after it at most, along one way: when all lower
    levels are done, its gradient is complete. What lies between stops, on one level, is a region,
    and is differentiated at once, so that each step is gone through once. `totals` has the
    gradients at stops and leaves.
    """

    def __init__(
        self,
        way: Sequence[Node],
        wanted: Set[Node],
        tracked: bool,
        count: int | None,
        cut: Sequence[Node],
        behind: Set[Node] | None,
    ) -> None:
        self._behind = behind
        self.totals: dict[Node, Node] = {}
        self._tracked = tracked
        self._count = count
        self._cut = cut
        # From the last made to the first: whatever takes a node stands before it.
        ordered = sorted(way, key=lambda n: -n.number)
        self._stops = {n: None for n in ordered if self._is_stop(n, wanted)}
        self._kept = frozenset((*self._stops, *(n for n in ordered if n.is_leaf)))
        self._levels = dict.fromkeys(ordered, 0)
        taken: dict[int, dict[Node, None]] = {}
        for node in ordered:
            region = self._levels[node] + (node in self._stops)
            for other in _before(node):
                if other not in self._levels:
                    continue
                self._levels[other] = max(self._levels[other], region)
                if self._passed(node) is None:
                    taken.setdefault(region, {})[other] = None
        self._ends = {
            region: [
                n
                for n in found
                if n in self._stops or self._levels[n] > region or (n.is_leaf and n in wanted)
            ]
            for region, found in taken.items()
        }
        self._sources: dict[int, list[tuple[Node, Node]]] = {}

    def deliver(self, node: Node, gradient: Node) -> None:
        """Add to the gradient by `node`."""
        if node in self._kept:
            known = self.totals.get(node)
            self.totals[node] = gradient if known is None else sum_of(known, gradient)
        else:
            self._sources.setdefault(self._levels[node], []).append((node, gradient))

    def run(self) -> None:
        """Take what was delivered through all levels."""
        calls = self._calls()
        stops: dict[int, list[Node]] = {}
        for node in self._stops:
            stops.setdefault(self._levels[node], []).append(node)
        for level in range(max(self._levels.values(), default=0) + 2):
            self._differentiate(level)
            for node in stops.get(level, ()):
                self._go_on(node, level)
            for passed, results in calls.get(level, ()):
                self._pull(passed, results)

    def _calls(self) -> dict[int, list[tuple[Passed, list[Node]]]]:
        """The calls of functions with rules, by the level where all of their results are known."""
        found: dict[Passed, list[Node]] = {}
        for node in self._stops:
            passed = self._passed(node)
            if passed is not None and (self._behind is None or node in self._behind):
                found.setdefault(passed, []).append(node)
        by_level: dict[int, list[tuple[Passed, list[Node]]]] = {}
        for passed, nodes in found.items():
            level = max(self._levels[n] for n in nodes)
            by_level.setdefault(level, []).append((passed, nodes))
        return by_level

    def _differentiate(self, level: int) -> None:
        """Go through the region of that level."""
        sources, ends = self._sources.pop(level, []), self._ends.get(level, [])
        if not sources or not ends:
            return
        outputs, seeds = [n for n, _ in sources], [g for _, g in sources]
        found = gradients(
            outputs,
            ends,
            seeds,
            tracked=self._tracked,
            count=self._count,
            cut=self._cut,
            apart=True,
        )
        for node, gradient in zip(ends, found, strict=True):
            if gradient is not None:
                self.deliver(node, gradient)

    def _go_on(self, node: Node, level: int) -> None:
        """Let hooks see the gradient at a stop, which is complete."""
        gradient = self.totals.get(node)
        if gradient is None:
            return
        holder = receiver_of(node)
        if holder is not None and holder.has_hooks:
            gradient = self.totals[node] = holder.hooked(gradient)
        if not node.is_leaf and self._passed(node) is None:
            self._sources.setdefault(level + 1, []).append((node, gradient))

    def _pull(self, passed: Passed, nodes: Sequence[Node]) -> None:
        """Let the rules of a call make cotangents of its arguments of those of its results."""
        cotangents: dict[int, Node] = {}
        for node in nodes:
            found = self.totals.get(node)
            if found is not None and node.step is not None:
                place = node.step.place
                known = cotangents.get(place)
                cotangents[place] = found if known is None else sum_of(known, found)
        if cotangents:
            for node, gradient in passed.pull(cotangents, tracked=self._tracked):
                self.deliver(node, gradient)

    def _is_stop(self, node: Node, wanted: Set[Node]) -> bool:
        asked = node in wanted and not node.is_leaf
        return asked or _is_hooked(node) or self._passed(node) is not None

    def _passed(self, node: Node) -> Passed | None:
        """The call through which gradients go back by its rules."""
        return node.passed if self._count is None else None


def _before(node: Node) -> list[Node]:
    """The inputs of a node that derivatives go on to."""
    if node.step is None:
        return []
    return [n for n in (node.inputs[i] for i in node.step.reaching) if n.tracked]


def _ones(node: Node, count: int | None) -> Node:
    shape = node.type.shape if count is None else (count, *node.type.shape)
    return given(np.ones(shape, node.type.dtype))


def _is_hooked(node: Node) -> bool:
    holder = receiver_of(node)
    return holder is not None and holder.has_hooks


def sum_of(one: Node, other: Node) -> Node:
    """The node of a sum."""
    tracked = one.tracked or other.tracked
    return Node(one.type, sum_of_two(one.type), (one, other), tracked, other.place)


def used_up(way: Sequence[Node], inputs: Sequence[Node]) -> list[Node]:
    """What a derivative by `inputs` goes through: what lies behind them is not used by it."""
    through = set(inputs)
    found = []
    for node in sorted(way, key=lambda n: n.number):
        if any(n in through for n in _before(node)):
            through.add(node)
            found.append(node)
    return found


def spending(way: Iterable[Node], changed: Set[int]) -> list[Call]:
    """The calls that let what was recorded go, for `call_all`, but for what is derived from it.

    The tensors on the way show other nodes from then on, without what these were computed from,
    once they are known; `changed` are the identities of those that show others anyway.
    """
    calls: list[Call] = []
    for node in way:
        if node.is_leaf:
            continue
        holder = holder_of(node)
        calls += [(setattr, node, "spent", True), (setattr, node, "holder", None)]
        if holder is None or id(holder) in changed:
            continue
        if node.array is None:
            shown = Node(node.type, node.step, node.inputs, True, node.place)
            # Or else the way would be gone once more when somebody looks at it.
            along(holder)
        else:
            shown = Node(node.type, None, (), True, node.place, node.array)
        shown.spent = True
        calls += holder.showing(shown)
    return calls


def spend(way: Iterable[Node]) -> None:
    """Let what was recorded go; see `spending`."""
    with lock:
        call_all(spending(way, frozenset()))
