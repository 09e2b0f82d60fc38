"""Newton's method and Gauss-Newton by Jacobians and Hessians of paddle."""

import numpy as np
import paddle


def rosenbrock(x):
    return ((1.0 - x[:-1]) ** 2 + 100.0 * (x[1:] - x[:-1] ** 2) ** 2).sum()


def newton(function, x, steps):
    values = []
    for _ in range(steps):
        x = x.detach()
        x.stop_gradient = False
        y = function(x)
        values.append(float(y))
        (gradient,) = paddle.grad(y, x, create_graph=True)
        rows = [paddle.grad(gradient[i], x, retain_graph=True)[0] for i in range(gradient.shape[0])]
        hessian = paddle.stack(rows)
        step = paddle.linalg.solve(hessian, gradient.detach().unsqueeze(1)).squeeze(1)
        x = x - step
    return x, hessian, values


def model(parameters, t):
    return parameters[0] * paddle.exp(parameters[1] * t) + parameters[2]


def gauss_newton(residuals, p, steps, damping):
    for _ in range(steps):
        p = p.detach()
        p.stop_gradient = False
        r = residuals(p)
        jacobian = paddle.autograd.jacobian(r, p)[:]
        normal = paddle.matmul(jacobian, jacobian, transpose_x=True)
        normal = normal + damping * paddle.eye(p.shape[0], dtype="float64")
        right = paddle.matmul(jacobian, r.unsqueeze(1), transpose_x=True)
        p = p - paddle.linalg.solve(normal, right).squeeze(1)
    return p.detach(), jacobian


def main():
    rng = np.random.default_rng(9)
    start = paddle.to_tensor(np.array([0.8, 0.7, 0.5]))
    x, hessian, values = newton(rosenbrock, start, steps=4)

    t = paddle.to_tensor(np.linspace(0.0, 1.0, 8))
    data = 2.0 * np.exp(-1.5 * np.linspace(0.0, 1.0, 8)) + 0.3 + 0.01 * rng.normal(size=8)
    observed = paddle.to_tensor(data)

    def residuals(p):
        return model(p, t) - observed

    fitted, jacobian = gauss_newton(
        residuals, paddle.to_tensor(np.array([1.0, -1.0, 0.0])), steps=4, damping=1e-3
    )
    point = paddle.to_tensor(np.array([0.5, -1.0]), stop_gradient=False)
    h = paddle.autograd.hessian((point[0] ** 2 * point[1] + point[1] ** 3).sum(), point)
    v = paddle.to_tensor(np.array([1.0, 2.0, -1.0]))
    _, pulled = paddle.incubate.autograd.vjp(lambda p: p * p * p, fitted, v)
    _, pushed = paddle.incubate.autograd.jvp(lambda p: p * p * p, fitted, v)
    lazy = paddle.incubate.autograd.Jacobian(lambda p: p * p.sum(), fitted)
    return {
        "x": x.numpy(),
        "hessian": hessian.numpy(),
        "values": np.array(values),
        "fitted": fitted.numpy(),
        "jacobian": jacobian.numpy(),
        "lazy": lazy[:].numpy(),
        "small": h[:].numpy(),
        "pulled": pulled.numpy(),
        "pushed": pushed.numpy(),
    }
