"""How each primitive is written in NumPy: one row a primitive, in the table at the end.

A row says both how an expression is read by a person and which statements write the result
into a given buffer. Without a row, generated code calls the primitive's own `impl`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from primgraph.codegen.literals import dtype_text, full_text, is_negative, scalar_text, shape_text
from primgraph.codegen.schedule import Step
from primgraph.ir.types import FLOAT16, FLOAT32, INT64, DType, Shape
from primgraph.primitives.shapes import strided

# How tightly the outermost operator of an expression binds, as in Python's grammar; but `@`,
# which binds like `*`, is kept apart from it by parentheses.
COMPARE, OR, XOR, AND, ADD, MATMUL, MUL, UNARY, POWER, ATOM = range(10)

# Operands in one display; statements naming very many variables compile slowly.
WIDEST = 100


class Text(NamedTuple):
    """An expression, and how tightly its outermost operator binds."""

    code: str
    rank: int = ATOM

    def within(self, rank: int) -> str:
        """The expression, in parentheses if it binds less tightly than `rank`."""
        return self.code if self.rank >= rank else f"({self.code})"


class Target(Protocol):
    """What a planned statement is written for: operands by name, and the buffer to fill."""

    step: Step
    args: list[str]
    out: str
    taken: int | None  # the operand whose buffer `out` is, if it was taken over

    def np(self, name: str) -> str:
        """A local name for `np.<name>`."""

    def helper(self, name: str) -> str:
        """A function of the support file."""

    def scalar(self, value: Any, dtype: DType) -> str:
        """A read-only 0-d array."""

    def part(self, template: str) -> str:
        """A view of `out`, where `{}` in `template` stands for it."""

    def operand_part(self, position: int, template: str) -> str:
        """A view of an operand."""


Read: TypeAlias = Callable[[Sequence[Text], Step], Text]
Write: TypeAlias = Callable[[Target], list[str]]
View: TypeAlias = Callable[[Step, int], str]


@dataclass(frozen=True, slots=True)
class Spelling:
    """One row. `read` gives the expression of the result, `write` the statements that fill `out`.

    `statement` rows have an in-place statement behind the expression that `read` gives, which
    `amend` writes for the name of the result. `broadcasts` tells operands that may have a
    smaller shape than declared, because NumPy's broadcasting repeats them; `in_place` those
    whose buffer `out` may be; `inline` rows may become a part of a longer expression. A `ufunc`
    returns a fresh array by itself where `out` is left away. `view` rows compute nothing: it
    gives the expression of the view, with `{}` for the operand.
    """

    read: Read
    write: Write
    broadcasts: tuple[int, ...] = ()
    in_place: tuple[int, ...] = ()
    inline: bool = False
    ufunc: str = ""
    view: View | None = None
    amend: Callable[[str, Sequence[Text], Step], str] | None = None


# Elementwise functions.

_ALL = (0, 1, 2)


def _ufunc(name: str, infix: str = "", rank: int = ATOM, *, shown: str = "") -> Spelling:
    """A row for `np.<name>`, written between its operands if `infix` says how."""

    def read(args: Sequence[Text], step: Step) -> Text:
        if infix and len(args) == 1:
            return Text(f"{infix}{args[0].within(rank + 1)}", rank)
        if infix:
            left = args[0].within(rank + (rank == COMPARE))
            return Text(f"{left} {infix} {args[1].within(rank + 1)}", rank)
        return Text(f"np.{shown or name}({', '.join(a.code for a in args)})")

    # NumPy has deprecated a third positional operand of these two.
    out = "out=" if name in ("maximum", "minimum") else ""

    def write(to: Target) -> list[str]:
        return [f"{to.np(name)}({', '.join(to.args)}, {out}{to.out})"]

    return Spelling(read, write, broadcasts=_ALL, in_place=_ALL, inline=True, ufunc=name)


def _helper(name: str) -> Spelling:
    """A row for an elementwise function of the support file, which reads before it writes."""
    return Spelling(
        lambda args, step: Text(f"{name}({args[0].code})"),
        lambda to: [f"{to.helper(name)}({to.args[0]}, {to.out})"],
        broadcasts=(0,),
        in_place=(0,),
        inline=True,
    )


def _write_rsqrt(to: Target) -> list[str]:
    one = to.scalar(1.0, to.step.results[0].dtype)
    return [
        f"{to.np('sqrt')}({to.args[0]}, {to.out})",
        f"{to.np('divide')}({one}, {to.out}, {to.out})",
    ]


def _read_power(args: Sequence[Text], step: Step) -> Text:
    n = step.params["n"]
    if n == 2:
        return Text(f"np.square({args[0].code})")
    return Text(f"{args[0].within(ATOM)}**{n}", POWER)


def _write_power(to: Target) -> list[str]:
    """The powers that NumPy's operator has a faster function for use the same ones here."""
    n, (x, out), dtype = to.step.params["n"], (to.args[0], to.out), to.step.results[0].dtype
    if n == 2:
        return [f"{to.np('square')}({x}, {out})"]
    if n == 1:
        return [] if to.taken is not None else [f"{out}[...] = {x}"]
    if n == 0:
        return [f"{out}[...] = {to.scalar(dtype.type(1).item(), dtype)}"]
    if n == -1:
        return [f"{to.np('reciprocal')}({x}, {out})"]
    if dtype.kind == "f":
        return [f"{to.np('power')}({x}, {to.scalar(float(n), dtype)}, {out})"]
    return [f"{out}[...] = {x}**{n}"]


def _read_cast(args: Sequence[Text], step: Step) -> Text:
    return Text(f"{args[0].within(ATOM)}.astype({dtype_text(step.params['dtype'])})")


def _write_select(to: Target) -> list[str]:
    condition, x, y = to.args
    chosen = f"{to.np('copyto')}({to.out}, {x}, 'same_kind', {condition})"
    return [chosen] if to.taken == 2 else [f"{to.out}[...] = {y}", chosen]


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


def _reshape(step: Step, k: int) -> str:
    shape = step.params["shape"]
    if shape == step.operands[0].shape:
        return "{}"
    return f"{{}}.reshape({', '.join(map(str, shape)) or '()'})"


def _permute(step: Step, k: int) -> str:
    axes = step.params["axes"]
    if axes == tuple(range(len(axes))):
        return "{}"
    if axes == tuple(reversed(range(len(axes)))):
        return "{}.T"
    return f"{{}}.transpose({', '.join(map(str, axes))})"


def _expand(step: Step, k: int) -> str:
    """New axes of extent one, as far as NumPy's broadcasting does not add them by itself."""
    new = set(step.params["new_axes"])
    entries = ["None" if i in new else ":" for i in range(len(step.params["shape"]))]
    while entries and entries[0] == "None":
        entries.pop(0)
    while entries and entries[-1] == ":":
        entries.pop()
    return f"{{}}[{', '.join(entries)}]" if entries else "{}"


def _slice(step: Step, k: int) -> str:
    p = step.params
    return slices_text(strided(p["starts"], p["sizes"], p["steps"]), step.operands[0].shape)


def _split(step: Step, k: int) -> str:
    shape, axis, sizes = step.operands[0].shape, step.params["axis"], step.params["sizes"]
    start = sum(sizes[:k])
    slices = [slice(0, n) for n in shape]
    slices[axis] = slice(start, start + sizes[k])
    return slices_text(slices, shape)


def _flip_text(axes: Sequence[int]) -> str:
    entries = ["::-1" if i in axes else ":" for i in range(max(axes, default=-1) + 1)]
    return f"{{}}[{', '.join(entries)}]" if entries else "{}"


def _view(view: View, write: Write | None = None) -> Spelling:
    def read(args: Sequence[Text], step: Step) -> Text:
        template = view(step, 0)
        return args[0] if template == "{}" else Text(template.format(args[0].within(ATOM)))

    def nothing(to: Target) -> list[str]:
        raise AssertionError("a view is not written")

    return Spelling(read, write or nothing, inline=True, view=view)


def _write_reshape(to: Target) -> list[str]:
    """A copy, which only a reshape of elements that are not in order needs."""
    shape = ", ".join(map(str, to.step.operands[0].shape)) or "()"
    return [f"{to.part(f'{{}}.reshape({shape})')}[...] = {to.args[0]}"]


# Parts of arrays.


def _assigned(step: Step) -> str:
    p, y = step.params, step.operands[1]
    text = slices_text(strided(p["starts"], y.shape, p["steps"]), step.results[0].shape)
    return "{}[...]" if text == "{}" else text


def _amend_slice(name: str, args: Sequence[Text], step: Step) -> str:
    return f"{_assigned(step).format(name)} = {args[1].code}"


def _read_copy(args: Sequence[Text], step: Step) -> Text:
    return Text(f"np.array({args[0].code})")


def _write_slice_assign(to: Target) -> list[str]:
    target = _assigned(to.step)
    part = to.out if target == "{}[...]" else to.part(target)
    lines = [] if to.taken == 0 else [f"{to.out}[...] = {to.args[0]}"]
    return [*lines, f"{part}[...] = {to.args[1]}"]


def _read_pad(args: Sequence[Text], step: Step) -> Text:
    if not step.params["low"]:
        return Text(f"np.array({args[0].code})")
    widths = tuple(zip(step.params["low"], step.params["high"], strict=True))
    return Text(f"np.pad({args[0].code}, {widths})")


def _write_pad(to: Target) -> list[str]:
    dtype, shape = to.step.results[0].dtype, to.step.results[0].shape
    low, size = to.step.params["low"], to.step.operands[0].shape
    inner = slices_text([slice(a, a + n) for a, n in zip(low, size, strict=True)], shape)
    fill = f"{to.out}[...] = {to.scalar(dtype.type(0).item(), dtype)}"
    return [fill, f"{to.part(inner)}[...] = {to.args[0]}"]


def _read_concat(args: Sequence[Text], step: Step) -> Text:
    """Long lists are joined in groups, so that no expression names very many variables."""
    parts = [a.code for a in args]
    axis = step.params["axis"]
    while len(parts) > WIDEST:
        groups = [parts[i : i + WIDEST] for i in range(0, len(parts), WIDEST)]
        parts = [f"np.concatenate([{', '.join(g)}], axis={axis})" for g in groups]
    return Text(f"np.concatenate([{', '.join(parts)}], axis={axis})")


def _write_concat(to: Target) -> list[str]:
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


def _subscripts(indices: Sequence[str], axis: int) -> str:
    return ", ".join([*[":"] * axis, *indices])


def _read_gather(args: Sequence[Text], step: Step) -> Text:
    subscripts = _subscripts([a.code for a in args[1:]], step.params["axis"])
    return Text(f"{args[0].within(ATOM)}[{subscripts}]")


def _write_gather(to: Target) -> list[str]:
    axis = to.step.params["axis"]
    # `take` has no cast from the widest unsigned integers to positions.
    if len(to.args) == 2 and to.step.operands[1].dtype != np.dtype(np.uint64):
        return [f"{to.args[0]}.take({to.args[1]}, {axis}, {to.out})"]
    read = f"{to.args[0]}[{_subscripts(to.args[1:], axis)}]"
    return [f"{to.out}[...] = {read}"]


def _index_text(indices: Sequence[str], axis: int) -> str:
    if len(indices) == 1 and axis == 0:
        return indices[0]
    if axis == 0:
        return f"({', '.join(indices)})"
    return f"({', '.join([*['slice(None)'] * axis, *indices])})"


def _amend_scatter(name: str, args: Sequence[Text], step: Step) -> str:
    index = _index_text([a.code for a in args[2:]], step.params["axis"])
    return f"np.add.at({name}, {index}, {args[1].code})"


def _write_scatter(to: Target) -> list[str]:
    lines = [] if to.taken == 0 else [f"{to.out}[...] = {to.args[0]}"]
    axis, indices = to.step.params["axis"], to.args[2:]
    index = _index_text(indices, 0) if axis == 0 else ""
    if axis:
        index = f"({', '.join([*[to.np('everything')] * axis, *indices])})"
    return [*lines, f"{to.np('add.at')}({to.out}, {index}, {to.args[1]})"]


# Reductions, scans and products; float16 accumulates in float32.


def _axes_text(step: Step) -> str:
    axes = step.params["axes"]
    if axes and axes == tuple(range(step.operands[0].ndim)):
        return ""
    return f", axis={axes[0] if len(axes) == 1 else axes}"


def _reduction(name: str, ufunc: str, *, accumulates: bool) -> Spelling:
    def read(args: Sequence[Text], step: Step) -> Text:
        dtype = step.results[0].dtype
        text = f"np.{name}({args[0].code}{_axes_text(step)}"
        if accumulates and dtype == FLOAT16:
            return Text(f"{text}, dtype=np.float32).astype(np.float16)")
        if accumulates and _widens(dtype):
            return Text(f"{text}, dtype={dtype_text(dtype)})")
        return Text(text + ")")

    def write(to: Target) -> list[str]:
        dtype, axes = to.step.results[0].dtype, to.step.params["axes"]
        axis = axes[0] if len(axes) == 1 else axes
        reduce = f"{to.np(f'{ufunc}.reduce')}({to.args[0]}, {axis}"
        if accumulates and dtype == FLOAT16:
            wide = to.np(dtype_text(FLOAT32)[3:])
            return [f"{to.out}[...] = {reduce}, {wide})"]
        wide = to.np(dtype_text(dtype)[3:]) if accumulates and _widens(dtype) else "None"
        return [f"{reduce}, {wide}, {to.out})"]

    return Spelling(read, write)


def _widens(dtype: DType) -> bool:
    """Whether NumPy's sums and products of that dtype have another dtype unless told."""
    return dtype.kind in "iu" and dtype.itemsize < INT64.itemsize


def _position(name: str) -> Spelling:
    return Spelling(
        lambda args, step: Text(f"np.{name}({args[0].code}, axis={step.params['axis']})"),
        lambda to: [f"{to.args[0]}.{name}({to.step.params['axis']}, {to.out})"],
    )


def _read_cumsum(args: Sequence[Text], step: Step) -> Text:
    axis, dtype = step.params["axis"], step.results[0].dtype
    flip = _flip_text((axis,)) if step.params["reverse"] else "{}"
    x = flip.format(args[0].within(ATOM)) if flip != "{}" else args[0].code
    if dtype == FLOAT16:
        total = f"np.cumsum({x}, axis={axis}, dtype=np.float32).astype(np.float16)"
    elif _widens(dtype):
        total = f"np.cumsum({x}, axis={axis}, dtype={dtype_text(dtype)})"
    else:
        total = f"np.cumsum({x}, axis={axis})"
    return Text(flip.format(total))


def _write_cumsum(to: Target) -> list[str]:
    axis, dtype = to.step.params["axis"], to.step.results[0].dtype
    x, out = to.args[0], to.out
    if to.step.params["reverse"]:
        flip = _flip_text((axis,))
        x, out = to.operand_part(0, flip), to.part(flip)
    scan = f"{to.np('add.accumulate')}({x}, {axis}"
    if dtype == FLOAT16:
        return [f"{out}[...] = {scan}, {to.np('float32')})"]
    return [f"{scan}, {to.np(dtype_text(dtype)[3:])}, {out})"]


def _read_matmul(args: Sequence[Text], step: Step) -> Text:
    x, y = args
    if step.results[0].dtype == FLOAT16:
        wide = [f"{a.within(ATOM)}.astype(np.float32)" for a in args]
        return Text(f"({wide[0]} @ {wide[1]}).astype(np.float16)")
    left = x.code if x.rank == MATMUL else x.within(MUL + 1)
    return Text(f"{left} @ {y.within(MUL + 1)}", MATMUL)


def _write_matmul(to: Target) -> list[str]:
    result = to.step.results[0]
    if result.dtype == FLOAT16:
        wide = to.np("float32")
        x, y = (f"{a}.astype({wide})" for a in to.args)
        return [f"{to.out}[...] = {to.np('matmul')}({x}, {y})"]
    # For two matrices `dot` does the same with less overhead.
    name = "dot" if result.ndim == 2 and result.is_float else "matmul"
    return [f"{to.np(name)}({to.args[0]}, {to.args[1]}, {to.out})"]


# Constants and random numbers.


def _read_full(args: Sequence[Text], step: Step) -> Text:
    p = step.params
    return Text(full_text(p["value"], p["shape"], p["dtype"]))


def _read_iota(args: Sequence[Text], step: Step) -> Text:
    """A count along one axis; NumPy's broadcasting repeats it along the others."""
    p = step.params
    size, axis, ndim = p["shape"][p["axis"]], p["axis"], len(p["shape"])
    text = f"np.arange({size})"
    if p["dtype"] != INT64:
        text += f".astype({dtype_text(p['dtype'])})"
    behind = ", None" * (ndim - 1 - axis)
    return Text(f"{text}[:{behind}]" if behind else text)


def iota_shape(step: Step) -> Shape:
    """The shape of the count before it is repeated."""
    shape, axis = step.params["shape"], step.params["axis"]
    return (shape[axis], *(1 for _ in shape[axis + 1 :]))


def _read_uniform(args: Sequence[Text], step: Step) -> Text:
    p = step.params
    low, high = (scalar_text(float(p[k]), np.dtype(np.float64)) for k in ("low", "high"))
    where = f"{shape_text(p['shape'])}, {dtype_text(p['dtype'])}"
    return Text(f"random_uniform({args[0].code}, {where}, {low}, {high})")


def _read_bernoulli(args: Sequence[Text], step: Step) -> Text:
    p = step.params
    chance = scalar_text(float(p["p"]), np.dtype(np.float64))
    return Text(f"random_bernoulli({args[0].code}, {shape_text(p['shape'])}, {chance})")


def _copied(read: Read, helper: str) -> Spelling:
    """A row for a helper that returns a fresh array, which is then copied into `out`."""

    def write(to: Target) -> list[str]:
        to.helper(helper)
        text = read([Text(a) for a in to.args], to.step).code
        return [f"{to.out}[...] = {text}"]

    return Spelling(read, write)


def _no_write(to: Target) -> list[str]:
    raise AssertionError("a constant is not written")


def literal(value: Any, dtype: DType) -> Text:
    """A Python scalar, which takes the dtype of the array it meets."""
    text = scalar_text(value, dtype)
    return Text(text, UNARY if is_negative(text) else ATOM)


_UFUNCS: dict[str, Spelling] = {
    "add": _ufunc("add", "+", ADD),
    "sub": _ufunc("subtract", "-", ADD),
    "mul": _ufunc("multiply", "*", MUL),
    "div": _ufunc("divide", "/", MUL),
    "neg": _ufunc("negative", "-", UNARY),
    "floor_divide": _ufunc("floor_divide", "//", MUL),
    "remainder": _ufunc("remainder", "%", MUL),
    "equal": _ufunc("equal", "==", COMPARE),
    "not_equal": _ufunc("not_equal", "!=", COMPARE),
    "greater": _ufunc("greater", ">", COMPARE),
    "greater_equal": _ufunc("greater_equal", ">=", COMPARE),
    "less": _ufunc("less", "<", COMPARE),
    "less_equal": _ufunc("less_equal", "<=", COMPARE),
    "logical_and": _ufunc("logical_and", "&", AND),
    "logical_or": _ufunc("logical_or", "|", OR),
    "logical_xor": _ufunc("logical_xor", "^", XOR),
    "logical_not": _ufunc("logical_not", "~", UNARY),
    "abs": _ufunc("absolute", shown="abs"),
    "round": _ufunc("rint"),
    **{
        name: _ufunc(name)
        for name in (
            "power", "sqrt", "exp", "expm1", "log", "log1p", "logaddexp", "sin", "cos", "tan",
            "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh",
            "arctan2", "maximum", "minimum", "sign", "floor", "ceil",
        )
    },
}  # fmt: skip

SPELLINGS: dict[str, Spelling] = {
    **_UFUNCS,
    **{name: _helper(name) for name in ("sigmoid", "erf", "erfc")},
    "rsqrt": replace(
        _ufunc("sqrt"),
        read=lambda args, step: Text(f"1.0 / np.sqrt({args[0].code})", MUL),
        write=_write_rsqrt,
        ufunc="",
    ),
    "integer_pow": Spelling(_read_power, _write_power, broadcasts=(0,), in_place=(0,), inline=True),
    "cast": Spelling(
        _read_cast,
        lambda to: [f"{to.out}[...] = {to.args[0]}"],
        broadcasts=(0,),
        inline=True,
    ),
    "select": Spelling(
        lambda args, step: Text(f"np.where({', '.join(a.code for a in args)})"),
        _write_select,
        broadcasts=_ALL,
        in_place=(2,),
        inline=True,
    ),
    "stop_gradient": _view(lambda step, k: "{}"),
    "reshape": _view(_reshape, _write_reshape),
    "permute": _view(_permute),
    "broadcast": _view(_expand),
    "reverse": _view(lambda step, k: _flip_text(step.params["axes"])),
    "slice": _view(_slice),
    "split": _view(_split),
    "slice_assign": Spelling(
        _read_copy, _write_slice_assign, broadcasts=(0, 1), in_place=(0,), amend=_amend_slice
    ),
    "pad": Spelling(_read_pad, _write_pad),
    "concat": Spelling(_read_concat, _write_concat),
    "gather": Spelling(_read_gather, _write_gather),
    "scatter_add": Spelling(
        _read_copy, _write_scatter, broadcasts=(0, 1), in_place=(0,), amend=_amend_scatter
    ),
    "matmul": replace(Spelling(_read_matmul, _write_matmul), inline=True),
    "reduce_sum": _reduction("sum", "add", accumulates=True),
    "reduce_prod": _reduction("prod", "multiply", accumulates=True),
    "reduce_max": _reduction("max", "maximum", accumulates=False),
    "reduce_min": _reduction("min", "minimum", accumulates=False),
    "argmax": _position("argmax"),
    "argmin": _position("argmin"),
    "cumsum": Spelling(_read_cumsum, _write_cumsum),
    "full": Spelling(_read_full, _no_write),
    "constant": Spelling(lambda args, step: Text(""), _no_write),
    "iota": Spelling(_read_iota, _no_write),
    "random_uniform": _copied(_read_uniform, "random_uniform"),
    "random_bernoulli": _copied(_read_bernoulli, "random_bernoulli"),
}
