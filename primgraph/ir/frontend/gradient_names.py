"""Notes about results of derivatives: gradients of which value, by which input; and titles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from primgraph.ir.frontend.result_names import UNTITLED, Title, target_name
from primgraph.ir.graph import Equation, Value


class Joint(NamedTuple):
    """All gradients of one function by `inputs`; None for unused ones."""

    inputs: tuple[Value, ...]
    gradients: tuple[Value | None, ...]


class Line(NamedTuple):
    """Directional derivative of `base`, of that order, along `seed` (None for ones), by `input`
    only, with `constants` held."""

    base: Value
    input: Value
    seed: Value | None
    order: int
    constants: frozenset[Value]


class Gradients(Protocol):
    """Interface of objects that know gradients, such as a builder.

    `gradients` has what results of reverse mode are the gradients by, `targets` what they are the
    gradients of, if that is one value, `joints` all gradients of one function with each whose
    derivative is known to be symmetric, and `lines` what is a derivative along a line, and of which
    order. `definition` maps a value to its defining equation, None for an input.
    """

    gradients: dict[Value, Value]
    targets: dict[Value, Value]
    joints: dict[Value, Joint]
    lines: dict[Value, Line]
    definition: Callable[[Value], Equation | None]


def note_equal(known: Gradients, value: Value, other: Value) -> None:
    """Copy the notes about derivatives from `value` to `other`, which equals it."""
    tables: tuple[dict[Value, Any], ...] = (known.gradients, known.targets, known.lines)
    for table in tables:
        if value in table:
            table[other] = table[value]
    if value in known.joints:
        joint = known.joints[value]
        gradients = tuple([other if g is value else g for g in joint.gradients])
        known.joints[other] = joint._replace(gradients=gradients)


def note_moved(known: Gradients, value: Value, moved: Mapping[Value, Value]) -> None:
    """Copy the notes about a gradient to the copy of `value`, with values mapped by `moved`."""
    for table in (known.gradients, known.targets):
        if value in table:
            table.setdefault(moved[value], moved.get(table[value], table[value]))


def titles_of(known: Gradients, outputs: Sequence[Value]) -> tuple[Title, ...]:
    """Return titles of `outputs` that are gradients; empty if there are none.

    A gradient of itself, as of exp or sin, gets no title.
    """
    found = [_title(known, v) if v in known.gradients else UNTITLED for v in outputs]
    return tuple(found) if any(t is not UNTITLED for t in found) else ()


def _title(known: Gradients, gradient: Value) -> Title:
    gradients, targets = known.gradients, known.targets
    x, target, order = gradients[gradient], targets.get(gradient), 1
    passed = {gradient}
    while target is not None and gradients.get(target) is x and target in targets:
        if target in passed:
            return UNTITLED
        passed.add(target)
        target, order = targets[target], order + 1
    eqn = None if target is None else known.definition(target)
    by = _name_of_value(known, x)
    if target is None or eqn is None or eqn.source is None:
        return Title(by=by, order=order)
    return Title("", by, _name_of_value(known, target), eqn.source.spot, order)


def _name_of_value(known: Gradients, value: Value) -> str:
    """Return the name of `value`, or the variable to which the user's line assigns it."""
    eqn = known.definition(value)
    if value.hint or eqn is None or eqn.source is None or eqn.source.is_derived:
        return value.hint
    return target_name(eqn.source.text)
