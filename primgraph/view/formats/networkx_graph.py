"""A picture as a graph of networkx, for its algorithms."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import TYPE_CHECKING

from primgraph.view.picture import Picture

if TYPE_CHECKING:
    import networkx


def to_networkx(picture: Picture) -> networkx.MultiDiGraph[int]:
    """A `networkx.MultiDiGraph` with a node for each box, an edge for each arrow.

    Nodes are numbered as the boxes are, and have `label`, `note`, `part`, `heat` and a dictionary
    of `details`. Edges have `label`, the type; their keys count the arrows of one pair of boxes.
    """
    graph: networkx.MultiDiGraph[int]
    graph = importlib.import_module("networkx").MultiDiGraph(name=picture.title)
    for box in picture.boxes:
        graph.add_node(
            box.id,
            label=box.label,
            note=box.note,
            part=box.part,
            heat=box.heat,
            details=dict(box.details),
        )
    seen: Counter[tuple[int, int]] = Counter()
    for arrow in picture.arrows:
        pair = arrow.tail, arrow.head
        graph.add_edge(*pair, key=seen[pair], label=arrow.label)
        seen[pair] += 1
    return graph
