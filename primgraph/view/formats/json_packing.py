"""Pictures and texts of a page as little JSON: each text once, and numbers in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from primgraph.base.plain_text import plain
from primgraph.view.folding import LIMIT, first_kind, opened, tree_of, within
from primgraph.view.picture import Picture
from primgraph.view.scene import Inside, scene_of

# Digits of a share of the time.
_DIGITS = 6
# How many types the label of an arrow names.
_MOST_TYPES = 8


@final
class Texts(dict[str, int]):
    """The number of each text, in order; a text that is asked for gets the next one."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number

    def shown(self) -> list[str]:
        """The texts in the order of their numbers, as they may be shown."""
        return list(map(plain, self))


def packed_picture(picture: Picture, number: Texts) -> dict[str, Any]:
    """Boxes as numbers of label, note, part, order, and names and texts of details.

    For each kind of grouping there is where everything stands; of large pictures only for the two
    kinds that say most.
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
    """The groups of a tree, outer ones first, with where everything in them stands.

    Children are numbers of boxes, or of groups, counted down from -1.
    """
    root = tree_of(picture, kind)
    unfolded = opened(root)
    scene = scene_of(picture, root, unfolded)
    groups = list(within(root)) or [root]
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
    """Ports, edges and columns of a group; an edge is a wire where its first number is odd."""
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
    """For each line its indentation, and the number of the rest of it."""
    found: list[int] = []
    for line in lines:
        text = line.lstrip(" ")
        found += (len(line) - len(text), number[text])
    return found
