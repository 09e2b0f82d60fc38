"""How views and parts of arrays are written: what moves elements and computes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from primgraph.codegen.notation import ATOM, WIDEST, Spelling, Target, Text, View, Write
from primgraph.codegen.schedule import Step
from primgraph.ir.types import Shape
from primgraph.primitives.shapes import strided

# Views.


def slices_text(slices: Sequence[slice], shape: Shape) -> str:
    """Subscripts for basic slices, `{}` before them; just that where they leave all as it is."""
    entries = []
    for s, n in zip(slices, shape, strict=True):
        step = 1 if s.step is None else s.step
        start = "" if s.start == (0 if step > 0 else n - 1) else str(s.start)
        ends = s.stop is None or (step > 0 and s.stop >= n)
        stop = "" if ends else str(s.stop)
        entries.append(f"{start}:{stop}" + (f":{step}" if step != 1 else ""))
    while entries and entries[-1] == ":":
        entries.pop()
    return f"{{}}[{', '.join(entries)}]" if entries else "{}"


def reshaped(step: Step, k: int) -> str:
    shape = step.params["shape"]
    if shape == step.operands[0].shape:
        return "{}"
    return f"{{}}.reshape({', '.join(map(str, shape)) or '()'})"


def permuted(step: Step, k: int) -> str:
    axes = step.params["axes"]
    if axes == tuple(range(len(axes))):
        return "{}"
    if axes == tuple(reversed(range(len(axes)))):
        return "{}.T"
    return f"{{}}.transpose({', '.join(map(str, axes))})"


def expanded(step: Step, k: int) -> str:
    """New axes of extent one, as far as NumPy's broadcasting does not add them by itself."""
    new = set(step.params["new_axes"])
    entries = ["None" if i in new else ":" for i in range(len(step.params["shape"]))]
    while entries and entries[0] == "None":
        entries.pop(0)
    while entries and entries[-1] == ":":
        entries.pop()
    return f"{{}}[{', '.join(entries)}]" if entries else "{}"


def expanded_shape(step: Step) -> Shape:
    """The shape of what `expanded` gives."""
    new, shape = set(step.params["new_axes"]), step.params["shape"]
    lead = next(a for a in range(len(shape) + 1) if a not in new)
    return tuple(1 if a in new else n for a, n in enumerate(shape))[lead:]


def sliced(step: Step, k: int) -> str:
    p = step.params
    return slices_text(strided(p["starts"], p["sizes"], p["steps"]), step.operands[0].shape)


def parted(step: Step, k: int) -> str:
    shape, axis, sizes = step.operands[0].shape, step.params["axis"], step.params["sizes"]
    start = sum(sizes[:k])
    slices = [slice(0, n) for n in shape]
    slices[axis] = slice(start, start + sizes[k])
    return slices_text(slices, shape)


def flip_text(axes: Sequence[int]) -> str:
    entries = ["::-1" if i in axes else ":" for i in range(max(axes, default=-1) + 1)]
    return f"{{}}[{', '.join(entries)}]" if entries else "{}"


def viewed(view: View, write: Write | None = None) -> Spelling:
    def read(args: Sequence[Text], step: Step) -> Text:
        template = view(step, 0)
        return args[0] if template == "{}" else Text(template.format(args[0].within(ATOM)))

    def nothing(to: Target) -> list[str]:
        raise AssertionError("a view is not written")

    return Spelling(read, write or nothing, inline=True, view=view)


def write_reshape(to: Target) -> list[str]:
    """A copy, which only a reshape of elements that are not in order needs."""
    shape = ", ".join(map(str, to.step.operands[0].shape)) or "()"
    return [f"{to.part(f'{{}}.reshape({shape})')}[...] = {to.args[0]}"]


# Parts of arrays.


def assigned(step: Step) -> str:
    p, y = step.params, step.operands[1]
    text = slices_text(strided(p["starts"], y.shape, p["steps"]), step.results[0].shape)
    return "{}[...]" if text == "{}" else text


def amend_slice(name: str, args: Sequence[Text], step: Step) -> str:
    return f"{assigned(step).format(name)} = {args[1].code}"


def read_copy(args: Sequence[Text], step: Step) -> Text:
    return Text(f"np.array({args[0].code})")


def write_slice_assign(to: Target) -> list[str]:
    target = assigned(to.step)
    part = to.out if target == "{}[...]" else to.part(target)
    lines = [] if to.taken == 0 else [f"{to.out}[...] = {to.args[0]}"]
    return [*lines, f"{part}[...] = {to.args[1]}"]


def read_pad(args: Sequence[Text], step: Step) -> Text:
    if not step.params["low"]:
        return Text(f"np.array({args[0].code})")
    widths = tuple(zip(step.params["low"], step.params["high"], strict=True))
    return Text(f"np.pad({args[0].code}, {widths})")


def write_pad(to: Target) -> list[str]:
    """Zeros at the edges and the operand between them; zeros everywhere if many axes have edges."""
    dtype, shape = to.step.results[0].dtype, to.step.results[0].shape
    low, high, size = to.step.params["low"], to.step.params["high"], to.step.operands[0].shape
    inner = slices_text([slice(a, a + n) for a, n in zip(low, size, strict=True)], shape)
    zero = to.scalar(dtype.type(0).item(), dtype)
    edges = _edges(shape, low, high) or ["{}"]
    return [
        *(f"{to.part(edge)}[...] = {zero}" for edge in edges),
        f"{to.part(inner)}[...] = {to.args[0]}",
    ]


def _edges(shape: Shape, low: Sequence[int], high: Sequence[int]) -> list[str]:
    """The parts of an array that are padding, if that is so along one axis only; else nothing."""
    padded = [a for a in range(len(low)) if low[a] or high[a]]
    if len(padded) != 1:
        return []
    axis, edges = padded[0], []
    for start, stop in ((0, low[axis]), (shape[axis] - high[axis], shape[axis])):
        if start < stop:
            slices = [slice(0, n) for n in shape]
            slices[axis] = slice(start, stop)
            edges.append(slices_text(slices, shape))
    return edges


def read_concat(args: Sequence[Text], step: Step) -> Text:
    """Long lists are joined in groups, so that no expression names very many variables."""
    parts = [a.code for a in args]
    axis = step.params["axis"]
    while len(parts) > WIDEST:
        groups = [parts[i : i + WIDEST] for i in range(0, len(parts), WIDEST)]
        parts = [f"np.concatenate([{', '.join(g)}], axis={axis})" for g in groups]
    return Text(f"np.concatenate([{', '.join(parts)}], axis={axis})")


def write_concat(to: Target) -> list[str]:
    axis, shape = to.step.params["axis"], to.step.results[0].shape
    if len(to.args) <= WIDEST:
        return [f"{to.np('concatenate')}(({', '.join(to.args)},), {axis}, {to.out})"]
    lines, start = [], 0
    for arg, x in zip(to.args, to.step.operands, strict=True):
        slices = [slice(0, n) for n in shape]
        slices[axis] = slice(start, start + x.shape[axis])
        start += x.shape[axis]
        lines.append(f"{to.part(slices_text(slices, shape))}[...] = {arg}")
    return lines


def subscripts(indices: Sequence[str], axis: int) -> str:
    return ", ".join([*[":"] * axis, *indices])


def read_gather(args: Sequence[Text], step: Step) -> Text:
    chosen = subscripts([a.code for a in args[1:]], step.params["axis"])
    return Text(f"{args[0].within(ATOM)}[{chosen}]")


def write_gather(to: Target) -> list[str]:
    axis = to.step.params["axis"]
    # `take` has no cast from the widest unsigned integers to positions.
    if len(to.args) == 2 and to.step.operands[1].dtype != np.dtype(np.uint64):
        return [f"{to.args[0]}.take({to.args[1]}, {axis}, {to.out})"]
    read = f"{to.args[0]}[{subscripts(to.args[1:], axis)}]"
    return [f"{to.out}[...] = {read}"]


def index_text(indices: Sequence[str], axis: int) -> str:
    if len(indices) == 1 and axis == 0:
        return indices[0]
    if axis == 0:
        return f"({', '.join(indices)})"
    return f"({', '.join([*['slice(None)'] * axis, *indices])})"


def amend_scatter(name: str, args: Sequence[Text], step: Step) -> str:
    index = index_text([a.code for a in args[2:]], step.params["axis"])
    return f"np.add.at({name}, {index}, {args[1].code})"


def write_scatter(to: Target) -> list[str]:
    lines = [] if to.taken == 0 else [f"{to.out}[...] = {to.args[0]}"]
    axis, indices = to.step.params["axis"], to.args[2:]
    index = index_text(indices, 0) if axis == 0 else ""
    if axis:
        index = f"({', '.join([*[to.np('everything')] * axis, *indices])})"
    return [*lines, f"{to.np('add.at')}({to.out}, {index}, {to.args[1]})"]
