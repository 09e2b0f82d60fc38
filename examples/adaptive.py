"""
Kepler's equation: a fixed point with eager tensors
===================================================

Kepler's equation E = M + e sin(E) gives the angle E of a planet on an orbit of eccentricity e,
at the time M. A loop in Python iterates it until the change is small: the number of steps
depends on the orbit. The loop is differentiated twice, and compared with the exact derivatives
E' = 1 / (1 - e cos(E)) and E'' = -e sin(E) E'^3.
"""

import math

import primgraph as pg

TOLERANCE = 1e-12


def place(time, eccentricity):
    """The place at that time, and how many steps it took."""
    found, change, steps = time, math.inf, 0
    while abs(change) > TOLERANCE:
        after = time + eccentricity * pg.sin(found)
        found, change, steps = after, after - found, steps + 1
        print(f"  step {steps:2d}   {found:.12f}   change {change:8.1e}")
    return found, steps


def main():
    worst = 0.0
    for eccentricity in (0.1, 0.8):
        print(f"eccentricity {eccentricity}")
        time = pg.tensor(0.5, requires_grad=True)
        found, steps = place(time, eccentricity)
        (speed,) = pg.grad(found, time, create_graph=True)
        (bend,) = pg.grad(speed, time)
        slope = 1 / (1 - eccentricity * math.cos(found))
        known = slope, -eccentricity * math.sin(found) * slope**3
        print(f"  after {steps} steps at {found:.8f}, speed {speed:.8f}, its change {bend:.8f}")
        worst = max(worst, *(abs(d - k).item() for d, k in zip((speed, bend), known, strict=True)))
    print(f"largest distance from what the equation says: {worst:.1e}")
    assert worst < 1e-8


if __name__ == "__main__":
    main()
