"""Model-agnostic meta-learning: an outer manager records the gradients of inner ones."""

import megengine as mge
import megengine.functional as F
import numpy as np
from megengine import Parameter, tensor
from megengine.autodiff import GradManager

STEPS, TASKS, INNER, OUTER, LIMIT = 3, 2, 0.1, 0.05, 0.5


def make_parameters(rng):
    return [rng.normal(0.0, 0.5, shape).astype("float32") for shape in ((1, 6), (6,), (6, 1))]


def make_task(rng):
    amplitude, phase = rng.uniform(0.5, 2.0), rng.uniform(0.0, 3.0)
    x = rng.uniform(-3.0, 3.0, (8, 1)).astype("float32")
    y = (amplitude * np.sin(x + phase)).astype("float32")
    return x[:4], y[:4], x[4:], y[4:]


def predict(parameters, x):
    return F.relu(x @ parameters[0] + parameters[1]) @ parameters[2]


def adapt(parameters, x, y):
    gm = GradManager().attach(parameters)
    with gm:
        gm.backward(F.loss.square_loss(predict(parameters, x), y))
    fast = []
    for p in parameters:
        fast.append(p - INNER * p.grad)
        p.grad = None
    return fast


def main():
    rng = np.random.default_rng(1)
    meta = [Parameter(p) for p in make_parameters(rng)]
    optimizer = mge.optimizer.SGD(meta, lr=OUTER)
    gm = GradManager().attach(meta)
    losses = []
    for _ in range(STEPS):
        with gm:
            total = 0
            for _ in range(TASKS):
                x, y, x_query, y_query = map(tensor, make_task(rng))
                fast = adapt(meta, x, y)
                total = total + F.loss.square_loss(predict(fast, x_query), y_query)
            loss = total / TASKS
            gm.backward(loss)
        mge.optimizer.clip_grad_value(meta, lower=-LIMIT, upper=LIMIT)
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    return {"losses": np.array(losses, "float32"), "weights": [p.numpy() for p in meta]}


def network(parameters, x):
    """Return hidden units, which are those of the real parts, and results."""
    z = x @ parameters[0] + parameters[1]
    hidden = z * (z.real > 0)
    return hidden, hidden @ parameters[2]


def adapted(parameters, x, y):
    hidden, z = network(parameters, x)
    seed = 2 * (z - y) / y.size
    back = (seed @ parameters[2].T) * (hidden.real > 0)
    gradients = [x.T @ back, back.sum(axis=0), hidden.T @ seed]
    return [p - INNER * g for p, g in zip(parameters, gradients, strict=True)]


def meta_loss(parameters, tasks):
    found = 0.0
    for x, y, x_query, y_query in tasks:
        _, z = network(adapted(parameters, x, y), x_query)
        found = found + ((z - y_query) ** 2).mean() / len(tasks)
    return found


def expected():
    """Derivatives of the outer loss are by complex steps, which are exact."""
    rng = np.random.default_rng(1)
    parameters = [p.astype(complex) for p in make_parameters(rng)]
    losses = []
    for _ in range(STEPS):
        tasks = [[a.astype(float) for a in make_task(rng)] for _ in range(TASKS)]
        losses.append(meta_loss(parameters, tasks).real)
        gradients = []
        for p in parameters:
            gradient = np.zeros(p.shape)
            for place in np.ndindex(p.shape):
                p[place] += 1e-30j
                gradient[place] = meta_loss(parameters, tasks).imag / 1e-30
                p[place] = p[place].real
            gradients.append(np.clip(gradient, -LIMIT, LIMIT))
        for p, g in zip(parameters, gradients, strict=True):
            p -= OUTER * g
    weights = [p.real.astype("float32") for p in parameters]
    return {"losses": np.array(losses, "float32"), "weights": weights}
