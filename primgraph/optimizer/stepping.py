"""Eager steps: the rule of an optimizer, traced once, and what it is applied to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, final

import numpy as np

from primgraph.base.atomic import Call, call_all
from primgraph.base.records import dataclass
from primgraph.eager.derivatives.differentiable import Alias
from primgraph.eager.inplace.shared_storage import label_of, tensor_of
from primgraph.eager.node import Node, array_node
from primgraph.eager.run import compute
from primgraph.eager.steps import Part
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable
from primgraph.program.program import program_of


class StateStore(Protocol):
    """Storage of an optimizer's states, and of their updates in a step."""

    def state(self, name: str, type: TensorType, value: float) -> Variable:
        """The state of that name, which holds `value` at every place at first."""

    def slot(self, parameter: Variable, name: str, type: TensorType | None = None) -> Variable:
        """Return a state that goes with `parameter`, by default of its type; zeros at first."""

    def keep(self, state: Variable, new: Variable) -> None:
        """Let `state` be `new` after the step."""


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """Traced computation of a step: new parameters and states from old ones and gradients.

    `reads` are the names of states, with the type of each and what it holds at first. `writes` tell
    what the results replace: states by name, parameters by their place.
    """

    parts: tuple[Part, ...]
    reads: tuple[tuple[str, TensorType, float], ...]
    writes: tuple[str | int, ...]


@final
class TracedStateStore:
    """A ledger in which a rule is traced."""

    def __init__(self, name: str) -> None:
        self.builder = Builder(name)
        self._parameters: dict[Value, int] = {}
        self._reads: dict[str, tuple[Variable, float]] = {}
        self._new: dict[Value, Value] = {}

    def pair(self, name: str, type: TensorType) -> tuple[Variable, Variable]:
        """A parameter and its gradient."""
        parameter, gradient = self._input(name, type), self._input(f"{name}.gradient", type)
        self._parameters[parameter.value] = len(self._parameters)
        return parameter, gradient

    def _input(self, name: str, type: TensorType) -> Variable:
        return Variable(self.builder, self.builder.input(type, name))

    def state(self, name: str, type: TensorType, value: float) -> Variable:
        if name not in self._reads:
            self._reads[name] = (self._input(name, type), value)
        return self._reads[name][0]

    def slot(self, parameter: Variable, name: str, type: TensorType | None = None) -> Variable:
        return self.state(f"{parameter.name}.{name}", type or parameter.type, 0.0)

    def keep(self, state: Variable, new: Variable) -> None:
        if new.type != state.type:
            raise ShapeError(f"{state.name!r} is {state.type} and cannot become {new.type}")
        self._new[state.value] = new.value

    def rule(self) -> Rule:
        """All that was recorded."""
        graph = self.builder.part(self.builder.inputs, [*self._new.values()])
        return Rule(
            tuple([Part(graph, i) for i in range(len(graph.outputs))]),
            tuple([(name, v.type, first) for name, (v, first) in self._reads.items()]),
            tuple([self._parameters.get(v, v.hint) for v in self._new]),
        )


@final
class SteppedParameters:
    """The parameters that an optimizer changes step by step, and its states, by name."""

    def __init__(self, parameters: Iterable[Any]) -> None:
        self.parameters = _tensors(parameters)
        self.names = _names(self.parameters)
        self.states: dict[str, Tensor] = {}
        self.rules: dict[tuple[int, ...], Rule] = {}
        self._rate = -1.0

    def __getstate__(self) -> dict[str, Any]:
        """Copy without the traced rules, which are traced again."""
        return {**self.__dict__, "rules": {}}

    def name_of(self, parameter: Tensor | None) -> str | None:
        """Return the name of a parameter here; None for one of another optimizer."""
        names = zip(self.parameters, self.names, strict=True)
        return next((name for tensor, name in names if tensor is parameter), None)

    def state(self, name: str, type: TensorType, value: float) -> Tensor:
        """The state of that name, which holds `value` at every place at first."""
        if name not in self.states:
            self.states[name] = Tensor(array_node(np.full(type.shape, value, type.dtype)))
        return self.states[name]

    def settle(self, rule: Rule, rate: float) -> None:
        """Let the states be there that `rule` reads."""
        for name, type, first in rule.reads:
            self.state(name, type, first)
        self.use_rate(rate)

    def use_rate(self, rate: float) -> None:
        """Let the learning rate be that one, if it was given anew."""
        call_all(self.using_rate(rate))

    def using_rate(self, rate: float) -> list[Call]:
        """The calls of `use_rate`, for `call_all`."""
        known = self.state("learning_rate", TensorType((), FLOAT64), rate)
        if rate == self._rate:
            return []
        return [(setattr, self, "_rate", rate), *known.showing(array_node(np.array(rate)))]

    def apply(self, rule: Rule, places: Sequence[int], gradients: Sequence[Tensor | None]) -> None:
        """Take a step along the gradients of the parameters at `places`; all states are there."""
        inputs: list[Node] = []
        changed = [self.parameters[i] for i in places]
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            if gradient is not None:
                inputs += (parameter.node, gradient.node)
        inputs += [self.states[name].node for name, _, _ in rule.reads]
        operands = tuple(inputs)
        new = [Node(part.type, part, operands, False, None) for part in rule.parts]
        compute(new)
        calls: list[Call] = []
        stored: dict[Alias, Node] = {}
        for target, node in zip(rule.writes, new, strict=True):
            if isinstance(target, str):
                calls += self.states[target].showing(node)
            else:
                node.tracked = changed[target].requires_grad
                calls += changed[target].storing(node, stored)
        call_all(calls)


def _tensors(parameters: Iterable[Any]) -> list[Tensor]:
    """The tensors that are the given parameters, each once."""
    if isinstance(parameters, Handle):
        raise ArgumentError("parameters are a list of tensors, not one", hint="put it in a list")
    found: dict[int, Tensor] = {}
    for i, item in enumerate(parameters):
        parameter: Any = item
        if isinstance(item, Variable) and item.value in program_of(item).states:
            parameter = tensor_of(item)
        if not isinstance(parameter, Tensor):
            raise ArgumentError(
                f"parameters are tensors, and element {i} is {item!r:.80}",
                hint="layer.parameters() gives those of a layer",
            )
        if not parameter.is_leaf:
            raise ArgumentError(
                f"a parameter is a leaf, and element {i}, {parameter.type}, is computed",
                hint="x.detach().requires_grad_() has the same elements and is a leaf",
            )
        if parameter.type.is_complex:
            raise DTypeError(
                f"a parameter is real, and element {i} is {parameter.type}",
                hint="train both parts, x and y, and compute with pg.complex(x, y)",
            )
        found[id(parameter)] = parameter
    if not found:
        raise ArgumentError("an optimizer has at least one parameter, and the list is empty")
    return list(found.values())


def _names(parameters: Sequence[Tensor]) -> list[str]:
    """A name for each, as a program would have it."""
    names: dict[str, None] = {}
    for i, parameter in enumerate(parameters):
        label = label_of(parameter) or f"parameter_{i}"
        stem, dot, rest = label.partition(".")
        count = 0
        while label in names:
            count += 1
            label = f"{stem}_{count}{dot}{rest}"
        names[label] = None
    return list(names)
