"""Burgers' equation, u_t + u u_x = nu u_xx, as the loss of a small network."""

import numpy as np

import primgraph as pg

NU = 0.01 / np.pi
POINTS, EDGES = 64, 32


def network(t, x, w1, b1, w2, b2, w3, b3):
    h1 = pg.tanh(pg.concatenate([t, x], axis=1) @ w1 + b1)
    h2 = pg.tanh(h1 @ w2 + b2)
    return h2 @ w3 + b3


with pg.Program("burgers") as program:
    t, x = pg.data("t", (POINTS, 1)), pg.data("x", (POINTS, 1))
    t0, x0, u0 = (pg.data(name, (EDGES, 1)) for name in ("t0", "x0", "u0"))
    weights = [
        pg.create_parameter(shape, name=name)
        for name, shape in {
            "w1": (2, 20),
            "b1": (20,),
            "w2": (20, 20),
            "b2": (20,),
            "w3": (20, 1),
            "b3": (1,),
        }.items()
    ]
    u = network(t, x, *weights)
    u_t = pg.forward_grad(u, t)
    u_x = pg.forward_grad(u, x)
    u_xx = pg.forward_grad(u_x, x)
    residual = u_t + u * u_x - NU * u_xx
    misfit = network(t0, x0, *weights) - u0
    loss = pg.mean(residual**2) + pg.mean(misfit**2)
    gradients = pg.grad(loss, weights)

kernel = pg.Executor().kernel(program, [loss, *gradients])
