"""What belongs together in a picture: boxes of one source line, one operator, one pattern."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import final

from primgraph.ir.graph import Equation
from primgraph.ir.source import Source
from primgraph.view.patterns import repeats

# How many boxes a group has at most, and into how many groups the largest graphs are cut.
MOST_MEMBERS = 150
MOST_PIECES = 100
# More inputs, or outputs, than this are grouped themselves.
MANY = 24


@final
@dataclass(frozen=True, slots=True)
class Group:
    """Boxes that can be folded into one; `kind` is "line", "operator", "pattern" or "stretch".

    A stretch is a piece of a long graph, of boxes of one part in order.
    """

    id: int
    label: str
    kind: str
    members: tuple[int, ...]


def groupings_of(
    equations: Sequence[Equation | None],
    parts: Sequence[str],
    pairs: Sequence[tuple[int, int]],
) -> dict[str, tuple[Group, ...]]:
    """The groups of each kind, each of at least two boxes, every box in at most one of a kind.

    There is one entry for each box: its equation, and its part. `pairs` are the arrows. A group
    takes in the constants that it alone uses, and inputs and outputs where these are many.
    """
    collector = _Collector(parts, pairs)
    labelled = {
        "pattern": _patterns(equations),
        "operator": _operators(equations, parts),
        "line": _lines(equations, parts),
        "stretch": _stretches(parts),
    }
    return {kind: collector.groups(kind, found) for kind, found in labelled.items()}


Labelled = list[tuple[str, list[int]]]


@final
class _Collector:
    """Makes groups of labelled lists of boxes."""

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
        if cut and kind != "stretch":
            self._add_ends(cut)
        return tuple(
            Group(i, label, kind, tuple(sorted(members))) for i, (label, members) in enumerate(cut)
        )

    def _add_ends(self, groups: Labelled) -> None:
        """Give constants, and ends where they are many, to the only group that they touch."""
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
        """The group, or pieces of one that is large; nothing for a single box."""
        if len(members) < 2:
            return []
        count = -(-len(members) // self.most)
        size = -(-len(members) // count)
        pieces = [members[i : i + size] for i in range(0, len(members), size)]
        if len(pieces) == 1:
            return [(label, members)]
        return [(f"{label}, {i + 1}/{len(pieces)}", piece) for i, piece in enumerate(pieces)]


def is_told(source: Source) -> bool:
    """Whether it is a line that the user wrote, and not one of a transform or of a graph's text."""
    return source.line > 0 and source.file != "graph text"


def _lines(equations: Sequence[Equation | None], parts: Sequence[str]) -> Labelled:
    """All that one line of the user computes, each part by itself."""
    found: dict[Hashable, tuple[str, list[int]]] = {}
    for box, eqn in enumerate(equations):
        if eqn is None or eqn.source is None or not is_told(eqn.source):
            continue
        file, line, part = eqn.source.file, eqn.source.line, parts[box]
        label = f"{file.rpartition('/')[2]}:{line}"
        if part in ("tangent", "cotangent"):
            label = f"{label} {part}"
        found.setdefault((file, line, part), (label, []))[1].append(box)
    return list(found.values())


def _operators(equations: Sequence[Equation | None], parts: Sequence[str]) -> Labelled:
    """What one use of an operator became: boxes of a part that follow one another."""
    found: Labelled = []
    last: dict[str, Hashable] = {}
    current: dict[str, list[int]] = {}
    for box, eqn in enumerate(equations):
        if eqn is None:
            continue
        part, source = parts[box], eqn.source
        if source is None or not source.operator:
            last.pop(part, None)
            continue
        if last.get(part) != source:
            last[part] = source
            current[part] = []
            found.append((source.operator, current[part]))
        current[part].append(box)
    return found


def _stretches(parts: Sequence[str]) -> Labelled:
    """All boxes, by part."""
    found: dict[str, list[int]] = {}
    for box, part in enumerate(parts):
        found.setdefault(part, []).append(box)
    return list(found.items())


def _patterns(equations: Sequence[Equation | None]) -> Labelled:
    """Runs of equations that come again: the same ops, results of the same types."""
    boxes = [box for box, eqn in enumerate(equations) if eqn is not None]
    numbers: dict[Hashable, int] = {}
    tokens = []
    for box in boxes:
        eqn = equations[box]
        assert eqn is not None
        role = "" if eqn.source is None else eqn.source.role
        key = (eqn.op.name, role, tuple(v.type for v in eqn.outputs))
        tokens.append(numbers.setdefault(key, len(numbers)))
    found: Labelled = []
    for number, places in enumerate(repeats(tokens, MOST_MEMBERS)):
        for k, (start, length) in enumerate(places):
            label = f"pattern {number + 1}, {k + 1} of {len(places)}"
            found.append((label, boxes[start : start + length]))
    return found
