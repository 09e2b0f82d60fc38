"""One step of an extended Kalman filter: a vehicle that measures distance and bearing of a beacon."""

import numpy as np

import primgraph as pg

DT = 0.1
BEACON = np.array([4.0, 3.0])
Q = np.diag([1e-4, 1e-4, 1e-4, 1e-3])
R = np.diag([1e-2, 1e-3])


def motion(state, control):
    x, y, heading, speed = state
    turn, thrust = control
    rate = pg.stack([speed * pg.cos(heading), speed * pg.sin(heading), turn, thrust])
    return state + DT * rate


def observe(state):
    x, y, heading, speed = state
    dx, dy = BEACON[0] - x, BEACON[1] - y
    return pg.stack([pg.sqrt(dx**2 + dy**2), pg.arctan2(dy, dx) - heading])


def kalman(state, P, control, z):
    predicted = motion(state, control)
    F = pg.jacobian(predicted, state)
    P = F @ P @ F.T + Q
    expected = observe(predicted)
    H = pg.jacobian(expected, predicted)
    S = H @ P @ H.T + R
    K = pg.linalg.solve(S, H @ P).T
    x_new = predicted + K @ (z - expected)
    P_new = (np.eye(4) - K @ H) @ P
    return x_new, P_new


kernel = pg.compile(
    pg.trace(kalman, pg.spec(4), pg.spec((4, 4)), pg.spec(2), pg.spec(2))
)
