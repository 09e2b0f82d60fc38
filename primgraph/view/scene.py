"""Layout of a picture with groups: each group is laid out separately.

An open group is a frame. Values enter it at a port, a small box labelled like their source, and
leave it at a dot. So a group's layout depends on its own content only, whatever is open around it,
and is computed once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from primgraph.base.plain_text import plain, shorten_text, width_of
from primgraph.tables import percent
from primgraph.view.folding import Node, nested_groups
from primgraph.view.layers import Part, part_title, rank
from primgraph.view.layouts.lanes import Lane, ladder
from primgraph.view.layouts.layout import Layout, layout
from primgraph.view.picture import Picture

LABEL_SIZE, NOTE_SIZE = 13.0, 11.0
HEIGHT = 42.0
NARROWEST, PADDING = 56.0, 28.0
# Room for the order sign beside the label, which stays centred.
ORDER = 26.0
# Sizes of a group's button, of the stack of sheets below it, of the title line of a frame, of a
# port and of a dot.
BUTTON, STACK, TITLE = 20.0, 6.0, 26.0
PORT, DOT = 18.0, 8.0
# Of the title of a frame, how much of the line is for other things, and how wide a letter may be.
TITLE_LEFT, TITLE_LETTER = 44.0, 9.0
_MOST_LABEL, _MOST_NOTE, _MOST_PORT = 34, 40, 24
# Above this number, ports are merged by source group, or into one.
MANY_PORTS = 8
# A value used by more children than this has a port at each of them.
MANY_HEADS = 2

Size: TypeAlias = tuple[float, float]


@final
@dataclass(frozen=True, slots=True)
class Face:
    """Two lines of text of a box, and its size."""

    label: str
    note: str
    size: Size


@final
@dataclass(frozen=True, slots=True)
class Port:
    """Point at which values enter a group, from box `source`; or a dot, where they leave.

    If the values come from several boxes, `source` is the first of these.
    """

    label: str
    source: int
    size: Size


@final
@dataclass(frozen=True, slots=True)
class Edge:
    """Use of values, between children and ports of a group, with their types."""

    tail: int
    head: int
    labels: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Column:
    """Part that runs from top to bottom of the picture, beside others."""

    part: str
    order: int
    lane: Lane


@final
@dataclass(frozen=True, slots=True)
class Inside:
    """Content of a group: ports, edges, and their layout.

    Ports are numbered after the children. `sizes` are those of children and ports as laid out.
    """

    sizes: tuple[Size, ...]
    ports: tuple[Port, ...]
    edges: tuple[Edge, ...]
    plan: Layout
    columns: tuple[Column, ...] = ()

    @property
    def size(self) -> Size:
        """Size of the frame, with its title."""
        return self.plan.width, self.plan.height + TITLE


@final
@dataclass(frozen=True, slots=True)
class Scene:
    """Faces of all nodes, and insides of all groups."""

    faces: Mapping[Node, Face]
    insides: Mapping[Node, Inside]


def scene_of(picture: Picture, root: Node, unfolded: Collection[Node]) -> Scene:
    """Return the scene of a tree, with the groups in `unfolded` open."""
    return _Scene(picture, root, unfolded).build_scene()


def face_of(node: Node) -> Face:
    """Return label, note or fraction of the time, and a size that fits either."""
    told = shorten_text(plain(node.title), _MOST_LABEL)
    below = shorten_text(plain(node.note if node.heat is None else percent(node.heat)), _MOST_NOTE)
    small = shorten_text(plain(node.note), _MOST_NOTE)
    notes = max(width_of(text, NOTE_SIZE, fixed=True) for text in (below, small))
    text = max(width_of(told, LABEL_SIZE) + ORDER * (node.order > 1), notes)
    if node.children:
        return Face(told, below, (float(int(text + PADDING + BUTTON + STACK)), HEIGHT + STACK))
    return Face(told, below, (max(NARROWEST, float(int(text + PADDING))), HEIGHT))


@final
class _Scene:
    """State of the computation of one scene."""

    def __init__(self, picture: Picture, root: Node, unfolded: Collection[Node]) -> None:
        self.picture = picture
        self.root = root
        self.unfolded = unfolded
        self.groups = list(nested_groups(root)) or [root]
        self.number = {c: i for g in self.groups for i, c in enumerate(g.children)}
        self.leaf: dict[int, Node] = {
            c.boxes[0]: c for g in self.groups for c in g.children if not c.children
        }
        self.depth: dict[Node, int] = {root: 0}
        for group in self.groups:
            self.depth.update(dict.fromkeys(group.children, self.depth[group] + 1))
        # For each group: edges between its children, boxes of incoming values, and outgoing values.
        self.between: dict[Node, dict[tuple[int, int], list[str]]] = {g: {} for g in self.groups}
        self.coming: dict[Node, dict[tuple[int, int], list[str]]] = {g: {} for g in self.groups}
        self.leaving: dict[Node, dict[int, list[str]]] = {g: {} for g in self.groups}
        self.plans: dict[object, Layout] = {}

    def build_scene(self) -> Scene:
        for arrow in self.picture.arrows:
            self._arrow(arrow.tail, arrow.head, arrow.label)
        faces = {self.root: face_of(self.root)}
        insides: dict[Node, Inside] = {}
        for group in reversed(self.groups):
            faces.update((child, face_of(child)) for child in group.children)
            sizes = [
                insides[c].size if c in self.unfolded else faces[c].size for c in group.children
            ]
            insides[group] = self._inside(group, sizes)
        return Scene(faces, insides)

    def _arrow(self, tail: int, head: int, label: str) -> None:
        """Register an arrow in the group that contains both ends, and in those that it leaves and
        enters."""
        lower, upper = self.leaf[head], self.leaf[tail]
        while lower.parent is not upper.parent:
            if self.depth[lower] >= self.depth[upper]:
                group, key = lower.parent, (tail, self.number[lower])
                assert group is not None
                self.coming[group].setdefault(key, []).append(label)
                lower = group
            else:
                group, place = upper.parent, self.number[upper]
                assert group is not None
                self.leaving[group].setdefault(place, []).append(label)
                upper = group
        if lower is not upper:
            assert lower.parent is not None
            pair = self.number[upper], self.number[lower]
            self.between[lower.parent].setdefault(pair, []).append(label)

    def _inside(self, group: Node, sizes: Sequence[Size]) -> Inside:
        ports: list[Port] = []
        edges = [Edge(t, h, tuple(labels)) for (t, h), labels in self.between[group].items()]
        count = len(sizes)
        for source, name, heads in self._ports(group).values():
            label = shorten_text(plain(name), _MOST_PORT)
            size = float(int(width_of(label, NOTE_SIZE, fixed=True) + PORT)), PORT
            for place, (head, labels) in enumerate(heads.items()):
                if place == 0 or len(heads) > MANY_HEADS:
                    ports.append(Port(label, source, size))
                edges.append(Edge(count + len(ports) - 1, head, tuple(labels)))
        for tail, labels in self.leaving[group].items():
            ports.append(Port("", -1, (DOT, DOT)))
            edges.append(Edge(tail, count + len(ports) - 1, tuple(labels)))
        whole = (*sizes, *(p.size for p in ports))
        pairs = [(e.tail, e.head) for e in edges]
        if group is self.root:
            plan, columns = self._ladder(group, whole, pairs)
            return Inside(whole, (), tuple(edges), plan, columns)
        plan = self._plan(group, whole, pairs).widen_to(_title_width(group))
        return Inside(whole, tuple(ports), tuple(edges), plan)

    def _ports(self, group: Node) -> dict[object, tuple[int, str, dict[int, list[str]]]]:
        """Return the ports of a group: first source box, name, and types by child.

        There is one port for each source box, or for each outermost source node, or for all
        together, to limit their number.
        """
        boxes = dict.fromkeys(t for t, _ in self.coming[group])
        key: dict[int, tuple[object, str]] = {t: (t, self._source(group, t)) for t in boxes}
        if len(boxes) > MANY_PORTS:
            outer = {t: self._outer(t) for t in boxes}
            key = {t: (node, node.label) for t, node in outer.items()}
            if len(set(outer.values())) > MANY_PORTS:
                key = {t: (None, f"{len(boxes)} values") for t in boxes}
        found: dict[object, tuple[int, str, dict[int, list[str]]]] = {}
        for (tail, head), labels in self.coming[group].items():
            what, name = key[tail]
            heads = found.setdefault(what, (tail, name, {}))[2]
            heads.setdefault(head, []).extend(labels)
        return found

    def _source(self, group: Node, box: int) -> str:
        """Return the label of a value's source: an input, an op in the same outermost group, or a
        group."""
        own, outer = self._outer(group.boxes[0]), self._outer(box)
        found = self.picture.boxes[box]
        return found.label if found.part == "input" or outer is own else outer.label

    def _outer(self, box: int) -> Node:
        """Return the outermost node that contains a box."""
        node = self.leaf[box]
        while node.parent is not self.root:
            assert node.parent is not None
            node = node.parent
        return node

    def _plan(self, group: Node, sizes: Sequence[Size], pairs: Sequence[tuple[int, int]]) -> Layout:
        """Return the layout of a group, upside down in reverse mode; equal groups share it."""
        upward = _runs_upward(group.lane)
        key = (upward, tuple(sizes), tuple(pairs))
        if key not in self.plans:
            plan = layout(sizes, pairs)
            self.plans[key] = plan.flip_vertically(sizes) if upward else plan
        return self.plans[key]

    def _ladder(
        self, group: Node, sizes: Sequence[Size], pairs: Sequence[tuple[int, int]]
    ) -> tuple[Layout, tuple[Column, ...]]:
        """Return the layout of the root, with several parts side by side."""
        ranks = [rank(c.lane) for c in group.children]
        parts = {r: c.lane for r, c in zip(ranks, group.children, strict=True)}
        order = sorted(parts)
        if len(order) < 2:
            return layout(sizes, pairs), ()
        lanes = [order.index(r) for r in ranks]
        kinds = [parts[r] for r in order]
        widths = [width_of(part_title(*kind), LABEL_SIZE) + PADDING for kind in kinds]
        upward = [_runs_upward(kind) for kind in kinds]
        plan, found = ladder(sizes, lanes, upward, pairs, widths)
        pairs_of = zip(kinds, found, strict=True)
        return plan.move_down(TITLE), tuple(Column(part, n, lane) for (part, n), lane in pairs_of)


def _title_width(group: Node) -> float:
    """Return how wide a frame is at least, so that its title fits beside the button."""
    return TITLE_LEFT + TITLE_LETTER * min(len(plain(group.title)), _MOST_LABEL)


def _runs_upward(lane: Part) -> bool:
    return lane[0] == "cotangent"
