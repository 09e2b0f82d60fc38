"""Functions as people publish them, which know nothing of primgraph.

Each is written anew after one that is public, whose address and licence stand above it: it takes
the same arguments, goes the same way, and uses NumPy, `math` and SciPy as that one does.
"""

import math

import numpy as np
from scipy.special import ndtr


# https://github.com/vollib/py_vollib, py_vollib/black_scholes_merton (MIT).
def black_scholes_merton(spot, strike, years, rate, volatility, dividend):
    """Prices of European calls and puts, and the deltas of the calls."""
    spread = volatility * np.sqrt(years)
    drift = rate - dividend + volatility**2 / 2.0
    d1 = (np.log(spot / strike) + drift * years) / spread
    d2 = d1 - spread
    discounted = strike * np.exp(-rate * years)
    carried = spot * np.exp(-dividend * years)
    calls = carried * ndtr(d1) - discounted * ndtr(d2)
    puts = discounted * ndtr(-d2) - carried * ndtr(-d1)
    deltas = np.exp(-dividend * years) * ndtr(d1)
    worth = np.empty((3, len(calls)))
    worth[0] = calls
    worth[1] = puts
    worth[2] = deltas
    return worth


# https://github.com/karadalex/ros-fwd-ik-ur10, kinematics_py/src/fwd_kinematics.py (MIT).
def forward(theta, lengths, offsets, twists):
    """The pose of the hand of a six-axis arm, by the parameters of Denavit and Hartenberg."""
    joints = np.zeros((6, 4, 4))
    for i in range(6):
        c, s = math.cos(theta[i]), math.sin(theta[i])
        ca, sa = math.cos(twists[i]), math.sin(twists[i])
        joints[i] = [
            [c, -s, 0, lengths[i]],
            [s * ca, c * ca, -sa, -sa * offsets[i]],
            [s * sa, c * sa, ca, ca * offsets[i]],
            [0, 0, 0, 1],
        ]
    pose = np.identity(4)
    for joint in joints:
        pose = np.matmul(pose, joint)
    return pose


# https://github.com/HIPS/autograd, examples/gaussian_process.py (MIT).
def make_gp_funs(cov_func):
    """The log likelihood of a Gaussian process, with parameters in one vector."""

    def unpack(params):
        noise = np.exp(params[1]) + 1e-4
        return params[0], params[2:], noise

    def log_marginal_likelihood(params, x, y):
        mean, cov_params, noise = unpack(params)
        cov = cov_func(cov_params, x, x) + noise * np.eye(len(y))
        factor = np.linalg.cholesky(cov)
        apart = np.linalg.solve(factor, y - mean * np.ones(len(y)))
        _, logdet = np.linalg.slogdet(cov)
        return -0.5 * (np.dot(apart, apart) + logdet + len(y) * np.log(2 * np.pi))

    return log_marginal_likelihood


def rbf_covariance(kernel_params, x, xp):
    output_scale = np.exp(kernel_params[0])
    lengthscales = np.exp(kernel_params[1:])
    diffs = np.expand_dims(x / lengthscales, 1) - np.expand_dims(xp / lengthscales, 0)
    return output_scale * np.exp(-0.5 * np.sum(diffs**2, axis=2))


# https://github.com/barbagroup/CFDPython, lessons/10_Step_8.ipynb (BSD-3-Clause).
def burgers_2d(u, v, dx, dy, dt, nu, steps):
    """Steps of finite differences of Burgers' equation in the plane, written in place."""
    u, v = np.copy(u), np.copy(v)
    for _ in range(steps):
        un = u.copy()
        vn = v.copy()
        for field, old in ((u, un), (v, vn)):
            inner = old[1:-1, 1:-1]
            along = dt / dx * un[1:-1, 1:-1] * (inner - old[1:-1, :-2])
            across = dt / dy * vn[1:-1, 1:-1] * (inner - old[:-2, 1:-1])
            field[1:-1, 1:-1] = inner - along - across
            field[1:-1, 1:-1] += nu * dt / dx**2 * (old[1:-1, 2:] - 2 * inner + old[1:-1, :-2])
            field[1:-1, 1:-1] += nu * dt / dy**2 * (old[2:, 1:-1] - 2 * inner + old[:-2, 1:-1])
        u[0, :] = 1
        u[-1, :] = 1
        u[:, 0] = 1
        u[:, -1] = 1
        v[0, :] = v[-1, :] = 1
        v[:, 0] = v[:, -1] = 1
    return u, v


# https://github.com/openai/gym, gym/envs/classic_control/acrobot.py (MIT).
def acrobot(state, t, torque=0.3, m1=1.0, m2=1.0, l1=1.0, lc1=0.5, lc2=0.5, inertia=1.0):
    """How fast the angles of two rods, and their speeds, change."""
    theta1, theta2, dtheta1, dtheta2 = state
    d1 = m1 * lc1**2 + m2 * (l1**2 + lc2**2 + 2 * l1 * lc2 * np.cos(theta2)) + 2 * inertia
    d2 = m2 * (lc2**2 + l1 * lc2 * np.cos(theta2)) + inertia
    phi2 = m2 * lc2 * 9.8 * np.cos(theta1 + theta2 - np.pi / 2)
    phi1 = (
        -m2 * l1 * lc2 * dtheta2**2 * np.sin(theta2)
        - 2 * m2 * l1 * lc2 * dtheta2 * dtheta1 * np.sin(theta2)
        + (m1 * lc1 + m2 * l1) * 9.8 * np.cos(theta1 - np.pi / 2)
        + phi2
    )
    pushed = torque + d2 / d1 * phi1 - m2 * l1 * lc2 * dtheta1**2 * np.sin(theta2) - phi2
    ddtheta2 = pushed / (m2 * lc2**2 + inertia - d2**2 / d1)
    ddtheta1 = -(d2 * ddtheta2 + phi1) / d1
    return dtheta1, dtheta2, ddtheta1, ddtheta2


def rk4(derivs, y0, t):
    """The states at times `t`, by the classical method of Runge and Kutta."""
    yout = np.zeros((len(t), len(y0)))
    yout[0] = y0
    for i in np.arange(len(t) - 1):
        this = t[i]
        dt = t[i + 1] - this
        half = dt / 2.0
        y0 = yout[i]
        k1 = np.asarray(derivs(y0, this))
        k2 = np.asarray(derivs(y0 + half * k1, this + half))
        k3 = np.asarray(derivs(y0 + half * k2, this + half))
        k4 = np.asarray(derivs(y0 + dt * k3, this + dt))
        yout[i + 1] = y0 + dt / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
    return yout


# https://github.com/matthew-brett/transforms3d, transforms3d/euler.py (BSD-2-Clause).
def euler2mat(ai, aj, ak, axes="sxyz"):
    """The matrix of a rotation by three angles about axes that stand still or turn along."""
    following = [1, 2, 0, 1]
    i, parity, repetition, turning = {
        "sxyz": (0, 0, 0, 0), "sxyx": (0, 0, 1, 0), "rzyx": (0, 0, 0, 1), "syxz": (1, 1, 0, 0),
    }[axes]  # fmt: skip
    j, k = following[i + parity], following[i - parity + 1]
    if turning:
        ai, ak = ak, ai
    if parity:
        ai, aj, ak = -ai, -aj, -ak
    si, sj, sk = math.sin(ai), math.sin(aj), math.sin(ak)
    ci, cj, ck = math.cos(ai), math.cos(aj), math.cos(ak)
    m = np.eye(3)
    if repetition:
        m[i, i], m[i, j], m[i, k] = cj, sj * si, sj * ci
        m[j, i], m[j, j], m[j, k] = sj * sk, ci * ck - cj * si * sk, -cj * ci * sk - si * ck
        m[k, i], m[k, j], m[k, k] = -sj * ck, cj * si * ck + ci * sk, cj * ci * ck - si * sk
    else:
        m[i, i], m[i, j], m[i, k] = cj * ck, sj * si * ck - ci * sk, sj * ci * ck + si * sk
        m[j, i], m[j, j], m[j, k] = cj * sk, sj * si * sk + ci * ck, sj * ci * sk - si * ck
        m[k, i], m[k, j], m[k, k] = -sj, cj * si, cj * ci
    return m


# https://github.com/AtsushiSakai/PythonRobotics, Localization/extended_kalman_filter (MIT).
def motion_model(x, u, dt):
    still = np.diag([1.0, 1.0, 1.0, 0.0])
    yaw = x[2, 0]
    steered = np.array([[dt * math.cos(yaw), 0], [dt * math.sin(yaw), 0], [0.0, dt], [1.0, 0.0]])
    return still @ x + steered @ u


def ekf_estimation(x_est, p_est, z, u, q, r, dt=0.1):
    """A step of a Kalman filter of a car that turns, whose place is seen."""
    x_pred = motion_model(x_est, u, dt)
    yaw, speed = x_pred[2, 0], u[0, 0]
    slopes = np.eye(4)
    slopes[0, 2] = -dt * speed * math.sin(yaw)
    slopes[0, 3] = dt * math.cos(yaw)
    slopes[1, 2] = dt * speed * math.cos(yaw)
    slopes[1, 3] = dt * math.sin(yaw)
    p_pred = slopes @ p_est @ slopes.T + q
    seen = np.array([[1, 0, 0, 0], [0, 1, 0, 0]])
    apart = z - seen @ x_pred
    s = seen @ p_pred @ seen.T + r
    gain = p_pred @ seen.T @ np.linalg.inv(s)
    return x_pred + gain @ apart, (np.eye(4) - gain @ seen) @ p_pred


# https://github.com/geospace-code/pymap3d, src/pymap3d/ecef.py (BSD-2-Clause).
def geodetic2enu(lat, lon, alt, lat0, lon0, alt0, major=6378137.0, minor=6356752.31424518):
    """Places east, north and up of another place, in kilometres."""

    def ecef(lat, lon, alt):
        lat, lon = np.radians(lat), np.radians(lon)
        flat = np.hypot(major * np.cos(lat), minor * np.sin(lat))
        normal = major**2 / flat
        x = (normal + alt) * np.cos(lat) * np.cos(lon)
        y = (normal + alt) * np.cos(lat) * np.sin(lon)
        z = (normal * (minor / major) ** 2 + alt) * np.sin(lat)
        return np.stack([x, y, z])

    here = ecef(lat0, lon0, alt0)
    u, v, w = ecef(lat, lon, alt) - here[:, np.newaxis]
    lat0, lon0 = np.radians(lat0), np.radians(lon0)
    t = np.cos(lon0) * u + np.sin(lon0) * v
    east = -np.sin(lon0) * u + np.cos(lon0) * v
    up = np.cos(lat0) * t + np.sin(lat0) * w
    north = -np.sin(lat0) * t + np.cos(lat0) * w
    return np.array([east, north, up]) / 1000.0
