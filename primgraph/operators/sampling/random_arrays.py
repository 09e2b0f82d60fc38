"""Random arrays as functions of integer keys, and dropout."""

from __future__ import annotations

import math
from inspect import signature
from typing import Any

import numpy as np

from primgraph.base.providers import provider
from primgraph.errors import ArgumentError, DTypeError
from primgraph.ir.types import FLOAT64, DType, as_shape
from primgraph.operators.call import operator, public
from primgraph.operators.elementwise.elementary import cos, log1p, sqrt
from primgraph.operators.elementwise.logic import where
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import (
    convert_dtype,
    inexact_dtype,
    lift,
    require_flag,
    require_number,
)
from primgraph.operators.shape.creation import dtype_or_default
from primgraph.operators.variable import Variable, emit, handles
from primgraph.primitives import constants


def integer_key(name: str, key: ArrayLike) -> Variable:
    """Return the key of the function of that name, an integer or several.

    Raises `DTypeError` for other dtypes, and `ArgumentError` for a tuple, which is a shape.
    """
    refuse_shape(name, "its key", key)
    value = lift(key)
    if value.dtype.kind not in "iu":
        raise DTypeError(
            f"the key of {name} is an integer, not {value.type}",
            hint=_how_to_draw(name) if isinstance(key, float | np.floating) else "",
        )
    return value


def refuse_shape(name: str, role: str, given: Any) -> None:
    """Raise `ArgumentError` for a tuple, which would be a shape in NumPy's signature.

    Arrays are given as arrays or lists.
    """
    if isinstance(given, tuple) and not handles(given):
        raise ArgumentError(f"{name}: {role} is {given!r:.60}", hint=_how_to_draw(name))


def _how_to_draw(name: str) -> str:
    """Return a hint with the call of a function of `pg.random`, or of `pg.dropout`."""
    function = getattr(provider("random numbers"), name, None)
    if function is None:
        call = "pg.dropout(x, key, rate)"
    else:
        names = list(signature(function).parameters)
        call = f"pg.random.{name}({', '.join(names[: names.index('shape') + 1])})"
    drawn = (
        f"; primgraph.numpy.random.{name} takes the arguments of np.random.{name}"
        if hasattr(np.random, name)
        else ""
    )
    return f"write {call}: the key is an integer, and equal keys give equal numbers{drawn}"


def float_dtype(name: str, dtype: Any) -> DType:
    """Return the dtype of a function's result; raises `DTypeError` unless it is a float dtype."""
    refuse_shape(name, "its dtype", dtype)
    wanted = dtype_or_default(dtype)
    if wanted.kind != "f":
        raise DTypeError(f"{name} makes floats, not {wanted}")
    return wanted


@public
def uniform(
    key: ArrayLike, shape: Any = (), low: float = 0.0, high: float = 1.0, dtype: Any = None
) -> Variable:
    """Return uniform numbers between `low` and `high`; equal keys give equal numbers.

    `key` is an integer, or an array of them, whose axes lead those of the result. The result has
    the default dtype unless `dtype` is given. Raises `DTypeError` for a key that is not an integer
    and for dtypes other than floats.

    >>> pg.uniform(7, (2, 3)).shape
    (2, 3)
    """
    for role, number in (("low", low), ("high", high)):
        refuse_shape("uniform", role, number)
    return emit(
        constants.random_uniform,
        integer_key("uniform", key),
        shape=as_shape(shape),
        dtype=float_dtype("uniform", dtype),
        low=require_number("low", low),
        high=require_number("high", high),
    )


@public
def bernoulli(key: ArrayLike, shape: Any = (), p: float = 0.5) -> Variable:
    """Return booleans that are true with probability `p`; equal keys give equal ones.

    `key` is an integer, or an array of them, whose axes lead those of the result. Raises
    `DTypeError` for a key that is not an integer and `ArgumentError` for `p` outside 0 to 1.

    >>> pg.bernoulli(7, (2, 3), 0.5).shape
    (2, 3)
    """
    return emit(
        constants.random_bernoulli,
        integer_key("bernoulli", key),
        shape=as_shape(shape),
        p=_probability("p", p),
    )


def _probability(name: str, value: Any) -> float:
    number = require_number(name, value)
    if not 0.0 <= number <= 1.0:
        raise ArgumentError(f"{name} is a probability between 0 and 1, not {value}")
    return number


@public
def normal(key: ArrayLike, shape: Any = (), dtype: Any = None) -> Variable:
    """Return normal numbers of mean 0 and variance 1; equal keys give equal numbers.

    By the method of Box and Muller (1958), in float64, from two uniform numbers each. `key`,
    `dtype` and errors are those of `uniform`.

    >>> pg.normal(7, (2, 3)).shape
    (2, 3)
    """
    wanted, extents = float_dtype("normal", dtype), as_shape(shape)
    seed = integer_key("normal", key)
    pairs = uniform(seed, (2, *extents), dtype=FLOAT64)
    lead = (slice(None),) * seed.ndim
    # The uniform numbers are below one, so that the logarithm is finite.
    radius = sqrt(-2.0 * log1p(-pairs[(*lead, 0)]))
    return convert_dtype(radius * cos(2.0 * math.pi * pairs[(*lead, 1)]), wanted)


@operator("x", "key")
def dropout(
    x: ArrayLike,
    key: ArrayLike,
    rate: float = 0.5,
    mode: str = "upscale_in_train",
    training: bool = True,
) -> Variable:
    """Return `x` with each element set to zero with probability `rate` (Srivastava et al., 2014).

    In mode `upscale_in_train` the kept elements are divided by `1 - rate` in training; in mode
    `downscale_in_infer` all elements are multiplied by it outside training. `key` is one integer;
    equal keys drop the same elements. Raises `ArgumentError` for a rate outside 0 to 1, another
    mode, or an array of keys.

    >>> pg.dropout(np.ones(4), 7, 0.0)
    tensor([1., 1., 1., 1.])
    """
    value, seed = lift(x, inexact_dtype(x)), integer_key("dropout", key)
    keep = 1.0 - _probability("rate", rate)
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise ArgumentError(
            f"dropout mode {mode!r:.60}", hint="use 'upscale_in_train' or 'downscale_in_infer'"
        )
    if seed.ndim:
        raise ArgumentError(f"dropout takes one key, not {seed.type}")
    upscale = mode == "upscale_in_train"
    if not require_flag("training", training):
        return value if upscale else value * keep
    # With rate one nothing is kept, and nothing is divided by zero.
    scaled = value / keep if upscale and keep > 0.0 else value
    return where(bernoulli(seed, value.shape, keep), scaled, 0)
