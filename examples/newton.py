"""
Newton's method with exact Hessian
==================================

Minimize the chained Rosenbrock function of ten variables,

::

    sum of 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2.

Its minimum is 0 where all x are 1 (H. Rosenbrock, 1960, for two variables). One kernel computes
value, gradient and Hessian.
"""

import numpy as np

import primgraph as pg

N = 10


def rosenbrock(x):
    """The function, as one would write it for NumPy."""
    return pg.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def with_derivatives(x):
    """Value, gradient and Hessian; the rows of the Hessian are derivatives of the gradient."""
    value = rosenbrock(x)
    gradient = pg.grad(value, x)
    hessian = pg.stack([pg.forward_grad(gradient, x, row) for row in np.eye(N)])
    return value, gradient, hessian


def minimise(kernel, x):
    """Newton steps, each halved until the value falls."""
    for step in range(100):
        value, gradient, hessian = kernel(x)
        print(f"step {step:2d}   value {value:12.6e}   |gradient| {np.linalg.norm(gradient):9.3e}")
        if np.linalg.norm(gradient) < 1e-10:
            return x
        curvature = np.linalg.eigvalsh(hessian)[0]
        shift = max(0.0, 1e-3 - curvature) * np.eye(N)
        direction = np.linalg.solve(hessian + shift, -gradient)
        length = 1.0
        while length > 1e-10 and kernel(x + length * direction)[0] > value:
            length /= 2
        x = x + length * direction
    raise RuntimeError("no convergence in 100 steps")


def main():
    kernel = pg.compile(pg.trace(with_derivatives, pg.spec(N)))
    found = minimise(kernel, np.linspace(-0.5, 0.5, N))
    error = np.abs(found - 1).max()
    print(f"minimum at {np.round(found, 12)}")
    print(f"largest distance from the known minimum, all ones: {error:.1e}")
    assert error < 1e-8


if __name__ == "__main__":
    main()
