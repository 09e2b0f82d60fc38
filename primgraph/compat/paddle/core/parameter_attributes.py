"""Attributes of parameters: how they are named, initialized and trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.ir.types import DType, Shape
from primgraph.operators.variable import Variable
from primgraph.program.program import belongs_to_program, program_of


@dataclass(slots=True)
class ParamAttr:
    """Attributes of a parameter: its name, the rule for its first value, and how it is trained.

    `learning_rate` multiplies that of an optimizer, `regularizer` replaces its weight decay, and
    with `need_clip` False its clipping leaves the gradient alone. With `trainable` False the
    parameter stays as it is. `do_model_average` has no effect.

    >>> attr = paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.5))
    >>> paddle.nn.Linear(1, 2, weight_attr=attr).weight.name
    'w'
    """

    name: str | None = None
    initializer: Any = None
    learning_rate: float = 1.0
    regularizer: Any = None
    trainable: bool = True
    do_model_average: bool = True
    need_clip: bool = True

    def __post_init__(self) -> None:
        if self.name is not None and not self.name:
            raise ArgumentError("ParamAttr: name is None or a string that is not empty")


@dataclass(slots=True)
class WeightNormParamAttr(ParamAttr):
    """Attributes of a weight of a program that is a direction times norms, both parameters.

    There is a norm for each index along the axis `dim`, or one for all elements. After T. Salimans
    and D. Kingma, Weight normalization, 2016.

    >>> attr = paddle.static.WeightNormParamAttr(dim=1, name="w")
    >>> with paddle.static.program_guard(paddle.static.Program()) as program:
    ...     y = paddle.static.nn.fc(paddle.static.data("x", [2, 3]), 4, weight_attr=attr)
    >>> [(p.name, p.shape) for p in program.parameters()][:2]
    [('w_v', paddle.Size([3, 4])), ('w_g', paddle.Size([1, 4]))]
    """

    dim: int | None = None

    def __init__(
        self,
        dim: int | None = None,
        name: str | None = None,
        initializer: Any = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = False,
        need_clip: bool = True,
    ) -> None:
        ParamAttr.__init__(
            self, name, initializer, learning_rate, regularizer, trainable, do_model_average,
            need_clip,
        )  # fmt: skip
        self.dim = dim

    def axes(self, shape: Shape) -> tuple[int, ...]:
        """Return the axes over which norms are taken."""
        kept = None if self.dim is None else self.dim % len(shape)
        return tuple(axis for axis in range(len(shape)) if axis != kept)


@dataclass(frozen=True, slots=True)
class FirstNorms:
    """Initializer of the norms of the first value of another state."""

    program: Any
    state: Any
    axes: tuple[int, ...]

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        found = np.asarray(self.program.first_value(self.state), float)
        norms: np.ndarray[Any, Any] = np.sqrt(np.sum(found**2, self.axes, keepdims=True))
        return norms.astype(dtype)


def as_attribute(attr: Any) -> ParamAttr | None:
    """Return the attribute that an argument means; None for False, which means no parameter.

    It is a `ParamAttr`, a name, an initializer, a regularizer, a bool or None. Raises
    `ArgumentError`, a TypeError, for anything else.
    """
    if attr is None or attr is True:
        return ParamAttr()
    if attr is False:
        return None
    if isinstance(attr, ParamAttr):
        return attr
    if isinstance(attr, str):
        return ParamAttr(name=attr)
    if hasattr(attr, "coeff") or hasattr(attr, "_coeff"):
        return ParamAttr(regularizer=attr)
    if callable(attr):
        return ParamAttr(initializer=attr)
    raise ArgumentError(f"an attribute is a ParamAttr, a name or an initializer, not {attr!r:.60}")


@dataclass(frozen=True, slots=True)
class Declaration:
    """Initializer of a parameter of a program, with the attribute that it was created with."""

    rule: Any
    attr: ParamAttr

    def __call__(
        self, shape: Shape, dtype: DType, rng: np.random.Generator
    ) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = self.rule(shape, dtype, rng)
        return found


class ParameterAttributes(Variable):
    """Attributes that variables of programs have in Paddle, and parameters among them."""

    __slots__ = ()

    @property
    def _state(self) -> Any:
        """The state that this variable reads, or None."""
        return program_of(self).states.get(self.value) if belongs_to_program(self) else None

    @property
    def _attr(self) -> ParamAttr:
        rule = getattr(self._state, "initializer", None)
        return rule.attr if isinstance(rule, Declaration) else ParamAttr()

    @property
    def persistable(self) -> bool:
        """Whether the value is kept between runs."""
        return self._state is not None

    @property
    def is_parameter(self) -> bool:
        """Whether optimizers change it."""
        state = self._state
        return state is not None and state.trainable

    @property
    def trainable(self) -> bool:
        """Whether derivatives are taken by it."""
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        self.stop_gradient = not trainable

    @property
    def optimize_attr(self) -> dict[str, float]:
        """The factor of the learning rate."""
        return {"learning_rate": self._attr.learning_rate}

    @property
    def regularizer(self) -> Any:
        """The rule of weight decay of this parameter, or None."""
        return self._attr.regularizer

    @property
    def need_clip(self) -> bool:
        """Whether gradients by this parameter are clipped."""
        return self._attr.need_clip

    @property
    def grad_name(self) -> str:
        """The name of the gradient by this variable."""
        return f"{self.name}@GRAD"
