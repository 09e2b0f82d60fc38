"""Pictures as networkx graphs."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import TYPE_CHECKING

from primgraph.view.picture import Picture

if TYPE_CHECKING:
    import networkx


def to_networkx(picture: Picture) -> networkx.MultiDiGraph[int]:
    """Return a `networkx.MultiDiGraph` with a node for each box, an edge for each arrow.

    Nodes have the numbers of boxes, and the attributes `label`, `note`, `part`, `heat` and a
    dictionary `details`. Edges have `label`, the type; their keys number the arrows between two
    boxes.
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
