"""How each primitive is written in NumPy: one row a primitive, in the table at the end.

A row says both how a person would write the expression and which statements write the result
into a given buffer. Without a row, generated code calls the primitive's own `impl`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from string import Formatter
from typing import Any

import numpy as np

from primgraph.codegen.cards import composed, products, structure
from primgraph.codegen.cards.literals import (
    dtype_text,
    full_text,
    is_negative,
    scalar_text,
    shape_text,
)
from primgraph.codegen.cards.notation import (
    ADD,
    AND,
    ATOM,
    COMPARE,
    MUL,
    OR,
    POWER,
    UNARY,
    XOR,
    Read,
    Spelling,
    Target,
    Text,
    number_of,
)
from primgraph.codegen.plan.places import Place
from primgraph.codegen.plan.program import Site
from primgraph.codegen.plan.schedule import Step
from primgraph.codegen.plan.views import VIEWS, Reshape, flipped, view_text
from primgraph.errors import BuildError
from primgraph.ir.primitive import Primitive
from primgraph.ir.signature import checked
from primgraph.ir.types import FLOAT16, FLOAT32, INT64, DType, Shape
from primgraph.primitives.reductions import safe_squares

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
        lambda to: [f"{name}({to.args[0]}, {to.out})"],
        broadcasts=(0,),
        in_place=(0,),
        inline=True,
    )


# Exponents for which NumPy has something else than powers, if they are not elements of an array.
SHORT_CUTS = (-1.0, 0.0, 0.5, 1.0, 2.0)


def _exponents(site: Site) -> Sequence[Place]:
    """For exponents that may be one number in memory: both as arrays with axes, or a copy."""
    type, number = site.step.results[0], number_of(site.operands[1])
    if not type.is_float or (number is not None and number not in SHORT_CUTS):
        return []
    if not type.shape:
        one = Reshape((1,))
        return [site.operand_part(1, one), site.part(one)]
    return [site.scratch()] if site.is_repeated(1) else []


def _write_power_of_each(to: Target) -> list[str]:
    """Powers with each exponent in an array with axes: NumPy takes roots for a single 0.5."""
    (x, y), out, power = to.args, to.out, to.np("power")
    match to.parts:
        case [exponents]:
            return [f"{exponents}[...] = {y}", f"{power}({x}, {exponents}, {out})"]
        case [exponent, whole]:
            return [f"{power}({x}, {exponent}, {whole})"]
        case _:
            return [f"{power}({x}, {y}, {out})"]


def _read_power(args: Sequence[Text], step: Step) -> Text:
    n = step.params["n"]
    if n == 2:
        return Text(f"np.square({args[0].code})")
    x = args[0].within(ATOM)
    # Formatters put spaces around it unless both sides are names or numbers.
    return Text(f"{x}**{n}" if x.isidentifier() else f"{x} ** {n}", POWER)


def _exponent(site: Site) -> Sequence[Place]:
    """The exponent as an array, or 1, where one of them is written."""
    n, dtype = site.step.params["n"], site.step.results[0].dtype
    if n == 0:
        return [site.number(dtype.type(1).item(), dtype)]
    return [site.number(float(n), dtype)] if dtype.kind == "f" and n not in (-1, 1, 2) else []


def _write_power(to: Target) -> list[str]:
    """The powers that NumPy's operator has a faster function for use the same ones here."""
    n, (x, out), dtype = to.step.params["n"], (to.args[0], to.out), to.step.results[0].dtype
    if n == 2:
        return [f"{to.np('square')}({x}, {out})"]
    if n == 1:
        return [] if to.taken is not None else [f"{out}[...] = {x}"]
    if n == 0:
        return [f"{out}[...] = {to.parts[0]}"]
    if n == -1:
        return [f"{to.np('reciprocal')}({x}, {out})"]
    if dtype.kind == "f":
        return [f"{to.np('power')}({x}, {to.parts[0]}, {out})"]
    return [f"{out}[...] = {x}**{n}"]


def _read_cast(args: Sequence[Text], step: Step) -> Text:
    return Text(f"{args[0].within(ATOM)}.astype({dtype_text(step.params['dtype'])})")


def _write_select(to: Target) -> list[str]:
    condition, x, y = to.args
    if to.step.results[0].size == 1:
        return [f"{to.out}[...] = {x} if {condition} else {y}"]
    chosen = f"{to.np('copyto')}({to.out}, {x}, 'same_kind', {condition})"
    return [chosen] if to.taken == 2 else [f"{to.out}[...] = {y}", chosen]


def _write_unless_nan(to: Target) -> list[str]:
    x, y = to.args
    chosen = f"{to.np('copyto')}({to.out}, {y}, 'same_kind', {to.np('isnan')}({y}))"
    return [chosen] if to.taken == 0 else [f"{to.out}[...] = {x}", chosen]


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
        if to.parts:
            return [_product_with_ones(to)]
        reduce = f"{to.np(f'{ufunc}.reduce')}({to.args[0]}, {axis}"
        if accumulates and dtype == FLOAT16:
            wide = to.np(dtype_text(FLOAT32)[3:])
            return [f"{to.out}[...] = {reduce}, {wide})"]
        wide = to.np(dtype_text(dtype)[3:]) if accumulates and _widens(dtype) else "None"
        return [f"{reduce}, {wide}, {to.out})"]

    return Spelling(read, write, needs=_summed if name == "sum" else None)


def _summed(site: Site) -> Sequence[Place]:
    return site.summed(site.step.params["axes"])


def _product_with_ones(to: Target) -> str:
    """A sum over the last axes, or over the first, which BLAS does faster."""
    (ones, out, x), axes, ndim = to.parts, to.step.params["axes"], to.step.operands[0].ndim
    last = tuple(axes) == tuple(range(ndim - len(axes), ndim))
    factors = f"{x}, {ones}" if last else f"{ones}, {x}"
    return f"{to.np('dot')}({factors}, {out})"


def _read_root(args: Sequence[Text], step: Step) -> Text:
    divisor = step.params["divisor"]
    last = "" if divisor == 1 else f", divisor={divisor!r}"
    return Text(f"root_of_squares({args[0].code}, {args[1].code}{_axes_text(step)}{last})")


def keeping_axes(reduction: Text) -> Text:
    """A reduction whose result has axes of one element for those that are gone."""
    call, closing, cast = reduction.code.rpartition(").astype(")
    if not closing:
        return Text(f"{reduction.code[:-1]}, keepdims=True)")
    return Text(f"{call}, keepdims=True{closing}{cast}")


def _divisor(site: Site) -> Sequence[Place]:
    divisor = site.step.params["divisor"]
    return [] if divisor == 1 else [site.number(divisor, site.step.results[0].dtype)]


def _write_root(to: Target) -> list[str]:
    """NumPy's root, and a helper for sums that have lost something to over- or underflow."""
    (x, squares), (_, type), p = to.args, to.step.operands, to.step.params
    low, high = safe_squares(type.dtype)
    lines, root = [], squares
    if to.parts:
        root = to.out
        lines.append(f"{to.np('divide')}({squares}, {to.parts[0]}, {to.out})")
    lines.append(f"{to.np('sqrt')}({root}, {to.out})")
    if type.size == 1:
        safe = f"{low!r} <= {squares}.item() <= {high!r}"
    else:
        safe = f"{low!r} <= {squares}.min() and {squares}.max() <= {high!r}"
    again = f"{x}, {squares}, {p['axes']}, {p['divisor']!r}, {to.out}"
    rescue = f"if not ({safe}): root_of_squares({again})"
    return [*lines, rescue] if type.size else lines


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
    flip = flipped((axis,)) if step.params["reverse"] else None
    x = args[0].code if flip is None else view_text(flip, args[0].within(ATOM))
    if dtype == FLOAT16:
        total = f"np.cumsum({x}, axis={axis}, dtype=np.float32).astype(np.float16)"
    elif _widens(dtype):
        total = f"np.cumsum({x}, axis={axis}, dtype={dtype_text(dtype)})"
    else:
        total = f"np.cumsum({x}, axis={axis})"
    return Text(view_text(flip, total))


def _reversed_parts(site: Site) -> Sequence[Place]:
    if not site.step.params["reverse"]:
        return []
    flip = flipped((site.step.params["axis"],))
    return [site.operand_part(0, flip), site.part(flip)]


def _write_cumsum(to: Target) -> list[str]:
    axis, dtype = to.step.params["axis"], to.step.results[0].dtype
    x, out = to.parts or (to.args[0], to.out)
    scan = f"{to.np('add.accumulate')}({x}, {axis}"
    if dtype == FLOAT16:
        return [f"{out}[...] = {scan}, {to.np('float32')})"]
    return [f"{scan}, {to.np(dtype_text(dtype)[3:])}, {out})"]


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


def _copied(read: Read) -> Spelling:
    """A row for a helper that returns a fresh array, which is then copied into `out`."""

    def write(to: Target) -> list[str]:
        text = read([Text(a) for a in to.args], to.step).code
        return [f"{to.out}[...] = {text}"]

    return Spelling(read, write)


def _no_write(to: Target) -> list[str]:
    raise AssertionError("a constant is not written")


def literal(value: Any, dtype: DType) -> Text:
    """A Python scalar, which takes the dtype of the array it meets."""
    text = scalar_text(value, dtype).replace("e+", "e")
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
    "bitwise_and": _ufunc("bitwise_and", "&", AND),
    "bitwise_or": _ufunc("bitwise_or", "|", OR),
    "bitwise_xor": _ufunc("bitwise_xor", "^", XOR),
    "bitwise_not": _ufunc("invert", "~", UNARY),
    "left_shift": _ufunc("left_shift"),
    "right_shift": _ufunc("right_shift"),
    "abs": _ufunc("absolute", shown="abs"),
    "round": _ufunc("rint"),
    **{
        name: _ufunc(name)
        for name in (
            "sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan",
            "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh",
            "arctan2", "maximum", "minimum", "sign", "floor", "ceil",
        )
    },
}  # fmt: skip

SPELLINGS: dict[str, Spelling] = {
    **_UFUNCS,
    **{name: _helper(name) for name in ("erf", "erfc")},
    "sigmoid": replace(_helper("sigmoid"), write=composed.write_sigmoid, needs=composed.saturation),
    "power": Spelling(
        lambda args, step: Text(f"np.power({args[0].code}, {args[1].code})"),
        _write_power_of_each,
        broadcasts=_ALL,
        in_place=_ALL,
        inline=True,
        repeated=lambda args, step: Text(f"power_of_each({args[0].code}, {args[1].code})"),
        helper="power_of_each",
        needs=_exponents,
    ),
    "logaddexp": composed.logaddexp(_ufunc("logaddexp")),
    "rsqrt": replace(
        _ufunc("sqrt"),
        read=lambda args, step: Text(f"1.0 / np.sqrt({args[0].code})", MUL),
        write=composed.write_rsqrt,
        needs=composed.a_one,
        ufunc="",
    ),
    "integer_pow": Spelling(
        _read_power, _write_power, broadcasts=(0,), in_place=(0,), inline=True, needs=_exponent
    ),
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
    "unless_nan": Spelling(
        lambda args, step: Text(
            f"np.where(np.isnan({args[1].code}), {args[1].code}, {args[0].code})"
        ),
        _write_unless_nan,
        broadcasts=_ALL,
        in_place=(0,),
        inline=True,
    ),
    **{name: structure.viewed(name) for name in VIEWS},
    "slice_assign": Spelling(
        structure.read_copy,
        structure.write_slice_assign,
        broadcasts=(0, 1),
        in_place=(0,),
        amend=structure.amend_slice,
        needs=structure.assigned_part,
    ),
    "pad": Spelling(structure.read_pad, structure.write_pad, needs=structure.padding),
    "concat": Spelling(structure.read_concat, structure.write_concat, needs=structure.joined_parts),
    "gather": Spelling(structure.read_gather, structure.write_gather, fallible=True),
    "scatter_add": Spelling(
        structure.read_copy,
        structure.write_scatter,
        # NumPy's `add.at` reads past the end of an operand that it would have to repeat.
        broadcasts=(0,),
        in_place=(0,),
        amend=structure.amend_scatter,
        fallible=True,
    ),
    "matmul": Spelling(products.read_matmul, products.write_matmul, inline=True),
    "reduce_sum": _reduction("sum", "add", accumulates=True),
    "reduce_prod": _reduction("prod", "multiply", accumulates=True),
    "reduce_max": _reduction("max", "maximum", accumulates=False),
    "reduce_min": _reduction("min", "minimum", accumulates=False),
    "root_of_squares": Spelling(_read_root, _write_root, needs=_divisor),
    "argmax": _position("argmax"),
    "argmin": _position("argmin"),
    "cumsum": Spelling(_read_cumsum, _write_cumsum, needs=_reversed_parts),
    "full": Spelling(_read_full, _no_write),
    "constant": Spelling(lambda args, step: Text(""), _no_write),
    "iota": Spelling(_read_iota, _no_write),
    "random_uniform": _copied(_read_uniform),
    "random_bernoulli": _copied(_read_bernoulli),
}


@checked
def spell(op: Primitive, expression: str) -> None:
    """Let generated code have this NumPy expression for `op`, instead of a call of its `impl`.

    `{0}`, `{1}` and so on stand for the operands, `{name}` for the parameter of that name; `np`
    is all that the expression may use beside them. It gives a new array of the declared type, or
    raises an error. Kernels that use the primitive can then be saved as files.

    Raises `BuildError` for a primitive that has a row already or has several results, and for
    text that is no expression.
    """
    _require_expression(expression)
    if op.name in SPELLINGS or op.multiple:
        fault = "has several results" if op.multiple else "is written in NumPy already"
        raise BuildError(f"spell: primitive {op.name} {fault}")

    def read(args: Sequence[Text], step: Step) -> Text:
        params = {name: _parameter_text(value) for name, value in step.params.items()}
        text = expression.format(*(a.within(ATOM) for a in args), **params)
        whole = isinstance(ast.parse(text, mode="eval").body, ast.Call)
        return Text(text if whole else f"({text})")

    def write(to: Target) -> list[str]:
        return [f"{to.out}[...] = {read([Text(a) for a in to.args], to.step).code}"]

    SPELLINGS[op.name] = Spelling(read, write, fallible=True)


def _require_expression(expression: str) -> None:
    try:
        parts = list(Formatter().parse(expression))
        ast.parse("".join(text + ("x" if field else "") for text, field, *_ in parts), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise BuildError(
            f"spell: {expression!r:.80} is no expression: {error}",
            hint="write it as in: np.linalg.solve({0}, {1})",
        ) from None


def _parameter_text(value: Any) -> str:
    if isinstance(value, np.dtype):
        return dtype_text(value)
    if isinstance(value, tuple):
        inner = ", ".join(map(_parameter_text, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return scalar_text(value, np.dtype(np.float64))
