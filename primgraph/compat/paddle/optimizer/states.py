"""States of optimizers, by the names that they have in Paddle's state dicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from primgraph.compat.paddle.optimizer.lr import LambdaDecay, LRScheduler
from primgraph.eager.node import array_node
from primgraph.eager.tensor import Tensor
from primgraph.errors import CheckError


class StateDicts:
    """States of parameters, as the formula of an optimizer has them, and their `layout`."""

    layout: ClassVar[Mapping[str, str]] = {}
    _name: str | None
    _states: Any
    _learning_rate: Any
    _groups: list[dict[str, Any]]

    def state_name(self, parameter: Any, name: str) -> str:
        """Return the name of a state in state dicts."""
        own = f"{self._name}_" if self._name else ""
        return f"{parameter.name}_{own}{self.layout.get(name, name)}_0"

    @property
    def _accumulators(self) -> dict[str, dict[str, Any]]:
        """The states by their names and those of parameters."""
        found: dict[str, dict[str, Any]] = {}
        for parameter, state in self._states.items():
            for name, value in state.items():
                found.setdefault(self.layout.get(name, name), {})[parameter.name] = value
        return found

    def state_dict(self) -> dict[str, Any]:
        """Return the states by name, and the state of the schedule as `LR_Scheduler`."""
        found: dict[str, Any] = {}
        for parameter, state in self._states.items():
            found.update((self.state_name(parameter, n), value) for n, value in state.items())
        if isinstance(self._learning_rate, LRScheduler):
            found["LR_Scheduler"] = self._learning_rate.state_dict()
        return found

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned; elements are copied.

        Raises `CheckError` if it lacks the state of a parameter that has one, or the schedule.
        """
        rate = self._learning_rate
        if isinstance(rate, LRScheduler):
            given = state_dict.get("LR_Scheduler")
            if given is None and not isinstance(rate, LambdaDecay):
                raise CheckError("LR_Scheduler state must be included in the state dict")
            if given:
                rate.set_state_dict(given)
        for group in self._groups:
            for parameter in group["params"]:
                self._restore(parameter, self._states.get(parameter), state_dict)

    set_dict = load_state_dict = set_state_dict

    def _restore(self, parameter: Tensor, known: Any, values: Mapping[str, Any]) -> None:
        for name in self.layout:
            called = self.state_name(parameter, name)
            value = values.get(called)
            if value is None:
                if known and name in known:
                    raise CheckError(f"optimizer Tensor {called} not found")
                continue
            array = np.array(value._array() if isinstance(value, Tensor) else value)
            node = array_node(array)
            if known and name in known:
                known[name].show(node)
            else:
                self._states[parameter][name] = type(parameter).family(node)
