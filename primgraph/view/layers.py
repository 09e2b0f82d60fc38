"""Groups of a picture by part and layer.

A layer is a path, such as `network.body.0`: that of the `nn.Layer` in which an equation was
recorded, or the name of the parameter that it uses, up to the last dot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias, final

from primgraph.base.user_lines import UPDATE, Source
from primgraph.ir.graph import Equation

# A part, and the order of the derivative.
Part: TypeAlias = tuple[str, int]
Path: TypeAlias = tuple[str, ...]
# Of each group the label, the kind and the boxes.
Groups: TypeAlias = list[tuple[str, str, tuple[int, ...]]]

# The kinds of groups.
LAYER, OPERATOR, BODY = "layer", "operator", "body"
# In pictures of no more boxes than this, only layers are groups, and operators of so many boxes.
SMALL = 40
_LARGE_OPERATOR = 4
# More boxes of no layer than this, in one part, are grouped by the lines that they come from.
FEW = 8
# Maximum number of groups and boxes of one part side by side when all groups are folded.
SIDE_BY_SIDE = 14

# Maximum depth of nested layers.
_DEEPEST = 8

_FORWARD: Part = ("forward", 0)
# What the modes of differentiation are called: parts have the names of what flows in them.
_MODES = {"tangent": "forward mode", "cotangent": "reverse"}
_ENDS = ("input", "constant", "output")


def is_user_line(source: Source) -> bool:
    """Return whether it is a line of the user, and not one of a transform or of a graph's text."""
    return source.line > 0 and source.file != "graph text"


def part_title(part: str, order: int) -> str:
    """Return the name of a part, with the order of the derivative where it is not the first."""
    name = _MODES.get(part, part)
    return f"{name}, order {order}" if order > 1 else name


def line_label(source: Source, part: str, order: int) -> str:
    """Return the label of a group of one line in one part."""
    return f"{source.spot} {part_title(part, order)}" if order else source.spot


def lanes_of(parts: Sequence[Part], pairs: Sequence[tuple[int, int]]) -> list[Part]:
    """Return the part that each box is drawn in; inputs, constants and outputs join neighbours.

    A box used in the forward part is drawn there, else in the first part that uses it.
    """
    lanes = list(parts)
    users: list[set[Part]] = [set() for _ in parts]
    makers: list[set[Part]] = [set() for _ in parts]
    for tail, head in pairs:
        users[tail].add(parts[head])
        makers[head].add(parts[tail])
    for box, (part, _) in enumerate(parts):
        if part in _ENDS:
            near = makers[box] if part == "output" else users[box]
            lanes[box] = min((p for p in near if p[0] not in _ENDS), key=rank, default=_FORWARD)
    return lanes


def rank(lane: Part) -> tuple[int, int, str]:
    """Sort key of parts from left to right: forward, then derivatives by order, then updates."""
    part, order = lane
    return (2 if part == UPDATE else 1 if order else 0, order, "" if part == "tangent" else part)


@final
@dataclass(slots=True)
class _Branch:
    """Layer in one part: its path, its own boxes, and its inner layers."""

    path: Path
    boxes: list[int] = field(default_factory=list)
    inner: dict[str, _Branch] = field(default_factory=dict)

    def find_branch(self, path: Path) -> _Branch:
        branch = self
        for i, name in enumerate(path):
            branch = branch.inner.setdefault(name, _Branch(path[: i + 1]))
        return branch


def layer_groups(
    equations: Sequence[Equation | None],
    parts: Sequence[Part],
    pairs: Sequence[tuple[int, int]],
    states: Mapping[int, str],
) -> Groups:
    """Return labels and members of the groups; enclosing groups precede inner ones.

    Each part has groups by layer. These contain groups by inner layer and by operator. Many boxes
    without a layer are grouped by line. A group with a single item is dropped, and so are the
    outermost groups while few enough groups remain.
    """
    lanes = lanes_of(parts, pairs)
    paths = _Paths(equations, parts, lanes, pairs, states).paths
    trunks: dict[Part, _Branch] = {}
    for box, (lane, path) in enumerate(zip(lanes, paths, strict=True)):
        trunks.setdefault(lane, _Branch(())).find_branch(path).boxes.append(box)
    _dissolve(list(trunks.values()))
    found: Groups = []
    for lane, trunk in trunks.items():
        found += _groups(trunk, equations, lane)[0]
    return found


def _dissolve(trunks: Sequence[_Branch]) -> None:
    """Replace a layer by its inner layers, in all parts, while these are few."""
    waiting = sorted({p for t in trunks for p in t.inner})
    while waiting:
        name = waiting.pop(0)
        found = [t for t in trunks if name in t.inner and t.inner[name].inner]
        if not found or any(_estimate_items(t, name) > SIDE_BY_SIDE for t in found):
            continue
        for trunk in found:
            branch = trunk.inner.pop(name)
            trunk.boxes += branch.boxes
            trunk.inner.update((f"{name}.{key}", inner) for key, inner in branch.inner.items())
        waiting += sorted({p for t in found for p in t.inner if p.startswith(f"{name}.")})
    for trunk in trunks:
        trunk.boxes.sort()


def _estimate_items(trunk: _Branch, name: str) -> int:
    """Estimate the number of items that a part shows if a layer is replaced by its content.

    Boxes without a layer count up to a limit, as many of them are grouped.
    """
    branch = trunk.inner[name]
    boxes = len(trunk.boxes) + len(branch.boxes)
    return min(boxes, FEW) + len(trunk.inner) - 1 + len(branch.inner)


def _groups(
    branch: _Branch, equations: Sequence[Equation | None], lane: Part
) -> tuple[Groups, list[int], int]:
    """Return the groups within a layer, all its boxes, and the number of its direct items."""
    found: Groups = []
    boxes: list[int] = []
    count = 0
    for inner in branch.inner.values():
        groups, members, things = _groups(inner, equations, lane)
        if things > 1:
            groups = [(".".join(inner.path), LAYER, tuple(sorted(members))), *groups]
        elif groups:
            groups = [(".".join(inner.path), *groups[0][1:]), *groups[1:]]
        found += groups
        boxes += members
        count += 1
    computed = [b for b in branch.boxes if equations[b] is not None]
    least = 2 if len(equations) > SMALL else _LARGE_OPERATOR
    operators = [group for group in _operators(computed, equations) if len(group[2]) >= least]
    things = len(computed) - sum(len(run) - 1 for _, _, run in operators)
    lines = _lines(computed, equations, lane) if len(equations) > SMALL else []
    if things > FEW and len(lines) > 1:
        size = {b: len(members) for _, _, members in lines for b in members}
        operators = lines + [group for group in operators if len(group[2]) < size[group[2][0]]]
        things = len(computed) - sum(len(members) - 1 for _, _, members in lines)
    found += operators
    count += things + len(branch.boxes) - len(computed)
    return found, boxes + branch.boxes, count


def _operators(computed: Sequence[int], equations: Sequence[Equation | None]) -> Groups:
    """Return the groups of what one use of an operator became, of boxes that follow one another.

    Constants of the operator are in them wherever they stand.
    """

    def source_of(box: int) -> Source | None:
        eqn = equations[box]
        return None if eqn is None or eqn.source is None or not eqn.source.operator else eqn.source

    constants = [b for b in computed if (eqn := equations[b]) is not None and not eqn.inputs]
    others = sorted(set(computed) - set(constants))
    runs = [(k, list(run)) for k, run in groupby(others, source_of) if k is not None]
    run_of: dict[tuple[Source, str], list[int]] = {}
    for source, run in runs:
        run_of.setdefault((source.drop_marks, source.operator), run)
    for box in constants:
        own = source_of(box)
        if own is not None and (own.drop_marks, own.operator) in run_of:
            run_of[own.drop_marks, own.operator].append(box)
    return [(s.operator, OPERATOR, tuple(sorted(run))) for s, run in runs if len(run) > 1]


def _lines(boxes: Sequence[int], equations: Sequence[Equation | None], lane: Part) -> Groups:
    """Group boxes by line of the user's code."""
    found: dict[tuple[str, int], tuple[str, list[int]]] = {}
    for box in boxes:
        eqn = equations[box]
        if eqn is not None and eqn.source is not None and is_user_line(eqn.source):
            key = eqn.source.file, eqn.source.line
            found.setdefault(key, (line_label(eqn.source, *lane), []))[1].append(box)
    return [(name, LAYER, tuple(boxes)) for name, boxes in found.values() if len(boxes) > 1]


def _path(name: str) -> Path:
    """Return the layer of a state of that name."""
    return tuple(name.split(".")[:-1][:_DEEPEST]) if name.strip(".") else ()


@final
class _Paths:
    """Search for the layer of each box, in order, in which arrows point forward."""

    def __init__(
        self,
        equations: Sequence[Equation | None],
        parts: Sequence[Part],
        lanes: Sequence[Part],
        pairs: Sequence[tuple[int, int]],
        states: Mapping[int, str],
    ) -> None:
        self.equations = equations
        self.parts = parts
        self.lanes = lanes
        self.states = states
        # Boxes whose layer is known from the name of a parameter, and not from a call.
        self.named: set[int] = set()
        self.makers: list[list[int]] = [[] for _ in parts]
        self.users: list[list[int]] = [[] for _ in parts]
        for tail, head in pairs:
            self.makers[head].append(tail)
            self.users[tail].append(head)
        self.paths: list[Path] = [
            _path(f"{e.source.scope}.") if e is not None and e.source is not None else ()
            for e in equations
        ]
        for box in range(len(parts)):
            if equations[box] is not None:
                self.paths[box] = self._equation(box)
        for box in reversed(range(len(parts))):
            if not self.paths[box]:
                self.paths[box] = self._path_by_users(box)
        known = {(lanes[b], p) for b, p in enumerate(self.paths)}
        for box in range(len(parts)):
            if equations[box] is None:
                self.paths[box] = self._end(box, known)

    def _equation(self, box: int) -> Path:
        own = self.paths[box]
        near = [u for u in self.makers[box] if self.equations[u] is not None and self.makers[u]]
        if self.parts[box][0] == UPDATE:
            return self._shared_path(box, near) or own
        if own:
            return own
        named = [self.states[u] for u in self.makers[box] if "." in self.states.get(u, "")]
        if named:
            self.named.add(box)
            return _path(named[-1])
        same = [u for u in near if u in self.named and self._line(u) == self._line(box)]
        self.named.update([box] if same else [])
        forward = [u for u in same if self.lanes[u] == _FORWARD]
        return self.paths[max(forward or same)] if same else ()

    def _shared_path(self, box: int, near: Sequence[int]) -> Path:
        """Return the path of the optimizer for values computed from its own values only, shared by
        layers."""
        paths = {self.paths[u] for u in near}
        if len(paths) != 1 or any(self.parts[u][0] != UPDATE for u in near):
            return ()
        (path,) = paths
        names = [self.states[u] for u in self.makers[box] if u in self.states]
        return path if all(_path(n) == path for n in names) else ()

    def _line(self, box: int) -> tuple[str, int] | None:
        eqn = self.equations[box]
        if eqn is None or eqn.source is None:
            return None
        return eqn.source.file, eqn.source.line

    def _path_by_users(self, box: int) -> Path:
        """Return the layer of a derivative that is only used to update one layer."""
        if self.parts[box][0] != "cotangent" or not self.users[box]:
            return ()
        paths = {self.paths[u] for u in self.users[box]}
        updates = all(self.parts[u][0] == UPDATE for u in self.users[box])
        return paths.pop() if updates and len(paths) == 1 else ()

    def _end(self, box: int, known: set[tuple[Part, Path]]) -> Path:
        """Return the layer of an input, a constant or an output; data have none."""
        part, lane = self.parts[box][0], self.lanes[box]
        if part == "output":
            makers = [u for u in self.makers[box] if self.parts[u][0] == UPDATE]
            return self.paths[makers[0]] if makers else ()
        if part == "input" and box not in self.states:
            return ()
        path = _path(self.states.get(box, ""))
        if path and (lane, path) in known:
            return path
        paths = Counter(self.paths[u] for u in self.users[box] if self.lanes[u] == lane)
        return next(iter(paths)) if len(paths) == 1 else ()
