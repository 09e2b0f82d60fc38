"""Prices of European calls by Black and Scholes, with their Greeks, for any number of options."""

import primgraph as pg


def cdf(x):
    return 0.5 * (1.0 + pg.special.erf(x / 2.0**0.5))


def price(S, K, T, r, sigma):
    d1 = (pg.log(S / K) + (r + 0.5 * sigma**2) * T) / (sigma * pg.sqrt(T))
    d2 = d1 - sigma * pg.sqrt(T)
    return S * cdf(d1) - K * pg.exp(-r * T) * cdf(d2)


def greeks(S, K, T, r, sigma):
    call = price(S, K, T, r, sigma)
    delta, vega, rho, decay = pg.grad(pg.sum(call), [S, sigma, r, T])
    gamma = pg.grad(pg.sum(delta), S)
    theta = -decay
    return call, delta, gamma, vega, theta, rho


n = pg.dim("n")
kernel = pg.compile(pg.trace(greeks, *(pg.spec((n,)) for _ in range(5))))
