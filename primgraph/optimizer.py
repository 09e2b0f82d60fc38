"""Optimizers: each adds to a program the update of its parameters, compiled with the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.derivatives import grad
from primgraph.errors import ArgumentError, BuildError, ShapeError
from primgraph.initializers import Constant
from primgraph.ir.primitive import recording
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.operators import clip, cos, maximum, minimum, norm, sqrt, where
from primgraph.operators.variable import Variable
from primgraph.program import Program, program_of

Schedule: TypeAlias = Callable[[Variable], Variable]
"""Maps the number of the step, a 0-d float64 variable that counts from 0, to a factor."""

Clip: TypeAlias = Callable[[list[Variable]], list[Variable]]
"""Maps all gradients to the ones that are used."""

Pairs: TypeAlias = list[tuple[Variable, Variable]]


class Optimizer(ABC):
    """What optimizers share: gradients, clipping, decay, the schedule, the step count.

    `learning_rate` is a number, kept in the scope as a state that `set_learning_rate` changes
    between runs; `schedule` gives a factor for it from the step count. `weight_decay` adds that
    multiple of a parameter to its gradient. `grad_clip` is one of the functions of this module
    that start with `clip_by`.
    """

    def __init__(
        self,
        learning_rate: float,
        *,
        schedule: Schedule | None = None,
        weight_decay: float = 0.0,
        grad_clip: Clip | None = None,
    ) -> None:
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, int | float):
            raise ArgumentError(
                f"a learning rate is a number, not {learning_rate!r}",
                hint="give a schedule as `schedule=`",
            )
        self.learning_rate = float(learning_rate)
        self.schedule = schedule
        self.weight_decay = float(weight_decay)
        self.grad_clip = grad_clip
        self._program: Program | None = None
        self._prefix = ""

    def minimize(
        self,
        loss: Variable,
        parameters: Iterable[Variable] | None = None,
        no_grad_set: Iterable[Variable] | None = None,
    ) -> tuple[list[Variable], Pairs]:
        """Let every run of the program of `loss` take one step that lowers it.

        `loss` has one element. `parameters` are those to change, by default all trainable ones
        that `loss` depends on, less those in `no_grad_set`. Returns the new values, and pairs
        of a parameter and its gradient as it is before clipping and decay.

        Raises `ShapeError` for a loss of more than one element, `BuildError` if nothing is
        left to change or a variable is no parameter.
        """
        if loss.size != 1:
            raise ShapeError(f"a loss has one element, not {loss.type}")
        program = program_of(loss)
        chosen = _chosen(program, parameters, no_grad_set)
        with recording(program.builder):
            gradients = grad(loss, chosen)
            pairs = [(p, g) for p, g in zip(chosen, gradients, strict=True) if g is not None]
            if not pairs:
                raise BuildError("the loss depends on no parameter that may be changed")
            return self._apply(program, pairs), pairs

    def set_learning_rate(self, value: float) -> None:
        """Use `value` from the next run on, in the program's own scope.

        Raises `BuildError` before `minimize`.
        """
        if self._program is None:
            raise BuildError("the learning rate lives in a program: call minimize first")
        self._program.set_state_dict({f"{self._prefix}_learning_rate": np.float64(value)})

    def _apply(self, program: Program, pairs: Pairs) -> list[Variable]:
        self._program = program
        step_name = program.free_name(type(self).__name__.lower(), "_step")
        self._prefix = step_name.removesuffix("_step")
        step = self._state("step", TensorType((), FLOAT64), 0.0)
        rate = self._state("learning_rate", TensorType((), FLOAT64), self.learning_rate)
        if self.schedule is not None:
            rate = rate * self.schedule(step)
        program.update(step, step + 1.0)
        gradients = [g for _, g in pairs]
        if self.grad_clip is not None:
            gradients = self.grad_clip(gradients)
        changed = []
        for (parameter, _), gradient in zip(pairs, gradients, strict=True):
            if self.weight_decay and self.decays_gradient:
                gradient = gradient + self.weight_decay * parameter
            dtype = parameter.dtype
            new = self.step(parameter, gradient, rate.astype(dtype), (step + 1.0).astype(dtype))
            program.update(parameter, new)
            changed.append(new)
        return changed

    def _state(self, name: str, type: TensorType, value: float) -> Variable:
        assert self._program is not None
        return self._program.state(f"{self._prefix}_{name}", type, Constant(value))

    def slot(self, parameter: Variable, name: str) -> Variable:
        """A state of the parameter's type, zeros at first."""
        return self._state(f"{parameter.name}_{name}", parameter.type, 0.0)

    def keep(self, state: Variable, new: Variable) -> None:
        """Store `new` as `state` at the end of each run."""
        assert self._program is not None
        self._program.update(state, new)

    decays_gradient = True

    @abstractmethod
    def step(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        """The new value of `parameter`; `count` is the number of this step, from 1."""


def _chosen(
    program: Program, parameters: Iterable[Variable] | None, excluded: Iterable[Variable] | None
) -> list[Variable]:
    listed = program.parameters() if parameters is None else list(parameters)
    for parameter in listed:
        if not isinstance(parameter, Variable) or parameter.value not in program.states:
            raise BuildError(f"{parameter!r} is not a parameter of the program of the loss")
    left_out = {v.value for v in excluded or ()}
    chosen = [p for p in listed if p.value not in left_out]
    if not chosen:
        raise BuildError("there is no parameter to change")
    return chosen


@final
class SGD(Optimizer):
    """`w - rate * g`."""

    def step(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        return parameter - rate * gradient


@final
class Momentum(Optimizer):
    """`v = momentum * v + g`, then `w - rate * v`; Nesterov's takes `g + momentum * v` for v."""

    def __init__(
        self, learning_rate: float, momentum: float = 0.9, nesterov: bool = False, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        self.momentum, self.nesterov = momentum, nesterov

    def step(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        velocity = self.slot(parameter, "velocity")
        new = self.momentum * velocity + gradient
        self.keep(velocity, new)
        direction = gradient + self.momentum * new if self.nesterov else new
        return parameter - rate * direction


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with the rate corrected for the bias of both moments.

    `w - rate * sqrt(1 - beta2**t) / (1 - beta1**t) * m / (sqrt(v) + epsilon)`.
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
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def step(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        mean, square = self.slot(parameter, "moment1"), self.slot(parameter, "moment2")
        new_mean = self.beta1 * mean + (1.0 - self.beta1) * gradient
        new_square = self.beta2 * square + (1.0 - self.beta2) * (gradient * gradient)
        self.keep(mean, new_mean)
        self.keep(square, new_square)
        corrected = rate * sqrt(1.0 - self.beta2**count) / (1.0 - self.beta1**count)
        return parameter - corrected * new_mean / (sqrt(new_square) + self.epsilon)


@final
class AdamW(Adam):
    """Adam with decay of the weights themselves (Loshchilov and Hutter, 2019)."""

    decays_gradient = False

    def __init__(
        self, learning_rate: float = 0.001, *, weight_decay: float = 0.01, **options: Any
    ) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **options)

    def step(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        kept = parameter - rate * self.weight_decay * parameter
        return kept + (super().step(parameter, gradient, rate, count) - parameter)


@final
class RMSProp(Optimizer):
    """`v = rho * v + (1 - rho) * g * g`, then `w - rate * g / sqrt(v + epsilon)` (Hinton, 2012)."""

    def __init__(
        self,
        learning_rate: float,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.rho, self.epsilon, self.momentum = rho, epsilon, momentum

    def step(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        square = self.slot(parameter, "square")
        new = self.rho * square + (1.0 - self.rho) * (gradient * gradient)
        self.keep(square, new)
        change = rate * gradient / sqrt(new + self.epsilon)
        if self.momentum:
            velocity = self.slot(parameter, "velocity")
            change = self.momentum * velocity + change
            self.keep(velocity, change)
        return parameter - change


# Gradient clipping.


def clip_by_value(low: float, high: float) -> Clip:
    """Limit each element of each gradient to [low, high]."""
    return lambda gradients: [clip(g, low, high) for g in gradients]


def clip_by_norm(limit: float) -> Clip:
    """Scale each gradient whose 2-norm is above `limit` down to it."""
    return lambda gradients: [g * _shrink(norm(g), limit) for g in gradients]


def clip_by_global_norm(limit: float) -> Clip:
    """Scale all gradients by one factor if the 2-norm of them together is above `limit`."""

    def apply(gradients: list[Variable]) -> list[Variable]:
        factor = _shrink(sqrt(_sum([norm(g) ** 2 for g in gradients])), limit)
        return [g * factor.astype(g.dtype) for g in gradients]

    return apply


def _sum(parts: Sequence[Variable]) -> Variable:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _shrink(size: Variable, limit: float) -> Variable:
    """The factor that brings `size` down to `limit`, 1 where it is not above it."""
    return limit / maximum(size, limit)


# Learning-rate schedules: factors of the learning rate.


def exponential_decay(gamma: float) -> Schedule:
    """`gamma**step`."""
    return lambda step: gamma**step


def step_decay(every: int, gamma: float = 0.1) -> Schedule:
    """`gamma**floor(step / every)`."""
    return lambda step: gamma ** (step // float(every))


def polynomial_decay(steps: int, end: float = 0.0, power: float = 1.0) -> Schedule:
    """From 1 down to `end` within `steps`, as `(1 - step / steps)**power`."""
    return lambda step: end + (1.0 - end) * (1.0 - minimum(step / steps, 1.0)) ** power


def cosine_decay(steps: int, end: float = 0.0) -> Schedule:
    """From 1 down to `end` within `steps`, along half a cosine (Loshchilov and Hutter, 2017)."""

    def factor(step: Variable) -> Variable:
        part = minimum(step / steps, 1.0)
        return end + (1.0 - end) * 0.5 * (1.0 + cos(np.pi * part))

    return factor


def warmup(steps: int, then: Schedule | None = None) -> Schedule:
    """Rising linearly to 1 within `steps`, then as `then` from there on."""

    def factor(step: Variable) -> Variable:
        rise = minimum((step + 1.0) / steps, 1.0)
        if then is None:
            return rise
        return where(step < steps, rise, then(maximum(step - steps, 0.0)))

    return factor
