"""Steps of a loop are alike: whether what is computed now has the structure of what was before.

To go along a known structure and to compare takes a part of the time in which it is gathered
anew, put in order and looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

from primgraph.eager.node import MANY, Node
from primgraph.eager.steps import Step


class _Entry(NamedTuple):
    """What is known of a node, and of where its inputs are.

    `held` tells whether a tensor shows it, where that is part of the structure. `wiring` has for
    each input the place of the node that it has to be, or -1 for one that was not met before;
    where the inputs are those of the node at place `same`, it is empty. A node that is given has
    no wiring.
    """

    step: Step | None
    unknown: bool
    tracked: bool
    held: bool | None
    same: int
    wiring: tuple[int, ...] | None


@final
class Pattern:
    """A structure of nodes, as one comes by them from those that are asked for."""

    __slots__ = ("_count", "_entries", "_leaves", "_wanted")

    def __init__(
        self,
        roots: Sequence[Node],
        nodes: Sequence[Node],
        leaves: Sequence[Node],
        wanted: Sequence[Node],
    ) -> None:
        """That of `nodes`, which are computed from `leaves` for `roots`, all of them unknown."""
        computed, held = set(nodes), set(wanted)
        self._count = len(roots)
        self._entries: list[_Entry] = []
        known = list(roots)
        places = {node: i for i, node in enumerate(known)}
        first: dict[int, int] = {}
        for i, node in enumerate(known):
            kind = (node.step, node.array is None, node.tracked)
            if node not in computed:
                self._entries.append(_Entry(*kind, None, -1, None))
                continue
            shows = node in held if i >= len(roots) else None
            same = first.setdefault(id(node.inputs), i) if len(node.inputs) > MANY else i
            if same != i:
                self._entries.append(_Entry(*kind, shows, same, ()))
                continue
            wiring: list[int] = []
            for other in node.inputs:
                wiring.append(places.get(other, -1))
                if other not in places:
                    places[other] = len(known)
                    known.append(other)
            self._entries.append(_Entry(*kind, shows, -1, tuple(wiring)))
        self._leaves = [places[n] for n in leaves]
        self._wanted = [places[n] for n in wanted]

    def found(self, roots: Sequence[Node]) -> tuple[list[Node], list[Node]] | None:
        """The nodes that stand for leaves and for what is wanted, if `roots` have this structure.

        It is the same only where all nodes that were different ones are so again.
        """
        if len(roots) != self._count:
            return None
        known = list(roots)
        # What is met on the way is gone through in its turn.
        for (step, unknown, tracked, held, same, wiring), node in zip(
            self._entries, known, strict=True
        ):
            if node.tracked is not tracked or (node.array is None) is not unknown:
                return None
            if wiring is None:
                # What derivatives go through is told by whether there is a step.
                if (node.step is None) is not (step is None):
                    return None
                continue
            if node.step is not step:
                return None
            if held is not None and held is not (
                node.holder is not None and node.holder() is not None
            ):
                return None
            if same >= 0:
                if node.inputs is not known[same].inputs:
                    return None
                continue
            for place, other in zip(wiring, node.inputs, strict=True):
                if place < 0:
                    known.append(other)
                elif known[place] is not other:
                    return None
        if len(set(known)) != len(known):
            return None
        return [known[i] for i in self._leaves], [known[i] for i in self._wanted]
