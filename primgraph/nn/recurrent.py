"""Recurrent layers: a state that each row of a sequence changes, by `pg.scan`."""

from __future__ import annotations

from typing import Any, ClassVar, final

from primgraph import operators
from primgraph.control.loops import scan
from primgraph.errors import ArgumentError, ShapeError
from primgraph.initializers import Uniform
from primgraph.ir.frontend.signature import checked_methods
from primgraph.nn.basic import key_for
from primgraph.nn.layer import Layer
from primgraph.operators.call import handle_operator
from primgraph.operators.handle import ArrayLike


class _Gates(Layer):
    """Weights of `parts` gates, by the names that they have in torch, and what they do."""

    _parts: ClassVar[int]
    # A layer with a memory has two states, h and c.
    _held: ClassVar[int] = 1

    def _weights(self, inputs: int, size: int, bias: bool, suffix: str, dtype: Any) -> None:
        """Even numbers between plus and minus the reciprocal root of the size, as in torch."""
        limit = max(size, 1) ** -0.5
        rows, rule = self._parts * size, Uniform(-limit, limit)
        for name, shape in (("weight_ih", (rows, inputs)), ("weight_hh", (rows, size))):
            setattr(self, name + suffix, self.create_parameter(shape, dtype, rule))
        for name in ("bias_ih", "bias_hh"):
            made = self.create_parameter((rows,), dtype, rule) if bias else None
            setattr(self, name + suffix, made)

    def _project_inputs(self, x: Any, suffix: str) -> Any:
        """Compute the gates' input contributions for all rows, in one product."""
        weight = operators.transpose(getattr(self, f"weight_ih{suffix}"))
        found = operators.matmul(x, weight)
        bias = getattr(self, f"bias_ih{suffix}")
        return found if bias is None else operators.add(found, bias)

    def _step(self, suffix: str) -> Any:
        """The new states of what the gates got and the old states."""
        weight = operators.transpose(getattr(self, f"weight_hh{suffix}"))
        bias = getattr(self, f"bias_hh{suffix}")

        def step(states: tuple[Any, ...], entered: Any) -> tuple[Any, ...]:
            own = operators.matmul(states[0], weight)
            return self._next_states(states, entered, own if bias is None else own + bias)

        return step

    def _next_states(self, states: tuple[Any, ...], entered: Any, own: Any) -> tuple[Any, ...]:
        raise NotImplementedError


@handle_operator
def four_gates(states: tuple[Any, ...], entered: Any, own: Any) -> tuple[Any, ...]:
    """Input, forget and output gates and a candidate (Hochreiter and Schmidhuber, 1997)."""
    i, f, g, o = operators.split(entered + own, 4, -1)
    c = operators.sigmoid(f) * states[1] + operators.sigmoid(i) * operators.tanh(g)
    return operators.sigmoid(o) * operators.tanh(c), c


@handle_operator
def three_gates(states: tuple[Any, ...], entered: Any, own: Any) -> tuple[Any, ...]:
    """Reset and update gates and a candidate (Cho et al., 2014)."""
    (r, z, n), (r_own, z_own, n_own) = (operators.split(v, 3, -1) for v in (entered, own))
    update = operators.sigmoid(z + z_own)
    candidate = operators.tanh(n + operators.sigmoid(r + r_own) * n_own)
    return ((1.0 - update) * candidate + update * states[0],)


class _Cell(_Gates):
    """Base class of cells: one row updates the states."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self._weights(input_size, hidden_size, bias, "", dtype)

    def forward(self, x: ArrayLike, hx: Any = None) -> Any:
        """The states after `x` of shape (..., input_size), from `hx` or from zeros."""
        value = operators.asarray(x)
        if hx is None:
            zero = operators.zeros((*value.shape[:-1], self.hidden_size), value.dtype)
            states: tuple[Any, ...] = (zero,) * self._held
        else:
            states = (hx,) if self._held == 1 else tuple(hx)
        found = self._step("")(states, self._project_inputs(value, ""))
        return found[0] if self._held == 1 else found


class _Recurrent(_Gates):
    """Base class of recurrent layers: stacked, in one direction or both."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else hidden_size * (2 if bidirectional else 1)
            for suffix in self._suffixes(layer):
                self._weights(inputs, hidden_size, bias, suffix, dtype)

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", *([f"_l{layer}_reverse"] if self.bidirectional else [])]

    def forward(self, x: ArrayLike, hx: Any = None) -> tuple[Any, Any]:
        """The state after each row of the last layer, and the last states of all.

        `x` is of shape (times, samples, input_size), with `batch_first` (samples, times, ...), or
        (times, input_size); what comes out has the states of both directions one behind the other
        in its last axis. States, and `hx`, which are zeros unless given, are of shape (layers and
        directions, samples, hidden_size).
        """
        value = operators.asarray(x)
        if value.ndim not in (2, 3) or value.shape[-1] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__} takes times, samples and {self.input_size} elements, "
                f"not {value.type}"
            )
        single = value.ndim == 2
        if single:
            value = operators.expand_dims(value, 1)
        elif self.batch_first:
            value = operators.swapaxes(value, 0, 1)
        starts = self._starts(value, hx, single)
        ends: list[tuple[Any, ...]] = []
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                value = operators.dropout(value, key_for(value), self.dropout)
            rows = []
            for suffix in self._suffixes(layer):
                states, outputs = self._run(value, starts[len(ends)], suffix)
                ends.append(states)
                rows.append(outputs)
            value = rows[0] if len(rows) == 1 else operators.concatenate(rows, -1)
        last = [operators.stack(list(s)) for s in zip(*ends, strict=True)]
        if single:
            value, last = operators.squeeze(value, 1), [operators.squeeze(s, 1) for s in last]
        elif self.batch_first:
            value = operators.swapaxes(value, 0, 1)
        return value, last[0] if self._held == 1 else tuple(last)

    def _run(self, x: Any, start: tuple[Any, ...], suffix: str) -> tuple[tuple[Any, ...], Any]:
        step = self._step(suffix)

        def trip(states: tuple[Any, ...], row: Any) -> tuple[tuple[Any, ...], Any]:
            new = step(states, row)
            return new, new[0]

        entered = self._project_inputs(x, suffix)
        found: tuple[tuple[Any, ...], Any] = scan(
            trip, start, entered, reverse=suffix.endswith("_reverse")
        )
        return found

    def _starts(self, x: Any, hx: Any, single: bool) -> list[tuple[Any, ...]]:
        """The states that each layer and direction begins with."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        if hx is None:
            zero = operators.zeros((x.shape[1], self.hidden_size), x.dtype)
            return [(zero,) * self._held] * count
        given = [operators.asarray(s) for s in ((hx,) if self._held == 1 else hx)]
        if len(given) != self._held or any(s.shape[0] != count for s in given):
            raise ArgumentError(
                f"{type(self).__name__} takes {self._held} arrays of {count} states each"
            )
        if single:
            given = [operators.expand_dims(s, 1) for s in given]
        return [tuple(s[k] for s in given) for k in range(count)]


class _LongShort(_Gates):
    _parts, _held = 4, 2

    def _next_states(self, states: tuple[Any, ...], entered: Any, own: Any) -> tuple[Any, ...]:
        return four_gates(states, entered, own)


class _Gated(_Gates):
    _parts = 3

    def _next_states(self, states: tuple[Any, ...], entered: Any, own: Any) -> tuple[Any, ...]:
        return three_gates(states, entered, own)


class _Plain(_Gates):
    _parts = 1
    nonlinearity: str

    def _choose(self, nonlinearity: str) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"nonlinearity is 'tanh' or 'relu', not {nonlinearity!r:.60}")
        self.nonlinearity = nonlinearity

    def _next_states(self, states: tuple[Any, ...], entered: Any, own: Any) -> tuple[Any, ...]:
        function = operators.tanh if self.nonlinearity == "tanh" else operators.relu
        return (function(entered + own),)


@final
@checked_methods()
class LSTM(_Recurrent, _LongShort):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997), as torch has it.

    `weight_ih_l0` is of shape (4 * hidden_size, input_size), `weight_hh_l0` of (4 * hidden_size,
    hidden_size), of the input, forget, candidate and output gates; `bias_ih_l0` and `bias_hh_l0`
    are both added. Later layers and the other direction have `_l1`, `_l0_reverse`. The states are a
    pair `(h, c)`. Between layers `dropout` is applied in training.

    >>> output, state = pg.nn.LSTM(3, 4)(np.ones((6, 2, 3)))
    >>> output.shape
    (6, 2, 4)
    """


@final
@checked_methods()
class GRU(_Recurrent, _Gated):
    """Gated recurrent units (Cho et al., 2014), with torch's arguments and weights.

    Weights are as those of `LSTM`, of the reset gate, the update gate and the candidate, whose
    part of the state is reset behind the product. The state is `h` alone.

    >>> output, state = pg.nn.GRU(3, 4)(np.ones((6, 2, 3)))
    >>> output.shape
    (6, 2, 4)
    """


@final
@checked_methods()
class RNN(_Recurrent, _Plain):
    """`h = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)` for each row, or with relu.

    Arguments and weights are as those of `LSTM`; the state is `h` alone.

    >>> result, state = pg.nn.RNN(3, 5)(np.ones((7, 2, 3)))
    >>> result.shape
    (7, 2, 5)
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
        *,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            dtype=dtype,
        )  # fmt: skip
        self._choose(nonlinearity)


@final
@checked_methods()
class LSTMCell(_Cell, _LongShort):
    """One step of an `LSTM`: `h, c = cell(x, (h, c))`.

    >>> cell = pg.nn.LSTMCell(3, 5)
    >>> h, c = cell(np.ones((2, 3)), (np.zeros((2, 5)), np.zeros((2, 5))))
    >>> h.shape
    (2, 5)
    """


@final
@checked_methods()
class GRUCell(_Cell, _Gated):
    """One step of a `GRU`: `h = cell(x, h)`.

    >>> cell = pg.nn.GRUCell(3, 5)
    >>> cell(np.ones((2, 3)), np.zeros((2, 5))).shape
    (2, 5)
    """


@final
@checked_methods()
class RNNCell(_Cell, _Plain):
    """One step of an `RNN`: `h = cell(x, h)`.

    >>> cell = pg.nn.RNNCell(3, 5)
    >>> cell(np.ones((2, 3)), np.zeros((2, 5))).shape
    (2, 5)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, dtype=dtype)
        self._choose(nonlinearity)
