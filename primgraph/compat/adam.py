"""Adam as torch, OneFlow, Paddle and MegEngine compute it."""

from __future__ import annotations

from typing import Any

from primgraph import optimizer as pg
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.operators import sqrt
from primgraph.operators.variable import Variable
from primgraph.optimizer.kinds import times


@checked_methods(late=True)
class Adam(pg.Adam):
    """Adam with `epsilon` beside the root of the corrected second moment.

    `w - rate / (1 - beta1**t) * m / (sqrt(v / (1 - beta2**t)) + epsilon)`. Each parameter counts
    its own steps `t`: a step without a gradient is none. With `counts_apart` False all steps of the
    optimizer count, as OneFlow has it.
    """

    def __init__(self, *args: Any, counts_apart: bool = True, **options: Any) -> None:
        super().__init__(*args, **options)
        self.counts_apart = counts_apart

    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        if self.counts_apart:
            steps = self.slot(parameter, "step", TensorType((), FLOAT64))
            count = steps + 1.0
            self.keep(steps, count)
        mean, root = self._moments(parameter, gradient)
        # In float64 whatever the parameter is: at first 1 - beta2**t is small beside 1.
        scale = sqrt(1.0 - self.beta2**count)
        return times(rate / (1.0 - self.beta1**count), mean) / (
            root / scale.astype(root.dtype) + self.epsilon
        )


@checked_methods(late=True)
class AdamW(Adam):
    """The same with decay of the weights themselves: `rate * weight_decay * w` is subtracted."""

    decays_gradient = False

    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        decay = times(rate * self.weight_decay, parameter)
        return super().change(parameter, gradient, rate, count) + decay
