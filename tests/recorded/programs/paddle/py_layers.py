"""PyLayers with double backward, straight-through estimators, hooks, and recomputation."""

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle.autograd import PyLayer, PyLayerContext
from paddle.distributed.fleet.utils import recompute


class CubicLayer(PyLayer):
    @staticmethod
    def forward(ctx: PyLayerContext, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x * x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return 3.0 * ctx.scale * paddle.square(x) * dy


class SignSTE(PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return paddle.sign(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensor()
        return paddle.where(paddle.abs(x) <= 1.0, grad, paddle.zeros_like(grad))


class TwoOutputs(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(a, b)
        index = paddle.argmax(a)
        ctx.mark_non_differentiable(index)
        return a * b, a + b, index

    @staticmethod
    def backward(ctx, g_product, g_sum, g_index):
        a, b = ctx.saved_tensor()
        ga = gb = paddle.zeros_like(a)
        if g_product is not None:
            ga, gb = ga + g_product * b, gb + g_product * a
        if g_sum is not None:
            ga, gb = ga + g_sum, gb + g_sum
        return ga, gb


class BinaryNet(paddle.nn.Layer):
    def __init__(self, rng):
        super().__init__()
        self.fc1, self.fc2 = paddle.nn.Linear(4, 5), paddle.nn.Linear(5, 2)
        for p in self.parameters():
            p.set_value(rng.normal(0, 0.6, p.shape).astype("float32"))

    def forward(self, x):
        h = self.fc1(x)
        return self.fc2(SignSTE.apply(h))


def main():
    rng = np.random.default_rng(40)
    x = paddle.to_tensor([0.5, -1.5, 2.0], stop_gradient=False)
    y = CubicLayer.apply(x, scale=2.0)
    (g,) = paddle.grad(y.sum(), x, create_graph=True)
    (gg,) = paddle.grad(g.sum(), x, create_graph=True)
    seen = []
    h1 = x.register_hook(lambda grad: seen.append(("x", grad.tolist())))
    (y * y).sum().backward()
    h1.remove()
    print(x.grad, x.gradient())
    a = paddle.to_tensor([1.0, 4.0, 2.0], stop_gradient=False)
    b = paddle.to_tensor([3.0, 0.5, -1.0], stop_gradient=False)
    product, _total, index = TwoOutputs.apply(a, b)
    product.sum().backward()
    net = BinaryNet(rng)
    records = {}
    pre = net.fc2.register_forward_pre_hook(lambda layer, inp: records.update(pre=inp[0].shape))
    post = net.fc1.register_forward_post_hook(
        lambda layer, inp, out: records.update(post=out.mean().item())
    )
    data = paddle.to_tensor(rng.normal(size=(6, 4)).astype("float32"))
    target = paddle.to_tensor(rng.integers(0, 2, (6,)))
    opt = paddle.optimizer.SGD(
        learning_rate=0.1,
        parameters=[
            {"params": net.fc1.parameters(), "weight_decay": 0.01},
            {"params": net.fc2.parameters(), "learning_rate": 0.5},
        ],
    )
    losses = []
    for _ in range(3):
        loss = F.cross_entropy(net(data), target)
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss.item())
    pre.remove()
    post.remove()
    data.stop_gradient = False
    plain = F.cross_entropy(net(data), target)
    (direct,) = paddle.grad(plain, data)
    again = F.cross_entropy(net.fc2(recompute(lambda t: F.tanh(net.fc1(t)), data)), target)
    again.backward()
    with paddle.set_grad_enabled(False):
        frozen = net(data)
    w = paddle.to_tensor(2.0, stop_gradient=False)
    z = w**2
    z.backward(retain_graph=True)
    z.backward()
    inter = paddle.tanh(w)
    inter.retain_grads()
    (inter * 3).backward()
    print(w.is_leaf, inter.is_leaf, inter.grad)
    return {
        "orders": [y, g, gg],
        "seen": seen,
        "grad": x.grad,
        "pair": [a.grad, b.grad, index, index.stop_gradient],
        "losses": losses,
        "records": records["pre"],
        "post": records["post"],
        "direct": direct,
        "recompute": data.grad,
        "frozen": frozen.stop_gradient,
        "w": w.grad,
        "inter": inter.grad,
    }
