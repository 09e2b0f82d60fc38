"""Rules of random numbers: keys, and the bits of the generator threefry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph.base.providers import late
from primgraph.interop.jax.rules import (
    Site,
    convert,
    emit,
    fit,
    full_like,
    reshape,
    rule,
    spread,
)
from primgraph.interop.jax.shapes import counted
from primgraph.operators.variable import Variable
from primgraph.primitives import bits
from primgraph.primitives import elementwise as e
from primgraph.primitives.special_functions.special import as_gamma_of

if TYPE_CHECKING:
    import jax
else:
    jax = late("jax")

_WORD = np.dtype("u4")
# Rotations of the rounds of threefry2x32 (Salmon et al., Parallel random numbers: as easy as 1, 2,
# 3, SC 2011), and the number that the third key is made with.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


@rule("random_wrap", "random_unwrap", "random_clone", keys=True)
def _same_words(at: Site, key: Variable) -> Variable:
    return key


@rule("threefry2x32")
def _threefry2x32(
    at: Site, key0: Variable, key1: Variable, x0: Variable, x1: Variable
) -> tuple[Variable, Variable]:
    key0, key1, x0, x1 = (fit(x, at.shape) for x in (key0, key1, x0, x1))
    keys = [key0, key1, emit(bits.bitwise_xor, emit(bits.bitwise_xor, key0, key1),
                             full_like(key0, _PARITY))]  # fmt: skip
    x, y = emit(e.add, x0, keys[0]), emit(e.add, x1, keys[1])
    for block in range(5):
        for count in _ROTATIONS[block % 2]:
            x = emit(e.add, x, y)
            y = emit(bits.bitwise_xor, _rotated(y, count), x)
        x = emit(e.add, x, keys[(block + 1) % 3])
        last = keys[(block + 2) % 3]
        y = emit(e.add, y, emit(e.add, last, full_like(last, block + 1)))
    return x, y


def _rotated(x: Variable, count: int) -> Variable:
    return emit(
        bits.bitwise_or,
        emit(bits.left_shift, x, full_like(x, count)),
        emit(bits.right_shift, x, full_like(x, 32 - count)),
    )


@rule("iota_2x32_shape")
def _iota_2x32_shape(at: Site) -> tuple[Variable, Variable]:
    """The positions of elements in two words, the upper one first."""
    shape = tuple(at["shape"])
    number: Any = 1
    for size in shape:
        number = number * size
    place = reshape(counted((number,), 0), shape)
    upper = emit(bits.right_shift, place, full_like(place, 32))
    return convert(upper, _WORD), convert(place, _WORD)


@rule("random_seed", keys=True)
def _random_seed(at: Site, seeds: Variable) -> list[Variable]:
    return at.evaluator.expand(_mapped(at["impl"].seed, seeds.ndim), seeds)


@rule("random_split", keys=True)
def _random_split(at: Site, keys: Variable) -> list[Variable]:
    impl = at.operands[0].dtype._impl
    split = _mapped(lambda key: impl.split(key, at["shape"]), at.operands[0].ndim)
    return at.evaluator.expand(split, keys)


@rule("random_bits", keys=True)
def _random_bits(at: Site, keys: Variable) -> list[Variable]:
    impl = at.operands[0].dtype._impl
    draw = _mapped(
        lambda key: impl.random_bits(key, at["bit_width"], at["shape"]), at.operands[0].ndim
    )
    return at.evaluator.expand(draw, keys)


@rule("random_fold_in", keys=True)
def _random_fold_in(at: Site, keys: Variable, data: Variable) -> list[Variable]:
    aval = at.operands[0]
    shape = at.shape[: len(at.shape) - len(aval.dtype._impl.key_shape)]
    if aval.shape != shape:
        keys = spread(keys, at.shape, range(keys.ndim))
    data = spread(data, shape, range(data.ndim))
    return at.evaluator.expand(_mapped(aval.dtype._impl.fold_in, len(shape)), keys, data)


@rule("random_gamma", keys=True)
def _random_gamma(at: Site, keys: Variable, a: Variable) -> Variable:
    """Samples by JAX's definition, with the derivative of a gamma variable by its shape."""
    impl = at.operands[0].dtype._impl

    def sample(words: Any, shape: Any) -> Any:
        key = jax.random.wrap_key_data(words, impl=impl.name)
        return at.primitive.impl(key, shape, **at.params)

    (drawn,) = at.evaluator.expand(sample, keys, a)
    found = emit(e.stop_gradient, drawn)
    if not at["log_space"]:
        return emit(as_gamma_of, found, a)
    least = full_like(a, np.finfo(a.dtype).tiny)
    size = emit(as_gamma_of, emit(e.maximum, emit(e.exp, found), least), a)
    rate = emit(e.log, size)
    # The difference is zero, and has the derivative of the logarithm.
    return emit(e.add, found, emit(e.sub, rate, emit(e.stop_gradient, rate)))


def _mapped(function: Any, rank: int) -> Any:
    """Return the function of arrays with `rank` more axes in front."""
    for _ in range(rank):
        function = jax.vmap(function)
    return function
