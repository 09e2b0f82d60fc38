"""Rules of elementwise primitives: arithmetic, comparisons, bits and conversions."""

from __future__ import annotations

import numpy as np

from primgraph.interop.jax.rules import (
    Site,
    constant,
    convert,
    emit,
    fit,
    full_like,
    register_plain,
    reshape,
    rule,
    sliced,
    stacked,
)
from primgraph.ir.types import BOOL, DType, real_dtype
from primgraph.operators.numpy_arguments import call_named
from primgraph.operators.variable import Variable
from primgraph.primitives import bits, logic, parts
from primgraph.primitives import elementwise as e

register_plain({
    "acos": e.arccos, "acosh": e.arccosh, "add": e.add, "add_any": e.add, "asin": e.arcsin,
    "asinh": e.arcsinh, "atan": e.arctan, "atanh": e.arctanh, "atan2": e.arctan2, "ceil": e.ceil,
    "complex": parts.complex_, "cos": e.cos, "cosh": e.cosh, "eq": logic.equal, "exp": e.exp,
    "expm1": e.expm1, "floor": e.floor, "imag": parts.imag, "log": e.log, "log1p": e.log1p,
    "mul": e.mul, "ne": logic.not_equal, "neg": e.neg, "nextafter": bits.nextafter,
    "real": parts.real, "rsqrt": e.rsqrt, "shift_left": bits.left_shift,
    "shift_right_arithmetic": bits.right_shift, "sin": e.sin, "sinh": e.sinh, "sqrt": e.sqrt,
    "sub": e.sub, "tan": e.tan, "tanh": e.tanh,
})  # fmt: skip


@rule("copy", "copy_p", "optimization_barrier", "device_put", "pvary", "reshard", "name",
      "sharding_constraint", "layout_constraint", "reduced_vary_cast_p", "xla_metadata_value",
      "tie", keys=True)  # fmt: skip
def _unchanged(at: Site, *operands: Variable) -> tuple[Variable, ...]:
    return operands[-len(at.types) :]


@rule("nondifferentiable_backward", "nontraceable")
def _guarded(at: Site, x: Variable) -> Variable:
    """Return `x`: equinox marks values whose derivative its callers should not need."""
    return x


@rule("stop_gradient")
def _stop_gradient(at: Site, x: Variable) -> Variable:
    return emit(e.stop_gradient, x)


@rule("square")
def _square(at: Site, x: Variable) -> Variable:
    return emit(e.mul, x, x)


@rule("integer_pow")
def _integer_pow(at: Site, x: Variable) -> Variable:
    return _whole_power(x, at["y"])


def _whole_power(x: Variable, n: int) -> Variable:
    if x.dtype.kind in "biu" or x.dtype.kind == "c":
        return _product_power(x, n)
    return emit(e.integer_pow, x, n=n)


def _product_power(x: Variable, n: int) -> Variable:
    """Return a power as products, by repeated squaring."""
    if n < 0:
        return emit(e.div, full_like(x, 1), _product_power(x, -n))
    found, square = None, x
    while n:
        if n % 2:
            found = square if found is None else emit(e.mul, found, square)
        n //= 2
        square = emit(e.mul, square, square) if n else square
    return full_like(x, 1) if found is None else found


@rule("pow", broadcasts=True)
def _pow(at: Site, x: Variable, y: Variable) -> Variable:
    if x.dtype.kind in "iu" and y.dtype.kind in "iu":
        return _power_of_integers(x, y)
    return emit(e.power, x, convert(y, x.dtype))


def _power_of_integers(x: Variable, y: Variable) -> Variable:
    """Return powers by repeated squaring, which is one at negative exponents."""
    found, square, rest = full_like(x, 1), x, y
    width = 8 * y.dtype.itemsize - (y.dtype.kind == "i")
    for _ in range(min(width, 8 * x.dtype.itemsize)):
        odd = emit(logic.not_equal, emit(bits.bitwise_and, rest, full_like(rest, 1)),
                   full_like(rest, 0))  # fmt: skip
        found = emit(logic.select, odd, emit(e.mul, found, square), found)
        square = emit(e.mul, square, square)
        rest = emit(bits.right_shift, rest, full_like(rest, 1))
    if y.dtype.kind == "u":
        return found
    return emit(logic.select, emit(logic.less, y, full_like(y, 0)), full_like(x, 1), found)


@rule("exp2", "cbrt")
def _operator(at: Site, x: Variable) -> Variable:
    found: Variable = call_named(at.name, x)
    return convert(found, at.dtype)


@rule("logistic")
def _logistic(at: Site, x: Variable) -> Variable:
    if not x.type.is_complex:
        return emit(e.sigmoid, x)
    one = full_like(x, 1)
    return emit(e.div, one, emit(e.add, one, emit(e.exp, emit(e.neg, x))))


@rule("sign")
def _sign(at: Site, x: Variable) -> Variable:
    if not x.type.is_complex:
        return emit(e.sign, x)
    size = emit(parts.modulus, x)
    is_zero = emit(logic.equal, size, full_like(size, 0))
    safe = emit(logic.select, is_zero, full_like(size, 1), size)
    return emit(e.div, x, convert(safe, x.dtype))


@rule("abs")
def _abs(at: Site, x: Variable) -> Variable:
    return emit(parts.modulus if x.type.is_complex else e.abs_, x)


@rule("conj")
def _conj(at: Site, x: Variable) -> Variable:
    return emit(parts.conj, convert(x, at.dtype))


@rule("round")
def _round(at: Site, x: Variable) -> Variable:
    if int(at["rounding_method"]) == 1:
        return emit(e.round_, x)
    # Away from zero at a half.
    size = emit(e.abs_, x)
    down = emit(e.floor, size)
    is_half = emit(logic.greater_equal, emit(e.sub, size, down), full_like(x, 0.5))
    whole = emit(logic.select, is_half, emit(e.add, down, full_like(x, 1)), down)
    found: Variable = call_named("copysign", whole, x)
    return found


@rule("is_finite")
def _is_finite(at: Site, x: Variable) -> Variable:
    found: Variable = call_named("isfinite", x)
    return found


# Quotients of integers, which JAX truncates.


@rule("div", broadcasts=True)
def _div(at: Site, x: Variable, y: Variable) -> Variable:
    return emit(e.div, x, y) if x.type.is_inexact else _quotient(x, y)


def _quotient(x: Variable, y: Variable) -> Variable:
    """Return the quotient of integers without its fraction; -1, all bits, for a division by 0."""
    zero = full_like(x, 0)
    by_zero = emit(logic.equal, y, zero)
    down = emit(e.floor_divide, x, y)
    if x.dtype.kind == "u":
        return emit(logic.select, by_zero, full_like(x, np.iinfo(x.dtype).max), down)
    rest = emit(e.sub, x, emit(e.mul, down, y))
    signs_differ = emit(logic.logical_xor, emit(logic.less, x, zero), emit(logic.less, y, zero))
    is_below = emit(logic.logical_and, emit(logic.not_equal, rest, zero), signs_differ)
    found = emit(logic.select, is_below, emit(e.add, down, full_like(x, 1)), down)
    return emit(logic.select, by_zero, full_like(x, -1), found)


@rule("rem", broadcasts=True)
def _rem(at: Site, x: Variable, y: Variable) -> Variable:
    if x.dtype.kind == "f":
        found: Variable = call_named("fmod", x, y)
        return found
    quotient = _quotient(x, y)
    return emit(e.sub, x, emit(e.mul, quotient, y))


# Extremes and choices.


@rule("max", "min", broadcasts=True)
def _extremum(at: Site, x: Variable, y: Variable) -> Variable:
    if x.dtype == BOOL:
        return emit(logic.logical_or if at.name == "max" else logic.logical_and, x, y)
    if x.type.is_complex:
        return extremum_of_complex(x, y, at.name == "max")
    return emit(e.maximum if at.name == "max" else e.minimum, x, y)


def extremum_of_complex(x: Variable, y: Variable, largest: bool) -> Variable:
    """Return the larger or the smaller of two numbers, by their real, then imaginary parts."""
    by = logic.greater if largest else logic.less
    (a, b), (c, d) = ((emit(parts.real, z), emit(parts.imag, z)) for z in (x, y))
    tied = emit(logic.logical_and, emit(logic.equal, a, c), emit(by, b, d))
    return emit(logic.select, emit(logic.logical_or, emit(by, a, c), tied), x, y)


@rule("lt", "le", "gt", "ge", "lt_to", "le_to", broadcasts=True)
def _order(at: Site, x: Variable, y: Variable) -> Variable:
    ops = {"lt": logic.less, "le": logic.less_equal, "gt": logic.greater,
           "ge": logic.greater_equal}  # fmt: skip
    name = at.name.removesuffix("_to")
    if name == at.name or x.dtype.kind != "f":
        return emit(ops[name], x, y)
    return emit(ops[name], _total_order(x), _total_order(y))


@rule("eq_to", broadcasts=True)
def _equal_in_order(at: Site, x: Variable, y: Variable) -> Variable:
    if x.dtype.kind != "f":
        return emit(logic.equal, x, y)
    return emit(logic.equal, _total_order(x), _total_order(y))


def _total_order(x: Variable) -> Variable:
    """Return integers in the total order of floats: -NaN, -inf, -0, 0, inf, NaN."""
    signed = np.dtype(f"i{x.dtype.itemsize}")
    number = emit(bits.bitcast, x, dtype=signed)
    flipped = emit(e.sub, full_like(number, np.iinfo(signed).min), number)
    below = emit(e.sub, flipped, full_like(number, 1))
    return emit(logic.select, emit(logic.less, number, full_like(number, 0)), below, number)


@rule("select_n")
def _select_n(at: Site, which: Variable, *cases: Variable) -> Variable:
    if len(cases) == 1:
        return cases[0]
    chosen = fit(which, at.shape)
    if which.dtype == BOOL:
        return emit(logic.select, chosen, cases[1], cases[0])
    found = cases[-1]
    for number in reversed(range(len(cases) - 1)):
        below = emit(logic.less, chosen, full_like(chosen, number + 1))
        found = emit(logic.select, below, cases[number], found)
    return found


@rule("clamp")
def _clamp(at: Site, low: Variable, x: Variable, high: Variable) -> Variable:
    low, high = fit(low, x.shape), fit(high, x.shape)
    if not x.type.is_inexact:
        return emit(e.minimum, emit(e.maximum, x, low), high)
    # As in JAX, the derivative is one between the bounds, and zero at these.
    inside = emit(logic.logical_and, emit(logic.greater, x, low), emit(logic.less, x, high))
    held = emit(e.minimum, emit(e.maximum, emit(e.stop_gradient, x), low), high)
    return emit(logic.select, inside, x, held)


# Logic and bits.


_LOGIC = {
    "and": (logic.logical_and, bits.bitwise_and),
    "or": (logic.logical_or, bits.bitwise_or),
    "xor": (logic.logical_xor, bits.bitwise_xor),
    "not": (logic.logical_not, bits.bitwise_not),
}


@rule(*_LOGIC, broadcasts=True)
def _logic(at: Site, *operands: Variable) -> Variable:
    return emit(_LOGIC[at.name][at.dtype != BOOL], *operands)


@rule("shift_right_logical", broadcasts=True)
def _shift_right_logical(at: Site, x: Variable, y: Variable) -> Variable:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    moved = emit(bits.right_shift, convert(x, unsigned), convert(y, unsigned))
    return convert(moved, x.dtype)


@rule("population_count")
def _population_count(at: Site, x: Variable) -> Variable:
    found: Variable = call_named("bitwise_count", convert(x, np.dtype(f"u{x.dtype.itemsize}")))
    return convert(found, at.dtype)


@rule("clz")
def _clz(at: Site, x: Variable) -> Variable:
    """The number of zeros before the first one: of the bits that are not set after filling."""
    width = 8 * x.dtype.itemsize
    filled = convert(x, np.dtype(f"u{x.dtype.itemsize}"))
    step = 1
    while step < width:
        moved = emit(bits.right_shift, filled, full_like(filled, step))
        filled = emit(bits.bitwise_or, filled, moved)
        step *= 2
    count = convert(call_named("bitwise_count", filled), at.dtype)
    return emit(e.sub, full_like(count, width), count)


@rule("mulhi", broadcasts=True)
def _mulhi(at: Site, x: Variable, y: Variable) -> Variable:
    """The upper half of products, from products of halves of the factors."""
    wide = np.dtype(f"{x.dtype.kind}{2 * x.dtype.itemsize}")
    if x.dtype.itemsize < 8:
        product = emit(e.mul, convert(x, wide), convert(y, wide))
        return convert(_shifted(product, 8 * x.dtype.itemsize), x.dtype)
    mask = full_like(x, 0xFFFFFFFF)
    (a, b), (c, d) = ((_shifted(v, 32), emit(bits.bitwise_and, v, mask)) for v in (x, y))
    low = _shifted(emit(e.mul, *(convert(v, np.dtype("u8")) for v in (b, d))), 32)
    middle = emit(e.add, emit(e.mul, a, d), convert(low, x.dtype))
    inner = emit(e.add, emit(bits.bitwise_and, middle, mask), emit(e.mul, b, c))
    upper = emit(e.add, emit(e.mul, a, c), _shifted(middle, 32))
    return emit(e.add, upper, _shifted(inner, 32))


def _shifted(x: Variable, count: int) -> Variable:
    return emit(bits.right_shift, x, full_like(x, count))


# Conversions.


@rule("convert_element_type", "to_edtype", "from_edtype")
def _convert_element_type(at: Site, x: Variable) -> Variable:
    target = at.dtype
    if x.type.is_complex and target.kind not in "bc":
        x = emit(parts.real, x)
    if x.dtype.kind == "f" and target.kind in "iu":
        return _to_integer(x, target)
    return convert(x, target)


def _to_integer(x: Variable, target: DType) -> Variable:
    """Return floats truncated to integers: the nearest ones beyond the range, and 0 for NaN."""
    info = np.iinfo(target)
    # The first float beyond the range; the range of wide integers exceeds that of float16.
    bound = 2.0 ** (8 * target.itemsize - (target.kind == "i"))
    fits = float(np.finfo(x.dtype).max) >= bound
    least = emit(logic.less_equal, x, full_like(x, float(info.min) if fits or info.min == 0
                                                else -np.inf))  # fmt: skip
    most = emit(logic.greater_equal, x, full_like(x, bound if fits else np.inf))
    is_nan = emit(logic.not_equal, x, x)
    outside = emit(logic.logical_or, emit(logic.logical_or, least, most), is_nan)
    inner = convert(emit(logic.select, outside, full_like(x, 0), x), target)
    found = emit(logic.select, most, full_like(inner, info.max), inner)
    return emit(logic.select, least, full_like(inner, info.min), found)


@rule("bitcast_convert_type")
def _bitcast_convert_type(at: Site, x: Variable) -> Variable:
    source, target = x.dtype, np.dtype(at["new_dtype"])
    if source == target:
        return x
    if BOOL in (source, target):
        return convert(x, target)
    if source.itemsize == target.itemsize:
        return emit(bits.bitcast, x, dtype=target)
    if source.itemsize > target.itemsize:
        return _split_bits(x, target)
    return _join_bits(x, target)


def _split_bits(x: Variable, target: DType) -> Variable:
    """Return numbers as several narrower ones each, the lowest bits first."""
    whole = _as_bits(x)
    part, width = np.dtype(f"u{target.itemsize}"), 8 * target.itemsize
    pieces = [
        convert(_shifted(whole, k * width), part)
        for k in range(x.dtype.itemsize // target.itemsize)
    ]
    return _from_bits(stacked(pieces, x.ndim), target)


def _join_bits(x: Variable, target: DType) -> Variable:
    """Return the numbers whose lowest bits come first along the last axis."""
    pieces, width = convert(_as_bits(x), np.dtype(f"u{target.itemsize}")), 8 * x.dtype.itemsize
    found = None
    for k in range(target.itemsize // x.dtype.itemsize):
        piece = reshape(sliced(pieces, x.ndim - 1, k, 1), x.shape[:-1])
        moved = emit(bits.left_shift, piece, full_like(piece, k * width)) if k else piece
        found = moved if found is None else emit(bits.bitwise_or, found, moved)
    assert found is not None
    return _from_bits(found, target)


def _as_bits(x: Variable) -> Variable:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return x if x.dtype == unsigned else emit(bits.bitcast, x, dtype=unsigned)


def _from_bits(x: Variable, target: DType) -> Variable:
    return x if x.dtype == target else emit(bits.bitcast, x, dtype=target)


@rule("reduce_precision")
def _reduce_precision(at: Site, x: Variable) -> Variable:
    """Round to fewer bits of the significand and of the exponent, ties to even."""
    if x.type.is_complex:
        both = [_rounded(emit(p, x), at) for p in (parts.real, parts.imag)]
        return emit(parts.complex_, *both)
    return _rounded(x, at)


def _rounded(x: Variable, at: Site) -> Variable:
    info = np.finfo(real_dtype(x.dtype))
    exponent, fraction = min(at["exponent_bits"], info.nexp), at["mantissa_bits"]
    found = x
    if fraction < info.nmant:
        number, dropped = _as_bits(x), info.nmant - fraction
        last = emit(bits.bitwise_and, _shifted(number, dropped), full_like(number, 1))
        half = emit(e.add, last, full_like(number, (1 << (dropped - 1)) - 1))
        mask = full_like(number, ~((1 << dropped) - 1) & (2**info.bits - 1))
        rounded = emit(bits.bitwise_and, emit(e.add, number, half), mask)
        finite = emit(logic.equal, x, x)
        found = emit(logic.select, finite, _from_bits(rounded, x.dtype), x)
    if exponent == info.nexp:
        return found
    top = 2 ** (exponent - 1) - 1
    largest = 2.0**top * (2.0 - 2.0**-fraction)
    size = emit(e.abs_, found)
    sign = call_named("copysign", full_like(x, 1), x)
    over = emit(logic.greater, size, full_like(x, min(largest, float(info.max))))
    tiny = emit(logic.less, size, full_like(x, 2.0 ** (1 - top)))
    found = emit(logic.select, over, emit(e.mul, sign, full_like(x, np.inf)), found)
    return emit(logic.select, tiny, emit(e.mul, sign, full_like(x, 0)), found)


@rule("empty", "empty2")
def _empty(at: Site) -> Variable:
    return constant(0, at.dtype, at.shape)
