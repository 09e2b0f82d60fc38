"""The negative log marginal likelihood of a Gaussian process, and its gradient."""

import numpy as np

import primgraph as pg


def gaussian_process(X, y, log_scale, log_amplitude, log_noise):
    scale = pg.exp(log_scale)
    diff = (X[:, None, :] - X[None, :, :]) / scale
    r2 = pg.sum(diff**2, axis=2)
    K = pg.exp(2.0 * log_amplitude) * pg.exp(-0.5 * r2)
    K = K + pg.exp(2.0 * log_noise) * np.eye(20)
    L = pg.linalg.cholesky(K)
    alpha = pg.linalg.solve(K, y)
    nll = 0.5 * y @ alpha + pg.sum(pg.log(pg.diagonal(L))) + 10.0 * np.log(2.0 * np.pi)
    return nll, pg.grad(nll, [log_scale, log_amplitude, log_noise])


kernel = pg.compile(
    pg.trace(
        gaussian_process,
        pg.spec((20, 3)),
        pg.spec(20),
        pg.spec(3),
        pg.spec(()),
        pg.spec(()),
    )
)
