"""Structure cache: match the pending nodes against the structure of a previous evaluation.

Loop steps repeat a structure. Matching along a known structure costs a fraction of collecting,
sorting and hashing the nodes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

from primgraph.eager.node import MANY, Node
from primgraph.eager.steps import Step


class _Entry(NamedTuple):
    """Expected properties of a node and the positions of its inputs.

    `held` says whether a tensor shows it, or is None if irrelevant. `wiring` has, for each input,
    the position of its node, or -1 for a new node. It is empty if the inputs are the tuple of the
    node at position `same`, and None for a leaf.
    """

    step: Step | None
    unknown: bool
    tracked: bool
    held: bool | None
    same: int
    wiring: tuple[int, ...] | None


@final
class Pattern:
    """Structure of nodes, in the order of a traversal from the roots."""

    __slots__ = ("_count", "_entries", "_leaves", "_wanted")

    def __init__(
        self,
        roots: Sequence[Node],
        nodes: Sequence[Node],
        leaves: Sequence[Node],
        wanted: Sequence[Node],
    ) -> None:
        """Store the structure of `nodes`, which compute the pending `roots` from `leaves`."""
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

    def match_roots(self, roots: Sequence[Node]) -> tuple[list[Node], list[Node]] | None:
        """Return the nodes for leaves and wanted results if `roots` match this structure, else
        None.

        Nodes that were distinct must be distinct again.
        """
        if len(roots) != self._count:
            return None
        known = list(roots)
        # The list grows while it is traversed.
        for (step, unknown, tracked, held, same, wiring), node in zip(
            self._entries, known, strict=True
        ):
            if node.tracked is not tracked or (node.array is None) is not unknown:
                return None
            if wiring is None:
                # Only whether there is a step matters for a node that derivatives reach.
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
