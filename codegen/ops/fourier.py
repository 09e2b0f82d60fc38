"""Cards of Fourier transforms, which NumPy computes into given arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from primgraph.codegen.ir.axis_semantics import Axes, Blocking, Role
from primgraph.codegen.ir.extents import Text, size_text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, Marks, plain
from primgraph.codegen.ops.shapes import role_along_axis
from primgraph.codegen.ops.spelling.notation import Read, Target, Write
from primgraph.ir.dims import typical
from primgraph.ir.primitive import Op
from primgraph.primitives import fourier as p

# Nanoseconds per complex number and doubling of the length.
_EACH = 0.8


def _norm(step: Step) -> str:
    norm = step.params["norm"]
    return "" if norm == "backward" else f', norm="{norm}"'


def _name(step: Step) -> str:
    several = "n" if len(step.params["axes"]) > 1 else ""
    return f"fft.{'i' * step.params['inverse']}fft{several}"


def _read_fft(args: Sequence[Text], step: Step) -> Text:
    axes = step.params["axes"]
    where = f"axes={axes}" if len(axes) > 1 else f"axis={axes[0]}"
    return Text(f"np.{_name(step)}({args[0].code}, {where}{_norm(step)})")


def _write_fft(to: Target) -> list[str]:
    axes, norm = to.step.params["axes"], to.step.params["norm"]
    where = axes if len(axes) > 1 else axes[0]
    return [f'{to.np(_name(to.step))}({to.args[0]}, None, {where}, "{norm}", {to.out})']


def _read_rfft(args: Sequence[Text], step: Step) -> Text:
    return Text(f"np.fft.rfft({args[0].code}, axis={step.params['axis']}{_norm(step)})")


def _write_rfft(to: Target) -> list[str]:
    axis, norm = to.step.params["axis"], to.step.params["norm"]
    return [f'{to.np("fft.rfft")}({to.args[0]}, None, {axis}, "{norm}", {to.out})']


def _read_irfft(args: Sequence[Text], step: Step) -> Text:
    n, axis = step.params["n"], step.params["axis"]
    return Text(f"np.fft.irfft({args[0].code}, {size_text(n).code}, axis={axis}{_norm(step)})")


def _write_irfft(to: Target) -> list[str]:
    n, axis, norm = (to.step.params[k] for k in ("n", "axis", "norm"))
    return [f'{to.np("fft.irfft")}({to.args[0]}, {n}, {axis}, "{norm}", {to.out})']


def _batch_axis_role(step: Step, axes: Axes) -> Role | None:
    axis = axes[0]
    return None if axis is None or axis in step.params["axes"] else Role(axis, (axis,))


def _time(step: Step) -> float:
    given = step.params.get("axes") or (step.params["axis"],)
    type = max(step.operands[0], step.results[0], key=lambda t: typical(t.size))
    return sum(_EACH * typical(type.size) * log2(max(typical(type.shape[a]), 2)) for a in given)


def _transform(read: Read, write: Write, blocking: Blocking) -> Card:
    return plain(
        read=read,
        write=write,
        needs=None,
        blocking=blocking,
        nanoseconds=_time,
        scalar=None,
        complex_step=None,
        marks=Marks.UNKNOWN,
    )


CARDS: dict[Op, Card] = {
    p.fft: _transform(_read_fft, _write_fft, Blocking(_batch_axis_role, 0, "")),
    p.rfft: _transform(_read_rfft, _write_rfft, Blocking(role_along_axis, 0, "")),
    p.irfft: _transform(_read_irfft, _write_irfft, Blocking(role_along_axis, 0, "")),
}
