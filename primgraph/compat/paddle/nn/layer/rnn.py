"""Recurrent layers and cells by the names that they and their arguments have in Paddle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.nn import functional
from primgraph.compat.paddle.nn.layer.cells import Cell, GRUCell, LSTMCell, SimpleRNNCell
from primgraph.compat.paddle.nn.layer.container import LayerList
from primgraph.compat.paddle.nn.layer.layers import Layer
from primgraph.control.loops import scan
from primgraph.errors import ArgumentError, ShapeError


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
    if isinstance(cell, Cell):
        found = _scan_cell(cell, x, states, mask, is_reverse)
    else:
        found = _loop_over_cell(cell, x, states, mask, is_reverse, kwargs)
    outputs, last = found
    if clears and mask is not None:
        outputs = pg.where(pg.expand_dims(mask, -1), outputs, 0)
    return (outputs if time_major else _map(lambda y: pg.swapaxes(y, 0, 1), outputs)), last


def _scan_cell(cell: Cell, x: Any, states: Any, mask: Any, is_reverse: bool) -> tuple[Any, Any]:
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

    _cell: ClassVar[type[Cell]]

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
