"""Random networks that are trained: layers in containers, dropout, normalisation, optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from program_draft import Choices

import primgraph as pg
from primgraph import nn

_BATCH = 5
_WIDEST = 5

OPTIMIZERS: tuple[Callable[..., pg.optimizer.Optimizer], ...] = (
    lambda **o: pg.optimizer.SGD(0.01, **o),
    lambda **o: pg.optimizer.Momentum(0.01, nesterov=True, **o),
    lambda **o: pg.optimizer.Adam(0.01, grad_clip=pg.optimizer.clip_by_global_norm(1.0), **o),
    lambda **o: pg.optimizer.RMSProp(0.01, schedule=pg.optimizer.exponential_decay(0.9), **o),
)

_ACTIVATIONS = (nn.Tanh, nn.GELU, nn.ReLU, nn.Sigmoid, nn.SiLU, nn.Softplus)


class Branches(nn.Layer):
    """Layers in nested containers of Python's, one after the other."""

    def __init__(self, layers: list[nn.Layer], draw: Choices) -> None:
        super().__init__()
        middle = draw.below(len(layers) + 1)
        self.first: Any = [*layers[:middle]] if draw.chance(0.5) else tuple(layers[:middle])
        rest = layers[middle:]
        self.table: Any = {f"k{i}": [layer] if i % 2 else layer for i, layer in enumerate(rest)}
        self.scales = nn.ParameterList([pg.create_parameter((1,)) for _ in range(draw.below(3))])

    def forward(self, x: pg.Variable) -> pg.Variable:
        for layer in self.first:
            x = layer(x)
        for entry in self.table.values():
            x = entry[0](x) if isinstance(entry, list) else entry(x)
        for scale in self.scales:
            x = x * pg.exp(scale * 0.1)
        return x


class Chain(nn.Layer):
    """Layers in a container of the package's own."""

    def __init__(self, layers: list[nn.Layer], draw: Choices) -> None:
        super().__init__()
        named = draw.chance(0.5)
        self.steps: Any = (
            nn.LayerDict({f"step{i}": layer for i, layer in enumerate(layers)})
            if named
            else nn.LayerList(layers)
        )

    def forward(self, x: pg.Variable) -> pg.Variable:
        found = self.steps.values() if isinstance(self.steps, nn.LayerDict) else self.steps
        for layer in found:
            x = layer(x)
        return x


def drawn_network(draw: Choices, width: int, depth: int = 0) -> tuple[nn.Layer, int]:
    """Some layers for `width` numbers, and how many they give."""
    layers: list[nn.Layer] = []
    for _ in range(draw.below(4, 1)):
        kind = draw.below(7)
        if kind < 2:
            given = draw.below(_WIDEST, 1)
            layers.append(nn.Linear(width, given))
            width = given
        elif kind == 2:
            layers.append(nn.Dropout(0.4, draw.choose(("upscale_in_train", "downscale_in_infer"))))
        elif kind == 3:
            layers.append(nn.BatchNorm(width, layout="NHWC"))
        elif kind == 4:
            layers.append(nn.LayerNorm((width,)))
        elif kind == 5 or depth == 2:
            layers.append(draw.choose(_ACTIVATIONS)())
        else:
            inner, width = drawn_network(draw, width, depth + 1)
            layers.append(inner)
    kind = draw.below(3)
    if kind == 0:
        return nn.Sequential(*layers), width
    return (Branches, Chain)[kind - 1](layers, draw), width


class NetworkTraining:
    """A program with a network, what may be fetched of it, and feeds for it."""

    def __init__(self, seed: int) -> None:
        self.draft = draw = Choices(np.random.default_rng((seed, 9)))
        self.program = pg.Program("network")
        self.program.random_seed = seed
        width = draw.below(_WIDEST, 1)
        shape = (_BATCH, width) if draw.chance(0.9) else (70, width)
        self.feeds: dict[str, np.ndarray] = {"x0": draw.rng.normal(size=shape)}
        with self.program:
            x = pg.data("x0", shape)
            inner, given = drawn_network(draw, width)
            # The first layer has parameters, so that there is something to train.
            net = nn.Sequential(nn.Linear(width, width), inner)
            self.trained = net(x)
            target = pg.data("x1", (shape[0], given))
            loss = pg.mean((self.trained - target) ** 2)
            net.eval()
            assert not any(layer.training for layer in net.sublayers())
            self.evaluated = net(x)
            net.train()
            self._minimize(loss, net.parameters())
            first = net.parameters()[0]
            self.fetches = [loss, self.trained, self.evaluated, first, first.T, pg.ravel(first)]
        self.feeds["x1"] = draw.rng.normal(size=target.shape)

    def _minimize(self, loss: pg.Variable, parameters: list[pg.Variable]) -> None:
        """By one optimizer, that is asked once or twice; a second one is refused."""
        optimizer = self.draft.choose(OPTIMIZERS)()
        before = dict(self.program.updates)
        for _ in range(self.draft.below(3, 1)):
            optimizer.minimize(loss)
        trained = [p for p in parameters if p.value in self.program.updates]
        assert trained, "no parameter of the network is trained"
        assert all(self.program.updates[s] == v for s, v in before.items())
        if self.draft.chance(0.3):
            try:
                self.draft.choose(OPTIMIZERS)().minimize(loss)
            except pg.BuildError:
                return
            raise AssertionError("a second optimizer for the same parameters was taken")

    def check_modes(self, scope: pg.Scope) -> None:
        """What the clone for tests gives is what the network gives in evaluation."""
        executor, clone = pg.Executor(scope), self.program.clone(for_test=True)
        before = self.program.state_dict(scope)
        feed = {"x0": self.feeds["x0"]}
        (tested,) = executor.run(clone, feed, [self.trained.name])
        (wanted,) = executor.run(self.program, feed, [self.evaluated], update=False)
        np.testing.assert_allclose(tested, wanted, rtol=1e-12, atol=1e-12)
        after = self.program.state_dict(scope)
        assert all(before[n].tobytes() == after[n].tobytes() for n in before)
