"""Random networks trained eagerly: against programs, compiled, and sample by sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.testing import assert_allclose
from program_draft import Choices
from program_networks import OPTIMIZERS, drawn_network

import primgraph as pg
from primgraph import nn

_BATCH = 4
_WIDEST = 4
_STEPS = 4
_CLOSE = 1e-9


def check_steps(seed: int, seen: Counter[str]) -> None:
    """A network does the same eagerly, in a program, compiled, and for each sample."""
    draw = Choices(np.random.default_rng((seed, 11)))
    pg.seed(seed)
    width = draw.below(_WIDEST, 1)
    inner, given = drawn_network(draw, width)
    # In evaluation, where nothing is drawn by lot; parameters are trained all the same.
    net = nn.Sequential(nn.Linear(width, width), inner).eval()
    x, y = draw.rng.normal(size=(_BATCH, width)), draw.rng.normal(size=(_BATCH, given))
    rule = draw.choose(OPTIMIZERS)
    _check_training(draw, net, rule, x, y)
    _check_functions(draw, net, x)
    seen["steps"] += 1
    for layer in net.sublayers():
        seen[type(layer).__name__] += 1


def _check_training(draw: Choices, net: nn.Layer, rule: Any, x: np.ndarray, y: np.ndarray) -> None:
    """Some steps eagerly and in a program, which may take over what the other has done."""
    optimizer, other = rule(parameters=net.parameters()), rule()
    twin = deepcopy(net)
    with pg.Program() as program:
        loss = pg.mse_loss(twin(pg.data("x", x.shape)), pg.data("y", y.shape))
        other.minimize(loss)
    # What has a name of its own from outside of the layer is called otherwise in the program.
    alike = optimizer.state_dict().keys() >= other.state_dict().keys()
    early = draw.below(_STEPS) if alike else 0
    _go(draw, net, optimizer, x, y, early)
    twin.load_state_dict(net.state_dict())
    kept = optimizer.state_dict()
    other.load_state_dict({name: kept[name] for name in other.state_dict() if alike})
    for _ in range(_STEPS - early):
        pg.Executor().run(program, {"x": x, "y": y}, [loss])
    _go(draw, net, optimizer, x, y, _STEPS - early)
    _same(twin.state_dict(), net.state_dict())


def _go(
    draw: Choices, net: nn.Layer, optimizer: Any, x: np.ndarray, y: np.ndarray, count: int
) -> None:
    """Steps, whose loss somebody looks at now and then."""
    for _ in range(count):
        optimizer.clear_grad()
        loss = pg.mse_loss(net(pg.tensor(x)), pg.tensor(y))
        if draw.chance(0.3):
            loss.item()
        loss.backward()
        if draw.chance(0.3):
            pg.eager.sync()
        optimizer.step()


def _check_functions(draw: Choices, net: nn.Layer, x: np.ndarray) -> None:
    """Values and slopes by the input and the parameters, of the network and of what it became."""
    weights = draw.rng.normal(size=net(pg.tensor(x)).shape)
    samples = x[:, None]
    known = _slopes(net, net, x, weights)

    def each(x: Any) -> Any:
        return pg.vmap(net)(x[:, None])[:, 0]

    form = draw.choose((net, pg.jit(lambda x: net(x)), each, pg.jit(each)))
    for _ in range(2):
        found = _slopes(net, form, x, weights)
        for one, expected in zip(found, known, strict=True):
            assert_allclose(one, expected, rtol=_CLOSE, atol=_CLOSE)

    def energy(row: Any, weight: Any) -> Any:
        return pg.sum(net(row) * weight)

    by_row = pg.vmap(pg.grad(energy))(samples, weights[:, None])
    assert_allclose(by_row[:, 0], known[1], rtol=_CLOSE, atol=_CLOSE)


def _slopes(net: nn.Layer, form: Any, x: np.ndarray, weights: np.ndarray) -> list[np.ndarray]:
    """What `form` gives for `x`, and the slopes of it, weighted, by `x` and all parameters."""
    for parameter in net.parameters():
        parameter.grad = None
    leaf = pg.tensor(x, requires_grad=True)
    found = form(leaf)
    pg.sum(found * weights).backward()
    gradients = [leaf.grad, *(p.grad for p in net.parameters())]
    return [found.numpy(), *(g.numpy() for g in gradients if g is not None)]


def _same(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert_allclose(found[name], array, rtol=_CLOSE, atol=_CLOSE, err_msg=name)
