"""
Optimal control with sparse Jacobian and Hessian
================================================

A cart swings up its pole, by direct collocation. A force u on a cart moves it by one metre and
turns the pole below it upright, in two seconds, with the least integral of u^2 (M. Kelly, An
introduction to trajectory optimization, SIAM Review 59, 2017, section 6). States and force at
all nodes are unknown, and the trapezoidal rule between neighbours is a constraint::

    x[k+1] - x[k] = h/2 (f(x[k], u[k]) + f(x[k+1], u[k+1]))

So each row of the Jacobian of the constraints and of the Hessian of the Lagrangian has a few
nonzeros, for any number of nodes. primgraph finds the pattern, and SciPy's trust-constr takes
both matrices.

::

    python examples/trajectory.py [NODES]

NODES is 50 by default; 500 take a second or two. A picture of the motion and of the pattern is
written beside this file if matplotlib is installed.
"""

import importlib.util
import sys
import time
from pathlib import Path

import numpy as np
from scipy import optimize

import primgraph as pg

NODES = int(sys.argv[1]) if len(sys.argv) > 1 else 50
DURATION, DISTANCE = 2.0, 1.0
CART, POLE, LENGTH, GRAVITY = 1.0, 0.3, 0.5, 9.81
STEP = DURATION / (NODES - 1)
# Place and angle, their speeds, and the force: a row for each node.
START, END = np.zeros(4), np.array([DISTANCE, np.pi, 0.0, 0.0])


def speeds(z):
    """The derivatives of the states by time, at all nodes."""
    angle, speed, turn, force = z[:, 1], z[:, 2], z[:, 3], z[:, 4]
    sine, cosine = pg.sin(angle), pg.cos(angle)
    swing = LENGTH * POLE * sine * turn**2
    mass = CART + POLE * sine**2
    faster = (swing + force + POLE * GRAVITY * cosine * sine) / mass
    turning = -(swing * cosine + force * cosine + (CART + POLE) * GRAVITY * sine)
    return pg.stack([speed, turn, faster, turning / (LENGTH * mass)], axis=1)


def defects(unknown):
    """What is zero on a trajectory: the rule between neighbours, and both ends."""
    z = pg.reshape(unknown, (NODES, 5))
    states, slopes = z[:, :4], speeds(z)
    rule = states[1:] - states[:-1] - 0.5 * STEP * (slopes[1:] + slopes[:-1])
    return pg.concatenate([pg.ravel(rule), states[0] - START, states[-1] - END])


def effort(unknown):
    """The integral of the squared force, by the same rule."""
    force = pg.reshape(unknown, (NODES, 5))[:, 4]
    return 0.5 * STEP * pg.sum(force[1:] ** 2 + force[:-1] ** 2)


def guess():
    """Straight from one end to the other, without any force."""
    share = np.linspace(0.0, 1.0, NODES)[:, None]
    states = START + share * (END - START)
    states[:, 2:] = (END - START)[:2] / DURATION
    return np.hstack([states, np.zeros((NODES, 1))]).ravel()


def solved():
    """The trajectory of least effort, and what it took to find it."""
    limits = pg.constraints(defects, 0.0, 0.0)
    value = pg.jit(effort)
    slope, curvature = pg.jit(pg.grad(effort)), pg.sparse_hessian(effort)
    began = time.perf_counter()
    start = guess()
    jacobian, hessian = limits.jac(start), limits.hess(start, np.ones(4 * NODES + 4))
    first = time.perf_counter() - began
    print(f"{NODES} nodes: {start.size} unknowns, {jacobian.shape[0]} constraints")
    print(f"Jacobian with {jacobian.nnz} elements, Hessian with {hessian.nnz}: {first:.2f} s")
    found = optimize.minimize(
        lambda z: float(value(z)),
        start,
        jac=slope,
        hess=lambda z: curvature(z).to_scipy(),
        method="trust-constr",
        constraints=limits.to_scipy(),
        options={"gtol": 1e-5, "xtol": 1e-9, "maxiter": 300},
    )
    return found, limits


def drawn(z, jacobian):
    """Pictures of the motion and of the pattern of the Jacobian."""
    if importlib.util.find_spec("matplotlib") is None:
        return
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    plt = importlib.import_module("matplotlib.pyplot")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    for place, angle in z[:: max(1, NODES // 15), :2]:
        tip = place + LENGTH * np.sin(angle), -LENGTH * np.cos(angle)
        left.plot([place, tip[0]], [0.0, tip[1]], color="tab:blue", alpha=0.6)
        left.plot(*tip, "o", color="tab:red", markersize=4)
    left.axhline(0.0, color="black", linewidth=0.5)
    left.set_aspect("equal")
    left.set_title("the cart, its pole, and where they go")
    right.spy(jacobian, markersize=1)
    right.set_title("the Jacobian of the constraints")
    figure.tight_layout()
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=120)


def main():
    began = time.perf_counter()
    found, limits = solved()
    z = found.x.reshape(NODES, 5)
    print(f"solved in {time.perf_counter() - began:.1f} s, {found.nit} iterations")
    print(f"effort {found.fun:.3f}, largest force {np.abs(z[:, 4]).max():.2f} N")
    print(f"largest defect {np.abs(limits.fun(found.x)).max():.1e}")
    print(f"the pole ends at {np.degrees(z[-1, 1]):.1f} degrees, the cart at {z[-1, 0]:.2f} m")
    drawn(z, limits.jac(found.x))


if __name__ == "__main__":
    main()
