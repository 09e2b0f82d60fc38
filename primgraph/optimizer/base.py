"""Base class of optimizers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np

from primgraph.autograd import backward
from primgraph.base.atomic import Call, call_all
from primgraph.base.records import dataclass
from primgraph.base.user_lines import UPDATE, caller, mark_lines
from primgraph.derivatives.grad import grad
from primgraph.eager.derivatives.accumulation import clear_grad
from primgraph.eager.inplace.shared_storage import (
    create_shared_state,
    find_shared_tensor,
    label_of,
    state_of,
)
from primgraph.eager.node import array_node
from primgraph.eager.tensor import Tensor
from primgraph.errors import (
    ArgumentError,
    BuildError,
    NotDifferentiable,
    PrimgraphError,
    ShapeError,
)
from primgraph.initializers import Constant
from primgraph.ir.frontend.signature import call_user_function, checked_methods
from primgraph.ir.graph import Value
from primgraph.ir.primitive import recording
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.operators.variable import Variable
from primgraph.optimizer.kinds import Clip, Pairs, Schedule, from_zero, rate_from
from primgraph.optimizer.stepping import Rule, StateStore, SteppedParameters, TracedStateStore
from primgraph.program.program import Program, program_of
from primgraph.program.scope import Scope, copy_for_scope, require_known


@final
@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """States and updates that one call of `minimize` added to a program.

    `stepped` has the states of an optimizer that takes steps eagerly, too.
    """

    program: Program
    prefix: str
    updates: dict[Value, Value]
    stepped: SteppedParameters | None

    def state(self, name: str, type: TensorType, value: float) -> Variable:
        return self._state(name, name, type, value)

    def slot(self, parameter: Variable, name: str, type: TensorType | None = None) -> Variable:
        owner = (
            None if self.stepped is None else self.stepped.name_of(find_shared_tensor(parameter))
        )
        own = None if owner is None else f"{owner}.{name}"
        return self._state(f"{parameter.name}.{name}", own, type or parameter.type, 0.0)

    def _state(self, name: str, own: str | None, type: TensorType, value: float) -> Variable:
        """The state of that name, which has the elements of the optimizer's `own` one."""
        # A step that takes the place of another one has its states.
        called = f"{self.prefix}.{name}"
        known = self.program.variable(called)
        if known is not None:
            return known
        if self.stepped is None or own is None:
            return self.program.state(called, type, Constant(value))
        return create_shared_state(self.stepped.state(own, type, value), self.program, called)

    def keep(self, state: Variable, new: Variable) -> None:
        self.program.update(state, new)
        self.updates[state.value] = new.value


@checked_methods(late=True)
class Optimizer(ABC):
    """Base class of optimizers: gradients, clipping, decay, schedule, step count.

    In a program, `minimize(loss)` lets every run take a step. Eagerly, pass the `parameters`,
    tensors that require a gradient, and call `step` after `backward`. Such an optimizer may
    minimize in programs, too: both share states and parameters.

    `learning_rate` is a number, kept as a state that `set_learning_rate` changes between steps.
    `schedule` returns a factor for it from the step count. `grad_clip` is a `clip_by` function.
    `weight_decay` adds that multiple of a parameter to its gradient, after clipping.

    States are named after the optimizer: `adam.step`, `adam.learning_rate`, and for a parameter
    `weight` `adam.weight.moment1`; those of a second one begin with `adam_1`.

    >>> w = pg.tensor([1.0, 2.0], requires_grad=True)
    >>> sgd = pg.optimizer.SGD(0.1, parameters=[w])
    >>> pg.sum(w * w).backward()
    >>> sgd.step()
    >>> w
    tensor([0.8, 1.6], requires_grad=True)
    """

    decays_gradient = True

    def __init__(
        self,
        learning_rate: float,
        *,
        parameters: Iterable[Any] | None = None,
        schedule: Schedule | None = None,
        weight_decay: float = 0.0,
        grad_clip: Clip | None = None,
    ) -> None:
        self.learning_rate = rate_from(learning_rate)
        self.schedule = schedule
        self.weight_decay = from_zero("weight_decay", float(weight_decay))
        self.grad_clip = grad_clip
        self._applied: list[Step] = []
        self._ledger: StateStore | None = None
        self._eager = None if parameters is None else SteppedParameters(parameters)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        eager = self.__dict__.get("_eager")
        if eager is not None and not name.startswith("_") and name != "learning_rate":
            # Rules were traced with what was there before.
            eager.rules.clear()

    # Step by step.

    def step(self) -> None:
        """Change the parameters that have a gradient.

        Pending computations, from the parameters to the loss, are computed now, in the same kernel.
        Raises `BuildError` for an optimizer without `parameters`, and if none of them has a
        gradient.
        """
        eager = self._require_eager()
        gradients = [p.grad for p in eager.parameters]
        places = tuple([i for i, g in enumerate(gradients) if g is not None])
        if not places:
            raise BuildError(
                "none of the parameters has a gradient: there is nothing to step along",
                origin=_user_lines(),
                hint="loss.backward() puts gradients there, of what the loss was computed from",
            )
        rule = eager.rules.get(places)
        if rule is None:
            rule = eager.rules[places] = _trace_rule(self, places)
        eager.settle(rule, rate_from(self.learning_rate))
        eager.apply(rule, places, gradients)

    def clear_grad(self) -> None:
        """Let no parameter have a gradient. Raises `BuildError` without `parameters`."""
        clear_grad(self._require_eager().parameters)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """`clear_grad`, as torch calls it; with `set_to_none=False` gradients become zeros."""
        if set_to_none:
            self.clear_grad()
            return
        known = [p.grad for p in self._require_eager().parameters if p.grad is not None]
        gradients = {id(g): g for g in known}.values()
        call_all([c for g in gradients for c in g.showing(array_node(np.zeros(g.shape, g.dtype)))])

    def _require_eager(self) -> SteppedParameters:
        if self._eager is None:
            raise BuildError(
                f"this {type(self).__name__} has no parameters",
                origin=_user_lines(),
                hint="give them as `parameters=layer.parameters()`; in a program call minimize",
            )
        return self._eager

    # In a program.

    def minimize(
        self,
        loss: Variable | Tensor,
        parameters: Iterable[Variable | Tensor] | None = None,
        no_grad_set: Collection[Variable] | None = None,
    ) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """Let every run of the program of `loss` take one step that lowers it.

        `loss` has one element. `parameters` are by default all trainable ones, without those in
        `no_grad_set`; parameters that `loss` does not depend on do not change. Other variables in
        `no_grad_set` are constants. Return the new values, and pairs of a parameter and its
        gradient before clipping and decay.

        A second call for a parameter, also with another loss, replaces the first; its states go on.
        Losses of different parameters are independent.

        Raises `ShapeError` for a loss of more than one element; `BuildError` if there is nothing to
        change, if one of `parameters` is no parameter, or is updated already, such as by another
        optimizer; `ArgumentError` for what is no variable.
        """
        if isinstance(loss, Tensor):
            return _minimize_eagerly(self, loss, parameters, no_grad_set)
        if not isinstance(loss, Variable):
            raise ArgumentError(f"a loss is a variable or a tensor, not {type(loss).__name__}")
        if parameters is None and self._eager is not None:
            parameters = self._eager.parameters
        program = program_of(loss)
        held = [] if no_grad_set is None else list(no_grad_set)
        try:
            if loss.size != 1:
                raise ShapeError(
                    f"a loss has one element, not {loss.type}", hint="take its sum or mean"
                )
            chosen = _select_parameters(program, parameters, held)
            pairs = _pairs(loss, chosen, held)
            former = _former(self, program, pairs)
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

    def set_learning_rate(self, value: float, scope: Scope | None = None) -> None:
        """Use `value` from the next step on: in `scope` or else the program's own, and eagerly.

        Raises `BuildError` before `minimize`, if no `parameters` were given either.
        """
        rate = rate_from(value)
        if not self._applied and self._eager is None:
            raise BuildError("the learning rate lives in a program: call minimize first")
        if self._eager is not None:
            self.learning_rate = rate
            self._eager.use_rate(rate)
        for step in self._applied:
            if scope is not None or self._eager is None:
                step.program.set_state_dict({f"{step.prefix}.learning_rate": rate}, scope)

    def state_dict(self, scope: Scope | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """Return copies of `step`, `learning_rate` and the states of each parameter, by name.

        Names lack the name of the optimizer, as in `step` and `linear.weight.moment1`, so that
        eager training and programs can load each other's states. An optimizer without `parameters`,
        or with `scope`, returns those of the program in which `minimize` was called first. Raises
        `BuildError` before that.
        """
        if scope is not None or self._eager is None:
            step = _first(self)
            start = f"{step.prefix}."
            found = step.program.state_dict(scope)
            return {n.removeprefix(start): a for n, a in found.items() if n.startswith(start)}
        if not self._eager.states:
            _settle(self, self._eager)
        return {name: t._array().copy() for name, t in self._eager.states.items()}

    def set_state_dict(self, values: Mapping[str, Any], scope: Scope | None = None) -> None:
        """Go on from what `state_dict` gave, of this optimizer or another one of its class.

        What is not named stays. Raises `FeedError` for an unknown name, a wrong shape or a wrong
        kind of dtype; nothing is stored then. Raises `BuildError` as `state_dict` does.
        """
        if scope is not None or self._eager is None:
            step = _first(self)
            named = {f"{step.prefix}.{name}": value for name, value in values.items()}
            step.program.set_state_dict(named, scope)
            return
        _store_eagerly(self, self._eager, values)

    def load_state_dict(self, values: Mapping[str, Any]) -> None:
        """`set_state_dict`, as torch calls it."""
        self.set_state_dict(values)

    def _apply(self, program: Program, pairs: Pairs, former: Sequence[Step]) -> list[Variable]:
        prefix = former[0].prefix if former else program.free_name(type(self).__name__.lower())
        for former_step in former:
            for state, new in former_step.updates.items():
                if program.updates.get(state) is new:
                    del program.updates[state]
        self._applied = [s for s in self._applied if s not in former]
        self._applied.append(Step(program, prefix, {}, self._eager))
        with mark_lines(prefix, UPDATE):
            self._steps(self._applied[-1], pairs)
        return [program.next_value(parameter) for parameter, _ in pairs]

    def _steps(self, ledger: StateStore, pairs: Pairs) -> None:
        """Record what changes the parameters, and the optimizer's own states."""
        self._ledger = ledger
        try:
            step = ledger.state("step", TensorType((), FLOAT64), 0.0)
            rate = ledger.state("learning_rate", TensorType((), FLOAT64), self.learning_rate)
            if self.schedule is not None:
                rate = rate * call_user_function(self.schedule, step)
            count = step + 1.0
            ledger.keep(step, count)
            gradients = [g for _, g in pairs]
            if self.grad_clip is not None:
                gradients = call_user_function(self.grad_clip, gradients)
            for (parameter, _), gradient in zip(pairs, gradients, strict=True):
                with mark_lines(_layer_of(parameter.name), UPDATE):
                    if self.weight_decay and self.decays_gradient:
                        gradient = gradient + self.weight_decay * parameter
                    change = self.change(parameter, gradient, rate, count)
                    ledger.keep(parameter, parameter - change)
        finally:
            self._ledger = None

    def slot(self, parameter: Variable, name: str, type: TensorType | None = None) -> Variable:
        """Return a state that goes with the parameter, zeros at first; by default of its type."""
        return self._current().slot(parameter, name, type)

    def keep(self, state: Variable, new: Variable) -> None:
        """Store `new` as `state` at the end of each step."""
        self._current().keep(state, new)

    def _current(self) -> StateStore:
        if self._ledger is None:
            raise BuildError("an optimizer keeps states while its rule is recorded, in `change`")
        return self._ledger

    @abstractmethod
    def change(
        self, parameter: Variable, gradient: Variable, rate: Variable, count: Variable
    ) -> Variable:
        """Return what a step subtracts from `parameter`, in its dtype.

        `rate` and `count`, the number of this step from 1, are 0-d float64 variables.
        """


# Eager steps.


def _trace_rule(optimizer: Optimizer, places: Sequence[int]) -> Rule:
    """Return the rule, traced for the parameters at these places."""
    eager = optimizer._require_eager()
    draft = TracedStateStore(type(optimizer).__name__.lower())
    with draft.builder:
        pairs = []
        for i in places:
            name, kind = eager.names[i], eager.parameters[i].type
            pairs.append(draft.pair(name, kind))
        optimizer._steps(draft, pairs)
    return draft.rule()


def _settle(optimizer: Optimizer, eager: SteppedParameters) -> None:
    """Create all states that steps of all parameters need."""
    rule = _trace_rule(optimizer, range(len(eager.parameters)))
    eager.settle(rule, rate_from(optimizer.learning_rate))


def _minimize_eagerly(
    optimizer: Optimizer,
    loss: Tensor,
    parameters: Iterable[Any] | None,
    held: Collection[Any] | None,
) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """Run `minimize` eagerly."""
    if parameters is not None or held is not None:
        raise ArgumentError(
            "which parameters are changed is said when the optimizer is made, for tensors",
            hint="give them as `parameters=`, and let the others not require grad",
        )
    eager = optimizer._require_eager()
    if not loss.node.spent:
        backward(loss)
    pairs = [(p, p.grad) for p in eager.parameters if p.grad is not None]
    optimizer.step()
    return [p for p, _ in pairs], pairs


def _store_eagerly(
    optimizer: Optimizer, eager: SteppedParameters, values: Mapping[str, Any]
) -> None:
    """Store `values` in the states of eager steps, all or none."""
    _settle(optimizer, eager)
    require_known(values, eager.states, f"this {type(optimizer).__name__} keeps nothing named")
    new = {n: copy_for_scope(n, value, eager.states[n].type) for n, value in values.items()}
    calls: list[Call] = []
    if "learning_rate" in new:
        rate = rate_from(new.pop("learning_rate").item())
        calls = [(object.__setattr__, optimizer, "learning_rate", rate), *eager.using_rate(rate)]
    for name, array in new.items():
        calls += eager.states[name].showing(array_node(array))
    call_all(calls)


# Steps in programs.


def _first(optimizer: Optimizer) -> Step:
    """Return the first step in a program, whose states stand for the optimizer."""
    if not optimizer._applied:
        raise BuildError(
            f"this {type(optimizer).__name__} has no states yet",
            origin=_user_lines(),
            hint="call minimize first, or give it `parameters`",
        )
    return optimizer._applied[0]


def _former(optimizer: Optimizer, program: Program, pairs: Pairs) -> list[Step]:
    """Return the steps of an optimizer that change one of these parameters too."""
    changed = {p.value for p, _ in pairs}
    return [
        step
        for step in optimizer._applied
        if step.program is program and not changed.isdisjoint(step.updates)
    ]


def _user_lines() -> list[str]:
    """The user's line, for an error."""
    place = caller()
    return [f"written here:  {place}   {place.text}"]


def _layer_of(name: str) -> str:
    """The path of the layer that a parameter belongs to, or its name where it has no layer."""
    return name.rpartition(".")[0] or name


def _select_parameters(
    program: Program, parameters: Iterable[Variable | Tensor] | None, held: Sequence[Variable]
) -> list[Variable]:
    listed = program.parameters()
    if parameters is not None:
        listed = [_state_in(program, p) if isinstance(p, Tensor) else p for p in parameters]
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


def _state_in(program: Program, parameter: Tensor) -> Variable:
    """The state that has the elements of a tensor."""
    found = state_of(parameter, program)
    if found is None:
        raise BuildError(
            f"the parameter {label_of(parameter) or parameter.type} is no part of the program of "
            "the loss",
            hint="call its layer on variables of the program first",
        )
    return found


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


def _refuse_second(program: Program, pairs: Pairs, former: Sequence[Step]) -> None:
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
