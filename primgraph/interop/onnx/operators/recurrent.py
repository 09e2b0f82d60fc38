"""Recurrent networks: RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph.control.loops import scan
from primgraph.interop.onnx.node import Node, Optional
from primgraph.interop.onnx.table import find_meaning, means
from primgraph.operators.promotion import lift

Step = Callable[[Any, Any], Any]
Activation = Callable[[Any], Any]


def _activations(node: Node, names: Sequence[str], direction: int) -> list[Activation]:
    """Return the activations of a direction, as functions of one array."""
    given = node.get("activations", list(names) * 2)
    alphas, betas = list(node.get("activation_alpha", [])), list(node.get("activation_beta", []))
    found = []
    for k, name in enumerate(given):
        attributes = {}
        if name in ("LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Affine"):
            attributes = {"alpha": alphas.pop(0)} if alphas else {}
        if name in ("ScaledTanh", "HardSigmoid", "Affine"):
            attributes |= {"beta": betas.pop(0)} if betas else {}
        if direction * len(names) <= k < (direction + 1) * len(names):
            found.append(_activation(node, name, attributes))
    return found


def _activation(node: Node, name: str, attributes: dict[str, Any]) -> Activation:
    meaning = find_meaning(name, node.version)
    if name == "Affine":
        return lambda x: x.dtype.type(attributes["alpha"]) * x + x.dtype.type(attributes["beta"])
    if name == "ScaledTanh":
        alpha, beta = attributes["alpha"], attributes["beta"]
        return lambda x: x.dtype.type(alpha) * pnp.tanh(x.dtype.type(beta) * x)
    if meaning is None:
        raise node.unsupported(f"activation {name}")
    inner = Node(name, node.name, node.version, attributes, (), (True,), node.run)
    return lambda x: meaning(inner, x)


def _clipped(node: Node, x: Any) -> Any:
    bound = node.get("clip")
    return x if bound is None else pnp.clip(x, x.dtype.type(-bound), x.dtype.type(bound))


def _steps(node: Node, count: int, step: Callable[..., Any], inputs: Sequence[Optional],
           states: Sequence[Optional]) -> Any:  # fmt: skip
    """Run `step(direction, x, state)` over the sequence in each direction.

    Return the first states of all steps and the last states, with an axis of directions.
    """
    x, recurrence, lengths = inputs[0], inputs[2], inputs[4] if len(inputs) > 4 else None
    assert x is not None
    assert recurrence is not None
    by_sample = node.get("layout", 0)
    sequence = pnp.swapaxes(x, 0, 1) if by_sample else x
    steps, batch, width = sequence.shape[0], sequence.shape[1], recurrence.shape[-1]
    kind = node.get("direction", "forward")
    directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[kind]
    outputs, last = [], []
    for k, backward in enumerate(directions):
        start = []
        for state in states:
            if state is None:
                start.append(lift(pnp.broadcast_to(x.dtype.type(0), (batch, width))))
            else:
                start.append(lift(state[:, k] if by_sample else state[k]))
        places = lift(np.arange(steps))

        def advance(carry: Any, row: Any, k: int = k) -> Any:
            value, place = row
            found = step(k, value, carry)
            if lengths is not None:
                inside = pnp.expand_dims(place < lengths, 1)
                found = [pnp.where(inside, new, old) for new, old in zip(found, carry, strict=True)]
                return tuple(found), pnp.where(inside, found[0], found[0].dtype.type(0))
            return tuple(found), found[0]

        final, rows = scan(advance, tuple(start), (lift(sequence), places), reverse=backward)
        outputs.append(rows)
        last.append(final)
    whole = pnp.stack(outputs, 1)
    ends = [pnp.stack(list(parts), 0) for parts in zip(*last, strict=True)]
    if by_sample:
        return (pnp.transpose(whole, (2, 0, 1, 3)), *(pnp.swapaxes(end, 0, 1) for end in ends))
    return (whole, *ends)


def _gates(inputs: Sequence[Optional], k: int, count: int) -> tuple[Any, Any, Any, Any]:
    """Return the transposed weights of a direction, and the two biases of `count` gates."""
    weight, recurrence = inputs[1], inputs[2]
    bias = inputs[3] if len(inputs) > 3 else None
    assert weight is not None
    assert recurrence is not None
    width = recurrence.shape[-1]
    if bias is None:
        zero = np.zeros(count * width, weight.dtype)
        return pnp.transpose(weight[k]), pnp.transpose(recurrence[k]), zero, zero
    both = bias[k]
    own, other = both[: count * width], both[count * width :]
    return pnp.transpose(weight[k]), pnp.transpose(recurrence[k]), own, other


def _parts(x: Any, count: int) -> list[Any]:
    width = x.shape[-1] // count
    return [x[..., k * width : (k + 1) * width] for k in range(count)]


def _optional(inputs: Sequence[Optional], k: int) -> Optional:
    return inputs[k] if len(inputs) > k else None


@means("RNN")
def _rnn(node: Node, *inputs: Optional) -> Any:
    def step(k: int, x: Any, state: Any) -> Any:
        (activate,) = _activations(node, ["Tanh"], k)
        weight, recurrence, own, other = _gates(inputs, k, 1)
        total = pnp.matmul(x, weight) + pnp.matmul(state[0], recurrence) + own + other
        return [activate(_clipped(node, total))]

    return _steps(node, 1, step, inputs, [_optional(inputs, 5)])


@means("GRU")
def _gru(node: Node, *inputs: Optional) -> Any:
    def step(k: int, x: Any, state: Any) -> Any:
        inner, activate = _activations(node, ["Sigmoid", "Tanh"], k)
        weight, recurrence, own, other = _gates(inputs, k, 3)
        (old,) = state
        update, reset, new = _parts(pnp.matmul(x, weight) + own, 3)
        of_update, of_reset, of_new = _parts(recurrence, 3)
        from_update, from_reset, from_new = _parts(other, 3)
        z = inner(_clipped(node, update + pnp.matmul(old, of_update) + from_update))
        r = inner(_clipped(node, reset + pnp.matmul(old, of_reset) + from_reset))
        if node.get("linear_before_reset", 0):
            recalled = r * (pnp.matmul(old, of_new) + from_new)
        else:
            recalled = pnp.matmul(r * old, of_new) + from_new
        h = activate(_clipped(node, new + recalled))
        return [(z.dtype.type(1) - z) * h + z * old]

    return _steps(node, 3, step, inputs, [_optional(inputs, 5)])


@means("LSTM")
def _lstm(node: Node, *inputs: Optional) -> Any:
    peepholes = _optional(inputs, 7)

    def step(k: int, x: Any, state: Any) -> Any:
        inner, activate, leave = _activations(node, ["Sigmoid", "Tanh", "Tanh"], k)
        weight, recurrence, own, other = _gates(inputs, k, 4)
        old, cell = state
        total = pnp.matmul(x, weight) + pnp.matmul(old, recurrence) + own + other
        i, o, f, c = _parts(total, 4)
        into, out, keep = [None] * 3 if peepholes is None else _parts(peepholes[k], 3)
        entering = inner(_clipped(node, _peeked(i, into, cell)))
        kept = inner(_clipped(node, _peeked(f, keep, cell)))
        if node.get("input_forget", 0):
            kept = kept.dtype.type(1) - entering
        new = kept * cell + entering * activate(_clipped(node, c))
        leaving = inner(_clipped(node, _peeked(o, out, new)))
        return [leaving * leave(new), new]

    return _steps(node, 4, step, inputs, [_optional(inputs, 5), _optional(inputs, 6)])


def _peeked(gate: Any, weight: Any, cell: Any) -> Any:
    """Add what a gate sees of the cell."""
    return gate if weight is None else gate + weight * cell
