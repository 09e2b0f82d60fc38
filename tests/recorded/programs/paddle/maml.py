"""Meta-learning with paddle.grad through inner steps, over functional networks."""

import numpy as np
import paddle


def init_parameters(rng, widths):
    parameters = []
    for i in range(len(widths) - 1):
        shape = (widths[i], widths[i + 1])
        for value in (rng.normal(0.0, 0.6, shape), rng.normal(0.0, 0.1, shape[1])):
            parameters.append(paddle.to_tensor(value, stop_gradient=False))
    return parameters


def predict(parameters, x):
    for i in range(0, len(parameters), 2):
        x = paddle.matmul(x, parameters[i]) + parameters[i + 1]
        if i + 2 < len(parameters):
            x = paddle.tanh(x)
    return x


def mse(parameters, x, y):
    return paddle.mean((predict(parameters, x) - y) ** 2)


def adapt(parameters, x, y, rates, create_graph=True):
    adapted = parameters
    for rate in rates:
        gradients = paddle.grad(
            mse(adapted, x, y), adapted, create_graph=create_graph, retain_graph=True
        )
        adapted = [p - rate * g for p, g in zip(adapted, gradients, strict=True)]
    return adapted


def make_task(rng):
    slope, shift = rng.uniform(-1.0, 1.0, 2)

    def sample(count):
        x = rng.uniform(-2.0, 2.0, (count, 1))
        return paddle.to_tensor(x), paddle.to_tensor(np.sin(x + shift) * slope)

    return sample


class MetaSGD:
    """Parameters and inner rates are trained together by plain gradient descent."""

    def __init__(self, parameters, rates, outer_rate):
        self.parameters, self.rates, self.outer_rate = parameters, rates, outer_rate

    def step(self, loss):
        variables = [*self.parameters, *self.rates]
        gradients = paddle.grad(loss, variables)
        with paddle.no_grad():
            updated = [v - self.outer_rate * g for v, g in zip(variables, gradients, strict=True)]
        for v in updated:
            v.stop_gradient = False
        count = len(self.parameters)
        self.parameters, self.rates = updated[:count], updated[count:]


def main():
    rng = np.random.default_rng(8)
    rates = [paddle.to_tensor(r, dtype="float64", stop_gradient=False) for r in (0.1, 0.05)]
    meta = MetaSGD(init_parameters(rng, [1, 5, 1]), rates, outer_rate=0.05)
    losses = []
    for _ in range(4):
        total = 0.0
        for _ in range(2):
            task = make_task(rng)
            adapted = adapt(meta.parameters, *task(5), meta.rates)
            total = total + mse(adapted, *task(5))
        meta.step(total / 2.0)
        losses.append(float(total))
    task = make_task(rng)
    support, query = task(5), task(5)
    before = float(mse(meta.parameters, *query))
    after = float(mse(adapt(meta.parameters, *support, meta.rates, create_graph=False), *query))
    return {
        "losses": np.array(losses),
        "rates": np.array([float(r) for r in meta.rates]),
        "first": meta.parameters[0].numpy(),
        "before": before,
        "after": after,
    }
