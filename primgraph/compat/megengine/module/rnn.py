"""Recurrent layers and cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph.compat.megengine import functional as F
from primgraph.compat.megengine.module import init
from primgraph.compat.megengine.module.module import Module
from primgraph.compat.megengine.tensor import Parameter
from primgraph.control.loops import scan
from primgraph.errors import ArgumentError, OptionError
from primgraph.ir.types import FLOAT32
from primgraph.nn.recurrent import four_gates

__all__ = ["LSTM", "RNN", "LSTMCell", "RNNCell"]


class _Cell(Module):
    """Weights of gates, uniform between plus and minus the reciprocal root of the size."""

    _parts: ClassVar[int] = 1

    def _setup(self, input_size: int, hidden_size: int, bias: bool) -> None:
        Module.__init__(self)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.gate_hidden_size = rows = self._parts * hidden_size
        self.weight_ih = Parameter(np.zeros((rows, input_size), FLOAT32))
        self.weight_hh = Parameter(np.zeros((rows, hidden_size), FLOAT32))
        for key in ("bias_ih", "bias_hh"):
            zeros = F.zeros((rows,))
            setattr(self, key, Parameter(zeros) if bias else zeros)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        limit = self.hidden_size**-0.5
        for weight in self.parameters():
            init.uniform_(weight, -limit, limit)

    def _gates(self, states: tuple[Any, ...], entered: Any, own: Any) -> tuple[Any, ...]:
        raise NotImplementedError

    def entered(self, x: Any) -> Any:
        """Return what inputs add to the gates, of all times in one product."""
        return F.linear(x, self.weight_ih, self.bias_ih)

    def step(self) -> Callable[[tuple[Any, ...], Any], tuple[Any, ...]]:
        """Return the function of states and what enters that computes the next states."""
        weight, bias = self.weight_hh, self.bias_hh

        def compute(states: tuple[Any, ...], entered: Any) -> tuple[Any, ...]:
            return self._gates(states, entered, F.linear(states[0], weight, bias))

        return compute

    def _zeros(self, samples: int) -> Any:
        return F.zeros((samples, self.hidden_size))


class RNNCell(_Cell):
    """`tanh(W_ih x + b_ih + W_hh h + b_hh)`, or with "relu" its positive part.

    >>> megengine.module.RNNCell(2, 3)(megengine.functional.ones((4, 2))).shape
    (4, 3)
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh"
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise OptionError(f"nonlinearity is 'tanh' or 'relu', not {nonlinearity!r:.60}")
        self._setup(input_size, hidden_size, bias)
        self.nonlinearity = nonlinearity

    def _gates(self, states: tuple[Any, ...], entered: Any, own: Any) -> tuple[Any, ...]:
        return (getattr(pg, self.nonlinearity)(entered + own),)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the next state, from zeros by default."""
        state = self._zeros(input.shape[0]) if hx is None else hx
        return self.step()((state,), self.entered(input))[0]


class LSTMCell(_Cell):
    """Long short-term memory: input, forget, candidate and output gates.

    >>> h, c = megengine.module.LSTMCell(2, 3)(megengine.functional.ones((4, 2)))
    >>> h.shape, c.shape
    ((4, 3), (4, 3))
    """

    _parts: ClassVar[int] = 4

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        self._setup(input_size, hidden_size, bias)

    def _gates(self, states: tuple[Any, ...], entered: Any, own: Any) -> tuple[Any, ...]:
        return four_gates(states, entered, own)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the next state and memory, from zeros by default."""
        zeros = self._zeros(input.shape[0]) if hx is None else None
        return self.step()((zeros, zeros) if hx is None else tuple(hx), self.entered(input))


class RNN(Module):
    """Stacked recurrent layers, in one direction or both; `cells` has a list for each layer.

    >>> output, state = megengine.module.RNN(2, 3)(megengine.functional.ones((5, 4, 2)))
    >>> output.shape, state.shape
    ((5, 4, 3), (1, 4, 3))
    """

    _count: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ArgumentError(f"dropout is a probability, not {dropout!r:.60}")
        if proj_size:
            raise OptionError("proj_size is not supported")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self.num_directions = 2 if bidirectional else 1
        sizes = [input_size, *[self.num_directions * hidden_size] * (num_layers - 1)]
        self.cells = [
            [self._make_cell(size, **options) for _ in range(self.num_directions)] for size in sizes
        ]

    def _make_cell(self, size: int, nonlinearity: str = "tanh") -> _Cell:
        return RNNCell(size, self.hidden_size, self.bias, nonlinearity)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the states of the last layer at all times, and the last states of all layers.

        `input` is of shape (times, samples, input_size), with `batch_first` (samples, times, ...).
        States, which are zeros by default, are of shape (layers and directions, samples, size).
        """
        value = pg.swapaxes(input, 0, 1) if self.batch_first else input
        count = self.num_layers * self.num_directions
        shape = (count, value.shape[1], self.hidden_size)
        given = [F.zeros(shape)] * self._count if hx is None else hx
        starts = [given] if hx is not None and self._count == 1 else given
        starts = [pg.reshape(s, shape) for s in starts]
        ends: list[tuple[Any, ...]] = []
        for layer, cells in enumerate(self.cells):
            if layer and self.dropout:
                value = F.dropout(value, self.dropout, self.training)
            rows = []
            for direction, cell in enumerate(cells):
                begin = tuple(s[len(ends)] for s in starts)
                states, outputs = _run(cell, value, begin, direction == 1)
                ends.append(states)
                rows.append(outputs)
            value = rows[0] if len(rows) == 1 else pg.concatenate(rows, -1)
        last = [pg.stack(list(s)) for s in zip(*ends, strict=True)]
        if self.batch_first:
            value = pg.swapaxes(value, 0, 1)
        return value, last[0] if self._count == 1 else tuple(last)


class LSTM(RNN):
    """Stacked long short-term memories; the states are a pair.

    >>> output, (h, c) = megengine.module.LSTM(2, 3, 2)(megengine.functional.ones((5, 4, 2)))
    >>> output.shape, h.shape, c.shape
    ((5, 4, 3), (2, 4, 3), (2, 4, 3))
    """

    _count: ClassVar[int] = 2

    def _make_cell(self, size: int) -> _Cell:  # type: ignore[override]
        return LSTMCell(size, self.hidden_size, self.bias)


def _run(cell: _Cell, x: Any, start: tuple[Any, ...], reverse: bool) -> tuple[Any, Any]:
    """Return the last states of a cell that runs over the first axis, and its state each time."""
    step = cell.step()

    def trip(states: tuple[Any, ...], row: Any) -> tuple[tuple[Any, ...], Any]:
        new = step(states, row)
        return new, new[0]

    found: tuple[Any, Any] = scan(trip, start, cell.entered(x), reverse=reverse)
    return found
