"""A critic with a gradient penalty: the loss contains derivatives by the inputs."""

import megengine as mge
import megengine.functional as F
import numpy as np
from megengine import Parameter
from megengine.autodiff import GradManager
from megengine.optimizer import SGD

STEPS, RATE, WEIGHT = 4, 0.1, 2.0


def make_data():
    rng = np.random.default_rng(4)
    real = rng.normal(1.0, 0.5, (6, 2)).astype("float32")
    fake = rng.normal(-1.0, 0.5, (6, 2)).astype("float32")
    mix = rng.uniform(size=(6, 1)).astype("float32")
    w = rng.normal(size=(2, 3)).astype("float32")
    v = rng.normal(size=(3, 1)).astype("float32")
    return real, fake, mix, w, v


def critic(x, w, v):
    return F.matmul(F.tanh(F.matmul(x, w)), v)


def penalty_of(between, w, v, outer):
    inner = GradManager().attach([between])
    with inner:
        inner.backward(F.sum(critic(between, w, v)))
    gradient = between.grad
    between.grad = None
    norms = F.sqrt(F.sum(gradient**2, axis=1))
    return F.mean((norms - 1.0) ** 2)


def main():
    real, fake, mix, w, v = make_data()
    w, v = Parameter(w), Parameter(v)
    real_tensor, fake_tensor = mge.tensor(real), mge.tensor(fake)
    optimizer = SGD([w, v], lr=RATE)
    outer = GradManager().attach([w, v])
    history = []
    for _ in range(STEPS):
        between = mge.tensor(mix * real + (1 - mix) * fake)
        with outer:
            penalty = penalty_of(between, w, v, outer)
            distance = F.mean(critic(real_tensor, w, v)) - F.mean(critic(fake_tensor, w, v))
            loss = WEIGHT * penalty - distance
            outer.backward(loss)
        optimizer.step()
        optimizer.clear_grad()
        history.append([penalty.item(), distance.item()])
    return {"history": np.array(history, "float32"), "w": w.numpy(), "v": v.numpy()}


def expected():
    """The derivatives of the penalty by hand."""
    real, fake, mix, w, v = (a.astype(float) for a in make_data())
    history = []
    for _ in range(STEPS):
        x = mix * real + (1 - mix) * fake
        h = np.tanh(x @ w)
        slope = 1 - h**2
        gradient = (slope * v.T) @ w.T
        norms = np.sqrt((gradient**2).sum(axis=1))
        hr, hf = np.tanh(real @ w), np.tanh(fake @ w)
        distance = (hr @ v).mean() - (hf @ v).mean()
        history.append([((norms - 1) ** 2).mean(), distance])
        # Cotangents of the gradient, then of its factors.
        seed = 2 * WEIGHT * ((norms - 1) / norms)[:, None] * gradient / len(x)
        through = seed @ w
        dv = (through * slope).sum(axis=0)[:, None]
        dw = seed.T @ (slope * v.T)
        dh = through * v.T * (-2 * h)
        dw += x.T @ (dh * slope)
        dv -= hr.mean(axis=0)[:, None] - hf.mean(axis=0)[:, None]
        dw -= real.T @ ((1 - hr**2) * v.T) / len(x) - fake.T @ ((1 - hf**2) * v.T) / len(x)
        w, v = w - RATE * dw, v - RATE * dv
    return {
        "history": np.array(history, "float32"),
        "w": w.astype("float32"),
        "v": v.astype("float32"),
    }
