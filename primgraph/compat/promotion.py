"""Promotion of dtypes as torch, Paddle and MegEngine have it: floats decide over integers.

NumPy makes float64 of integers that meet Python's floats, other floats, or a quotient. In these
libraries an integer takes the dtype of the float that it meets, and the default dtype where that is
a Python number, or where there is none, as in quotients and roots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from primgraph.ir.types import DType, complex_dtype
from primgraph.operators.call import called
from primgraph.operators.handle import Handle
from primgraph.operators.lazy_loading import functions

# Operators by the operands that have one dtype in the end; what begins with a list takes its items.
_TOGETHER: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "power", "remainder", "floor_divide"), (0, 1)),
    **dict.fromkeys(("maximum", "minimum", "matmul", "dot", "inner", "outer", "fmod"), (0, 1)),
    **dict.fromkeys(("fmax", "fmin", "heaviside", "nextafter"), (0, 1)),
    "where": (1, 2),
    "clip": (0, 1, 2),
    "concatenate": (0,),
    "concat": (0,),
    "stack": (0,),
}
# Operators whose results are floats, of integers too.
_FRACTIONAL: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("divide", "arctan2", "logaddexp", "hypot"), (0, 1)),
    **dict.fromkeys(
        ("angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cos", "cosh"),
        (0,),
    ),
    **dict.fromkeys(("erf", "erfc", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2"), (0,)),
    **dict.fromkeys(("logsumexp", "reciprocal", "rsqrt", "sigmoid", "sin", "sinh", "sqrt"), (0,)),
    **dict.fromkeys(("mean", "std", "var", "tan", "tanh", "sinc", "deg2rad", "rad2deg"), (0,)),
    **dict.fromkeys(
        ("copysign", "logaddexp2", "xlogy", "xlog1py", "gammainc", "gammaincc"), (0, 1)
    ),
    **dict.fromkeys(("gammaln", "digamma", "erfinv", "erfcx", "logit", "ndtr", "ndtri"), (0,)),
    **dict.fromkeys(("log_ndtr", "entr", "i0", "i0e", "i1", "i1e", "j0", "j1", "y0", "y1"), (0,)),
    **dict.fromkeys(("fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "rfft", "rfft2"), (0,)),
    **dict.fromkeys(("rfftn", "irfft", "irfft2", "irfftn", "hfft", "ihfft"), (0,)),
    "polygamma": (1,),
}
_LEVELS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def promote_arguments(
    function: Callable[..., Any],
    args: Sequence[Any],
    default: DType,
    *,
    is_ranked: bool = False,
) -> Sequence[Any] | None:
    """Return the arguments of an operator in the dtypes of these libraries; None where they are.

    With `is_ranked` arrays without axes count less than others, as Python's numbers do: only their
    kind, of integers, floats or complex numbers, matters beside others.
    """
    name = function.__name__.rstrip("_")
    places = _TOGETHER.get(name) or _FRACTIONAL.get(name)
    if places is None or are_of_one_float(args, places) or function not in called:
        return None
    if isinstance(args[0], list | tuple):
        items = _promote_operands(list(args[0]), name, default, is_ranked)
        return None if items is None else (items, *args[1:])
    known = [i for i in places if i < len(args) and args[i] is not None]
    operands = _promote_operands([args[i] for i in known], name, default, is_ranked)
    if operands is None:
        return None
    found = list(args)
    for i, operand in zip(known, operands, strict=True):
        found[i] = operand
    return found


def are_of_one_float(args: Sequence[Any], places: Iterable[int]) -> bool:
    """Return whether operands are arrays of one float dtype and Python numbers, as they mostly are.

    These stay as they are.
    """
    found: DType | None = None
    for i in places:
        x = args[i] if i < len(args) else None
        kind = type(x)
        if kind is float or kind is int or x is None:
            continue
        if not isinstance(x, Handle):
            return False
        dtype = x.type.dtype
        if found is None and dtype.kind == "f":
            found = dtype
        elif dtype is not found and dtype != found:
            return False
    return found is not None


def _promote_operands(
    operands: list[Any], name: str, default: DType, is_ranked: bool
) -> list[Any] | None:
    """The operands in their common dtype; None where they are in it."""
    plain = [x.item() if is_ranked and _is_single(x) else x for x in operands]
    target = common_dtype(plain, default, is_ranked)
    if target is None:
        return None
    if name in _FRACTIONAL and target.kind in "biu":
        target = default
    if target.kind not in "fc":
        return None
    found = [
        functions["astype"](x, target) if isinstance(x, Handle) and x.type.dtype != target else x
        for x in plain
    ]
    return found if any(a is not b for a, b in zip(found, operands, strict=True)) else None


def _is_single(x: Any) -> bool:
    """Return whether `x` is a number or an array without axes of NumPy."""
    return isinstance(x, np.generic) or (isinstance(x, np.ndarray) and x.ndim == 0)


def common_dtype(operands: Iterable[Any], default: DType, is_ranked: bool) -> DType | None:
    """The dtype in which operands meet; None without an array of primgraph among them."""
    arrays: list[DType] = []
    single: list[DType] = []
    numbers: list[DType] = []
    for x in operands:
        if isinstance(x, Handle | np.ndarray | np.generic):
            dtype = x.type.dtype if isinstance(x, Handle) else x.dtype
            (single if is_ranked and x.ndim == 0 else arrays).append(dtype)
        elif isinstance(x, bool):
            numbers.append(np.dtype("bool"))
        elif isinstance(x, int):
            numbers.append(np.dtype("int64"))
        elif isinstance(x, float):
            numbers.append(default)
        elif isinstance(x, complex):
            numbers.append(complex_dtype(default))
        else:
            return None
    found: DType | None = None
    for group in (arrays, single, numbers):
        if not group:
            continue
        dtype = reduce(pair_dtype, group)
        if found is None:
            found = dtype
        elif _LEVELS[dtype.kind] > _LEVELS[found.kind]:
            found = pair_dtype(found, dtype)
    return found


def pair_dtype(first: DType, second: DType) -> DType:
    """Return the dtype of two arrays that meet."""
    low, high = sorted((first, second), key=lambda d: _LEVELS[d.kind])
    if _LEVELS[low.kind] < 2 <= _LEVELS[high.kind]:
        return high
    return np.promote_types(low, high)
