"""The rules of optimizers."""

from __future__ import annotations

from typing import Any, final

from primgraph.ir.frontend.signature import checked_methods
from primgraph.operators import sqrt
from primgraph.operators.variable import Variable
from primgraph.optimizer.base import Optimizer
from primgraph.optimizer.kinds import from_zero, require_below_one, times


@final
@checked_methods(late=True)
class SGD(Optimizer):
    """`w - rate * g`.

    >>> w = pg.tensor([1.0, 2.0], requires_grad=True)
    >>> sgd = pg.optimizer.SGD(0.5, parameters=[w])
    >>> (w * w).sum().backward()
    >>> sgd.step()
    >>> w
    tensor([0., 0.], requires_grad=True)
    """

    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        return times(rate, gradient)


@final
@checked_methods(late=True)
class Momentum(Optimizer):
    """`v = momentum * v + g`, then `w - rate * v`; Nesterov's takes `g + momentum * v` for v.

    After B. T. Polyak, 1964, and I. Sutskever et al., On the importance of initialization and
    momentum in deep learning, 2013.

    >>> momentum = pg.optimizer.Momentum(0.01, 0.9)
    """

    def __init__(
        self, learning_rate: float, momentum: float = 0.9, nesterov: bool = False, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        self.momentum, self.nesterov = require_below_one("momentum", momentum), nesterov

    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        velocity = self.slot(parameter, "velocity")
        new = self.momentum * velocity + gradient
        self.keep(velocity, new)
        return times(rate, gradient + self.momentum * new if self.nesterov else new)


@checked_methods(late=True)
class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with the rate corrected for the bias of both moments.

    `w - rate * sqrt(1 - beta2**t) / (1 - beta1**t) * m / (sqrt(v) + epsilon)`, where
    `m = beta1 * m + (1 - beta1) * g` and `v = beta2 * v + (1 - beta2) * g * g`.

    >>> w = pg.tensor([1.0, 2.0], requires_grad=True)
    >>> adam = pg.optimizer.Adam(0.01, parameters=[w])
    >>> (w * w).sum().backward()
    >>> adam.step()
    >>> w.numpy().round(4)
    array([0.99, 1.99])
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta1, self.beta2 = (
            require_below_one("beta1", beta1),
            require_below_one("beta2", beta2),
        )
        self.epsilon = from_zero("epsilon", epsilon)

    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        mean, root = self._moments(parameter, gradient)
        # In float64 whatever the parameter is: at first 1 - beta2**t is small beside 1.
        corrected = rate * sqrt(1.0 - self.beta2**count) / (1.0 - self.beta1**count)
        return times(corrected, mean) / (root + self.epsilon)

    def _moments(self, parameter: Variable, gradient: Variable) -> tuple[Variable, Variable]:
        """Update both moments; return the new first one and the root of the second."""
        mean, square = self.slot(parameter, "moment1"), self.slot(parameter, "moment2")
        new_mean = self.beta1 * mean + (1.0 - self.beta1) * gradient
        new_square = self.beta2 * square + (1.0 - self.beta2) * (gradient * gradient)
        self.keep(mean, new_mean)
        self.keep(square, new_square)
        return new_mean, sqrt(new_square)


@final
@checked_methods(late=True)
class AdamW(Adam):
    """Adam with decay of the weights themselves (Loshchilov and Hutter, 2019).

    Every step also subtracts `rate * weight_decay * w`.

    >>> adam = pg.optimizer.AdamW(0.01, weight_decay=0.1)
    """

    decays_gradient = False

    def __init__(
        self, learning_rate: float = 0.001, *, weight_decay: float = 0.01, **options: Any
    ) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **options)

    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        decay = times(rate * self.weight_decay, parameter)
        return super().change(parameter, gradient, rate, count) + decay


@final
@checked_methods(late=True)
class RMSProp(Optimizer):
    """`v = rho * v + (1 - rho) * g * g`, then `w - rate * g / sqrt(v + epsilon)` (Hinton, 2012).

    With `momentum` the change is `u = momentum * u + rate * g / sqrt(v + epsilon)`.

    >>> rmsprop = pg.optimizer.RMSProp(0.01)
    """

    def __init__(
        self,
        learning_rate: float,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.rho, self.momentum = (
            require_below_one("rho", rho),
            require_below_one("momentum", momentum),
        )
        self.epsilon = from_zero("epsilon", epsilon)

    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        square = self.slot(parameter, "square")
        new = self.rho * square + (1.0 - self.rho) * (gradient * gradient)
        self.keep(square, new)
        change = times(rate, gradient) / sqrt(new + self.epsilon)
        if self.momentum:
            velocity = self.slot(parameter, "velocity")
            change = self.momentum * velocity + change
            self.keep(velocity, change)
        return change
