"""Cells of recurrent layers by the names that they and their arguments have in Paddle."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from primgraph import operators as pg
from primgraph.compat.paddle.core.parameter_attributes import ParamAttr
from primgraph.compat.paddle.creation import full
from primgraph.compat.paddle.initializers import Constant, Uniform
from primgraph.compat.paddle.nn.layer.layers import Layer
from primgraph.errors import ArgumentError
from primgraph.nn.recurrent import four_gates, three_gates


class RNNCellBase(Layer):
    """Base class of cells: `forward(inputs, states)` returns outputs and new states.

    >>> issubclass(paddle.nn.LSTMCell, paddle.nn.RNNCellBase)
    True
    """

    def get_initial_states(
        self,
        batch_ref: Any,
        shape: Any = None,
        dtype: Any = None,
        init_value: float = 0.0,
        batch_dim_idx: int = 0,
    ) -> Any:
        """Return states of one value for as many samples as `batch_ref` has."""
        batch = batch_ref.type.shape[batch_dim_idx]
        sizes = self.state_shape if shape is None else shape
        kind = batch_ref.dtype if dtype is None else dtype
        if sizes and isinstance(sizes[0], list | tuple):
            return tuple([full([batch, *s], init_value, kind) for s in sizes])
        return full([batch, *sizes], init_value, kind)

    @property
    def state_shape(self) -> Any:
        """The shape of states without the axis of samples; a tuple of them for several."""
        raise NotImplementedError("Please add implementation for `state_shape` in the used cell.")


class Cell(RNNCellBase):
    """Base class of cells with the weights of some gates."""

    _parts: ClassVar[int] = 1
    _count: ClassVar[int] = 1
    proj_size = 0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._create(
            input_size, hidden_size, (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        )

    def _create(self, input_size: int, hidden_size: int, attributes: tuple[Any, ...]) -> None:
        if hidden_size <= 0:
            raise ArgumentError(
                f"hidden_size of {type(self).__name__} must be greater than 0, but now equals to "
                f"{hidden_size}"
            )
        self.input_size, self.hidden_size = input_size, hidden_size
        limit, rows = 1.0 / math.sqrt(hidden_size), self._parts * hidden_size
        shapes = {
            "weight_ih": [rows, input_size],
            "weight_hh": [rows, self.proj_size or hidden_size],
            "bias_ih": [rows],
            "bias_hh": [rows],
        }
        for (name, shape), attr in zip(shapes.items(), attributes, strict=True):
            is_bias, given, rule = name.startswith("bias"), attr, Uniform(-limit, limit)
            if attr is False:
                value = Constant(0.0 if is_bias else 1.0)
                given = ParamAttr(initializer=value, trainable=False)
            made = self.create_parameter(shape, given, None, is_bias, rule)
            setattr(self, name, made)

    @property
    def state_shape(self) -> Any:
        """The shape of states without the axis of samples."""
        width = (self.proj_size or self.hidden_size,)
        return width if self._count == 1 else (width, (self.hidden_size,))

    def gates(self) -> Callable[..., tuple[Any, ...]]:
        """Return the function of the states, what enters, and what comes of the state."""
        raise NotImplementedError

    def entered(self, x: Any) -> Any:
        """Return what the inputs add to the gates, of all times in one product."""
        return pg.add(pg.matmul(x, pg.transpose(self.weight_ih)), self.bias_ih)

    def step(self) -> Callable[..., tuple[Any, ...]]:
        """Return the function that computes the states of the next time."""
        weight, bias, gates = pg.transpose(self.weight_hh), self.bias_hh, self.gates()
        project = self.weight_ho if self.proj_size else None

        def step(states: tuple[Any, ...], entered: Any) -> tuple[Any, ...]:
            found = gates(states, entered, pg.add(pg.matmul(states[0], weight), bias))
            return found if project is None else (pg.matmul(found[0], project), *found[1:])

        return step

    def forward(self, inputs: Any, states: Any = None) -> tuple[Any, Any]:
        """Return the output and the new states, from `states` or from zeros."""
        if states is None:
            states = self.get_initial_states(inputs)
        held = (states,) if self._count == 1 else tuple(states)
        found = self.step()(held, self.entered(inputs))
        return found[0], (found[0] if self._count == 1 else found)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(Cell):
    """`h = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)`, or with relu.

    >>> y, h = paddle.nn.SimpleRNNCell(2, 3)(paddle.ones([4, 2]))
    >>> h.shape
    paddle.Size([4, 3])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        activation: str = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        if activation not in ("tanh", "relu"):
            raise ArgumentError(
                f"activation for SimpleRNNCell should be tanh or relu, but get {activation!r:.60}"
            )
        super().__init__(
            input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr
        )
        self.activation = activation

    def gates(self) -> Callable[..., tuple[Any, ...]]:
        """Return the function of one gate."""
        function = pg.tanh if self.activation == "tanh" else pg.relu
        return lambda states, entered, own: (function(pg.add(entered, own)),)

    def extra_repr(self) -> str:
        """Return the sizes, and another activation than tanh."""
        text = super().extra_repr()
        return text if self.activation == "tanh" else f"{text}, activation={self.activation}"


class LSTMCell(Cell):
    """One step of long short-term memory; the states are `(h, c)`.

    >>> y, (h, c) = paddle.nn.LSTMCell(2, 3)(paddle.ones([4, 2]))
    >>> c.shape
    paddle.Size([4, 3])
    """

    _parts, _count = 4, 2

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: int = 0,
        name: str | None = None,
    ) -> None:
        Layer.__init__(self)
        if not 0 <= proj_size < max(hidden_size, 1):
            raise ArgumentError("proj_size must be smaller than hidden_size")
        self.proj_size = proj_size
        self._create(
            input_size, hidden_size, (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        )
        if proj_size:
            limit = 1.0 / math.sqrt(hidden_size)
            rule = Uniform(-limit, limit)
            self.weight_ho = self.create_parameter(
                [hidden_size, proj_size], default_initializer=rule
            )

    def gates(self) -> Callable[..., tuple[Any, ...]]:
        """Return the function of input, forget and output gates and a candidate."""
        return four_gates


class GRUCell(Cell):
    """One step of gated recurrent units.

    >>> y, h = paddle.nn.GRUCell(2, 3)(paddle.ones([4, 2]), paddle.zeros([4, 3]))
    >>> h.shape
    paddle.Size([4, 3])
    """

    _parts = 3

    def gates(self) -> Callable[..., tuple[Any, ...]]:
        """Return the function of reset and update gates and a candidate."""
        return three_gates
