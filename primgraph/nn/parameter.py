"""Parameters and buffers of layers: what stands for each eagerly, and in programs."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, final
from weakref import WeakKeyDictionary

import numpy as np

from primgraph.base.atomic import Call
from primgraph.eager.inplace.shared_storage import (
    create_shared_state,
    find_shared_tensor,
    state_of,
    tensor_of,
)
from primgraph.eager.node import array_node
from primgraph.eager.run import add_to_evaluation, compute
from primgraph.eager.seeds import reserve_generator
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, BuildError, ShapeError
from primgraph.initializers import Constant, Initializer, first_array
from primgraph.ir.types import TensorType
from primgraph.operators.variable import Variable
from primgraph.program.program import Program, program_of

# How often a buffer changes that nobody looks at: it keeps all that it is computed from.
_MOST_CHANGES = 64


@final
class Parameter:
    """A parameter or buffer of a layer: declared with the layer, given elements when needed.

    Until a tensor has been asked for, or a second program, it is a state of its one program, its
    home, if it has one, and nothing else. Then the tensor owns it, and all states share its array.
    """

    __slots__ = (
        "_changes",
        "_generator",
        "_home",
        "_states",
        "_tensor",
        "initializer",
        "trainable",
        "type",
    )

    def __init__(self, type: TensorType, initializer: Initializer, trainable: bool) -> None:
        self.type = type
        self.initializer = initializer
        self.trainable = trainable
        self._changes = 0
        self._generator = reserve_generator()
        self._home: Program | None = None
        self._states: WeakKeyDictionary[Program, Variable] = WeakKeyDictionary()
        self._tensor: Tensor | None = None

    @property
    def home(self) -> Variable | None:
        """The state that alone has the elements, if there is one."""
        return (
            None
            if self.existing_tensor is not None or self._home is None
            else self._states[self._home]
        )

    @property
    def latest(self) -> Program | None:
        """The program that it came into last, of those that are still there."""
        return next(reversed(list(self._states)), None)

    @property
    def is_known(self) -> bool:
        """Whether it has been used: there is a tensor, or a state."""
        return self._tensor is not None or self._home is not None

    @property
    def existing_tensor(self) -> Tensor | None:
        """The tensor, if somebody has asked for it."""
        if self._tensor is None and self._home is not None:
            there = find_shared_tensor(self._states[self._home])
            if there is not None:
                self._own(there)
        return self._tensor

    @property
    def tensor(self) -> Tensor:
        """The tensor, which is made now if it was not there."""
        if self._tensor is None:
            if self._home is None:
                self._own(Tensor(array_node(self._first(), self.trainable)))
            else:
                self._own(tensor_of(self._states[self._home]))
        assert self._tensor is not None
        return self._tensor

    @property
    def identity(self) -> object:
        """Identity: equal for two objects that are the same parameter."""
        made = self.existing_tensor
        if made is not None:
            return id(made)
        return id(self) if self._home is None else self._states[self._home].value

    def is_around(self, tensor: Tensor) -> bool:
        """Return whether it is the parameter or buffer of that tensor, with its type."""
        return self._tensor is tensor and self.type == tensor.type

    def state_in(self, program: Program) -> Variable | None:
        """Return the variable that stands for it in `program`, or None."""
        found = self._states.get(program)
        if found is not None:
            return found
        if self.existing_tensor is not None:
            found = state_of(self.existing_tensor, program)
        elif self._home is not None and self._home.scope is program.scope:
            found = program.variable(self._states[self._home].name)
        if found is not None:
            self._states[program] = found
        return found

    def enter(self, program: Program, name: str) -> None:
        """Create the state of that name, which stands for it in `program`."""
        if self._home is None and self._tensor is None:
            state = program.state(name, self.type, self.initializer, self.trainable)
            self._home = program
        else:
            state = create_shared_state(self.tensor, program, name)
        self._states[program] = state

    def hold_calls(self, array: np.ndarray[Any, Any]) -> list[Call]:
        """The calls that let it hold `array`, which nobody else changes, for `call_all`."""
        if self.existing_tensor is None and self._home is None:
            return [(setattr, self, "_tensor", Tensor(array_node(array, self.trainable)))]
        return self.tensor.showing(array_node(array, self.tensor.requires_grad))

    def assign(self, name: str, value: Tensor) -> None:
        """Let a buffer hold the value of a tensor, computed when it is first read."""
        if self.trainable:
            raise ArgumentError(
                f"{name!r} is a parameter, and {value.type} is computed or a constant",
                hint="assign a leaf that requires grad, or use "
                "`with pg.no_grad(): layer.weight.copy_(x)`",
            )
        if value.type != self.type:
            raise ShapeError(f"{name!r} is {self.type} and cannot become {value.type}")
        self.become(value.detach())

    def become(self, value: Tensor) -> None:
        """Hold what is computed with the next look; after many changes, with this one."""
        tensor = self.tensor
        self._changes = self._changes + 1 if tensor.node.array is None else 0
        if self._changes > _MOST_CHANGES:
            compute([tensor.node])
            self._changes = 0
        tensor.show(value.node)
        add_to_evaluation(tensor)

    def __deepcopy__(self, memo: Any) -> Parameter:
        """Another one of the same declaration, and with a copy of its tensor if it has one.

        What is copied along, such as an optimizer, has the same copy.
        """
        other = Parameter(self.type, self.initializer, self.trainable)
        other._generator = self._generator
        if self.existing_tensor is not None:
            other._own(deepcopy(self.existing_tensor, memo))
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the elements and the trainable flag, without a program."""
        home = self.home
        if home is None:
            return state_around, (self.tensor, self.trainable)
        array = program_of(home).state_dict()[home.name]
        return state_around, (Tensor(array_node(array, self.trainable)), self.trainable)

    def _own(self, tensor: Tensor) -> None:
        self._tensor, self._home = tensor, None

    def _first(self) -> np.ndarray[Any, Any]:
        type = self.type
        try:
            return first_array(self.initializer, type.shape, type.dtype, self._generator())
        except ArgumentError as error:
            raise ArgumentError(
                f"the initializer of a parameter does not fit {type}: {error.message}",
                hint=error.hint,
            ) from None


def state_around(tensor: Tensor, trainable: bool) -> Parameter:
    """Return the parameter or buffer whose elements are those of a tensor."""
    found = Parameter(tensor.type, Constant(), trainable)
    found._own(tensor)
    return found


def parameter_of(value: Any) -> Parameter | None:
    """The parameter that a state, or a leaf that requires a gradient, is; None for all else."""
    if isinstance(value, Tensor):
        if not (value.is_leaf and value.requires_grad):
            return None
        found = Parameter(value.type, Constant(), trainable=True)
        found._own(value)
        return found
    if not isinstance(value, Variable):
        return None
    try:
        program = program_of(value)
    except BuildError:
        return None
    state = program.states.get(value.value)
    if state is None:
        return None
    found = Parameter(state.type, state.initializer, state.trainable)
    found._home, found._states[program] = program, value
    return found


def as_parameter(name: str, given: Any) -> Parameter:
    """Return the registered parameter of `given`, a parameter of a layer or of a program."""
    found = given if isinstance(given, Parameter) else parameter_of(given)
    if found is None:
        raise ArgumentError(f"parameter {name!r} is made by create_parameter, not {given!r:.80}")
    return found
