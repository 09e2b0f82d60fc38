"""
Debug with eager tensors, then compile
======================================

Write and debug a network with eager tensors, then build the program of a training step from it.
Both share the parameters of the network and the state of the optimizer.
"""

import numpy as np

import primgraph as pg
from primgraph import nn

SAMPLES = 64


class Noise(nn.Layer):
    """The mean and the width of what is measured at each place."""

    def __init__(self, hidden=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden))
        self.mean = nn.Linear(hidden, 1)
        self.width = nn.Linear(hidden, 1)

    def forward(self, places):
        features = pg.tanh(self.body(places))
        return self.mean(features), self.width(features)


def hasty(mean, width, values):
    """The first try: the logarithm of a width that may be negative."""
    return pg.mean(pg.log(width) + 0.5 * ((values - mean) / width) ** 2)


def careful(mean, width, values):
    """Minus the logarithm of a likelihood, for widths that are positive whatever is learned."""
    width = pg.softplus(width) + 0.01
    return pg.mean(pg.log(width) + 0.5 * ((values - mean) / width) ** 2)


def measured(rng):
    """Places, and what is measured there, the more noisily the farther to the right."""
    places = rng.uniform(-1.0, 1.0, (SAMPLES, 1))
    noise = rng.standard_normal((SAMPLES, 1))
    return places, np.sin(3.0 * places) + 0.2 * (1.1 + places) * noise


def debug(network, places, values):
    """Look at what a network computes, line by line, until the fault is found."""
    mean, width = network(pg.tensor(places))
    print(f"means of shape {mean.shape}, widths from {width.min():.2f} to {width.max():.2f}")
    try:
        with pg.eager.debug():
            hasty(*network(pg.tensor(places)), pg.tensor(values))
    except pg.NumericalError as error:
        print(f"the first try: {error.message}")


def train_eagerly(network, optimizer, rng, steps=150):
    """Steps as one goes; a line of Python may look at any number, and stop."""
    for step in range(steps):
        places, values = map(pg.tensor, measured(rng))
        optimizer.clear_grad()
        loss = careful(*network(places), values)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            largest = max(float(abs(p.grad).max()) for p in network.parameters())
            print(f"step {step:3d}   loss {loss:6.3f}   largest slope {largest:.3f}")
    print(f"{pg.eager.log.total} structures compiled, for steps that are looked at and others")


def build(network, optimizer):
    """The same step as a program."""
    with pg.Program("two_worlds") as program:
        places = pg.data("places", (SAMPLES, 1))
        values = pg.data("values", (SAMPLES, 1))
        mean, width = network(places)
        mean.name = "mean"
        loss = careful(mean, width, values)
        optimizer.minimize(loss)
    return program, loss


def main():
    pg.seed(1)
    rng = np.random.default_rng(0)
    network = Noise()
    optimizer = pg.optimizer.Adam(0.01, parameters=network.parameters())
    debug(network, *measured(rng))
    train_eagerly(network, optimizer, rng)

    program, loss = build(network, optimizer)
    executor = pg.Executor()
    for step in range(150, 600):
        places, values = measured(rng)
        feed = {"places": places, "values": values}
        (found,) = executor.run(program, feed, [loss])
        if step % 150 == 0:
            print(f"run  {step:3d}   loss {found:6.3f}")
    print(f"the optimizer has taken {optimizer.state_dict()['step']:.0f} steps in both worlds")

    reader = program.clone(for_test=True)
    (compiled,) = executor.run(reader, {"places": places}, ["mean"])
    mean, _ = network(pg.tensor(places))
    print(f"largest difference of both worlds: {np.abs(mean.numpy() - compiled).max():.0e}")
    print()
    print(executor.kernel(reader, ["mean"]).source)


if __name__ == "__main__":
    main()
