"""Updates of the programs of static mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from primgraph import optimizer as pg
from primgraph.compat.paddle.core.methods import Variable
from primgraph.compat.paddle.static.backward import note_loss, variables_named
from primgraph.compat.paddle.static.executor import before_runs
from primgraph.compat.paddle.utils import unique_name
from primgraph.compat.training.groups import initial_array
from primgraph.compat.training.updates import update_one
from primgraph.eager.inplace.shared_storage import state_of
from primgraph.eager.tensor import Tensor
from primgraph.errors import InternalError
from primgraph.initializers import Assign, Constant
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.operators.variable import Variable as _Variable
from primgraph.operators.variable import in_manner
from primgraph.optimizer.base import Step
from primgraph.program.program import Program, program_guard, program_of
from primgraph.program.scope import Scope

Group: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[Any, Any]


class RecordedUpdate(pg.Optimizer):
    """Steps of an optimizer of Paddle, `owner`, that runs of a program take."""

    def __init__(self, owner: Any) -> None:
        super().__init__(owner.get_lr())
        self._owner = owner
        self._rates: dict[Program, str] = {}

    def change(self, parameter: Any, gradient: Any, rate: Any, count: Any) -> Any:
        """Raise: all parameters are updated together."""
        raise InternalError("the formula of the owner applies")

    def minimize_in(
        self, loss: Any, startup: Program | None, parameters: Any, held: Any
    ) -> tuple[list[Any], list[Pair]]:
        """Let every run of the program of `loss` take a step; return new values and pairs."""
        program = program_of(loss)
        with program_guard(program, startup):
            constant = variables_named(loss, held)
            found = self.minimize(loss, self._listed(loss, parameters), constant)
        note_loss(loss, constant or ())
        prepare = before_runs.setdefault(program, [])
        if program not in self._rates:
            raise InternalError("a step reads its learning rate")
        if self._set_rates not in prepare:
            prepare.append(self._set_rates)
        return found

    def _listed(self, loss: Any, parameters: Any) -> Any:
        """Return the parameters that were given here, or to the optimizer, or None."""
        if parameters is None:
            listed = [p for group in self._owner._groups for p in group["params"]]
            return variables_named(loss, listed) if listed else None
        return variables_named(loss, parameters)

    def _set_rates(self, scope: Scope) -> None:
        """Let the next run use the rate that holds now."""
        rate = self._owner.get_lr()
        for program, name in self._rates.items():
            program.set_state_dict({name: rate}, scope)

    def _steps(self, ledger: Any, pairs: list[tuple[_Variable, _Variable]]) -> None:
        program = ledger.program
        name = self._rates.get(program) or unique_name.generate("learning_rate")
        rate = _state(program, name, TensorType((), FLOAT64), Constant(self._owner.get_lr()))
        self._rates[program] = name
        for group, chosen in self._by_group(program, pairs):
            for _, options, part in self._owner.parts(group, self._owner.prepared(group, chosen)):
                factor = options.pop("factor")
                numbers = {**options, "lr": rate if factor == 1.0 else rate * factor}
                for parameter, gradient in part:
                    self._record_one(ledger, group, parameter, gradient, numbers)

    def _record_one(
        self, ledger: Step, group: Group, parameter: Any, gradient: Any, numbers: Mapping[str, Any]
    ) -> None:
        """Record the update of one parameter and its states."""
        owner, known = self._owner, {}
        for name, value in owner.first(group).items():
            first = initial_array(name, value, parameter.type)
            type = TensorType(first.shape, FLOAT64 if name == "step" else first.dtype)
            called = owner.state_name(parameter, name)
            known[name] = _state(ledger.program, called, type, Assign(first.astype(type.dtype)))
        state: dict[str, Any] = dict(known)
        if "step" in state:
            state["step"] = state["step"] + 1.0
        new = update_one(owner.formula, parameter, gradient, state, numbers)
        for name, value in state.items():
            if value is not known.get(name):
                ledger.keep(known[name], value)
        ledger.keep(parameter, new)

    def _by_group(
        self, program: Program, pairs: list[tuple[_Variable, _Variable]]
    ) -> list[tuple[Group, list[Pair]]]:
        """Return the groups with their pairs; a tensor stands for its state."""
        groups = self._owner._groups
        found: list[tuple[Group, list[Pair]]] = [(group, []) for group in groups]
        places: dict[Any, int] = {}
        for i, group in enumerate(groups):
            for parameter in group["params"]:
                own = state_of(parameter, program) if isinstance(parameter, Tensor) else parameter
                if isinstance(own, _Variable):
                    places[own.value] = i
        for parameter, gradient in pairs:
            found[places.get(parameter.value, 0)][1].append(
                (in_manner(Variable, parameter), gradient)
            )
        return found


def _state(program: Program, name: str, type: TensorType, first: Any) -> _Variable:
    """Return the state of that name, created if it does not exist."""
    known = program.variable(name)
    return program.state(name, type, first) if known is None else known
