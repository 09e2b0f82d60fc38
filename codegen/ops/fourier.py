"""Cards of Fourier transforms, which NumPy computes into given arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log2
from typing import Any

from primgraph.codegen.ir.axis_semantics import Axes, Blocking, Role
from primgraph.codegen.ir.extents import Text, size_text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, array_card
from primgraph.codegen.ops.shapes import ALONG
from primgraph.codegen.ops.spelling.library import call
from primgraph.codegen.ops.spelling.notation import Target
from primgraph.ir.dims import typical
from primgraph.ir.primitive import Op
from primgraph.primitives import fourier as p

# Nanoseconds per complex number and doubling of the length.
_EACH = 0.8


def _call(step: Step) -> tuple[str, Any, str, Any]:
    """Return NumPy's function, the length of the result if it is given, and the axes by name."""
    p = step.params
    if "axis" in p:
        return f"fft.{step.op.name}", p.get("n"), "axis", p["axis"]
    axes, name = p["axes"], f"fft.{'i' * p['inverse']}fft"
    return (name, None, "axis", axes[0]) if len(axes) == 1 else (f"{name}n", None, "axes", axes)


def _read(args: Sequence[Text], step: Step) -> Text:
    (name, n, word, axes), norm = _call(step), step.params["norm"]
    length = [] if n is None else [size_text(n).code]
    last = {} if norm == "backward" else {"norm": f'"{norm}"'}
    return Text(call(name, args[0].code, *length, **{word: axes, **last}))


def _write(to: Target) -> list[str]:
    (name, n, _, axes), norm = _call(to.step), to.step.params["norm"]
    return [f'{to.np(name)}({to.args[0]}, {n}, {axes}, "{norm}", {to.out})']


def _batch_axis_role(step: Step, axes: Axes) -> Role | None:
    axis = axes[0]
    return None if axis is None or axis in step.params["axes"] else Role(axis, (axis,))


def _time(step: Step) -> float:
    given = step.params.get("axes") or (step.params["axis"],)
    type = max(step.operands[0], step.results[0], key=lambda t: typical(t.size))
    return sum(_EACH * typical(type.size) * log2(max(typical(type.shape[a]), 2)) for a in given)


_EACH_ROW = array_card(_read, _write, None, ALONG, _time, None)

CARDS: dict[Op, Card] = {
    p.fft: replace(_EACH_ROW, blocking=Blocking(_batch_axis_role, 0, "")),
    p.rfft: _EACH_ROW,
    p.irfft: _EACH_ROW,
}
