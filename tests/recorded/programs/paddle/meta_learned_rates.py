"""MAML of first and second order with functional parameters and learned rates."""

import copy

import numpy as np
import paddle
import paddle.nn.functional as F


class Learner(paddle.nn.Layer):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.vars = paddle.nn.ParameterList()
        for n_in, n_out in config:
            attr = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.1))
            self.vars.append(paddle.create_parameter([n_in, n_out], "float32", attr=attr))
            self.vars.append(self.create_parameter([n_out], is_bias=True))
        self.inner_lr = paddle.create_parameter(
            shape=[len(self.vars)],
            dtype="float32",
            default_initializer=paddle.nn.initializer.Assign(
                np.full(len(self.vars), 0.05, "float32")
            ),
        )

    def forward(self, x, vars=None):
        if vars is None:
            vars = self.vars
        for i in range(len(self.config)):
            x = F.linear(x, vars[2 * i], vars[2 * i + 1])
            if i < len(self.config) - 1:
                x = F.elu(x)
        return x


class MetaLearner:
    def __init__(self, net, update_step=2, first_order=False):
        self.net, self.update_step, self.first_order = net, update_step, first_order
        self.meta_optim = paddle.optimizer.Adam(
            learning_rate=0.01, parameters=self.net.parameters()
        )

    def adapt(self, x, y):
        fast = list(self.net.vars)
        for _ in range(self.update_step):
            loss = F.mse_loss(self.net(x, fast), y)
            grad = paddle.grad(loss, fast, create_graph=not self.first_order, allow_unused=True)
            fast = [
                w - self.net.inner_lr[k] * g
                for k, (w, g) in enumerate(zip(fast, grad, strict=False))
            ]
        return fast

    def meta_step(self, tasks):
        losses_q = [F.mse_loss(self.net(xq, self.adapt(xs, ys)), yq) for xs, ys, xq, yq in tasks]
        loss = paddle.add_n(losses_q) / len(tasks)
        self.meta_optim.clear_grad()
        loss.backward()
        paddle.nn.utils.clip_grad_norm_(self.net.parameters(), max_norm=10.0)
        self.meta_optim.step()
        return loss.item()


def sample_tasks(rng, count, shots):
    tasks = []
    for _ in range(count):
        amplitude, phase = rng.uniform(0.5, 2.0), rng.uniform(0, np.pi)
        x = rng.uniform(-3, 3, (2 * shots, 1)).astype("float32")
        y = (amplitude * np.sin(x + phase)).astype("float32")
        tasks.append([paddle.to_tensor(v) for v in (x[:shots], y[:shots], x[shots:], y[shots:])])
    return tasks


def main():
    rng = np.random.default_rng(8)
    net = Learner([(1, 6), (6, 6), (6, 1)])
    for p in net.vars:
        p.set_value(rng.normal(0, 0.5, p.shape).astype(np.float32))
    other = copy.deepcopy(net)
    history = {}
    for label, model, first in (("maml", net, False), ("fomaml", other, True)):
        task_rng = np.random.default_rng(9)
        learner = MetaLearner(model, first_order=first)
        history[label] = [learner.meta_step(sample_tasks(task_rng, 3, 4)) for _ in range(3)]
    xs, ys, xq, yq = sample_tasks(rng, 1, 5)[0]
    before = F.mse_loss(net(xq), yq)
    after = F.mse_loss(net(xq, MetaLearner(net, 3).adapt(xs, ys)), yq)
    print(net)
    print([tuple(p.shape) for p in net.parameters()])
    print(net.inner_lr)
    return {
        "history": history,
        "before": before,
        "after": after,
        "rate": net.inner_lr,
        "same": bool(paddle.allclose(net.vars[0], other.vars[0])),
        "names": [name for name, _ in net.named_parameters()],
    }
