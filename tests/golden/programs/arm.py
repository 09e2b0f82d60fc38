"""Position and Jacobian of a robot arm with six joints, by Denavit-Hartenberg parameters."""

from functools import reduce

import numpy as np

import primgraph as pg

# d, a and alpha of each joint (a Puma 560).
LINKS = [
    (0.0, 0.0, np.pi / 2),
    (0.0, 0.4318, 0.0),
    (0.15005, 0.0203, -np.pi / 2),
    (0.4318, 0.0, np.pi / 2),
    (0.0, 0.0, -np.pi / 2),
    (0.0, 0.0, 0.0),
]


def link(theta, d, a, alpha):
    c, s = pg.cos(theta), pg.sin(theta)
    ca, sa = np.cos(alpha), np.sin(alpha)
    return pg.stack(
        [
            pg.stack([c, -s * ca, s * sa, a * c]),
            pg.stack([s, c * ca, -c * sa, a * s]),
            np.array([0.0, sa, ca, d]),
            np.array([0.0, 0.0, 0.0, 1.0]),
        ]
    )


def arm(q):
    links = [link(theta, *row) for theta, row in zip(q, LINKS, strict=True)]
    pose = reduce(np.matmul, links)
    position = pose[:3, 3]
    J = pg.jacobian(position, q)
    return position, J


kernel = pg.compile(pg.trace(arm, pg.spec(6)))
