"""The squared error of an LSTM over a sequence, and its gradient by all weights."""

import primgraph as pg

STEPS, BATCH, INPUTS, HIDDEN = 30, 8, 4, 16


def lstm(xs, targets, Wx, Wh, b, Wo):
    def cell(carry, x):
        h, c = carry
        gates = x @ Wx + h @ Wh + b
        i, f, g, o = pg.split(gates, 4, axis=1)
        c = pg.sigmoid(f) * c + pg.sigmoid(i) * pg.tanh(g)
        h = pg.sigmoid(o) * pg.tanh(c)
        return (h, c), h @ Wo

    start = pg.zeros((BATCH, HIDDEN)), pg.zeros((BATCH, HIDDEN))
    _, outputs = pg.scan(cell, start, xs)
    loss = pg.mean((outputs - targets) ** 2)
    return (loss, *pg.grad(loss, [Wx, Wh, b, Wo]))


kernel = pg.compile(
    pg.trace(
        lstm,
        pg.spec((STEPS, BATCH, INPUTS)),
        pg.spec((STEPS, BATCH, 1)),
        pg.spec((INPUTS, 4 * HIDDEN)),
        pg.spec((HIDDEN, 4 * HIDDEN)),
        pg.spec((4 * HIDDEN,)),
        pg.spec((HIDDEN, 1)),
    )
)
