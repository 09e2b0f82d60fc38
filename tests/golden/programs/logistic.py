"""Logistic regression with a ridge penalty: the loss and its gradient."""

import primgraph as pg


def logistic(X, y, w, b):
    z = X @ w + b
    loss = pg.mean(pg.softplus(z) - y * z) + 0.005 * pg.sum(w * w)
    dw, db = pg.grad(loss, [w, b])
    return loss, dw, db


kernel = pg.compile(
    pg.trace(logistic, pg.spec((100, 5)), pg.spec((100,)), pg.spec((5,)), pg.spec(()))
)
