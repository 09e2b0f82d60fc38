"""Layers of convolutions, normalisation, attention and recurrence, and the functions below them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import evaluate_one, same

import primgraph as pg

RNG = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def both_worlds(layer: Any, *arrays: Any) -> list[Any]:
    """What the layer makes of tensors, and of variables of a program with states, both alike."""
    eager = pg.tree.leaves(layer(*arrays))
    found = [x.numpy() for x in eager]
    with pg.Program() as program:
        inputs = [pg.data(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
        results = pg.tree.leaves(layer(*inputs))
    executor = pg.Executor()
    feed = {f"x{i}": a for i, a in enumerate(arrays)}
    for one, other in zip(found, executor.run(program, feed, results), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    return found


def test_normalisation_by_groups_samples_and_mean_squares() -> None:
    x, weight, bias = normal(2, 6, 3, 4), normal(6), normal(6)

    def normed(x: Any, axes: Any) -> Any:
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)

    scale, shift = weight[:, None, None], bias[:, None, None]
    by_groups = normed(x.reshape(2, 3, 2, 3, 4), (2, 3, 4)).reshape(x.shape) * scale + shift
    found = evaluate_one(lambda x, w, b: pg.group_norm(x, 3, w, b), x, weight, bias)
    same(found, by_groups, 1e-13)
    found = evaluate_one(lambda x, w, b: pg.instance_norm(x, w, b), x, weight, bias)
    same(found, normed(x, (2, 3)) * scale + shift, 1e-13)
    table = normal(3, 4)
    root = np.sqrt((x**2).mean((2, 3), keepdims=True) + np.finfo(float).eps)
    found = evaluate_one(lambda x, w: pg.rms_norm(x, w, (2, 3)), x, table)
    same(found, x / root * table, 1e-13)
    half = evaluate_one(lambda x: pg.rms_norm(x), np.full((2, 3), 300, np.float16))
    same(half, np.ones((2, 3), np.float16), 1e-3)
    for layer, expected in (
        (pg.nn.GroupNorm(3, 6), normed(x.reshape(2, 3, 2, 3, 4), (2, 3, 4)).reshape(x.shape)),
        (pg.nn.InstanceNorm(6, affine=True), normed(x, (2, 3))),
        (pg.nn.RMSNorm((3, 4), 1e-5), x / np.sqrt((x**2).mean((2, 3), keepdims=True) + 1e-5)),
    ):
        np.testing.assert_allclose(both_worlds(layer, x)[0], expected, rtol=1e-12)
    assert not pg.nn.InstanceNorm(6).parameters()
    pg.check_grads(lambda x, w: pg.group_norm(x, 3, w) ** 2, [x[:1, :, 0, :2], weight], order=2)
    pg.check_grads(lambda x: pg.rms_norm(x) ** 2, [x[0, 0]], order=2)


def test_rows_of_a_table_and_the_one_without_a_slope() -> None:
    table, places = normal(5, 3), np.array([[0, 4], [2, 2]])
    same(evaluate_one(pg.embedding, places, table), table[places])

    def slope(weight: Any) -> Any:
        return pg.grad(pg.sum(pg.embedding(places, weight, padding_idx=-3) ** 2), weight)

    expected = np.zeros_like(table)
    np.add.at(expected, places, 2 * table[places])
    expected[2] = 0
    same(evaluate_one(slope, table), expected, 1e-15)
    layer = pg.nn.Embedding(5, 3, padding_idx=2)
    (found,) = both_worlds(layer, places)
    same(found, layer.state_dict()["weight"][places])
    assert not found[1].any()
    several = pg.vmap(lambda i: pg.embedding(i, table))(places)
    np.testing.assert_array_equal(several, table[places])


def looked_at(q: Any, k: Any, v: Any, allowed: Any = True, added: Any = 0.0) -> Any:
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]) + added
    shares = np.where(allowed, softmax(np.where(allowed, scores, -1e300)), 0)
    return shares @ v


def test_attention_is_a_mean_of_values() -> None:
    q, k, v = normal(2, 4, 3, 5), normal(2, 4, 6, 5), normal(2, 4, 6, 2)
    seen, added = RNG.random((3, 6)) < 0.6, normal(2, 1, 3, 6)
    seen[1] = False
    attention = pg.scaled_dot_product_attention
    causal = np.tril(np.ones((3, 6), bool))
    cases: list[tuple[dict[str, Any], Any]] = [
        ({}, looked_at(q, k, v)),
        ({"is_causal": True}, looked_at(q, k, v, causal)),
        ({"attn_mask": seen}, looked_at(q, k, v, seen)),
        ({"attn_mask": added}, looked_at(q, k, v, True, added)),
        ({"attn_mask": np.where(seen, 0.0, -np.inf)}, looked_at(q, k, v, seen)),
        ({"scale": 0.5}, looked_at(q * 0.5 * math.sqrt(5), k, v)),
    ]
    for options, expected in cases:
        found = evaluate_one(lambda q, k, v, o=options: attention(q, k, v, **o), q, k, v)
        same(found, expected, 1e-13)
        slopes = pg.compile(
            pg.trace(
                lambda q, k, v, o=options: pg.grad(pg.sum(attention(q, k, v, **o) ** 2), [q, k, v]),
                *(pg.spec(a.shape) for a in (q, k, v)),
            )
        )(q, k, v)
        assert all(np.isfinite(s).all() for s in slopes)
        if options.get("attn_mask") is not None and expected is cases[4][1]:
            assert not slopes[0][:, :, 1].any()
    shared = attention(pg.tensor(q), k[:, :2], v[:, :2], enable_gqa=True).numpy()
    repeated = [np.repeat(a[:, :2], 2, 1) for a in (k, v)]
    np.testing.assert_allclose(shared, looked_at(q, *repeated), rtol=1e-13)
    dropped = attention(q, k, np.ones_like(v), dropout_p=0.5, dropout_key=3).numpy()
    assert abs(dropped.mean() - 1) < 0.3
    assert dropped.std() > 0.1
    small = [a[0, 0, :2] for a in (q, k, v[:, :, :2])]
    pg.check_grads(lambda q, k, v: attention(q, k, v, is_causal=True), small, order=2)


def test_several_heads_look_each_at_its_part() -> None:
    query, key = normal(2, 3, 8), normal(2, 4, 6)
    layer = pg.nn.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=True)
    parts = {name: np.array(value) for name, value in layer.state_dict().items()}
    parts = {name: value + 0.1 * normal(*value.shape) for name, value in parts.items()}
    layer.set_state_dict(parts)

    def heads(x: Any, name: str) -> Any:
        made = x @ parts[f"{name}_proj.weight"] + parts[f"{name}_proj.bias"]
        return made.reshape(*made.shape[:2], 2, 4).swapaxes(1, 2)

    q, k, v = heads(query, "q"), heads(key, "k"), heads(key, "v")
    hidden = np.zeros((2, 4), bool)
    hidden[1, 2:] = True
    seen = ~hidden[:, None, None, :]
    joined = looked_at(q, k, v, seen).swapaxes(1, 2).reshape(2, 3, 8)
    expected = joined @ parts["out_proj.weight"] + parts["out_proj.bias"]
    scores = q @ k.swapaxes(-1, -2) / 2
    shares = np.where(seen, softmax(np.where(seen, scores, -1e300)), 0)
    found, weights = both_worlds(layer, query, key, key, hidden)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(weights, shares.mean(1), rtol=1e-12, atol=1e-15)
    last = pg.nn.MultiheadAttention(8, 2, kdim=6, vdim=6)
    last.set_state_dict(parts)
    turned, none = last(query.swapaxes(0, 1), key.swapaxes(0, 1), key.swapaxes(0, 1), hidden, False)
    assert none is None
    np.testing.assert_allclose(turned.numpy().swapaxes(0, 1), expected, rtol=1e-12)
    alone, each = layer(query[0], key[0], key[0], average_attn_weights=False)
    np.testing.assert_allclose(alone.numpy(), expected[0], rtol=1e-12)
    np.testing.assert_allclose(each.numpy(), shares[0], rtol=1e-12)
    blocked = np.triu(np.ones((3, 3), bool), 1)
    itself = pg.nn.MultiheadAttention(8, 4, batch_first=True)
    one, other = (
        itself(query, query, query, **{"attn_mask": blocked} if i else {"is_causal": True})[0]
        for i in range(2)
    )
    np.testing.assert_array_equal(one.numpy(), other.numpy())


def stepped(kind: str, parts: dict[str, Any], suffix: str, x: Any, states: Any) -> Any:
    """One row of a recurrent layer, by the formulas."""
    bias_ih, bias_hh = (parts.get(f"bias_{n}{suffix}", 0.0) for n in ("ih", "hh"))
    entered = x @ parts[f"weight_ih{suffix}"].T + bias_ih
    own = states[0] @ parts[f"weight_hh{suffix}"].T + bias_hh
    if kind == "LSTM":
        i, f, g, o = np.split(entered + own, 4, -1)
        c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if kind == "GRU":
        (r, z, n), (r_own, z_own, n_own) = np.split(entered, 3, -1), np.split(own, 3, -1)
        update = sigmoid(z + z_own)
        return ((1 - update) * np.tanh(n + sigmoid(r + r_own) * n_own) + update * states[0],)
    return (np.tanh(entered + own),)


def run_by_hand(kind: str, layer: Any, x: Any, both: bool) -> tuple[Any, list[Any]]:
    """Times first: the rows of the last layer, and the last states."""
    parts, ends = layer.state_dict(), []
    for number in range(layer.num_layers):
        rows = []
        for suffix in [f"_l{number}", f"_l{number}_reverse"][: 2 if both else 1]:
            states: Any = (np.zeros((x.shape[1], 4)),) * (2 if kind == "LSTM" else 1)
            listed = []
            for row in x[::-1] if suffix.endswith("e") else x:
                states = stepped(kind, parts, suffix, row, states)
                listed.append(states[0])
            rows.append(np.stack(listed[::-1] if suffix.endswith("e") else listed))
            ends.append(states)
        x = np.concatenate(rows, -1)
    return x, [np.stack(s) for s in zip(*ends, strict=True)]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_change_a_state_row_by_row(kind: str) -> None:
    x = normal(3, 2, 3)
    whole = getattr(pg.nn, kind)(3, 4, num_layers=2, bidirectional=True)
    found = both_worlds(whole, x)
    rows, ends = run_by_hand(kind, whole, x, both=True)
    for one, other in zip(found, (rows, *ends), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    first = getattr(pg.nn, kind)(3, 4, bias=False, batch_first=True)
    rows, ends = run_by_hand(kind, first, x.swapaxes(0, 1), both=False)
    found = [a.numpy() for a in pg.tree.leaves(first(x))]
    np.testing.assert_allclose(found[0], rows.swapaxes(0, 1), rtol=1e-12, atol=1e-14)
    alone = [a.numpy() for a in pg.tree.leaves(first(x[0]))]
    np.testing.assert_allclose(alone[0], rows[:, 0], rtol=1e-12, atol=1e-14)
    # What goes on from the last states is one sequence, and a cell is a step of it.
    halves = first(x[:, :1])
    rest = first(x[:, 1:], halves[1])
    np.testing.assert_allclose(rest[0].numpy()[:, -1], found[0][:, -1], rtol=1e-12)
    cell = getattr(pg.nn, f"{kind}Cell")(3, 4)
    parts = cell.state_dict()
    states = tuple(normal(2, 4) for _ in ends)
    given = states if kind == "LSTM" else states[0]
    found = [a.numpy() for a in pg.tree.leaves(cell(x[0], given))]
    for one, other in zip(found, stepped(kind, parts, "", x[0], states), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    assert np.isfinite(pg.tree.leaves(cell(x[0]))[0].numpy()).all()


def test_times_and_samples_may_have_names() -> None:
    layer = pg.nn.GRU(3, 4)
    with pg.Program() as program:
        x = pg.data("x", ("T", "N", 3))
        rows, last = layer(x)
        loss = pg.mean(rows**2)
        slopes = pg.grad(loss, layer.parameters())
    executor = pg.Executor()
    for times, samples in ((4, 2), (1, 3)):
        feed = {"x": normal(times, samples, 3)}
        found = executor.run(program, feed, [rows, last, *slopes])
        expected, ends = run_by_hand("GRU", layer, feed["x"], both=False)
        np.testing.assert_allclose(found[0], expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found[1], ends[0], rtol=1e-12, atol=1e-14)
    tensors = [p.grad for p in _trained(layer, feed["x"])]
    for one, other in zip(found[2:], tensors, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-10, atol=1e-13)


def _trained(layer: Any, x: Any) -> list[Any]:
    layer.zero_grad()
    pg.mean(layer(pg.tensor(x))[0] ** 2).backward()
    return list(layer.parameters())


def network() -> Any:
    return pg.nn.Sequential(
        pg.nn.Conv2d(1, 3, 3, padding=1),
        pg.nn.BatchNorm(3),
        pg.nn.ReLU(),
        pg.nn.MaxPool2d(2),
        pg.nn.Conv2d(3, 4, 3, padding="same", padding_mode="circular"),
        pg.nn.GELU(),
        pg.nn.AdaptiveAvgPool2d(2),
        pg.nn.Flatten(),
        pg.nn.Linear(16, 2),
    )


def test_a_network_learns_in_both_worlds_and_in_compiled_functions() -> None:
    images, labels = normal(8, 1, 8, 8), np.arange(8) % 2
    net = network()
    start = net.state_dict()
    optimizer = pg.optimizer.SGD(0.2, parameters=net.parameters())
    losses = []
    for _ in range(3):
        loss = pg.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        net.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    other = network()
    other.set_state_dict(start)
    with pg.Program() as program:
        x, y = pg.data("x", ("N", 1, 8, 8)), pg.data("y", ("N",), "int64")
        loss = pg.cross_entropy(other(x), y)
        pg.optimizer.SGD(0.2).minimize(loss)
    executor = pg.Executor()
    feed = {"x": images, "y": labels}
    found = [float(executor.run(program, feed, [loss])[0]) for _ in range(3)]
    np.testing.assert_allclose(found, losses, rtol=1e-9)
    net.eval()
    np.testing.assert_allclose(
        pg.jit(lambda x: net(x))(images), net(images).numpy(), rtol=1e-12, atol=1e-14
    )


def test_frames_of_elements_are_those_of_numpy() -> None:
    x = normal(2, 1, 5, 6)
    for mode, name in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        layer = pg.nn.Conv2d(1, 2, 3, padding=(1, 2), padding_mode=mode)
        weight, bias = layer.state_dict()["weight"], layer.state_dict()["bias"]
        framed = np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2)), name)
        expected = pg.conv2d(framed, weight, bias).numpy()
        np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-13)
        np.testing.assert_allclose(layer(x[0]).numpy(), expected[0], rtol=1e-13)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: pg.group_norm(x, 4), pg.ShapeError, "4 groups do not divide"),
        (lambda x: pg.instance_norm(x[0, 0]), pg.ShapeError, "samples, channels and more"),
        (lambda x: pg.rms_norm(x, np.ones(3)), pg.ShapeError, "a weight of shape"),
        (lambda x: pg.embedding(x, np.ones((2, 2))), pg.DTypeError, "integer positions"),
        (lambda x: pg.embedding([0], x), pg.ShapeError, "takes a matrix"),
        (lambda x: pg.embedding([0], x[0, 0], 9), pg.ArgumentError, "has no row 9"),
        (lambda x: pg.embedding([9], x[0, 0]), pg.BoundsError, "9"),
        (
            lambda x: pg.scaled_dot_product_attention(x, x[..., :2], x),
            pg.ShapeError,
            "vectors of different lengths",
        ),
        (
            lambda x: pg.scaled_dot_product_attention(x, x, x, np.ones((5, 5), bool)),
            pg.ShapeError,
            "does not fit",
        ),
        (
            lambda x: pg.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
            pg.ArgumentError,
            "by a key",
        ),
        (lambda x: pg.nn.LSTM(3, 4)(x), pg.ShapeError, "LSTM takes times, samples and 3"),
        (lambda x: pg.nn.GRU(4, 4)(x[0], x), pg.ArgumentError, "1 arrays of 1 states"),
        (lambda x: pg.nn.RNN(3, 4, nonlinearity="sin"), pg.ArgumentError, "'tanh' or 'relu'"),
        (lambda x: pg.nn.MultiheadAttention(8, 3), pg.ArgumentError, "3 heads do not divide"),
        (lambda x: pg.nn.Conv2d(4, 6, 3, groups=4), pg.ArgumentError, "do not divide"),
        (lambda x: pg.nn.Conv1d(4, 6, 3, padding_mode="wrap"), pg.ArgumentError, "circular"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(
    call: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    with pg.Program(), pytest.raises(error, match=message):
        call(pg.data("x", (2, 3, 4, 4)))
