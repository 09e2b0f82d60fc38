"""Optimizers: each adds to a program the update of its parameters, compiled with the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, final

import numpy as np

from primgraph.autodiff.grad import grad
from primgraph.errors import (
    ArgumentError,
    BuildError,
    NotDifferentiable,
    PrimgraphError,
    ShapeError,
    unknown_name,
)
from primgraph.initializers import Constant
from primgraph.ir.graph import Value
from primgraph.ir.primitive import recording
from primgraph.ir.signature import applied, checked, checked_methods
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.operators import clip, cos, maximum, minimum, norm, sqrt, stack, where
from primgraph.operators.variable import Variable
from primgraph.program.program import Program, program_of
from primgraph.program.scope import Scope
from primgraph.source import UPDATE, caller, marked

Schedule: TypeAlias = Callable[[Variable], Variable]
"""Maps the number of the step, a 0-d float64 variable that counts from 0, to a factor."""

Clip: TypeAlias = Callable[[list[Variable]], list[Variable]]
"""Maps all gradients to the ones that are used."""

Pairs: TypeAlias = list[tuple[Variable, Variable]]


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """What one call of `minimize` has added to a program: states that begin so, and updates."""

    program: Program
    prefix: str
    updates: dict[Value, Value]


@checked_methods(late=True)
class Optimizer(ABC):
    """What optimizers share: gradients, clipping, decay, the schedule, the step count.

    `learning_rate` is a number, kept in the scope as a state that `set_learning_rate` changes
    between runs; `schedule` gives a factor for it from the step count. `grad_clip` is one of the
    functions of this module that start with `clip_by`. `weight_decay` adds that multiple of a
    parameter to its gradient, after clipping.

    States are named after the optimizer: `adam.step`, `adam.learning_rate`, and for a parameter
    `weight` `adam.weight.moment1`; those of a second one begin with `adam_1`.
    """

    decays_gradient = True

    def __init__(
        self,
        learning_rate: float,
        *,
        schedule: Schedule | None = None,
        weight_decay: float = 0.0,
        grad_clip: Clip | None = None,
    ) -> None:
        self.learning_rate = _rate(learning_rate)
        self.schedule = schedule
        self.weight_decay = _from_zero("weight_decay", float(weight_decay))
        self.grad_clip = grad_clip
        self._applied: list[_Step] = []

    def minimize(
        self,
        loss: Variable,
        parameters: Iterable[Variable] | None = None,
        no_grad_set: Collection[Variable] | None = None,
    ) -> tuple[list[Variable], Pairs]:
        """Let every run of the program of `loss` take one step that lowers it.

        `loss` has one element. `parameters` are those to change, by default all trainable ones,
        less those in `no_grad_set`; any that `loss` does not depend on stay as they are. Other
        variables in `no_grad_set` are constants: no gradient goes through them. Returns the new
        values, and pairs of a parameter and its gradient as it is before clipping and decay.

        Called again for one of the parameters that it has changed, also with another loss, this
        takes the place of the former call, whose states go on from where they are. Losses of
        different parameters stand side by side.

        Raises `ShapeError` for a loss of more than one element, `BuildError` if nothing is
        left to change, one of `parameters` is none or is updated by something else already, such
        as another optimizer, and `ArgumentError` for what is no variable.
        """
        if not isinstance(loss, Variable):
            raise ArgumentError(f"a loss is a variable, not {type(loss).__name__}")
        program = program_of(loss)
        held = [] if no_grad_set is None else list(no_grad_set)
        try:
            if loss.size != 1:
                raise ShapeError(
                    f"a loss has one element, not {loss.type}", hint="take its sum or mean"
                )
            chosen = _chosen(program, parameters, held)
            pairs = _pairs(loss, chosen, held)
            former = self._former(program, pairs)
            _refuse_second(program, pairs, former)
        except PrimgraphError as error:
            raise error.located(program.builder.origin(caller(), [loss.value])) from None
        updates, steps = dict(program.updates), self._applied
        try:
            with recording(program.builder):
                return self._apply(program, pairs, former), pairs
        except BaseException:
            program.updates, self._applied = updates, steps
            raise

    def _former(self, program: Program, pairs: Pairs) -> list[_Step]:
        """The steps of this optimizer that change one of these parameters too."""
        changed = {p.value for p, _ in pairs}
        return [
            step
            for step in self._applied
            if step.program is program and not changed.isdisjoint(step.updates)
        ]

    def set_learning_rate(self, value: float, scope: Scope | None = None) -> None:
        """Use `value` from the next run on, in `scope` or else the program's own.

        Raises `BuildError` before `minimize`.
        """
        if not self._applied:
            raise BuildError("the learning rate lives in a program: call minimize first")
        for step in self._applied:
            step.program.set_state_dict({f"{step.prefix}.learning_rate": _rate(value)}, scope)

    def _apply(self, program: Program, pairs: Pairs, former: Sequence[_Step]) -> list[Variable]:
        prefix = former[0].prefix if former else program.free_name(type(self).__name__.lower())
        for former_step in former:
            for state, new in former_step.updates.items():
                if program.updates.get(state) is new:
                    del program.updates[state]
        self._applied = [s for s in self._applied if s not in former]
        self._applied.append(_Step(program, prefix, {}))
        with marked(prefix, UPDATE):
            return self._steps(program, pairs)

    def _steps(self, program: Program, pairs: Pairs) -> list[Variable]:
        """Record what changes the parameters, and the optimizer's own states."""
        step = self._state("step", TensorType((), FLOAT64), 0.0)
        rate = self._state("learning_rate", TensorType((), FLOAT64), self.learning_rate)
        if self.schedule is not None:
            rate = rate * applied(self.schedule, step)
        count = step + 1.0
        self.keep(step, count)
        gradients = [g for _, g in pairs]
        if self.grad_clip is not None:
            gradients = applied(self.grad_clip, gradients)
        changed = []
        for (parameter, _), gradient in zip(pairs, gradients, strict=True):
            with marked(_layer_of(parameter.name), UPDATE):
                if self.weight_decay and self.decays_gradient:
                    gradient = gradient + self.weight_decay * parameter
                change = self.change(parameter, gradient, rate, count)
                self.keep(parameter, parameter - change)
            changed.append(program.next_value(parameter))
        return changed

    def _state(self, name: str, type: TensorType, value: float) -> Variable:
        step = self._applied[-1]
        # A step that takes the place of another one has its states.
        known = step.program.variable(f"{step.prefix}.{name}")
        if known is not None:
            return known
        return step.program.state(f"{step.prefix}.{name}", type, Constant(value))

    def slot(self, parameter: Variable, name: str) -> Variable:
        """A state of the parameter's type, zeros at first."""
        return self._state(f"{parameter.name}.{name}", parameter.type, 0.0)

    def keep(self, state: Variable, new: Variable) -> None:
        """Store `new` as `state` at the end of each run."""
        step = self._applied[-1]
        step.program.update(state, new)
        step.updates[state.value] = new.value

    @abstractmethod
    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        """What a step subtracts from `parameter`, in its dtype.

        `rate` and `count`, the number of this step from 1, are 0-d float64 variables.
        """


def _layer_of(name: str) -> str:
    """The path of the layer that a parameter belongs to, or its name where it has no layer."""
    return name.rpartition(".")[0] or name


def _rate(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        raise ArgumentError(
            f"a learning rate is a number, not {value!r:.80}",
            hint="give a schedule as `schedule=`",
        )
    return _from_zero("a learning rate", float(value))


def _from_zero(role: str, value: float) -> float:
    """`value`, if it is finite and not negative: steps go downhill, and weights shrink."""
    if not 0.0 <= value < np.inf:
        raise ArgumentError(f"{role} is a finite number from 0 on, not {value!r:.60}")
    return value


def _below_one(name: str, value: float) -> float:
    """`value`, if it is a part that is kept from step to step: from 0 on and below 1."""
    if not 0.0 <= value < 1.0:
        raise ArgumentError(f"{name} is from 0 on and below 1, not {value!r:.60}")
    return value


def _chosen(
    program: Program, parameters: Iterable[Variable] | None, held: Sequence[Variable]
) -> list[Variable]:
    listed = program.parameters() if parameters is None else list(parameters)
    for parameter in listed:
        if not isinstance(parameter, Variable):
            raise ArgumentError(
                f"parameters are variables, not {parameter!r:.80}",
                hint="program.variable(name) gives the one of that name",
            )
        if parameter.value not in program.states:
            raise BuildError(f"{parameter!r} is not a parameter of the program of the loss")
    for variable in held:
        if not isinstance(variable, Variable):
            raise ArgumentError(f"no_grad_set has variables, not {variable!r:.80}")
    # A parameter that is listed twice is changed once.
    chosen = {p.value: p for p in listed}
    for variable in held:
        chosen.pop(variable.value, None)
    if not chosen:
        raise BuildError("there is no parameter to change")
    return list(chosen.values())


def _pairs(loss: Variable, chosen: Sequence[Variable], held: Sequence[Variable]) -> Pairs:
    """The parameters that `loss` depends on, each with its gradient."""
    try:
        gradients = grad(loss, chosen, no_grad_vars=held)
    except NotDifferentiable as error:
        raise BuildError(
            f"the loss cannot be lowered by these parameters: {error.message}",
            origin=error.origin,
        ) from None
    pairs = [(p, g) for p, g in zip(chosen, gradients, strict=True) if g is not None]
    if not pairs:
        raise BuildError(
            "the loss cannot be lowered: all of these parameters are held constant",
            hint="reset their stop_gradient, or take them out of no_grad_set",
        )
    return pairs


def _refuse_second(program: Program, pairs: Pairs, former: Sequence[_Step]) -> None:
    """Refuse parameters that are updated already, and by none of the `former` steps."""
    for parameter, _ in pairs:
        value = parameter.value
        new = program.updates.get(value)
        if new is None or any(step.updates.get(value) is new for step in former):
            continue
        place, here = program.updated_at.get(value), caller()
        before = f"{place}   {place.text}" if place else "what the program was made from"
        raise BuildError(
            f"{parameter.name!r} is updated in every run already: two optimizers would undo each "
            "other",
            origin=[
                f"written here:  {here}   {here.text}",
                f"updated by:    {before}",
            ],
            hint="call minimize of the optimizer that is there, whose updates that replaces; or "
            "minimize the sum of both losses, or choose other `parameters`",
        )


def _times(scalar: Variable, x: Variable) -> Variable:
    """`scalar * x` in the dtype of `x`."""
    return scalar.astype(x.dtype) * x


@final
@checked_methods(late=True)
class SGD(Optimizer):
    """`w - rate * g`."""

    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        return _times(rate, gradient)


@final
@checked_methods(late=True)
class Momentum(Optimizer):
    """`v = momentum * v + g`, then `w - rate * v`; Nesterov's takes `g + momentum * v` for v.

    After B. T. Polyak, 1964, and I. Sutskever et al., On the importance of initialization and
    momentum in deep learning, 2013.
    """

    def __init__(
        self, learning_rate: float, momentum: float = 0.9, nesterov: bool = False, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        self.momentum, self.nesterov = _below_one("momentum", momentum), nesterov

    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        velocity = self.slot(parameter, "velocity")
        new = self.momentum * velocity + gradient
        self.keep(velocity, new)
        return _times(rate, gradient + self.momentum * new if self.nesterov else new)


@checked_methods(late=True)
class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with the rate corrected for the bias of both moments.

    `w - rate * sqrt(1 - beta2**t) / (1 - beta1**t) * m / (sqrt(v) + epsilon)`, where
    `m = beta1 * m + (1 - beta1) * g` and `v = beta2 * v + (1 - beta2) * g * g`.
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
        self.beta1, self.beta2 = _below_one("beta1", beta1), _below_one("beta2", beta2)
        self.epsilon = _from_zero("epsilon", epsilon)

    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        mean, square = self.slot(parameter, "moment1"), self.slot(parameter, "moment2")
        new_mean = self.beta1 * mean + (1.0 - self.beta1) * gradient
        new_square = self.beta2 * square + (1.0 - self.beta2) * (gradient * gradient)
        self.keep(mean, new_mean)
        self.keep(square, new_square)
        # In float64 whatever the parameter is: at first 1 - beta2**t is small beside 1.
        corrected = rate * sqrt(1.0 - self.beta2**count) / (1.0 - self.beta1**count)
        return _times(corrected, new_mean) / (sqrt(new_square) + self.epsilon)


@final
@checked_methods(late=True)
class AdamW(Adam):
    """Adam with decay of the weights themselves (Loshchilov and Hutter, 2019).

    Every step also subtracts `rate * weight_decay * w`.
    """

    decays_gradient = False

    def __init__(
        self, learning_rate: float = 0.001, *, weight_decay: float = 0.01, **options: Any
    ) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **options)

    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        decay = _times(rate * self.weight_decay, parameter)
        return super().change(parameter, gradient, rate, count) + decay


@final
@checked_methods(late=True)
class RMSProp(Optimizer):
    """`v = rho * v + (1 - rho) * g * g`, then `w - rate * g / sqrt(v + epsilon)` (Hinton, 2012).

    With `momentum` the change is `u = momentum * u + rate * g / sqrt(v + epsilon)`.
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
        self.rho, self.momentum = _below_one("rho", rho), _below_one("momentum", momentum)
        self.epsilon = _from_zero("epsilon", epsilon)

    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        square = self.slot(parameter, "square")
        new = self.rho * square + (1.0 - self.rho) * (gradient * gradient)
        self.keep(square, new)
        change = _times(rate, gradient) / sqrt(new + self.epsilon)
        if self.momentum:
            velocity = self.slot(parameter, "velocity")
            change = self.momentum * velocity + change
            self.keep(velocity, change)
        return change


# Gradient clipping.


@checked
def clip_by_value(low: float, high: float) -> Clip:
    """Limit each element of each gradient to [low, high]."""
    if not low <= high:
        raise ArgumentError(f"clip_by_value takes low <= high, not {low!r:.60} and {high!r:.60}")
    return lambda gradients: [clip(g, low, high) for g in gradients]


@checked
def clip_by_norm(limit: float) -> Clip:
    """Scale each gradient whose 2-norm is above `limit` down to it."""
    _positive("the limit of a norm", limit)
    return lambda gradients: [g * _shrink(norm(g), limit) for g in gradients]


@checked
def clip_by_global_norm(limit: float) -> Clip:
    """Scale all gradients by one factor if the 2-norm of them together is above `limit`."""
    _positive("the limit of a norm", limit)

    def apply(gradients: list[Variable]) -> list[Variable]:
        together = norm(stack([norm(g).astype(FLOAT64) for g in gradients]))
        factor = _shrink(together, limit)
        return [_times(factor, g) for g in gradients]

    return apply


def _shrink(size: Variable, limit: float) -> Variable:
    """The factor that brings `size` down to `limit`, 1 where it is not above it."""
    return limit / maximum(size, limit)


def _positive(role: str, value: float) -> None:
    """Refuse what would divide by zero or turn a step around."""
    if not value > 0:
        raise ArgumentError(f"{role} is positive, not {value!r:.80}")


# Learning-rate schedules: factors of the learning rate.


@checked
def exponential_decay(gamma: float) -> Schedule:
    """`gamma**step`."""
    _from_zero("gamma", gamma)
    return lambda step: gamma**step


@checked
def step_decay(every: int, gamma: float = 0.1) -> Schedule:
    """`gamma**floor(step / every)`."""
    _positive("the length of a schedule", every)
    _from_zero("gamma", gamma)
    return lambda step: gamma ** (step // float(every))


@checked
def polynomial_decay(steps: int, end: float = 0.0, power: float = 1.0) -> Schedule:
    """From 1 down to `end` within `steps`, as `(1 - step / steps)**power`."""
    _positive("the length of a schedule", steps)
    _positive("the power of a schedule", power)
    _from_zero("end", end)
    return lambda step: end + (1.0 - end) * (1.0 - minimum(step / steps, 1.0)) ** power


@checked
def cosine_decay(steps: int, end: float = 0.0) -> Schedule:
    """From 1 down to `end` within `steps`, along half a cosine (Loshchilov and Hutter, 2017)."""
    _positive("the length of a schedule", steps)
    _from_zero("end", end)

    def factor(step: Variable) -> Variable:
        part = minimum(step / steps, 1.0)
        return end + (1.0 - end) * 0.5 * (1.0 + cos(np.pi * part))

    return factor


@checked
def warmup(steps: int, then: Schedule | None = None) -> Schedule:
    """Rising linearly to 1 within `steps`, then as `then` from there on."""
    _positive("the length of a schedule", steps)

    def factor(step: Variable) -> Variable:
        rise = minimum((step + 1.0) / steps, 1.0)
        if then is None:
            return rise
        return where(step < steps, rise, then(maximum(step - steps, 0.0)))

    return factor


if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.optimizer", name, globals())
