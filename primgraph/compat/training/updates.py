"""Compiled updates of parameters: formulas, traced once, whose hyperparameters are inputs.

A formula is a function `formula(w, g, state, *, lr, ...)` of a parameter, its gradient, and its
states by name. It returns the new parameter, and stores new states in `state`. Its keyword-only
arguments are the options that it reads. Numbers reach it as 0-d float64 variables, so that a change
of the learning rate compiles nothing; exact zeros, booleans and strings are part of the structure.
`state["step"]` is the number of this step, from 1. Counts are incremented here, once for all
parameters that have the same one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.atomic import Call, call_all
from primgraph.eager.derivatives.differentiable import Alias
from primgraph.eager.inplace.in_place import change
from primgraph.eager.node import Node, array_node
from primgraph.eager.run import compute
from primgraph.eager.steps import Part
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError
from primgraph.ir.builder import Builder
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.operators import complex, imag, real, stack
from primgraph.operators.variable import Variable

Formula: TypeAlias = Callable[..., Any]
State: TypeAlias = MutableMapping[str, Any]

# By name, the types of the states of one parameter, and the place of its step count.
_Slots: TypeAlias = tuple[tuple[str, TensorType | int], ...]
# Options of the structure; the numbers among them are marked by `_NUMBER`.
_Options: TypeAlias = tuple[tuple[str, Any], ...]
_NUMBER = "a number"
_SCALAR = TensorType((), FLOAT64)
_CONSTANTS = frozenset((bool, int, float, str, type(None), type(...)))


@cache
def option_names(formula: Formula) -> tuple[str, ...]:
    """Return the names of the options that a formula reads."""
    parameters = inspect.signature(formula).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


@final
@dataclass(slots=True)
class Numbers:
    """Leaf nodes of the numbers of one parameter group, which are kept while a number stays."""

    known: dict[str, tuple[float, Node]] = field(default_factory=dict)
    # A formula, types and values of its options if they are constants, and what these were split
    # into.
    last: tuple[Formula, list[type], list[Any], tuple[_Options, list[Node]]] | None = None

    def node(self, name: str, value: float) -> Node:
        found = self.known.get(name)
        if found is None or found[0] != value:
            found = self.known[name] = (value, array_node(np.array(value, np.float64)))
        return found[1]


@final
@dataclass(frozen=True, slots=True)
class _Update:
    """Traced update: its results, and for each parameter the names of its states afterwards."""

    parts: tuple[Part, ...]
    names: tuple[tuple[str, ...], ...]


@final
@dataclass(slots=True)
class Change:
    """Pending new values of tensors, which `apply` stores."""

    targets: list[tuple[Tensor, Node]] = field(default_factory=list)
    created: list[tuple[State, str, Tensor]] = field(default_factory=list)

    def update(
        self,
        formula: Formula,
        pairs: Sequence[tuple[Tensor, Tensor, State]],
        options: Mapping[str, Any],
        numbers: Numbers,
    ) -> None:
        """Add the update of parameters, each with its gradient and states, by `formula`."""
        inputs: list[Node] = []
        signature = []
        steps: dict[float, int] = {}
        for parameter, gradient, state in pairs:
            slots: list[tuple[str, TensorType | int]] = []
            node = parameter.node
            inputs += (node, gradient.node)
            for name, tensor in state.items():
                if name == "step":
                    slots.append((name, self._count(tensor, steps)))
                elif isinstance(tensor, Tensor):
                    shown = tensor.node
                    slots.append((name, shown.type))
                    inputs.append(shown)
            signature.append((node.type, tuple(slots)))
        structure, leaves = _split_options(formula, options, numbers)
        leaves += [array_node(np.array(step)) for step in steps]
        update = _trace(formula, structure, tuple(signature))
        operands = (*leaves, *inputs)
        results = iter([Node(part.type, part, operands, False, None) for part in update.parts])
        for (parameter, _, state), names in zip(pairs, update.names, strict=True):
            self.targets.append((parameter, next(results)))
            for name in names:
                node = next(results)
                if name in state:
                    self.targets.append((state[name], node))
                else:
                    self.created.append((state, name, type(parameter).family(node)))

    def _count(self, tensor: Tensor, steps: dict[float, int]) -> int:
        """Count a step; return the place of its number in `steps`."""
        step = float(tensor._array()) + 1.0
        self.targets.append((tensor, array_node(np.array(step, tensor.node.type.dtype))))
        return steps.setdefault(step, len(steps))

    def apply(self) -> None:
        """Compute all new values in one kernel, and let the tensors and their aliases show them."""
        new = [node for _, node in self.targets if node.array is None]
        compute([*new, *(tensor.node for _, _, tensor in self.created)])
        calls: list[Call] = []
        stored: dict[Alias, Node] = {}
        for tensor, node in self.targets:
            node.tracked = tensor.node.tracked
            calls += tensor.storing(node, stored)
        calls += [(state.__setitem__, name, tensor) for state, name, tensor in self.created]
        call_all(calls)


def update_recorded(
    formula: Formula,
    pairs: Sequence[tuple[Tensor, Tensor, State]],
    options: Mapping[str, Any],
) -> None:
    """Update parameters in place by operations on tensors, through which derivatives go."""
    given = {name: options[name] for name in option_names(formula) if name in options}
    for parameter, gradient, state in pairs:
        family = type(parameter).family

        def number(value: Any, family: type[Tensor] = family) -> Any:
            if isinstance(value, list | tuple):
                return tuple([number(v, family) for v in value])
            is_plain = isinstance(value, bool | str | Tensor) or value is None or value == 0
            return value if is_plain else family(array_node(np.array(value, np.float64)))

        values = dict(state)
        if "step" in values:
            values["step"] = (values["step"] + 1.0).astype(FLOAT64)
            change(state["step"], values["step"].astype(state["step"].dtype))
        signed = -gradient if options.get("maximize") else gradient
        numbers = {name: number(value) for name, value in given.items()}
        new = update_one(formula, parameter, signed, values, numbers)
        for name, value in values.items():
            if name != "step" and value is not state.get(name):
                state[name] = change(state[name], value) if name in state else value
        change(parameter, new)


def _split_options(
    formula: Formula, options: Mapping[str, Any], numbers: Numbers
) -> tuple[_Options, list[Node]]:
    """Return the structure of the options that `formula` reads, and the nodes of the numbers.

    It is that of the last time for equal constants.
    """
    values: list[Any] = [options.get("maximize", False)]
    for name in option_names(formula):
        value = options.get(name, ...)
        if type(value) is tuple:
            values += (len(value), *value)
        else:
            values.append(value)
    types = [*map(type, values)]
    last = numbers.last
    if last is not None and last[:2] == (formula, types) and last[2] == values:
        structure, leaves = last[3]
    else:
        structure, leaves = _new_split(formula, options, numbers)
        is_constant = _CONSTANTS.issuperset(types)
        numbers.last = (formula, types, values, (structure, leaves)) if is_constant else None
    return structure, list(leaves)


def _new_split(
    formula: Formula, options: Mapping[str, Any], numbers: Numbers
) -> tuple[_Options, list[Node]]:
    """Return the structure of options and the nodes of their numbers, from each option."""
    structure: list[tuple[str, Any]] = []
    leaves: list[Node] = []

    def add(name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            value = value.item()
        if isinstance(value, bool | np.bool_ | str) or value is None:
            structure.append((name, value))
        elif isinstance(value, int | float | np.number):
            if value == 0:
                structure.append((name, 0.0))
            else:
                structure.append((name, _NUMBER))
                leaves.append(numbers.node(name, float(value)))
        else:
            raise ArgumentError(f"the option {name} is a number, not {value!r:.60}")

    add("maximize", bool(options.get("maximize", False)))
    for name in option_names(formula):
        # Options with a default may be left out.
        if name not in options:
            continue
        value = options[name]
        if isinstance(value, list | tuple):
            structure.append((name, len(value)))
            for i, item in enumerate(value):
                add(f"{name}[{i}]", item)
        else:
            add(name, value)
    return tuple(structure), leaves


@lru_cache(maxsize=512)
def _trace(
    formula: Formula, structure: _Options, signature: tuple[tuple[TensorType, _Slots], ...]
) -> _Update:
    """Trace the update of parameters and states of these types."""
    builder = Builder(formula.__name__)

    def read(type: TensorType) -> Variable:
        return Variable(builder, builder.input(type))

    results, names = [], []
    with builder:
        options = _options_from(structure, lambda: read(_SCALAR))
        maximize = options.pop("maximize")
        places = [kind for _, slots in signature for _, kind in slots if isinstance(kind, int)]
        steps = [read(_SCALAR) for _ in range(max(places, default=-1) + 1)]
        for type, slots in signature:
            w, g = read(type), read(type)
            state = {n: steps[kind] if isinstance(kind, int) else read(kind) for n, kind in slots}
            before = dict(state)
            new = update_one(formula, w, -g if maximize else g, state, options)
            changed = [n for n, v in state.items() if v is not before.get(n)]
            results += [new, *(state[name] for name in changed)]
            names.append(tuple(changed))
    graph = builder.part(builder.inputs, [r.value for r in results])
    return _Update(tuple([Part(graph, i) for i in range(len(results))]), tuple(names))


def _options_from(structure: _Options, read: Callable[[], Variable]) -> dict[str, Any]:
    """Return the options, with a variable for each number."""
    items = iter(structure)
    found: dict[str, Any] = {}
    for name, value in items:
        if type(value) is int:
            pair = [next(items)[1] for _ in range(value)]
            found[name] = tuple([read() if v == _NUMBER else v for v in pair])
        else:
            found[name] = read() if value == _NUMBER else value
    return found


def update_one(formula: Formula, w: Any, g: Any, state: State, options: Mapping[str, Any]) -> Any:
    """Apply `formula` to one parameter; the parts of complex numbers count as two real ones."""
    if w.dtype.kind != "c" or getattr(formula, "is_linear", False):
        return formula(w, g, state, **options)
    parts = {name: _parts(x) if x.dtype.kind == "c" else x for name, x in state.items()}
    new = formula(_parts(w), _parts(g), parts, **options)
    state.update((n, _whole(x) if x.ndim > w.ndim else x) for n, x in parts.items())
    return _whole(new)


def _parts(x: Any) -> Any:
    return stack([real(x), imag(x)], axis=-1)


def _whole(x: Any) -> Any:
    return complex(x[..., 0], x[..., 1])
