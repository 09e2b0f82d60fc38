"""Cards of reductions and scans along axes; float16 accumulates in float32."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from primgraph.codegen.ir.axis_semantics import Axes, Blocking, Role
from primgraph.codegen.ir.card import Site
from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.places import Place
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, Marks, array_card
from primgraph.codegen.ops.cost_model import MOVED, per_element
from primgraph.codegen.ops.shapes import ALONG
from primgraph.codegen.ops.spelling.complex_step import (
    ANALYTIC,
    MARGIN,
    Arrays,
    ComplexStep,
    Smooth,
    as_on_reals,
    smooth_everywhere,
)
from primgraph.codegen.ops.spelling.library import call, library
from primgraph.codegen.ops.spelling.literals import converted, dtype_text, scalar_text
from primgraph.codegen.ops.spelling.notation import Needs, Read, Target, reading, statements
from primgraph.codegen.ops.spelling.numbers import Number, Numbers
from primgraph.codegen.ops.spelling.scalar import Elements, Scalar, each, element_rule, total
from primgraph.ir.primitive import Op
from primgraph.ir.types import FLOAT16, FLOAT32, FLOAT64, INT64, DType
from primgraph.ir.views import flip_view
from primgraph.primitives import reductions as r
from primgraph.primitives.elementwise import div, mul
from primgraph.primitives.reductions import safe_squares

# Expressions and statements.


def _axis_arguments(step: Step) -> dict[str, Any]:
    """Return the axis and keepdims arguments of a reduction."""
    axes, ndim = step.params["axes"], step.operands[0].ndim
    kept = {"keepdims": True} if axes and step.results[0].ndim == ndim else {}
    if axes and axes == tuple(range(ndim)) and not (kept and library().names_axes):
        return kept
    return {"axis": axes[0] if len(axes) == 1 else axes, **kept}


def _reduction(name: str, ufunc: str, scalar: Scalar, complex_step: ComplexStep) -> Card:
    """Return the card of `np.<name>`, which is a reduction by `ufunc`."""

    def read(args: Sequence[Text], step: Step) -> Text:
        return Text(accumulating(name, ufunc, step, args[0].code, **_axis_arguments(step)))

    def write(to: Target) -> list[str]:
        axes = to.step.params["axes"]
        if to.parts:
            return [_product_with_ones(to)]
        axis = axes[0] if len(axes) == 1 else axes
        return _accumulate(to, f"{ufunc}.reduce", axis, to.args[0], to.out)

    made = array_card(read, write, None, _reduction_blocking(ufunc), MOVED, complex_step)
    return replace(made, scalar=scalar, marks=Marks.REDUCED)


def _summation_operands(site: Site) -> Sequence[Place]:
    return site.sum_operands(site.step.params["axes"])


def _product_with_ones(to: Target) -> str:
    """Return a sum over the first or the last axes as a product with ones, as BLAS is faster."""
    (ones, out, x), axes, ndim = to.parts, to.step.params["axes"], to.step.operands[0].ndim
    last = tuple(axes) == tuple(range(ndim - len(axes), ndim))
    factors = f"{x}, {ones}" if last else f"{ones}, {x}"
    return f"{to.np('dot')}({factors}, {out})"


def _read_root(args: Sequence[Text], step: Step) -> Text:
    divisor = step.params["divisor"]
    named = _axis_arguments(step)
    if divisor != 1:
        named["divisor"] = scalar_text(divisor, FLOAT64)
    last = "".join([f", {name}={value}" for name, value in named.items()])
    return Text(f"root_of_squares({args[0].code}, {args[1].code}{last})")


def _divisor(site: Site) -> Sequence[Place]:
    divisor = site.step.params["divisor"]
    return [] if divisor == 1 else [site.number(divisor, site.step.results[0].dtype)]


def _write_root(to: Target) -> list[str]:
    """Write NumPy's square root, and a call of a helper for sums that over- or underflowed."""
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


def _position(name: str, function: Callable[..., Any], smooth: Smooth) -> Card:
    """Return the card of the index of the first extremum along an axis."""
    return array_card(
        reading(f"np.{name}({{0}}, axis={{axis}})"),
        statements(f"{{0}}.{name}({{axis}}, {{out}})"),
        None,
        Blocking(_rows_of_position, 0, ""),
        MOVED,
        ComplexStep(as_on_reals(function), partial=False, smooth=smooth),
    )


# Sums and products: NumPy widens small integers by default, and rounds float16 in each step.


def _wide_dtype(ufunc: str, dtype: DType) -> DType | None:
    """Return the dtype to accumulate in, None for NumPy's choice."""
    if ufunc not in ("add", "multiply"):
        return None
    if dtype == FLOAT16:
        return FLOAT32
    return dtype if dtype.kind in "iu" and dtype.itemsize < INT64.itemsize else None


def accumulating(name: str, ufunc: str, step: Step, x: str, **keywords: Any) -> str:
    """Return a call that accumulates by a ufunc, with the dtype behind its other arguments."""
    dtype = step.results[0].dtype
    wide = _wide_dtype(ufunc, dtype)
    if wide is None:
        return call(name, x, **keywords)
    made = call(name, x, **keywords, dtype=dtype_text(wide))
    return made if wide == dtype else converted(made, dtype)


def _accumulate(to: Target, name: str, axis: Any, x: str, out: str) -> list[str]:
    """Return the statement that accumulates into `out`."""
    dtype, call = to.step.results[0].dtype, f"{to.np(name)}({x}, {axis}"
    wide = _wide_dtype(name.partition(".")[0], dtype)
    if wide is None:
        return [f"{call}, None, {out})"]
    text = to.np(dtype_text(wide)[3:])
    return [f"{call}, {text}, {out})" if wide == dtype else f"{out}[...] = {call}, {text})"]


def _read_cumsum(args: Sequence[Text], step: Step) -> Text:
    axis = step.params["axis"]
    flip = flip_view((axis,)) if step.params["reverse"] else None
    x = args[0].code if flip is None else library().view(flip, args[0])
    total = accumulating("cumsum", "add", step, x, axis=axis)
    return Text(library().view(flip, Text(total)))


def _reversed_parts(site: Site) -> Sequence[Place]:
    if not site.step.params["reverse"]:
        return []
    flip = flip_view((site.step.params["axis"],))
    return [site.operand_part(0, flip), site.part(flip)]


def accumulation_card(
    read: Read, ufunc: str, needs: Needs | None, complex_step: ComplexStep | None
) -> Card:
    """Return the card of a ufunc's accumulation along an axis; sums and products round once."""

    def write(to: Target) -> list[str]:
        x, out = to.parts or (to.args[0], to.out)
        return _accumulate(to, f"{ufunc}.accumulate", to.step.params["axis"], x, out)

    return array_card(read, write, needs, ALONG, per_element(3.0, 3.0), complex_step)


# Rows of the result, and of operands.


def _reduction_blocking(combine: str) -> Blocking:
    def rule(step: Step, axes: Axes) -> Role | None:
        axis, reduced = axes[0], step.params["axes"]
        assert axis is not None
        if axis not in reduced:
            return Role(axis - sum(a < axis for a in reduced), (axis,))
        dtype = step.results[0].dtype
        # A product that underflows before it meets an infinity is NaN in one order only. Partial
        # sums of float16 need a wider dtype than the result has.
        if combine == "multiply" and dtype.kind in "fc":
            return None
        if combine == "add" and dtype == FLOAT16:
            return None
        return Role(None, (axis,), combine)

    return Blocking(rule, 0, "")


def _rows_of_root(step: Step, axes: Axes) -> Role | None:
    """Return the role: rows of the sums belong to rows of the operand, not along reduced axes."""
    reduced = step.params["axes"]
    remaining = [a for a in range(step.operands[0].ndim) if a not in reduced]
    whole, total = axes
    if whole is None:
        assert total is not None
        whole = remaining[total]
    if whole in reduced or total not in (None, remaining.index(whole)):
        return None
    place = remaining.index(whole)
    return Role(place, (whole, place))


def _rows_of_position(step: Step, axes: Axes) -> Role | None:
    axis, reduced = axes[0], step.params["axis"]
    assert axis is not None
    return None if axis == reduced else Role(axis - (reduced < axis), (axis,))


# Expressions of elements.

# From this length on NumPy does not sum in the order of elements.
_PAIRWISE = 8


def _sums(step: Step, elements: Elements, new: Numbers) -> list[Number] | None:
    """Return sums along the last axis in NumPy's order; None if the order is uncertain."""
    last = elements.ndim - 1
    if step.operands[0].dtype != FLOAT64 or step.params["axes"] != (last,):
        return None
    rows = elements.reshape(-1, elements.shape[last]).tolist()
    if len(rows[0]) >= _PAIRWISE and last:
        return None
    return [_sum(new, row) for row in rows]


def _sum(new: Numbers, terms: Sequence[Number]) -> Number:
    """Return NumPy's sum of a row: eight partial sums, then the remaining terms one by one.

    A sum of negative zeros is a positive zero.
    """
    whole = len(terms) - len(terms) % _PAIRWISE
    if not whole:
        return total(new, terms)
    heads = [reduce(partial(new, "+"), terms[k:whole:_PAIRWISE]) for k in range(_PAIRWISE)]
    while len(heads) > 1:
        heads = [new("+", a, b) for a, b in zip(heads[::2], heads[1::2], strict=True)]
    return total(new, [heads[0], *terms[whole:]])


def _scalar_sum(
    step: Step, operands: Sequence[Elements], in_order: bool, new: Numbers
) -> Sequence[Number] | None:
    if step.operands[0].size > step.results[0].size:
        return _sums(step, operands[0], new) if in_order else None
    return _sum_of_one(step, operands, in_order, new)


_sum_of_one = element_rule(lambda new, args, step: total(new, args[:1]))


def _scalar_root(
    step: Step, operands: Sequence[Elements], in_order: bool, new: Numbers
) -> list[Number]:
    """Return roots of sums of squares; a sum that has to be recomputed raises."""
    low, high = map(new.constant, safe_squares(step.results[0].dtype))
    divisor, found = new.constant(float(step.params["divisor"])), []
    for squares in operands[1].ravel().tolist():
        safe = new("and", new("<=", low, squares), new("<=", squares, high))
        quotient = new("/", squares, divisor)
        found.append(new("sqrt", new("if", safe, quotient, new.constant(-1.0))))
    return found


# Of an axis of one element.
_ONE = each(lambda new, args, step: args[0])
_ONE_FLOAT = each(lambda new, args, step: args[0] if step.operands[0].dtype == FLOAT64 else None)


# Complex numbers. A tie of two numbers that vary together is not a kink.


def _extremum(argument: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that selects the element with the extreme real part over axes."""

    def rule(x: Any, *, axes: tuple[int, ...]) -> Any:
        kept = [i for i in range(x.ndim) if i not in axes]
        shape = [x.shape[i] for i in kept]
        count = math.prod(x.shape[a] for a in axes)
        flat = np.transpose(x, (*kept, *axes)).reshape((*shape, count))
        if flat.size == 0:
            return np.zeros(shape, complex)
        place = argument(np.real(flat), axis=-1)
        return np.take_along_axis(flat, np.expand_dims(place, -1), -1)[..., 0]

    return rule


def _leads(x: Any, axes: tuple[int, ...]) -> bool:
    """Return whether all elements near the maximum over `axes` have its derivative."""
    if x.size == 0:
        return True
    top = np.expand_dims(_extremum(np.argmax)(x, axes=axes), axes)
    near = x.real > top.real - MARGIN
    return not np.any(near & (x.imag != top.imag))


def _largest_leads(inputs: Arrays, params: dict[str, Any]) -> bool:
    return _leads(inputs[0], params["axes"] if "axes" in params else (params["axis"],))


def _smallest_leads(inputs: Arrays, params: dict[str, Any]) -> bool:
    return _largest_leads([-inputs[0]], params)


def _complex_root(x: Any, squares: Any, **params: Any) -> Any:
    value = r.root_of_squares.impl(np.real(x), np.real(squares), **params)
    unit = np.real(x) / np.expand_dims(value, params["axes"])
    slope = np.sum(unit * np.imag(x), axis=params["axes"]) / params["divisor"]
    return value + 1j * slope


def _is_long(inputs: Arrays, params: dict[str, Any]) -> bool:
    return bool(np.all(np.real(_complex_root(*inputs, **params)) > MARGIN))


# NumPy's mean, of which the graph has the sum and a quotient.
MEAN = _reduction("mean", "add", _ONE_FLOAT, ANALYTIC)


def is_divided_by_count(step: Step, reader: Step, numbers: Mapping[int, Any]) -> bool:
    """Return whether a step is a sum that `reader` divides by the number of its terms.

    NumPy's mean is this quotient to the bit. So is the product with the inverse of a power of two.
    `numbers` has the operands of `reader` that are numbers.
    """
    if step.op is not r.reduce_sum or not step.params["axes"]:
        return False
    if step.results[0].dtype not in (FLOAT32, FLOAT64):
        return False
    sizes = [step.operands[0].shape[a] for a in step.params["axes"]]
    if reader.results != step.results or any(type(n) is not int for n in sizes):
        return False
    count, (first, *others) = math.prod(sizes), reader.inputs
    if reader.op is div:
        return first == step.outputs[0] and count > 0 and bool(numbers.get(others[0]) == count)
    if reader.op is not mul or count.bit_count() != 1:
        return False
    return any(number == 1 / count for number in numbers.values() if number is not None)


CARDS: dict[Op, Card] = {
    r.reduce_sum: replace(
        _reduction("sum", "add", Scalar(_scalar_sum), ANALYTIC),
        needs=_summation_operands,
        blas=True,
    ),
    r.reduce_prod: _reduction(
        "prod", "multiply", _ONE_FLOAT, ANALYTIC._replace(smooth=smooth_everywhere)
    ),
    r.reduce_max: _reduction(
        "max", "maximum", _ONE, ComplexStep(_extremum(np.argmax), False, _largest_leads)
    ),
    r.reduce_min: _reduction(
        "min", "minimum", _ONE, ComplexStep(_extremum(np.argmin), False, _smallest_leads)
    ),
    r.root_of_squares: replace(
        array_card(
            _read_root,
            _write_root,
            _divisor,
            Blocking(_rows_of_root, 0, ""),
            # Elements are read only if a sum over- or underflowed.
            per_element(0.0, 0.0),
            ComplexStep(_complex_root, partial=False, smooth=_is_long),
        ),
        scalar=Scalar(_scalar_root),
        helper="root_of_squares",
    ),
    r.argmax: _position("argmax", np.argmax, _largest_leads),
    r.argmin: _position("argmin", np.argmin, _smallest_leads),
    r.cumsum: accumulation_card(_read_cumsum, "add", _reversed_parts, ANALYTIC),
}
