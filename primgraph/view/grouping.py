"""Groups of boxes in a picture: layers of each part, source lines, repeated patterns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from primgraph.ir.graph import Equation
from primgraph.view.layers import BODY, Part, is_user_line, layer_groups, line_label
from primgraph.view.loop_bodies import Span, enclosing_spans, with_whole_bodies
from primgraph.view.patterns import repeats

# Maximum size of a group, and maximum number of groups of the largest graphs.
MOST_MEMBERS = 150
MOST_PIECES = 100
# Above this number, inputs or outputs are grouped separately.
MANY = 24


@final
@dataclass(frozen=True, slots=True)
class Group:
    """Boxes that can be folded into one; `kind` is that of the group.

    Groups of the kind "layer" nest, larger ones first. Among them are those of "operator", of what
    one operator became, and of "body": branches, loops and what is in these. Those of the kinds
    "line" and "pattern" do not nest.
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

    There is one entry for each box: its equation, and its part and order. `pairs` are the arrows,
    `states` the names of inputs that are states, `spans` branches, loops and their bodies, inner
    ones first, which are groups among the layers and lie in other groups as a whole. Of the kinds
    that do not nest, a group takes in the constants that it alone uses, and inputs and outputs
    where these are many.
    """
    collector = _Collector([part for part, _ in parts], pairs)
    around = enclosing_spans(spans)
    layers = layer_groups(equations, parts, pairs, states)
    nested = [(t, kind, with_whole_bodies(boxes, around)) for t, kind, boxes in layers]
    nested += [(s.title, BODY, tuple(range(s.first, s.end))) for s in reversed(spans)]
    nested = sorted((g for g in nested if len(g[2]) > 1), key=lambda group: -len(group[2]))
    return {
        "layer": tuple(Group(i, t, kind, m) for i, (t, kind, m) in enumerate(nested)),
        "line": collector.groups("line", _lines(equations, parts), around),
        "pattern": collector.groups("pattern", _patterns(equations), around),
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

    def groups(
        self, kind: str, labelled: Labelled, around: Mapping[int, Sequence[Span]]
    ) -> tuple[Group, ...]:
        whole = [(t, list(with_whole_bodies(boxes, around))) for t, boxes in labelled]
        cut = [piece for entry in whole for piece in self._pieces(*entry)]
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
        if eqn is None or eqn.source is None or not is_user_line(eqn.source):
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
