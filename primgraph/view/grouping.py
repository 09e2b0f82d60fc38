"""Groups of boxes in a picture: layers of each part, source lines, repeated patterns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from primgraph.ir.graph import Equation
from primgraph.view.layers import Part, is_told, layer_groups, line_label
from primgraph.view.loop_bodies import Span
from primgraph.view.patterns import repeats

# Maximum size of a group, and maximum number of groups of the largest graphs.
MOST_MEMBERS = 150
MOST_PIECES = 100
# Above this number, inputs or outputs are grouped separately.
MANY = 24


@final
@dataclass(frozen=True, slots=True)
class Group:
    """Boxes that can be folded into one; `kind` is "layer", "body", "line" or "pattern".

    Groups of the kinds "layer" and "body" (branches, loops and their content) nest, larger ones
    first; those of other kinds do not.
    """

    id: int
    label: str
    kind: str
    members: tuple[int, ...]


def groupings_of(
    equations: Sequence[Equation | None],
    parts: Sequence[Part],
    pairs: Sequence[tuple[int, int]],
    states: Mapping[int, str],
    spans: Sequence[Span],
) -> dict[str, tuple[Group, ...]]:
    """Return the groups of each kind, of at least two boxes each.

    `equations` and `parts` have an entry for each box: its equation, and its part and order.
    `pairs` are the arrows, `states` the names of state inputs, `spans` branches, loops and their
    bodies, which are grouped with the layers. A group of a kind that does not nest includes the
    constants that only it uses, and inputs and outputs if there are many.
    """
    collector = _Collector([part for part, _ in parts], pairs)
    layers = layer_groups(equations, parts, pairs, states)
    nested = [(t, "layer", tuple(m)) for t, m in layers]
    nested += [(t, "body", tuple(range(a, b))) for t, a, b in reversed(spans) if b - a > 1]
    nested.sort(key=lambda group: -len(group[2]))
    return {
        "layer": tuple(Group(i, t, kind, m) for i, (t, kind, m) in enumerate(nested)),
        "line": collector.groups("line", _lines(equations, parts)),
        "pattern": collector.groups("pattern", _patterns(equations)),
    }


Labelled: TypeAlias = list[tuple[str, list[int]]]


@final
class _Collector:
    """Builder of groups from labelled lists of boxes."""

    def __init__(self, parts: Sequence[str], pairs: Sequence[tuple[int, int]]) -> None:
        self.parts = parts
        self.users: list[list[int]] = [[] for _ in parts]
        self.makers: list[list[int]] = [[] for _ in parts]
        for tail, head in pairs:
            self.users[tail].append(head)
            self.makers[head].append(tail)
        self.most = max(MOST_MEMBERS, len(parts) // MOST_PIECES)

    def groups(self, kind: str, labelled: Labelled) -> tuple[Group, ...]:
        cut = [piece for entry in labelled for piece in self._pieces(*entry)]
        if cut:
            self._add_ends(cut)
        return tuple(
            Group(i, label, kind, tuple(sorted(members))) for i, (label, members) in enumerate(cut)
        )

    def _add_ends(self, groups: Labelled) -> None:
        """Assign constants, and inputs and outputs if there are many, to the only group they
        touch."""
        owner = {box: number for number, (_, members) in enumerate(groups) for box in members}
        ends = {"constant": self.users, "input": self.users, "output": self.makers}
        for part, near in ends.items():
            boxes = [b for b, p in enumerate(self.parts) if p == part and b not in owner]
            if part != "constant" and len(boxes) <= MANY:
                continue
            for box in boxes:
                touched = {owner.get(b, -1) for b in near[box]}
                if len(touched) == 1 and -1 not in touched:
                    owner[box] = touched.pop()
                    groups[owner[box]][1].append(box)
            rest = [b for b in boxes if b not in owner]
            if part != "constant":
                groups += self._pieces(f"{part}s", rest)

    def _pieces(self, label: str, members: list[int]) -> Labelled:
        """Split a large group into pieces; a single box gives no group."""
        if len(members) < 2:
            return []
        count = -(-len(members) // self.most)
        size = -(-len(members) // count)
        pieces = [members[i : i + size] for i in range(0, len(members), size)]
        if len(pieces) == 1:
            return [(label, members)]
        return [(f"{label}, {i + 1}/{len(pieces)}", piece) for i, piece in enumerate(pieces)]


def _lines(equations: Sequence[Equation | None], parts: Sequence[Part]) -> Labelled:
    """Group the boxes that one line of the user computes, by part."""
    found: dict[Hashable, tuple[str, list[int]]] = {}
    for box, eqn in enumerate(equations):
        if eqn is None or eqn.source is None or not is_told(eqn.source):
            continue
        label = line_label(eqn.source, *parts[box])
        found.setdefault((eqn.source.file, eqn.source.line, parts[box]), (label, []))[1].append(box)
    return list(found.values())


def _patterns(equations: Sequence[Equation | None]) -> Labelled:
    """Group repeated runs of equations: the same ops with results of the same types."""
    boxes = [box for box, eqn in enumerate(equations) if eqn is not None]
    numbers: dict[Hashable, int] = {}
    tokens = []
    for box in boxes:
        eqn = equations[box]
        assert eqn is not None
        role = None if eqn.source is None else (eqn.source.role, eqn.source.order)
        key = (eqn.op.name, role, tuple(v.type for v in eqn.outputs))
        tokens.append(numbers.setdefault(key, len(numbers)))
    found: Labelled = []
    for number, places in enumerate(repeats(tokens, MOST_MEMBERS)):
        for k, (start, length) in enumerate(places):
            label = f"pattern {number + 1}, {k + 1} of {len(places)}"
            found.append((label, boxes[start : start + length]))
    return found
