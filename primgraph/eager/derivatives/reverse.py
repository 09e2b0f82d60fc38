"""Reverse mode over a tape with hooks and custom rules; release of the tape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import final

import numpy as np

from primgraph.base.atomic import Call, call_all
from primgraph.eager.derivatives.gradient_nodes import gradients, path
from primgraph.eager.node import CustomRuleCall, Holder, Node, array_node, lock
from primgraph.eager.run import add_to_evaluation
from primgraph.eager.steps import same, sum_of_two
from primgraph.errors import BuildError


def holder_of(node: Node) -> Holder | None:
    """Return the tensor that shows a node, or None."""
    return None if node.holder is None else node.holder()


def receiver_of(node: Node) -> Holder | None:
    """Return the tensor that receives the gradient by a node.

    It is the holder, or for a leaf the tensor that showed it before an in-place change, if that
    still requires a gradient; for others one that has the hooks of a tensor that is no more.
    """
    holder = holder_of(node)
    if holder is not None or not hasattr(node, "former"):
        return holder
    former: Holder | None = node.former()
    if former is None or (node.is_leaf and not former.requires_grad):
        return None
    return former


def unshared_node(node: Node) -> Node:
    """Return the node, or a copy of it if a tensor shows it."""
    if not node.is_held:
        return node
    if node.array is not None and not node.tracked:
        return array_node(node.array)
    return Node(node.type, same(node.type), (node,), node.tracked, node.place, node.array)


def collect_tape(
    nodes: Sequence[Node], cut: Sequence[Node] = (), inputs: Sequence[Node] = ()
) -> list[Node]:
    """Return the tape of `nodes`, up to `cut`.

    Raises `BuildError` if part of it was released that may depend on `inputs`: nodes that are not
    older than all of them.
    """
    with lock:
        found = path(nodes, cut, ready=False)
    oldest = min(map(_birth, inputs), default=-1)
    if any(n.spent and _birth(n) > oldest for n in found):
        raise BuildError(
            "Trying to backward through the graph a second time: what was recorded has been "
            "dropped",
            hint="Specify retain_graph=True when calling backward or grad the first time",
        )
    return found


def gradients_through_hooks(
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
    """Return the gradients by `inputs`, passing hooks and custom rules on the way.

    Hooks of a tensor change the gradient that earlier nodes receive. Custom rules compute the
    cotangents of their function's arguments. Batched seeds, of which there are `count`, pass such
    functions by rules recorded in a graph. No gradient passes the nodes in `cut`. If `behind` is
    given, only rules of nodes in it are called.
    """
    passed = False
    # When these gradients are differentiated, the inputs must be found on their tape. A graph over
    # the whole tape does not distinguish them from equal values.
    hooked = tracked and any(not n.is_leaf or n.array is None for n in inputs)
    for node in way:
        if node.passed is not None:
            passed = True
        # Only a node that a tensor shows has hooks, or one that a tensor has shown before.
        if not hooked and (node.is_held or hasattr(node, "former")):
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
    """Tape cut into regions at stops: tensors with hooks, results of custom rules, and inputs.

    The level of a node is the largest number of stops after it on a path. Once all lower levels are
    done, its gradient is complete. The nodes between stops on one level form a region, which is
    differentiated at once, so that each step is visited once. `totals` holds the gradients at stops
    and leaves.
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
        # Newest first: the users of a node precede it.
        ordered = sorted(way, key=lambda n: -n.number)
        self._stops = {n: None for n in ordered if self._is_stop(n, wanted)}
        self._kept = frozenset((*self._stops, *(n for n in ordered if n.is_leaf)))
        self._levels = dict.fromkeys(ordered, 0)
        taken: dict[int, dict[Node, None]] = {}
        for node in ordered:
            region = self._levels[node] + (node in self._stops)
            for other in tracked_inputs(node):
                if other not in self._levels:
                    continue
                self._levels[other] = max(self._levels[other], region)
                if self._custom_call(node) is None:
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
        """Add `gradient` to the gradient by `node`."""
        if node in self._kept:
            known = self.totals.get(node)
            self.totals[node] = gradient if known is None else sum_of(known, gradient)
        else:
            self._sources.setdefault(self._levels[node], []).append((node, gradient))

    def run(self) -> None:
        """Propagate the delivered gradients through all levels."""
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

    def _calls(self) -> dict[int, list[tuple[CustomRuleCall, list[Node]]]]:
        """Return the calls of custom rules, by the level at which all their results are
        complete."""
        found: dict[CustomRuleCall, list[Node]] = {}
        for node in self._stops:
            passed = self._custom_call(node)
            if passed is not None and (self._behind is None or node in self._behind):
                found.setdefault(passed, []).append(node)
        by_level: dict[int, list[tuple[CustomRuleCall, list[Node]]]] = {}
        for passed, nodes in found.items():
            level = max(self._levels[n] for n in nodes)
            by_level.setdefault(level, []).append((passed, nodes))
        return by_level

    def _differentiate(self, level: int) -> None:
        """Differentiate the region of a level."""
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
        """Call the hooks of a stop, whose gradient is complete."""
        gradient = self.totals.get(node)
        if gradient is None:
            return
        holder = receiver_of(node)
        if holder is not None and holder.has_hooks:
            gradient = self.totals[node] = holder.hooked(gradient)
        if not node.is_leaf and self._custom_call(node) is None:
            self._sources.setdefault(level + 1, []).append((node, gradient))

    def _pull(self, passed: CustomRuleCall, nodes: Sequence[Node]) -> None:
        """Apply the custom rules of a call to the cotangents of its results."""
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
        return asked or _is_hooked(node) or self._custom_call(node) is not None

    def _custom_call(self, node: Node) -> CustomRuleCall | None:
        """Return the call of custom rules that computed a node; None for batched seeds."""
        return node.passed if self._count is None else None


def tracked_inputs(node: Node) -> list[Node]:
    """Return the tracked inputs that derivatives of a node reach."""
    if node.step is None:
        return []
    return [n for n in (node.inputs[i] for i in node.step.reaching) if n.tracked]


def _ones(node: Node, count: int | None) -> Node:
    shape = node.type.shape if count is None else (count, *node.type.shape)
    return array_node(np.ones(shape, node.type.dtype))


def _is_hooked(node: Node) -> bool:
    holder = receiver_of(node)
    return holder is not None and holder.has_hooks


def sum_of(one: Node, other: Node) -> Node:
    """Return the node of a sum."""
    tracked = one.tracked or other.tracked
    return Node(one.type, sum_of_two(one.type), (one, other), tracked, other.place)


def used_tape(way: Sequence[Node], inputs: Sequence[Node]) -> list[Node]:
    """Return the part of the tape that a derivative by `inputs` uses: nodes that depend on them."""
    through = set(inputs)
    found = []
    for node in sorted(way, key=lambda n: n.number):
        if any(n in through for n in tracked_inputs(node)):
            through.add(node)
            found.append(node)
    return found


def _birth(node: Node) -> int:
    """Return the number of a node, or of the one that it stands for since its tape was released."""
    return getattr(node, "born", node.number)


def release_calls(way: Iterable[Node], changed: Set[int]) -> list[Call]:
    """Return the calls that release a tape, for `call_all`; gradients derived from it remain.

    Tensors on the tape show nodes without history once these are computed. `changed` holds the ids
    of tensors that show new nodes anyway.
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
            # Otherwise the tape would be traversed once more when this tensor is evaluated.
            add_to_evaluation(holder)
        else:
            shown = Node(node.type, None, (), True, node.place, node.array)
        shown.spent, shown.born = True, _birth(node)
        shown.released = node.step if node.passed is None else node.passed.name
        calls += holder.showing(shown)
    return calls


def spend(way: Iterable[Node]) -> None:
    """Release a tape; see `release_calls`."""
    with lock:
        call_all(release_calls(way, frozenset()))
