"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph import operators as pg
from primgraph.compat.torch import functions
from primgraph.compat.torch.creation import draw
from primgraph.eager.inplace.in_place import change
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, ShapeError
from primgraph.numpy.changing import ChangingArray

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid",
    "mish", "prelu", "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid",
    "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink",
    "threshold", "threshold_",
]  # fmt: skip

_ALPHA, _SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def in_place_result(input: Any, found: Any, inplace: bool) -> Any:
    """Return `found`, or with `inplace` the input, which shows it from now on.

    A variable of a program does not change: the result is another one.
    """
    if inplace and isinstance(input, Tensor):
        return change(input, found)
    if inplace and isinstance(input, ChangingArray):
        input.change_to(found)
        return input
    return found


def relu(input: Any, inplace: bool = False) -> Any:
    """Return `input` where it is positive, 0 elsewhere.

    >>> torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return in_place_result(input, pg.relu(input), inplace)


def relu6(input: Any, inplace: bool = False) -> Any:
    """Limit `input` to the interval from 0 to 6.

    >>> torch.nn.functional.relu6(torch.tensor([-1.0, 7.0]))
    tensor([0., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Limit `input` to an interval; the derivative is 0 at its ends.

    >>> torch.nn.functional.hardtanh(torch.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    upper = pg.where(pg.greater_equal(input, max_val), max_val, input)
    return in_place_result(input, pg.where(pg.less_equal(input, min_val), min_val, upper), inplace)


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """Return `input` where it is above a threshold, `value` elsewhere.

    >>> torch.nn.functional.threshold(torch.tensor([0.1, 2.0]), 1.0, 20.0)
    tensor([20.,  2.])
    """
    return in_place_result(input, pg.where(pg.greater(input, threshold), input, value), inplace)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """Return `input` where it is positive, `negative_slope * input` elsewhere.

    >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    found = pg.where(pg.greater(input, 0), input, pg.multiply(input, negative_slope))
    return in_place_result(input, found, inplace)


def prelu(input: Any, weight: Any) -> Any:
    """Return `leaky_relu` with slopes for all channels, or for each, along axis 1.

    >>> torch.nn.functional.prelu(torch.tensor([-1.0, 2.0]), torch.tensor([0.5]))
    tensor([-0.5000,  2.0000])
    """
    if weight.ndim == 1 and input.ndim > 1:
        weight = pg.reshape(weight, (-1, *(1,) * (input.ndim - 2)))
    elif weight.ndim == 1 and weight.shape[0] != 1:
        raise ShapeError("Not allow zero-dim input.")
    found = pg.where(pg.greater(input, 0), input, pg.multiply(weight, input))
    return found if input.ndim else pg.reshape(found, ())


def rrelu(
    input: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """Return `leaky_relu` with the mean of two slopes, or in training with random ones between.

    >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 2.0]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slopes = draw.rand_like(input) * (upper - lower) + lower
    return in_place_result(input, pg.where(pg.greater(input, 0), input, input * slopes), inplace)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Return `input` where it is positive, `alpha * (exp(input) - 1)` elsewhere.

    >>> torch.nn.functional.elu(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    found = pg.where(pg.greater(input, 0), input, pg.multiply(pg.expm1(input), alpha))
    return in_place_result(input, found, inplace)


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Return `input` where it is positive, `alpha * (exp(input / alpha) - 1)` elsewhere.

    >>> torch.nn.functional.celu(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    lower = pg.multiply(pg.expm1(pg.divide(input, alpha)), alpha)
    return in_place_result(input, pg.where(pg.greater(input, 0), input, lower), inplace)


def selu(input: Any, inplace: bool = False) -> Any:
    """Return `elu` with the slopes that keep mean 0 and variance 1.

    >>> torch.nn.functional.selu(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    lower = pg.multiply(pg.expm1(input), _SCALE * _ALPHA)
    found = pg.where(pg.greater(input, 0), pg.multiply(input, _SCALE), lower)
    return in_place_result(input, found, inplace)


def gelu(input: Any, approximate: str = "none") -> Any:
    """Compute `input` times its normal distribution function, or with "tanh" an approximation.

    >>> torch.nn.functional.gelu(torch.tensor([-1.0, 1.0]))
    tensor([-0.1587,  0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"approximate is 'none' or 'tanh', not {approximate!r:.60}")
    return pg.gelu(input, approximate == "tanh")


def silu(input: Any, inplace: bool = False) -> Any:
    """Compute `input * sigmoid(input)`.

    >>> torch.nn.functional.silu(torch.tensor([-1.0, 1.0]))
    tensor([-0.2689,  0.7311])
    """
    return in_place_result(input, pg.silu(input), inplace)


def mish(input: Any, inplace: bool = False) -> Any:
    """Compute `input * tanh(softplus(input))`.

    >>> torch.nn.functional.mish(torch.tensor([-1.0, 1.0]))
    tensor([-0.3034,  0.8651])
    """
    return in_place_result(input, pg.multiply(input, pg.tanh(pg.softplus(input))), inplace)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Compute `log(1 + exp(beta * input)) / beta`, or `input` for `beta * input` above threshold.

    >>> torch.nn.functional.softplus(torch.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    scaled = input if beta == 1 else pg.multiply(input, beta)
    found = pg.softplus(scaled) if beta == 1 else pg.divide(pg.softplus(scaled), beta)
    return pg.where(pg.greater(scaled, threshold), input, found)


def softsign(input: Any) -> Any:
    """Compute `input / (1 + abs(input))`.

    >>> torch.nn.functional.softsign(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return pg.divide(input, pg.add(pg.abs(input), 1))


def tanhshrink(input: Any) -> Any:
    """Compute `input - tanh(input)`.

    >>> torch.nn.functional.tanhshrink(torch.tensor([-1.0, 1.0]))
    tensor([-0.2384,  0.2384])
    """
    return pg.subtract(input, pg.tanh(input))


def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """Return `input` where its absolute value is above `lambd`, 0 elsewhere.

    >>> torch.nn.functional.hardshrink(torch.tensor([0.25, 1.0]))
    tensor([0., 1.])
    """
    return pg.where(pg.greater(pg.abs(input), lambd), input, 0)


def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """Move `input` towards 0 by `lambd`; it is 0 within that distance.

    >>> torch.nn.functional.softshrink(torch.tensor([0.25, 1.0]))
    tensor([0.0000, 0.5000])
    """
    if lambd < 0:
        raise ArgumentError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    below = pg.where(pg.less(input, -lambd), pg.add(input, lambd), 0)
    return pg.where(pg.greater(input, lambd), pg.subtract(input, lambd), below)


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """Compute `relu6(input + 3) / 6`.

    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0]))
    tensor([0.0000, 0.5000])
    """
    return in_place_result(input, pg.divide(relu6(pg.add(input, 3)), 6), inplace)


def hardswish(input: Any, inplace: bool = False) -> Any:
    """Compute `input * hardsigmoid(input)`.

    >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 3.0]))
    tensor([-0., 3.])
    """
    return in_place_result(
        input, pg.multiply(input, pg.divide(relu6(pg.add(input, 3)), 6)), inplace
    )


def logsigmoid(input: Any) -> Any:
    """Compute the logarithm of `sigmoid`.

    >>> torch.nn.functional.logsigmoid(torch.tensor([0.0]))
    tensor([-0.6931])
    """
    return pg.negative(pg.softplus(pg.negative(input)))


def glu(input: Any, dim: int = -1) -> Any:
    """Multiply the first half along an axis by `sigmoid` of the second half.

    >>> torch.nn.functional.glu(torch.tensor([2.0, 0.0]))
    tensor([1.])
    """
    if input.shape[dim] % 2:
        raise ArgumentError(
            f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}"
        )
    first, second = pg.split(input, 2, dim)
    return pg.multiply(first, pg.sigmoid(second))


def sigmoid(input: Any) -> Any:
    """Compute `1 / (1 + exp(-input))`.

    >>> torch.nn.functional.sigmoid(torch.tensor([0.0]))
    tensor([0.5000])
    """
    return pg.sigmoid(input)


def tanh(input: Any) -> Any:
    """Compute the hyperbolic tangent.

    >>> torch.nn.functional.tanh(torch.tensor([0.0]))
    tensor([0.])
    """
    return pg.tanh(input)


def _softmax_axis(input: Any, dim: int | None) -> int:
    """Return the axis; without one, as in torch, 0 or 1 by the number of axes."""
    if dim is not None:
        return dim
    return 0 if input.ndim in (0, 1, 3) else 1


def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Compute `exp(input) / sum(exp(input))` along an axis.

    >>> torch.nn.functional.softmax(torch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return functions.softmax(input, _softmax_axis(input, dim), dtype)


def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Compute the logarithm of `softmax`.

    >>> torch.nn.functional.log_softmax(torch.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return functions.log_softmax(input, _softmax_axis(input, dim), dtype)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """Compute `softmax` of `-input`.

    >>> torch.nn.functional.softmin(torch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return softmax(pg.negative(input), dim, dtype=dtype)


def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """Draw from the Gumbel-softmax distribution; with `hard` one-hot, with the soft derivative.

    >>> torch.nn.functional.gumbel_softmax(torch.zeros(2, 3), hard=True).sum(1)
    tensor([1., 1.])
    """
    noise = pg.negative(pg.log(pg.negative(pg.log(draw.rand_like(logits) * (1 - 1e-7) + 1e-8))))
    soft = pg.softmax(pg.divide(pg.add(logits, noise), tau), dim)
    if not hard:
        return soft
    axis = dim % logits.ndim
    chosen = pg.one_hot(pg.argmax(soft, axis), soft.shape[axis], soft.dtype)
    chosen = pg.moveaxis(chosen, -1, axis)
    return chosen - pg.stop_gradient(soft) + soft


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that changes its argument."""

    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        return function(input, *args, inplace=True, **kwargs)

    call.__name__ = call.__qualname__ = f"{function.__name__}_"
    arguments = ", 0.5, 2.0" if function is threshold else ""
    call.__doc__ = f"""Compute `{function.__name__}` in place.

    >>> x = torch.ones(2)
    >>> torch.nn.functional.{call.__name__}(x{arguments}) is x
    True
    """
    return call


_CHANGING: tuple[Callable[..., Any], ...] = (
    relu, elu, celu, selu, hardtanh, leaky_relu, rrelu, threshold
)  # fmt: skip
relu_, elu_, celu_, selu_, hardtanh_, leaky_relu_, rrelu_, threshold_ = [
    _in_place(function) for function in _CHANGING
]
