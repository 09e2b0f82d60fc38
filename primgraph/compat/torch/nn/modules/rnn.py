"""Recurrent layers and cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch.creation import create
from primgraph.compat.torch.nn import functional
from primgraph.compat.torch.nn.init import uniform_
from primgraph.compat.torch.nn.modules.module import Module
from primgraph.compat.torch.nn.utils.rnn import PackedSequence, pad_packed_sequence
from primgraph.compat.torch.tensor import Parameter
from primgraph.control.loops import scan
from primgraph.errors import ArgumentError, ShapeError
from primgraph.nn.recurrent import four_gates, three_gates

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]


def _plain_gates(nonlinearity: str) -> Callable[..., tuple[Any, ...]]:
    """Return the step of `RNN`."""
    if nonlinearity not in ("tanh", "relu"):
        raise ArgumentError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
    function = pg.tanh if nonlinearity == "tanh" else pg.relu
    return lambda states, entered, own: (function(entered + own),)


class _Gates(Module):
    """Weights of gates, by layer and direction, and the step that they compute."""

    _parts: ClassVar[int] = 1
    _count: ClassVar[int] = 1
    hidden_size: int
    nonlinearity: str

    def _gates(self) -> Callable[..., tuple[Any, ...]]:
        """Return the function of the states, what enters, and what comes of the state."""
        return _plain_gates(self.nonlinearity)

    def _add_weights(self, suffix: str, sizes: dict[str, tuple[int, ...]], kind: Any) -> None:
        for name, shape in sizes.items():
            setattr(self, name + suffix, Parameter(create.empty(shape, **kind)))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        limit = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            uniform_(weight, -limit, limit)

    def _entered(self, x: Any, suffix: str) -> Any:
        """Return what the inputs add to the gates, of all times in one product."""
        bias = self._parameters.get(f"bias_ih{suffix}")
        return functional.linear(x, getattr(self, f"weight_ih{suffix}"), bias)

    def _step(self, suffix: str) -> Callable[..., tuple[Any, ...]]:
        """Return the function that computes the states of the next time."""
        weight = getattr(self, f"weight_hh{suffix}")
        bias = self._parameters.get(f"bias_hh{suffix}")
        project = self._parameters.get(f"weight_hr{suffix}")
        gates = self._gates()

        def step(states: tuple[Any, ...], entered: Any) -> tuple[Any, ...]:
            found = gates(states, entered, functional.linear(states[0], weight, bias))
            if project is None:
                return found
            return (functional.linear(found[0], project), *found[1:])

        return step


class RNNBase(_Gates):
    """Recurrent layers: stacked, in one direction or both.

    >>> torch.nn.GRU(2, 3, num_layers=2).state_dict()["weight_ih_l1"].shape
    torch.Size([9, 3])
    """

    mode: ClassVar[str] = ""

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
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if proj_size and self.mode != "LSTM":
            raise ArgumentError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if not 0 <= dropout <= 1:
            raise ArgumentError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if hidden_size <= 0 or num_layers <= 0:
            name = "hidden_size" if hidden_size <= 0 else "num_layers"
            raise ArgumentError(f"{name} must be greater than zero")
        if not 0 <= proj_size < hidden_size:
            raise ArgumentError("proj_size has to be smaller than hidden_size")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        kind = {"device": device, "dtype": dtype}
        rows, width = self._parts * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else width * (1 + bidirectional)
            sizes: dict[str, tuple[int, ...]] = {
                "weight_ih": (rows, inputs),
                "weight_hh": (rows, width),
            }
            if bias:
                sizes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size:
                sizes["weight_hr"] = (proj_size, hidden_size)
            for suffix in self._suffixes(layer):
                self._add_weights(suffix, sizes, kind)
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", *([f"_l{layer}_reverse"] if self.bidirectional else [])]

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights by layer and direction."""
        return [
            [p for n, p in self._parameters.items() if n.endswith(suffix)]
            for layer in range(self.num_layers)
            for suffix in self._suffixes(layer)
        ]

    def flatten_parameters(self) -> None:
        """Do nothing: weights need no common memory."""

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the states of the last layer at all times, and the last states of all layers.

        `input` is of shape (times, samples, features), with `batch_first` (samples, times,
        features), or (times, features), or packed.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.ndim not in (2, 3):
            raise ArgumentError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D instead"
            )
        if input.shape[-1] != self.input_size:
            raise ShapeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.shape[-1]}"
            )
        single = input.ndim == 2
        value = input
        if single:
            value = pg.expand_dims(input, 1)
        elif self.batch_first:
            value = pg.swapaxes(input, 0, 1)
        starts = self._starts(value, hx, single)
        value, last = self._run_layers(value, starts, None)
        if single:
            return pg.squeeze(value, 1), self._packed_states([pg.squeeze(s, 1) for s in last])
        return (pg.swapaxes(value, 0, 1) if self.batch_first else value), self._packed_states(last)

    def _packed_states(self, states: list[Any]) -> Any:
        return states[0] if self._count == 1 else tuple(states)

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[Any, Any]:
        """Return the result packed: rows that a sequence lacks leave its state as it is."""
        sizes = np.asarray(input.batch_sizes)
        padded, _ = pad_packed_sequence(PackedSequence(input.data, input.batch_sizes))
        taken = np.arange(int(sizes[0])) < sizes[:, None]
        if hx is not None and input.sorted_indices is not None:
            order = np.asarray(input.sorted_indices)
            states = (hx,) if self._count == 1 else tuple(hx)
            found = tuple(pg.take(s, order, 1) for s in states)
            hx = found[0] if self._count == 1 else found
        value, last = self._run_layers(padded, self._starts(padded, hx, False), taken)
        rows = pg.take(pg.reshape(value, (-1, value.shape[-1])), np.flatnonzero(taken), 0)
        if input.unsorted_indices is not None:
            back = np.asarray(input.unsorted_indices)
            last = [pg.take(s, back, 1) for s in last]
        return PackedSequence(rows, *input[1:]), self._packed_states(last)

    def _starts(self, x: Any, hx: Any, single: bool) -> list[tuple[Any, ...]]:
        """Return the states that each layer and direction begins with."""
        count = self.num_layers * (1 + self.bidirectional)
        widths = (self.proj_size or self.hidden_size, self.hidden_size)[: self._count]
        if hx is None:
            zeros = tuple(create.zeros(x.shape[1], n, dtype=x.dtype) for n in widths)
            return [zeros] * count
        given = [hx] if self._count == 1 else list(hx)
        if single:
            given = [pg.expand_dims(s, 1) for s in given]
        for state, width in zip(given, widths, strict=True):
            wanted = (count, x.shape[1], width)
            if tuple(state.shape) != wanted:
                raise ShapeError(f"Expected hidden size {wanted}, got {list(state.shape)}")
        return [tuple(s[k] for s in given) for k in range(count)]

    def _run_layers(
        self, value: Any, starts: list[tuple[Any, ...]], taken: Any
    ) -> tuple[Any, list[Any]]:
        """Return the rows of the last layer, and the last states of all layers."""
        ends: list[tuple[Any, ...]] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                value = functional.dropout(value, self.dropout, self.training)
            rows = []
            for suffix in self._suffixes(layer):
                states, outputs = self._run(value, starts[len(ends)], suffix, taken)
                ends.append(states)
                rows.append(outputs)
            value = rows[0] if len(rows) == 1 else pg.concatenate(rows, -1)
        return value, [pg.stack(list(s)) for s in zip(*ends, strict=True)]

    def _run(self, x: Any, start: tuple[Any, ...], suffix: str, taken: Any) -> tuple[Any, Any]:
        """Return the last states of one layer in one direction, and its rows."""
        step, entered = self._step(suffix), self._entered(x, suffix)

        def trip(states: tuple[Any, ...], row: Any) -> tuple[tuple[Any, ...], Any]:
            new = step(states, row if taken is None else row[0])
            if taken is not None:
                new = tuple(pg.where(row[1], n, s) for n, s in zip(new, states, strict=True))
            return new, new[0]

        rows = entered if taken is None else (entered, create.tensor(taken[..., None]))
        found: tuple[Any, Any] = scan(trip, start, rows, reverse=suffix.endswith("_reverse"))
        return found

    def extra_repr(self) -> str:
        """Return the sizes and options that are set."""
        text = f"{self.input_size}, {self.hidden_size}"
        defaults: dict[str, Any] = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
        }
        defaults |= {"dropout": 0.0, "bidirectional": False}
        for name, default in defaults.items():
            value = getattr(self, name)
            text += "" if value == default else f", {name}={value}"
        return text


class RNN(RNNBase):
    """`h = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)` at each time, or with relu.

    >>> result, state = torch.nn.RNN(3, 5)(torch.ones(7, 2, 3))
    >>> result.shape, state.shape
    (torch.Size([7, 2, 5]), torch.Size([1, 2, 5]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        _plain_gates(nonlinearity)
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity
        self.mode = f"RNN_{nonlinearity.upper()}"  # type: ignore[misc]


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); the states are `(h, c)`.

    >>> result, (h, c) = torch.nn.LSTM(3, 5)(torch.ones(7, 2, 3))
    >>> result.shape, h.shape
    (torch.Size([7, 2, 5]), torch.Size([1, 2, 5]))
    """

    _parts, _count = 4, 2
    mode = "LSTM"

    def _gates(self) -> Callable[..., tuple[Any, ...]]:
        return four_gates


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014).

    >>> result, state = torch.nn.GRU(3, 5)(torch.ones(7, 2, 3))
    >>> result.shape
    torch.Size([7, 2, 5])
    """

    _parts = 3
    mode = "GRU"

    def _gates(self) -> Callable[..., tuple[Any, ...]]:
        return three_gates


class RNNCellBase(_Gates):
    """One step of a recurrent layer.

    >>> torch.nn.GRUCell(3, 5).weight_ih.shape
    torch.Size([15, 3])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = self._parts * hidden_size
        sizes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, input_size),
            "weight_hh": (rows, hidden_size),
        }
        if bias:
            sizes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        self._add_weights("", sizes, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the states after `input` of shape (samples, features) or (features)."""
        if input.ndim not in (1, 2):
            raise ArgumentError(
                f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.ndim}D instead"
            )
        if input.shape[-1] != self.input_size:
            raise ShapeError(
                f"input has inconsistent input_size: got {input.shape[-1]} expected "
                f"{self.input_size}"
            )
        if hx is None:
            zero = create.zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype)
            states: tuple[Any, ...] = (zero,) * self._count
        else:
            states = (hx,) if self._count == 1 else tuple(hx)
        found = self._step("")(states, self._entered(input, ""))
        return found[0] if self._count == 1 else found

    def extra_repr(self) -> str:
        """Return the sizes and options that are set."""
        text = f"{self.input_size}, {self.hidden_size}"
        text += "" if self.bias else ", bias=False"
        kind = self.__dict__.get("nonlinearity", "tanh")
        return text if kind == "tanh" else f"{text}, nonlinearity={kind}"


class RNNCell(RNNCellBase):
    """One step of `RNN`: `h = cell(x, h)`.

    >>> torch.nn.RNNCell(3, 5)(torch.ones(2, 3)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        _plain_gates(nonlinearity)
        self.nonlinearity = nonlinearity


class LSTMCell(RNNCellBase):
    """One step of `LSTM`: `h, c = cell(x, (h, c))`.

    >>> h, c = torch.nn.LSTMCell(3, 5)(torch.ones(2, 3))
    >>> h.shape
    torch.Size([2, 5])
    """

    _parts, _count = 4, 2

    def _gates(self) -> Callable[..., tuple[Any, ...]]:
        return four_gates


class GRUCell(RNNCellBase):
    """One step of `GRU`: `h = cell(x, h)`.

    >>> torch.nn.GRUCell(3, 5)(torch.ones(2, 3)).shape
    torch.Size([2, 5])
    """

    _parts = 3

    def _gates(self) -> Callable[..., tuple[Any, ...]]:
        return three_gates
