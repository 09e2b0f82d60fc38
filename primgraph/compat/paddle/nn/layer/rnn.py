"""Recurrent layers and cells by the names that they and their arguments have in Paddle."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.creation import full
from primgraph.compat.paddle.initializers import Constant, Uniform
from primgraph.compat.paddle.nn import functional
from primgraph.compat.paddle.nn.layer.container import LayerList
from primgraph.compat.paddle.nn.layer.layers import Layer
from primgraph.compat.paddle.parameter_attributes import ParamAttr
from primgraph.control.loops import scan
from primgraph.errors import ArgumentError, ShapeError
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


class _Cell(RNNCellBase):
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


class SimpleRNNCell(_Cell):
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


class LSTMCell(_Cell):
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


class GRUCell(_Cell):
    """One step of gated recurrent units.

    >>> y, h = paddle.nn.GRUCell(2, 3)(paddle.ones([4, 2]), paddle.zeros([4, 3]))
    >>> h.shape
    paddle.Size([4, 3])
    """

    _parts = 3

    def gates(self) -> Callable[..., tuple[Any, ...]]:
        """Return the function of reset and update gates and a candidate."""
        return three_gates


def _map(function: Callable[..., Any], *trees: Any) -> Any:
    """Apply a function to the leaves of nested tuples and lists of one form."""
    if isinstance(trees[0], list | tuple):
        return tuple([_map(function, *parts) for parts in zip(*trees, strict=True)])
    return function(*trees)


def run_cell(
    cell: Any, inputs: Any, states: Any, lengths: Any, is_reverse: bool, time_major: bool,
    clears: bool = False, **kwargs: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """Return the outputs of a cell at all times, and its last states.

    A sample's states stay as they are behind its length. With `clears`, outputs are zero there.
    """
    x = inputs if time_major else _map(lambda x: pg.swapaxes(x, 0, 1), inputs)
    first = x[0] if isinstance(x, tuple) else x
    count = first.type.shape[0]
    if states is None:
        states = cell.get_initial_states(first, batch_dim_idx=1)
    mask = None
    if lengths is not None:
        times = np.arange(count).reshape(-1, 1)
        mask = pg.less(times, pg.expand_dims(pg.astype(lengths, "int64"), 0))
    if isinstance(cell, _Cell):
        found = _scan_cell(cell, x, states, mask, is_reverse)
    else:
        found = _loop_over_cell(cell, x, states, mask, is_reverse, kwargs)
    outputs, last = found
    if clears and mask is not None:
        outputs = pg.where(pg.expand_dims(mask, -1), outputs, 0)
    return (outputs if time_major else _map(lambda y: pg.swapaxes(y, 0, 1), outputs)), last


def _scan_cell(cell: _Cell, x: Any, states: Any, mask: Any, is_reverse: bool) -> tuple[Any, Any]:
    """Return outputs and last states of a cell of this module, by a loop."""
    step, entered = cell.step(), cell.entered(x)
    start = (states,) if cell._count == 1 else tuple(states)

    def trip(held: tuple[Any, ...], row: Any) -> tuple[tuple[Any, ...], Any]:
        new = step(held, row if mask is None else row[0])
        shown = new[0]
        if mask is not None:
            new = tuple([pg.where(row[1], n, s) for n, s in zip(new, held, strict=True)])
        return new, shown

    rows = entered if mask is None else (entered, pg.expand_dims(mask, -1))
    last, outputs = scan(trip, start, rows, reverse=is_reverse)
    return outputs, (last[0] if cell._count == 1 else tuple(last))


def _loop_over_cell(
    cell: Any, x: Any, states: Any, mask: Any, is_reverse: bool, kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """Return outputs and last states of a cell of the user's, called for each time."""
    first = x[0] if isinstance(x, tuple) else x
    times = list(range(first.type.shape[0]))
    shown: list[Any] = []
    for time in reversed(times) if is_reverse else times:
        row = _map(lambda x, time=time: x[time], x)
        output, new = cell(row, states, **kwargs)
        if mask is not None:
            taken = pg.expand_dims(mask[time], -1)
            new = _map(lambda n, s, taken=taken: pg.where(taken, n, s), new, states)
        states = new
        shown.append(output)
    if is_reverse:
        shown.reverse()
    return _map(lambda *rows: pg.stack(list(rows)), *shown), states


class RNN(Layer):
    """A cell that is called for each time of sequences.

    >>> y, h = paddle.nn.RNN(paddle.nn.GRUCell(2, 3))(paddle.ones([4, 5, 2]))
    >>> y.shape, h.shape
    (paddle.Size([4, 5, 3]), paddle.Size([4, 3]))
    """

    def __init__(self, cell: Any, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        self.cell, self.is_reverse, self.time_major = cell, is_reverse, time_major

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Any = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        """Return the outputs at all times, and the last states."""
        return run_cell(
            self.cell, inputs, initial_states, sequence_length, self.is_reverse, self.time_major,
            **kwargs,
        )  # fmt: skip


class BiRNN(Layer):
    """Two cells, one from the first time on and one from the last.

    >>> layer = paddle.nn.BiRNN(paddle.nn.GRUCell(2, 3), paddle.nn.GRUCell(2, 3))
    >>> layer(paddle.ones([4, 5, 2]))[0].shape
    paddle.Size([4, 5, 6])
    """

    def __init__(self, cell_fw: Any, cell_bw: Any, time_major: bool = False) -> None:
        super().__init__()
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Any = None, **kwargs: Any
    ) -> tuple[Any, Any]:
        """Return the outputs of both at all times, joined, and the last states of both."""
        starts = (None, None) if initial_states is None else initial_states
        found = [
            run_cell(cell, inputs, start, sequence_length, is_reverse, self.time_major, **kwargs)
            for cell, start, is_reverse in zip(
                (self.cell_fw, self.cell_bw), starts, (False, True), strict=True
            )
        ]
        outputs = _map(lambda *rows: pg.concatenate(list(rows), -1), *[y for y, _ in found])
        return outputs, tuple([s for _, s in found])


class _Stacked(LayerList):
    """Base class of recurrent layers: stacked, in one direction or both."""

    _cell: ClassVar[type[_Cell]]

    def _build(
        self, input_size: int, hidden_size: int, num_layers: int, direction: str,
        time_major: bool, dropout: float, attributes: tuple[Any, ...], **options: Any,
    ) -> None:  # fmt: skip
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise ArgumentError(
                "direction should be forward or bidirect (or bidirectional), received direction = "
                f"{direction!r:.60}"
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.time_major, self.dropout = time_major, dropout
        self.num_directions = 1 if direction == "forward" else 2
        width = options.get("proj_size") or hidden_size
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        given = {f"{name}_attr": attr for name, attr in zip(names, attributes, strict=True)}
        layers: list[Any] = []
        for number in range(num_layers):
            size = input_size if number == 0 else width * self.num_directions
            cells = [
                self._cell(size, hidden_size, **given, **options)
                for _ in range(self.num_directions)
            ]
            kind: Any = RNN if self.num_directions == 1 else BiRNN
            layers.append(kind(*cells, time_major=time_major))
            for cell, suffix in zip(cells, ("", "_reverse"), strict=False):
                for name in names:
                    setattr(self, f"{name}_l{number}{suffix}", getattr(cell, name))
        self.extend(layers)

    @property
    def state_components(self) -> int:
        """The number of states: `h`, or `h` and `c`."""
        return self._cell._count

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """Return the outputs of the last layer at all times, and the last states of all layers.

        States are of shape (layers times directions, samples, hidden_size).
        """
        if inputs.ndim != 3:
            raise ShapeError(f"{type(self).__name__} takes arrays of 3 axes, not {inputs.type}")
        count, components = self.num_layers * self.num_directions, self.state_components
        starts: list[Any] = [None] * count
        if initial_states is not None:
            given = (initial_states,) if components == 1 else tuple(initial_states)
            starts = [tuple([s[k] for s in given]) for k in range(count)]
            starts = [s[0] if components == 1 else s for s in starts]
        ends: list[Any] = []
        value = inputs
        for number in range(self.num_layers):
            if number and self.dropout:
                value = functional.dropout(value, self.dropout, training=self.training)
            cells = list(self[number]._modules.values())
            rows = []
            for cell, is_reverse in zip(cells, (False, True), strict=False):
                shown, last = run_cell(
                    cell, value, starts[len(ends)], sequence_length, is_reverse, self.time_major,
                    True,
                )  # fmt: skip
                ends.append(last if components == 2 else (last,))
                rows.append(shown)
            value = rows[0] if len(rows) == 1 else pg.concatenate(rows, -1)
        states = tuple([pg.stack(list(parts)) for parts in zip(*ends, strict=True)])
        return value, (states[0] if components == 1 else states)

    def extra_repr(self) -> str:
        """Return the sizes and the options that are set."""
        text = f"{self.input_size}, {self.hidden_size}"
        options = {"num_layers": 1, "time_major": False, "dropout": 0}
        for name, default in options.items():
            value = getattr(self, name)
            text += "" if value == default else f", {name}={value}"
        return text


class SimpleRNN(_Stacked):
    """Recurrent layers of `SimpleRNNCell`.

    >>> y, h = paddle.nn.SimpleRNN(2, 3)(paddle.ones([4, 5, 2]))
    >>> y.shape, h.shape
    (paddle.Size([4, 5, 3]), paddle.Size([1, 4, 3]))
    """

    _cell = SimpleRNNCell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        activation: str = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._build(
            input_size, hidden_size, num_layers, direction, time_major, dropout,
            (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr), activation=activation,
        )  # fmt: skip


class LSTM(_Stacked):
    """Recurrent layers of `LSTMCell`; the states are `(h, c)`.

    >>> y, (h, c) = paddle.nn.LSTM(2, 3, num_layers=2)(paddle.ones([4, 5, 2]))
    >>> y.shape, c.shape
    (paddle.Size([4, 5, 3]), paddle.Size([2, 4, 3]))
    """

    _cell = LSTMCell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._build(
            input_size, hidden_size, num_layers, direction, time_major, dropout,
            (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr), proj_size=proj_size,
        )  # fmt: skip


class GRU(_Stacked):
    """Recurrent layers of `GRUCell`.

    >>> y, h = paddle.nn.GRU(2, 3, direction="bidirect")(paddle.ones([4, 5, 2]))
    >>> y.shape, h.shape
    (paddle.Size([4, 5, 6]), paddle.Size([2, 4, 3]))
    """

    _cell = GRUCell

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._build(
            input_size, hidden_size, num_layers, direction, time_major, dropout,
            (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr),
        )  # fmt: skip
