"""Compact JSON of a page's pictures and texts: texts are stored once, and referenced by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from primgraph.base.plain_text import plain
from primgraph.view.folding import LIMIT, first_kind, nested_groups, open_groups, tree_of
from primgraph.view.picture import Picture
from primgraph.view.scene import Inside, scene_of

# Digits of a fraction of the time.
_DIGITS = 6
# Maximum number of types in an arrow's label.
_MOST_TYPES = 8


@final
class Texts(dict[str, int]):
    """Numbers of texts in order; looking up a new text assigns the next number."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number

    def printable_texts(self) -> list[str]:
        """Return the texts in the order of their numbers, made printable."""
        return list(map(plain, self))


def packed_picture(picture: Picture, number: Texts) -> dict[str, Any]:
    """Return boxes as numbers of label, note, part, order, and of names and texts of details.

    There is a layout for each kind of grouping; for large pictures only for the two most useful
    kinds.
    """
    boxes = [
        [number[b.label], number[b.note], number[b.part], b.order]
        + [number[text] for pair in b.details for text in pair]
        for b in picture.boxes
    ]
    measured = any(b.heat is not None for b in picture.boxes)
    kinds = [kind for kind, groups in picture.groupings.items() if groups] + ["none"]
    if len(picture.boxes) > LIMIT:
        kinds = [kind for kind in kinds if kind == "line"]
    return {
        "title": number[picture.title],
        "boxes": boxes,
        "heats": [b.heat and round(b.heat, _DIGITS) for b in picture.boxes] if measured else [],
        "scenes": {k: _scene(picture, k, number) for k in (first_kind(picture), *kinds)},
    }


def _scene(picture: Picture, kind: str, number: Texts) -> list[dict[str, Any]]:
    """Return the groups of a tree, outer ones first, with the layout of their content.

    Children are numbers of boxes, or of groups, counted down from -1.
    """
    root = tree_of(picture, kind)
    unfolded = open_groups(root)
    scene = scene_of(picture, root, unfolded)
    groups = list(nested_groups(root)) or [root]
    place = {group: -1 - i for i, group in enumerate(groups)}
    found = []
    for group in groups:
        faces = [scene.faces[c].size for c in group.children]
        found.append(
            {
                "label": number[group.label],
                "note": number[group.note],
                "part": number[group.part],
                "order": group.order,
                "kind": number[group.kind],
                "open": int(group in unfolded or group is root),
                "children": [place.get(c, c.boxes[0]) for c in group.children],
                "sizes": [round(n) for face in faces for n in face],
                **_inside(scene.insides[group], number),
            }
        )
    return found


def _inside(inside: Inside, number: Texts) -> dict[str, Any]:
    """Return ports, edges and columns of a group; an odd first number marks an edge as a wire."""
    plan = inside.plan
    edges = []
    for i, (edge, route) in enumerate(zip(inside.edges, plan.routes, strict=True)):
        labels = list(dict.fromkeys(edge.labels))[:_MOST_TYPES]
        head = [2 * len(labels) + (i in plan.wires), len(edge.labels), edge.tail, edge.head]
        points = [round(n) for point in route for n in point]
        edges.append([*head, *(number[t] for t in labels), *points])
    return {
        "at": [round(n) for corner in plan.corners for n in corner],
        "size": [round(plan.width), round(plan.height)],
        "ports": [[number[p.label], p.source, *map(round, p.size)] for p in inside.ports],
        "edges": edges,
        "columns": [
            [number[c.part], c.order, round(c.lane.left), round(c.lane.right)]
            for c in inside.columns
        ],
    }


def packed_lines(lines: Sequence[str], number: Texts) -> list[int]:
    """Return the indentation of each line, and the number of the rest of it."""
    found: list[int] = []
    for line in lines:
        text = line.lstrip(" ")
        found += (len(line) - len(text), number[text])
    return found
