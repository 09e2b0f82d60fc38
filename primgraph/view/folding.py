"""Tree of foldable groups, and the choice of initially open ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import final

from primgraph.view.grouping import Group
from primgraph.view.layers import BODY, OPERATOR, SMALL, Part, lanes_of
from primgraph.view.picture import Arrow, Box, Picture, total_heat

LIMIT = 300
# Maximum numbers of items side by side in a group, and in a part outside of groups; more are split
# into runs of neighbours.
MOST_INSIDE = 48
MOST_OUTSIDE = 24
# Maximum number of runs, and minimum length of a run.
RUNS = 12
LEAST_OF_RUN = 8
# Above this number, inputs or outputs are grouped.
MANY = 12
# Maximum numbers of ops in a group's note, and of types in an arrow's label.
_NAMED = 2

_ENDS = ("input", "output")


@final
@dataclass(eq=False, slots=True)
class Node:
    """Box, which has no children, or group of nodes; `boxes` are the numbers of its boxes.

    `lane` is the part that it is drawn in. `kind` is the kind of the group, "run" for neighbours.
    """

    label: str
    kind: str
    note: str
    part: str
    order: int
    lane: Part
    boxes: list[int]
    heat: float | None = None
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None

    @property
    def title(self) -> str:
        return f"{self.label} ({len(self.boxes)})" if self.children else self.label


def tree_of(picture: Picture, kind: str) -> Node:
    """Return the tree of the groups of one kind; a tree without groups if there are none."""
    pairs = [(a.tail, a.head) for a in picture.arrows]
    lanes = lanes_of([(b.part, b.order) for b in picture.boxes], pairs)
    leaves = [_leaf(box, lane) for box, lane in zip(picture.boxes, lanes, strict=True)]
    root = Node(picture.title, kind, "", "mixed", 0, ("mixed", 0), [])
    inside: dict[int, list[Node]] = {}
    groups = sorted(_with_bodies(picture, kind), key=lambda g: -len(g.members))
    owner: list[int] = [-1] * len(leaves)
    above: list[int] = []
    for number, group in enumerate(groups):
        above.append(owner[group.members[0]])
        for box in group.members:
            owner[box] = number
    for box, leaf in enumerate(leaves):
        inside.setdefault(owner[box], []).append(leaf)
    for number in reversed(range(len(groups))):
        group, children = groups[number], inside.get(number, [])
        if len(children) > 1:
            made = _group(group.label, group.kind, _split_runs(children, picture), picture)
            inside.setdefault(above[number], []).append(made)
        else:
            inside.setdefault(above[number], []).extend(children)
    _adopt(root, _outermost(inside.get(-1, []), picture), picture)
    return root


def _with_bodies(picture: Picture, kind: str) -> list[Group]:
    """Return the groups of one kind, and those of loops and branches, which are in all kinds."""
    own = list(picture.groupings.get(kind, ()))
    if kind == "layer":
        return own
    return own + [g for g in picture.groupings.get("layer", ()) if g.kind == BODY]


def _leaf(box: Box, lane: Part) -> Node:
    return Node(box.label, "", box.note, box.part, box.order, lane, [box.id], box.heat)


def _group(label: str, kind: str, children: Sequence[Node], picture: Picture) -> Node:
    node = Node(label, kind, "", "mixed", 0, children[0].lane, [])
    _adopt(node, children, picture)
    node.boxes.sort()
    computed = {(b.part, b.order) for b in (picture.boxes[i] for i in node.boxes)}
    own = {p for p in computed if p[0] not in (*_ENDS, "constant")} or computed
    if len({p for p, _ in own}) == 1:
        node.part, node.order = max(own)
    inner = [c for c in children if c.part not in _ENDS] or list(children)
    node.note = _note(inner, picture)
    node.heat = total_heat([c.heat for c in children])
    lanes = {c.lane for c in inner}
    node.lane = lanes.pop() if len(lanes) == 1 else ("mixed", 0)
    return node


def _note(nodes: Sequence[Node], picture: Picture) -> str:
    """Describe the content of a group: its inner groups if there are few, else its ops."""
    names = {n.label for n in nodes if n.children}
    if len(names) <= _NAMED and all(n.kind != "run" for n in nodes):
        return count_names(
            [n.label if n.children else op_of(picture.boxes[n.boxes[0]]) for n in nodes]
        )
    boxes = [picture.boxes[i] for n in nodes for i in n.boxes]
    ops = [op_of(b) for b in boxes if b.part not in _ENDS]
    return count_names(ops or [b.label for b in boxes])


def _adopt(node: Node, children: Sequence[Node], picture: Picture) -> None:
    node.children = sorted(children, key=lambda c: c.boxes[0])
    for child in node.children:
        child.parent = node
        node.boxes += child.boxes


def _outermost(nodes: list[Node], picture: Picture) -> list[Node]:
    """Return the nodes outside of all groups; many inputs, outputs or neighbours are grouped."""
    lanes: dict[Part, list[Node]] = {}
    for node in nodes:
        lanes.setdefault(node.lane, []).append(node)
    found: list[Node] = []
    for inside in lanes.values():
        rest = inside
        for part in _ENDS:
            ends = [n for n in rest if n.part == part and not n.children]
            if len(ends) > MANY:
                rest = [n for n in rest if n.part != part or n.children]
                found.append(_group(f"{part}s", "run", _split_runs(ends, picture), picture))
        found += _split_runs(rest, picture, MOST_OUTSIDE)
    return found


def _split_runs(nodes: Sequence[Node], picture: Picture, most: int = MOST_INSIDE) -> list[Node]:
    """Return the nodes, split into runs of neighbours if there are more than `most`."""
    if len(nodes) <= most:
        return list(nodes)
    ordered = sorted(nodes, key=lambda n: n.boxes[0])
    # As few runs as possible, of equal length.
    pieces = min(-(-len(ordered) // LEAST_OF_RUN), RUNS)
    size = -(-len(ordered) // pieces)
    runs = []
    for i in range(0, len(ordered), size):
        run = ordered[i : i + size]
        label = f"{i + 1} – {i + len(run)} of {len(ordered)}"
        runs.append(
            _group(label, "run", _split_runs(run, picture), picture) if len(run) > 1 else run[0]
        )
    return runs


def nested_groups(node: Node) -> Iterator[Node]:
    """Yield all groups in a node, and the node itself; outer groups precede inner ones."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if found.children:
            yield found
            waiting += reversed(found.children)


def first_kind(picture: Picture) -> str:
    """Return the default kind of grouping."""
    return next(iter(picture.groupings), "none")


def open_groups(
    root: Node, limit: int = SMALL, loops: bool | None = None, operators: bool = False
) -> set[Node]:
    """The groups that are open at first: all of a level, as long as at most `limit` boxes show.

    With `loops` True the bodies of all loops and branches are open, and what they stand in; with
    False none is. What operators became is shut, unless `operators` are treated as other groups.
    """
    shut = {BODY} if loops is False else set()
    shut |= set() if operators else {OPERATOR}
    found: set[Node] = set()
    shown = list(root.children)
    while True:
        groups = [n for n in shown if n.children and n.kind not in shut]
        opening = set(groups)
        following = [c for n in shown for c in (n.children if n in opening else [n])]
        if not groups or len(following) > limit:
            break
        found |= opening
        shown = following
    for node in nested_groups(root) if loops else ():
        if node.kind == BODY:
            above: Node | None = node
            while above is not None and above is not root and above not in found:
                found.add(above)
                above = above.parent
    return found


def groups_to_fold(picture: Picture, limit: int = LIMIT) -> tuple[Group, ...]:
    """Return the groups to fold so that about `limit` boxes show; none for fewer boxes."""
    if len(picture.boxes) <= limit:
        return ()
    root = tree_of(picture, "layer")
    shown, unfolded = list(root.children), open_groups(root, limit)
    shut = []
    while shown:
        node = shown.pop()
        if node in unfolded:
            shown += node.children
        elif node.children:
            shut.append(node)
    shut.sort(key=lambda n: n.boxes[0])
    return tuple(Group(i, n.label, n.kind, tuple(n.boxes)) for i, n in enumerate(shut))


def fold_groups(picture: Picture, shut: Collection[Group]) -> Picture:
    """Return the picture with one box for each folded group, and one arrow for each pair of boxes.

    Arrows inside a group are dropped. The folded groups must be of one kind and not overlap. A
    group has the position of its first member, so that arrows between two groups may run both ways.
    """
    if not shut:
        return picture
    group_of = {box: group for group in shut for box in group.members}
    boxes: list[Box] = []
    place: dict[int, int] = {}
    for box in picture.boxes:
        group = group_of.get(box.id)
        if group is None:
            place[box.id] = len(boxes)
            boxes.append(replace(box, id=len(boxes)))
        elif box.id == group.members[0]:
            place.update(dict.fromkeys(group.members, len(boxes)))
            boxes.append(_folded_box(len(boxes), group, [picture.boxes[i] for i in group.members]))
    labels: dict[tuple[int, int], list[str]] = {}
    for arrow in picture.arrows:
        tail, head = place[arrow.tail], place[arrow.head]
        if tail != head:
            labels.setdefault((tail, head), []).append(arrow.label)
    arrows = tuple(Arrow(t, h, count_names(found)) for (t, h), found in labels.items())
    return Picture(picture.title, tuple(boxes), arrows, {})


def _folded_box(number: int, group: Group, members: Sequence[Box]) -> Box:
    """Return the box that stands for a folded group."""
    ops = [op_of(b) for b in members if b.part not in ("input", "output")]
    parts = {b.part for b in members}
    own = parts - {"input", "constant", "output"} or parts
    part = own.pop() if len(own) == 1 else "mixed"
    ops = ops or [b.label for b in members]
    details = (
        ("group", group.kind),
        ("boxes", str(len(members))),
        ("ops", count_names(ops, len(members))),
    )
    label = f"{group.label} ({len(members)})"
    heat = total_heat([b.heat for b in members])
    order = max(b.order for b in members) if part != "mixed" else 0
    return Box(number, label, count_names(ops), part, details, heat, order)


def op_of(box: Box) -> str:
    """Return the op in a label such as `y = mul(·, 2.0)`."""
    return box.label.rpartition(" = ")[2].partition("(")[0].partition(" ")[0]


def count_names(names: Sequence[str], most: int = _NAMED) -> str:
    """Return the distinct names with counts, most frequent first."""
    counted = Counter(names).most_common()
    told = [name if n == 1 else f"{name} ×{n}" for name, n in counted[:most]]
    return ", ".join([*told, "…"] if len(counted) > most else told)
