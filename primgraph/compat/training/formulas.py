"""Update formulas of optimizers, over handles: see `updates` for their form.

`w` is the parameter, `g` its gradient. Bias corrections are computed in float64 whatever the
parameter is: in the first steps `1 - beta**step` is a small difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.compat.training.updates import Formula, State
from primgraph.ir.types import FLOAT64
from primgraph.operators import (
    abs,
    clip,
    equal,
    expand_dims,
    floor,
    maximum,
    minimum,
    reshape,
    sign,
    sqrt,
    square,
    stop_gradient,
    sum,
    where,
)
from primgraph.optimizer.kinds import times


def linear(formula: Formula) -> Formula:
    """Mark a formula that applies to complex numbers as they are."""
    formula.is_linear = True  # type: ignore[attr-defined]
    return formula


def is_zero(x: Any) -> bool:
    """Return whether an option is exactly zero, which is part of the structure."""
    return isinstance(x, int | float) and x == 0


def scale(number: Any, x: Any) -> Any:
    """Return `number * x` in the dtype of `x`."""
    return number * x if isinstance(number, int | float) else times(number, x)


def add(number: Any, x: Any) -> Any:
    """Return `x + number` in the dtype of `x`."""
    return x + (number if isinstance(number, int | float) else number.astype(x.dtype))


def decayed(g: Any, w: Any, weight_decay: Any) -> Any:
    """Add the gradient of an L2 penalty."""
    return g if is_zero(weight_decay) else g + scale(weight_decay, w)


def shrunk(w: Any, lr: Any, weight_decay: Any) -> Any:
    """Decay the parameter itself."""
    return w if is_zero(weight_decay) else scale(1.0 - lr * weight_decay, w)


def average(x: Any, new: Any, rate: Any) -> Any:
    """Return the moving average `x + (1 - rate) * (new - x)`."""
    return x + scale(1.0 - rate, new - x)


def mean_square(x: Any, g: Any, rate: Any) -> Any:
    """Return `rate * x + (1 - rate) * g**2`."""
    return scale(rate, x) + scale(1.0 - rate, square(g))


def corrections(state: State, betas: Any) -> list[Any]:
    """Return `1 - beta**step` for each beta, in float64.

    States that keep the products of the betas, for the next step, take part and are updated.
    """
    if "beta1_pow" not in state:
        return [1.0 - beta ** state["step"] for beta in betas]
    found = []
    for name, beta in zip(("beta1_pow", "beta2_pow"), betas, strict=True):
        if name in state:
            found.append(1.0 - reshape(state[name], ()).astype(FLOAT64))
            state[name] = scale(beta, state[name])
    return found


def store(state: State, name: str, new: Any) -> None:
    """Store a state in the dtype that it has."""
    state[name] = new.astype(state[name].dtype)


@linear
def sgd(
    w: Any, g: Any, state: State, *, lr: Any, momentum: Any, dampening: Any, weight_decay: Any,
    nesterov: Any,
) -> Any:  # fmt: skip
    """Stochastic gradient descent; the momentum begins with the first gradient."""
    g = decayed(g, w, weight_decay)
    if not is_zero(momentum):
        buffer = state.get("momentum_buffer")
        if buffer is None:
            # As in torch, derivatives do not go through the first value.
            buffer = stop_gradient(g)
        else:
            buffer = scale(momentum, buffer) + (
                g if is_zero(dampening) else scale(1.0 - dampening, g)
            )
        state["momentum_buffer"] = buffer
        g = g + scale(momentum, buffer) if nesterov else buffer
    return w - scale(lr, g)


def adam(
    w: Any, g: Any, state: State, *, lr: Any, betas: Any, eps: Any, weight_decay: Any,
    amsgrad: Any, decoupled_weight_decay: Any, bias_correction: Any = True,
) -> Any:  # fmt: skip
    """Adam (Kingma and Ba, 2015), AdamW (Loshchilov and Hutter, 2019) and AMSGrad."""
    first, second = corrections(state, betas) if bias_correction else (1.0, 1.0)
    if decoupled_weight_decay:
        w = shrunk(w, lr, weight_decay)
    else:
        g = decayed(g, w, weight_decay)
    mean, square_mean = moments(state, g, betas)
    if amsgrad:
        square_mean = state["max_exp_avg_sq"] = maximum(state["max_exp_avg_sq"], square_mean)
    root = sqrt(second) if bias_correction else 1.0
    return w - scale(lr * root / first, mean) / add(eps * root, sqrt(square_mean))


def moments(state: State, g: Any, betas: Any) -> tuple[Any, Any]:
    """Update and return the moving averages of the gradient and its square."""
    mean = state["exp_avg"] = average(state["exp_avg"], g, betas[0])
    second = state["exp_avg_sq"] = mean_square(state["exp_avg_sq"], g, betas[1])
    return mean, second


def nadam(
    w: Any, g: Any, state: State, *, lr: Any, betas: Any, eps: Any, weight_decay: Any,
    momentum_decay: Any, decoupled_weight_decay: Any,
) -> Any:  # fmt: skip
    """Adam with Nesterov momentum (Dozat, 2016)."""
    step = state["step"]
    if decoupled_weight_decay:
        w = shrunk(w, lr, weight_decay)
    else:
        g = decayed(g, w, weight_decay)
    rate = betas[0] * (1.0 - 0.5 * 0.96 ** (step * momentum_decay))
    following = betas[0] * (1.0 - 0.5 * 0.96 ** ((step + 1.0) * momentum_decay))
    name = "mu_product" if "mu_product" in state else "mu_power"
    state[name] = scale(rate, state[name])
    product = reshape(state[name], ()).astype(FLOAT64)
    mean, second = moments(state, g, betas)
    root = add(eps, sqrt(scale(1.0 / (1.0 - betas[1] ** step), second)))
    part = scale(lr * (1.0 - rate) / (1.0 - product), g)
    return w - (part + scale(lr * following / (1.0 - product * following), mean)) / root


def radam(
    w: Any, g: Any, state: State, *, lr: Any, betas: Any, eps: Any, weight_decay: Any,
    decoupled_weight_decay: Any,
) -> Any:  # fmt: skip
    """Rectified Adam (Liu et al., 2020)."""
    step = state["step"]
    if decoupled_weight_decay:
        w = shrunk(w, lr, weight_decay)
    else:
        g = decayed(g, w, weight_decay)
    mean, second = moments(state, g, betas)
    power = betas[1] ** step
    most = 2.0 / (1.0 - betas[1]) - 1.0
    length = most - 2.0 * step * power / (1.0 - power)
    is_long = length > 5.0
    safe = where(is_long, length, 6.0)
    rectified = sqrt((safe - 4.0) * (safe - 2.0) * most / ((most - 4.0) * (most - 2.0) * safe))
    adaptive = scale(rectified * sqrt(1.0 - power), 1.0 / add(eps, sqrt(second)))
    factor = where(is_long, adaptive, 1.0)
    return w - scale(lr / (1.0 - betas[0] ** step), mean) * factor


def adamax(
    w: Any, g: Any, state: State, *, lr: Any, betas: Any, eps: Any, weight_decay: Any,
    eps_of_average: Any = False, product_beta: Any = None,
) -> Any:  # fmt: skip
    """Adam with the infinity norm (Kingma and Ba, 2015).

    `eps` is added to the decayed norm with `eps_of_average`, and to the gradient without. The bias
    correction is of `product_beta`, by default the first beta.
    """
    exact = betas[0] if product_beta is None else product_beta
    first = corrections(state, (exact, betas[1]))[0]
    g = decayed(g, w, weight_decay)
    mean = state["exp_avg"] = average(state["exp_avg"], g, betas[0])
    norm, size = scale(betas[1], state["exp_inf"]), abs(g)
    norm = maximum(add(eps, norm), size) if eps_of_average else maximum(norm, add(eps, size))
    state["exp_inf"] = norm
    return w - scale(lr / first, mean) / norm


def rmsprop(
    w: Any, g: Any, state: State, *, lr: Any, alpha: Any, eps: Any, weight_decay: Any,
    momentum: Any, centered: Any,
) -> Any:  # fmt: skip
    """RMSprop (Hinton, 2012), with `eps` beside the root."""
    g = decayed(g, w, weight_decay)
    second = state["square_avg"] = mean_square(state["square_avg"], g, alpha)
    if centered:
        mean = state["grad_avg"] = average(state["grad_avg"], g, alpha)
        second = second - square(mean)
    change = g / add(eps, sqrt(second))
    if not is_zero(momentum):
        change = state["momentum_buffer"] = scale(momentum, state["momentum_buffer"]) + change
    return w - scale(lr, change)


def rmsprop_inner(
    w: Any, g: Any, state: State, *, lr: Any, alpha: Any, eps: Any, weight_decay: Any,
    momentum: Any, centered: Any,
) -> Any:  # fmt: skip
    """RMSprop with `eps` below the root, and the rate in the momentum."""
    g = decayed(g, w, weight_decay)
    second = state["square_avg"] = mean_square(state["square_avg"], g, alpha)
    if centered:
        mean = state["grad_avg"] = average(state["grad_avg"], g, alpha)
        second = second - square(mean)
    change = scale(lr, g) / sqrt(add(eps, second))
    if "momentum_buffer" in state:
        change = scale(momentum, state["momentum_buffer"]) + change
        state["momentum_buffer"] = change
    return w - change


def adagrad(
    w: Any, g: Any, state: State, *, lr: Any, lr_decay: Any, eps: Any, weight_decay: Any,
    eps_below_root: Any = False,
) -> Any:  # fmt: skip
    """Adagrad (Duchi et al., 2011)."""
    g = decayed(g, w, weight_decay)
    total = state["sum"] = state["sum"] + square(g)
    if not is_zero(lr_decay):
        lr = lr / (1.0 + (state["step"] - 1.0) * lr_decay)
    root = sqrt(add(eps, total)) if eps_below_root else add(eps, sqrt(total))
    return w - scale(lr, g) / root


def adadelta(
    w: Any, g: Any, state: State, *, lr: Any, rho: Any, eps: Any, weight_decay: Any
) -> Any:
    """Adadelta (Zeiler, 2012)."""
    g = decayed(g, w, weight_decay)
    second = state["square_avg"] = mean_square(state["square_avg"], g, rho)
    change = sqrt(add(eps, state["acc_delta"])) / sqrt(add(eps, second)) * g
    state["acc_delta"] = mean_square(state["acc_delta"], change, rho)
    return w - scale(lr, change)


def rprop(w: Any, g: Any, state: State, *, etas: Any, step_sizes: Any) -> Any:
    """Resilient backpropagation (Riedmiller and Braun, 1993)."""
    turn = g * state["prev"]
    one = turn * 0.0 + 1.0
    factor = where(turn > 0.0, scale(etas[1], one), where(turn < 0.0, scale(etas[0], one), one))
    low, high = [scale(limit, one) for limit in step_sizes]
    size = state["step_size"] = clip(state["step_size"] * factor, low, high)
    g = state["prev"] = where(turn < 0.0, 0.0, g)
    return w - sign(g) * size


def asgd(
    w: Any, g: Any, state: State, *, lr: Any, lambd: Any, alpha: Any, t0: Any, weight_decay: Any
) -> Any:
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""
    step = state["step"]
    g = decayed(g, w, weight_decay)
    eta, mu = state["eta"].astype(FLOAT64), state["mu"].astype(FLOAT64)
    new = scale(1.0 - lambd * eta, w) - scale(eta, g)
    state["ax"] = where(mu == 1.0, new, state["ax"] + scale(mu, new - state["ax"]))
    store(state, "eta", lr / (1.0 + lambd * lr * step) ** alpha)
    store(state, "mu", 1.0 / maximum(1.0, step - t0))
    return new


def average_gradient(w: Any, g: Any, state: State, *, lr: Any) -> Any:
    """Stochastic average gradient (Schmidt et al., 2017): the last gradients of some batches.

    `gradients` has one for each batch, which take turns, and `total` is their sum.
    """
    step, known = state["step"], state["gradients"]
    count = known.shape[0]
    place = (step - 1.0) - floor((step - 1.0) / count) * count
    is_turn = equal(np.arange(float(count)).reshape(count, *[1] * w.ndim), place)
    before = sum(where(is_turn, known, 0.0), axis=0)
    total = state["total"] = state["total"] - before + g
    state["gradients"] = where(is_turn, expand_dims(g, 0), known)
    return w - scale(lr / minimum(step, float(count)), total)


def lamb(
    w: Any, g: Any, state: State, *, lr: Any, betas: Any, eps: Any, weight_decay: Any,
    bias_correction: Any = True, always_adapt: Any = False,
) -> Any:  # fmt: skip
    """LAMB (You et al., 2020)."""
    mean, second = moments(state, g, betas)
    if bias_correction:
        both = corrections(state, betas)
        mean, second = scale(1.0 / both[0], mean), scale(1.0 / both[1], second)
    change = decayed(mean / add(eps, sqrt(second)), w, weight_decay)
    if always_adapt or not is_zero(weight_decay):
        size, length = sqrt(sum(square(w))), sqrt(sum(square(change)))
        is_usual = (size > 0.0) & (length > 0.0)
        change = where(is_usual, size / where(is_usual, length, 1.0), 1.0) * change
    return w - scale(lr, change)
