"""Numbers, dtypes and arrays as Python text that reads back to the same bits."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from primgraph.ir.params import bits
from primgraph.ir.types import DType, Shape

# Arrays up to this many elements are written number by number.
SPELLED = 8
_LINE = 88


def dtype_text(dtype: DType) -> str:
    """How NumPy calls the dtype, such as `np.float32`."""
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


def shape_text(shape: Shape) -> str:
    return repr(tuple(shape))


def scalar_text(value: Any, dtype: DType) -> str:
    """The Python scalar `value`, which `dtype` holds exactly, in as few digits as that takes."""
    if not isinstance(value, float):
        return repr(value)
    if value != value:
        return "np.nan"
    if value in (np.inf, -np.inf):
        return "np.inf" if value > 0 else "-np.inf"
    if dtype.itemsize < 8:
        short = repr(float(str(dtype.type(value))))
        if bits(dtype.type(float(short)).item()) == bits(value):
            return short
    return repr(value)


def is_negative(text: str) -> bool:
    return text.startswith("-")


def is_weak_default(dtype: DType) -> bool:
    """Whether a bare Python scalar becomes an array of just this dtype."""
    return dtype in (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_))


def full_text(value: Any, shape: Shape, dtype: DType) -> str:
    """A fresh array with all elements equal to `value`."""
    where = f"{shape_text(shape)}, {dtype_text(dtype)}"
    if bits(value) in (bits(0.0), bits(0), bits(False)):
        return f"np.zeros({where})"
    if bits(value) in (bits(1.0), bits(1), bits(True)):
        return f"np.ones({where})"
    return f"np.full({shape_text(shape)}, {scalar_text(value, dtype)}, {dtype_text(dtype)})"


def is_spelled(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array is small, and free of NaNs whose bits a literal could not say."""
    return array.size <= SPELLED and not (array.dtype.kind == "f" and bool(np.isnan(array).any()))


def array_text(array: np.ndarray[Any, Any]) -> str:
    """A small array as a call of `np.array`."""
    numbers = [scalar_text(v, array.dtype) for v in array.reshape(-1).tolist()]
    flat = f"np.array([{', '.join(numbers)}], {dtype_text(array.dtype)})"
    return flat if array.ndim == 1 else f"{flat}.reshape({shape_text(array.shape)})"


def array_lines(name: str, array: np.ndarray[Any, Any]) -> list[str]:
    """Statements that bind `name` to an array of any size, its bytes as hexadecimal digits."""
    if is_spelled(array):
        return [f"{name} = {array_text(array)}"]
    little = array.dtype.newbyteorder("<")
    digits = array.astype(little, copy=False).tobytes().hex()
    rows = [f'        "{row}"' for row in textwrap.wrap(digits, _LINE - 10)]
    return [
        f"{name} = np.frombuffer(",
        "    bytes.fromhex(",
        *rows,
        "    ),",
        f'    "{little.str}",',
        f").astype({dtype_text(array.dtype)}).reshape({shape_text(array.shape)})",
    ]
