"""Numbers, dtypes and arrays as Python text that evaluates to the same bits."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from primgraph.codegen.ir.extents import extent_text, extents_text
from primgraph.codegen.ir.views import tuple_text
from primgraph.codegen.ops.spelling.library import call, library
from primgraph.ir.dims import Dim
from primgraph.ir.params import bits
from primgraph.ir.types import DType, Shape, real_dtype, scalar_of

# Arrays up to this size are written number by number.
SPELLED = 8
# Arrays up to this size are written number by number, in rows of several lines.
_LISTED = 64
# Elements of which so few are not zero are set one by one.
_FEW = 4
_LONGEST_ROW = 16
_LINE = 88


def dtype_text(dtype: DType) -> str:
    """Return the name of the dtype, such as `np.float32`."""
    return library().function("bool_" if dtype.kind == "b" else dtype.name)


def dtype_argument(dtype: DType) -> str:
    """Return a dtype as the last argument of a function."""
    return f"{library().dtype}{dtype_text(dtype)}"


def converted(code: str, dtype: DType) -> str:
    """Return the array of an expression, converted to a dtype."""
    return f"{code}.{library().word('astype')}({dtype_text(dtype)})"


def shape_text(shape: Shape) -> str:
    return extents_text(shape) if any(type(n) is Dim for n in shape) else repr(shape)


def scalar_text(value: Any, dtype: DType) -> str:
    """Return the shortest text of a Python scalar that `dtype` represents exactly.

    A symbolic size is returned as an expression.
    """
    if type(value) is Dim:
        return extent_text(value)
    if isinstance(value, complex):
        return _complex_text(value, real_dtype(dtype))
    if not isinstance(value, float):
        return repr(value)
    if value != value:
        return library().function("nan")
    if value in (np.inf, -np.inf):
        return f"{'' if value > 0 else '-'}{library().function('inf')}"
    if dtype.itemsize < 8:
        short = repr(float(str(dtype.type(value))))
        # torch refuses numbers beyond the largest of a dtype, which round to it.
        is_near = bits(dtype.type(float(short)).item()) == bits(value)
        if is_near and abs(float(short)) <= np.finfo(dtype).max:
            return short
    return repr(value)


def parameter_text(value: Any) -> str:
    """Return the expression of a parameter: a number, a dtype, or a tuple of them."""
    if isinstance(value, np.dtype):
        return dtype_text(value)
    if isinstance(value, tuple):
        return tuple_text(list(map(parameter_text, value)))
    return scalar_text(value, np.dtype(np.float64))


def _complex_text(number: complex, dtype: DType) -> str:
    """Return a complex number: a real one, an imaginary one, or a sum that keeps both parts.

    `complex` joins parts where a sum would lose a signed zero, an infinity or a NaN.
    """
    real, imaginary = (scalar_text(x, dtype) for x in (number.real, number.imag))
    if bits(number.imag) == bits(0.0):
        return real
    if bits(number.real) == bits(0.0) and math.isfinite(number.imag) and number.imag > 0:
        return f"{imaginary}j"
    if all(map(math.isfinite, (number.real, number.imag))) and number.real and number.imag:
        sign, size = ("-", imaginary[1:]) if is_negative(imaginary) else ("+", imaginary)
        return f"({real} {sign} {size}j)"
    return f"complex({real}, {imaginary})"


def is_negative(text: str) -> bool:
    return text.startswith("-")


def is_weak_default(dtype: DType) -> bool:
    """Return whether a bare Python scalar becomes an array of this dtype."""
    return dtype in (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_))


def full_text(value: Any, shape: Shape, dtype: DType) -> str:
    """Return the expression of a new array with all elements equal to `value`."""
    where = f"{shape_text(shape)}{array_dtype(dtype)}"
    if type(value) is Dim:
        return call("full", shape_text(shape), extent_text(value), dtype_argument(dtype))
    if bits(value) in (bits(0.0), bits(0), bits(False), bits(0j)):
        return call("zeros", where)
    if bits(value) in (bits(1.0), bits(1), bits(True), bits(complex(1))):
        return call("ones", where)
    number = scalar_text(scalar_of(value, dtype), dtype)
    return call("full", shape_text(shape), f"{number}{array_dtype(dtype)}")


def array_dtype(dtype: DType) -> str:
    """Return the last argument of `np.zeros` and others; empty for float64, NumPy's default."""
    return "" if dtype.name == library().default else f", {dtype_argument(dtype)}"


def is_spelled(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array is small, and has no NaN, whose bits a literal cannot express."""
    return array.size <= SPELLED and not _has_nan(array)


def _has_nan(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())


def array_text(array: np.ndarray[Any, Any]) -> str:
    """Return a small array as `np.array` of nested lists, reshaped if it is empty."""
    if array.size == 0 and array.ndim > 1:
        return f"np.array([], {dtype_text(array.dtype)}).reshape({shape_text(array.shape)})"
    natural = array.size > 0 and is_weak_default(array.dtype)
    dtype = "" if natural else f", {dtype_text(array.dtype)}"
    return f"np.array({rows_text(array)}{dtype})"


def rows_text(array: np.ndarray[Any, Any]) -> str:
    """Return the elements of an array as nested lists."""

    def format_rows(rows: Any) -> str:
        if isinstance(rows, list):
            return f"[{', '.join(map(format_rows, rows))}]"
        return scalar_text(rows, array.dtype)

    return format_rows(array.tolist())


def array_lines(name: str, array: np.ndarray[Any, Any], *, changes: bool = True) -> list[str]:
    """Return statements that bind `name` to an array of any size.

    Unless an array `changes`, no statement assigns to its elements.

    The array is written as a pattern or number by number. A large one without a pattern, one with
    NaN, and one that fits no rows is written as hexadecimal digits of its bytes.
    """
    text = short_text(array)
    if text is not None:
        return [f"{name} = {text}"]
    sparse = _sparse_lines(name, array) if changes else None
    if sparse is not None:
        return sparse
    rows = None if array.size > _LISTED or _has_nan(array) else _listed_lines(name, array)
    if rows is not None:
        return rows
    little = array.dtype.newbyteorder("<")
    digits = array.astype(little, copy=False).tobytes().hex()
    parts = [f'    "{part}"' for part in textwrap.wrap(digits, _LINE - len('    ""'))]
    read = f'np.frombuffer({name}, "{little.str}").astype({dtype_text(array.dtype)})'
    return [
        *_one_line(f"{name} = bytes.fromhex(", parts),
        f"{name} = {read}.reshape({shape_text(array.shape)})",
    ]


def _sparse_lines(name: str, array: np.ndarray[Any, Any]) -> list[str] | None:
    """Return statements that set the few elements of an array that are not zero, or None."""
    if array.size <= SPELLED or array.ndim < 2 or _has_nan(array):
        return None
    octets = np.frombuffer(array.tobytes(), np.uint8).reshape(*array.shape, array.itemsize)
    where = np.nonzero(octets.any(axis=-1))
    if len(where[0]) > _FEW:
        return None
    values = [scalar_text(x, array.dtype) for x in array[where].tolist()]
    value = values[0] if len(set(values)) == 1 else f"[{', '.join(values)}]"
    axes = [str(a[0]) if len(set(a.tolist())) == 1 else str(a.tolist()) for a in where]
    return [
        f"{name} = np.zeros({shape_text(array.shape)}{array_dtype(array.dtype)})",
        f"{name}[{', '.join(axes)}] = {value}",
    ]


def _listed_lines(name: str, array: np.ndarray[Any, Any]) -> list[str] | None:
    """Return a statement with all numbers, in lines as a formatter leaves them.

    A row has a line, or each of its numbers if they are few. Returns None for other rows.
    """
    texts = [scalar_text(x, array.dtype) for x in array.reshape(-1).tolist()]
    width = _row_width(texts, array)
    rows = [texts[i : i + width] for i in range(0, len(texts), width)]
    reshaped = "" if array.ndim == 2 else f".reshape({shape_text(array.shape)})"
    if _fits(rows):
        lines = [f"        [{', '.join(row)}]," for row in rows]
    elif len(texts) > _LONGEST_ROW:
        return None
    elif array.ndim == 1:
        lines, reshaped = [f"        {text}," for text in texts], ""
    else:
        split = [("[", *(f"    {text}," for text in row), "],") for row in rows]
        lines = [f"        {line}" for row in split for line in row]
    dtype = [] if is_weak_default(array.dtype) else [f"    {dtype_text(array.dtype)},"]
    return [f"{name} = np.array(", "    [", *lines, "    ],", *dtype, f"){reshaped}"]


def _row_width(texts: Sequence[str], array: np.ndarray[Any, Any]) -> int:
    """Return the number of elements in a row: the last axis, or of a vector what fits in a line."""
    if array.ndim > 1:
        return int(array.shape[-1])
    widths = (w for w in range(_LONGEST_ROW, 1, -1) if len(texts) % w == 0)
    rows_of = (w for w in widths if _fits([texts[i : i + w] for i in range(0, len(texts), w)]))
    return next(rows_of, len(texts))


def _fits(rows: Sequence[Sequence[str]]) -> bool:
    return max(len(", ".join(row)) for row in rows) <= _LINE - len("        [],")


def _one_line(opening: str, rows: Sequence[str]) -> list[str]:
    """Return a call with lines of text as its argument, in one line if it fits."""
    line = f"{opening}{''.join(rows).strip()})"
    return [line] if len(rows) == 1 and len(line) <= _LINE else [opening, *rows, ")"]


def short_text(array: np.ndarray[Any, Any]) -> str | None:
    """Return an array as the call that creates it, if it is small or has a known pattern."""
    pattern = pattern_text(array)
    if not is_spelled(array):
        return pattern
    numbers = array_text(array)
    return pattern if pattern is not None and len(pattern) < len(numbers) else numbers


# Patterns: a call is proposed from a few elements, and accepted if it gives the same bits.


def pattern_text(array: np.ndarray[Any, Any]) -> str | None:
    """Return `np.eye`, `np.tril`, `np.arange` or similar for an equal array, or None."""
    texts = [
        text
        for text, made in _proposed_calls(array)
        if (made.shape, made.dtype) == (array.shape, array.dtype)
        and made.tobytes() == array.tobytes()
    ]
    return min(texts, key=len, default=None)


def _proposed_calls(array: np.ndarray[Any, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield calls that may create `array`, with their results."""
    if array.size == 0 or not array.shape:
        return
    dtype = array.dtype
    first, last = array.reshape(-1)[[0, -1]].tolist()
    if bits(first) == bits(last):
        # A literal expresses only one NaN.
        number = scalar_of(first, dtype)
        yield full_text(number, array.shape, dtype), np.full(array.shape, number, dtype)
    if array.ndim == 2 and array.shape[0] == array.shape[1] > 1 and dtype == np.float64:
        diagonal = np.diagonal(array)
        text = ", ".join(scalar_text(x, dtype) for x in diagonal.tolist())
        yield f"np.diag([{text}])", np.diag(diagonal)
    if array.ndim == 2 and min(array.shape) > 1 and {first, last} <= {0, 1}:
        yield from _proposed_matrices(array)
    if array.ndim == 2 and array.size > SPELLED and dtype.kind in "iuf":
        yield from _proposed_multiples(array)
    if array.ndim == 3 and array.size > SPELLED and array.shape[2] > 1:
        yield from _proposed_repeats(array)
    flat = array.reshape(-1)
    if dtype.kind in "iuf" and flat.size > 2:
        reshaped = "" if array.ndim == 1 else f".reshape({shape_text(array.shape)})"
        for text, made in _proposed_ranges(flat):
            yield text + reshaped, made.reshape(array.shape)


def _proposed_matrices(array: np.ndarray[Any, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield matrices of zeros and ones that a diagonal divides, derived from their borders."""
    (n, m), dtype = array.shape, array.dtype
    row, column = array[0] != 0, array[:, 0] != 0
    down = -int(np.argmax(column))
    k = int(np.argmax(row)) if row.any() else down
    size = f"{n}" if n == m and not k else f"{n}, {m}, {k}" if k else f"{n}, {m}"
    yield f"np.eye({size}{_dtype_argument(dtype, 'float64')})", np.eye(n, m, k, dtype)
    ones = np.ones((n, m), dtype)
    text = full_text(ones[0, 0].item(), (n, m), dtype)
    k = int(row.sum()) - 1 if row.any() else down
    yield f"np.tril({text}{f', {k}' if k else ''})", np.tril(ones, k)
    k = 1 - int(column.sum()) if row[0] else int(np.argmax(row))
    yield f"np.triu({text}{f', {k}' if k else ''})", np.triu(ones, k)


def _proposed_repeats(array: np.ndarray[Any, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield a matrix with a pattern whose elements are repeated along the last axis."""
    n, matrix = array.shape[2], np.ascontiguousarray(array[:, :, 0])
    text = pattern_text(matrix)
    if text is not None:
        repeated = np.repeat(matrix[:, :, None], n, axis=2)
        operand = f"({text})" if " * " in text else text
        yield f"np.repeat({operand}[:, :, None], {n}, axis=2)", repeated


def _proposed_multiples(array: np.ndarray[Any, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield a number times a matrix of zeros and ones with a pattern."""
    border = np.concatenate([array[0], array[:, 0]])
    nonzero = border[border != 0]
    if not nonzero.size or nonzero[0] == 1:
        return
    number = nonzero[0]
    for text, matrix in _proposed_matrices((array != 0).astype(array.dtype)):
        # Zeros have the sign of the number, and are NaN if it is infinite or NaN.
        with np.errstate(all="ignore"):
            yield f"{text} * {scalar_text(number.item(), array.dtype)}", matrix * number


def _proposed_ranges(flat: np.ndarray[Any, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield evenly spaced ranges."""
    dtype, count = flat.dtype, flat.size
    start, second, last = flat[[0, 1, -1]].tolist()
    step, stop = second - start, start + count * (second - start)
    if not all(map(math.isfinite, (start, last, stop))) or step == 0:
        return
    if start == int(start) and step == int(step) and (dtype.kind == "f" or _holds(dtype, stop)):
        numbers = [start, stop, step] if step != 1 else [start, stop] if start else [stop]
        natural = "float64" if dtype.kind == "f" else "int64"
        text = ", ".join(map(repr, numbers)) + _dtype_argument(dtype, natural)
        yield f"np.arange({text})", np.arange(start, stop, step, dtype=dtype)
    if dtype.kind == "f":
        ends = f"{scalar_text(start, dtype)}, {scalar_text(last, dtype)}, {count}"
        text = f"np.linspace({ends}{_dtype_argument(dtype, 'float64')})"
        yield text, np.linspace(start, last, count, dtype=dtype)


def _holds(dtype: DType, number: int) -> bool:
    limits = np.iinfo(dtype)
    return int(limits.min) <= number <= int(limits.max)


def _dtype_argument(dtype: DType, natural: str) -> str:
    """Return the dtype argument, if the call does not have that dtype by default."""
    return "" if dtype == np.dtype(natural) else f", dtype={dtype_text(dtype)}"
