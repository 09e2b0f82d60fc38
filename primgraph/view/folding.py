"""Which groups of a picture are shut, and the picture that is left then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from primgraph.view.grouping import Group
from primgraph.view.picture import Arrow, Box, Picture, total_heat

LIMIT = 300
# The order in which groupings are tried: the first that leaves few enough boxes is taken.
KINDS = ("pattern", "operator", "line", "stretch")
# How many ops the note of a group names, and how many types the label of an arrow.
_NAMED = 3


def shut_groups(picture: Picture, limit: int = LIMIT) -> tuple[Group, ...]:
    """The groups to shut so that about `limit` boxes are seen; none if there are no more anyway.

    They are all those of one kind. With stretches, which everything is part of, any picture comes
    down to about a hundred boxes.
    """
    if len(picture.boxes) <= limit:
        return ()
    for kind in KINDS:
        groups = picture.groupings.get(kind, ())
        if len(picture.boxes) - sum(len(g.members) - 1 for g in groups) <= limit:
            return groups
    return picture.groupings.get(KINDS[-1], ())


def folded(picture: Picture, shut: Collection[Group]) -> Picture:
    """The picture with one box in the place of each group, and one arrow for each pair of boxes.

    Arrows inside a group are gone; the groups of one kind, which do not overlap, can be shut. A
    group stands where its first member was, and may be before and behind another one at once.
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
            boxes.append(Box(len(boxes), box.label, box.note, box.part, box.details, box.heat))
        elif box.id == group.members[0]:
            place.update(dict.fromkeys(group.members, len(boxes)))
            boxes.append(_shut(len(boxes), group, [picture.boxes[i] for i in group.members]))
    labels: dict[tuple[int, int], list[str]] = {}
    for arrow in picture.arrows:
        tail, head = place[arrow.tail], place[arrow.head]
        if tail != head:
            labels.setdefault((tail, head), []).append(arrow.label)
    arrows = tuple(Arrow(t, h, _counted(found)) for (t, h), found in labels.items())
    return Picture(picture.title, tuple(boxes), arrows, {})


def _shut(number: int, group: Group, members: Sequence[Box]) -> Box:
    """The box that stands for a group."""
    ops = [op_of(b) for b in members if b.part not in ("input", "output")]
    parts = {b.part for b in members}
    own = parts - {"input", "constant", "output"} or parts
    part = own.pop() if len(own) == 1 else "mixed"
    ops = ops or [b.label for b in members]
    details = (
        ("group", group.kind),
        ("boxes", str(len(members))),
        ("ops", _counted(ops, len(members))),
    )
    label = f"{group.label} ({len(members)})"
    heat = total_heat([b.heat for b in members])
    return Box(number, label, _counted(ops), part, details, heat)


def op_of(box: Box) -> str:
    """The op alone, of a label such as `y = mul(·, 2.0)`."""
    return box.label.rpartition(" = ")[2].partition("(")[0].partition(" ")[0]


def _counted(names: Sequence[str], most: int = _NAMED) -> str:
    """Each name once, the most frequent first, with how often it occurs."""
    counted = Counter(names).most_common()
    told = [name if n == 1 else f"{name} ×{n}" for name, n in counted[:most]]
    return ", ".join([*told, "…"] if len(counted) > most else told)
