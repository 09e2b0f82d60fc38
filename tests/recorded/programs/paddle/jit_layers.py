"""to_static with control flow, jit.save and jit.load, and fine-tuning of the loaded layer."""

import numpy as np
import paddle
from paddle import nn
from paddle.jit import to_static
from paddle.static import InputSpec


class Controller(nn.Layer):
    def __init__(self, rng):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2)
        self.register_buffer("offset", paddle.to_tensor([0.5, -0.5]))
        for p in self.parameters():
            p.set_value(rng.normal(0, 0.6, p.shape).astype("float32"))

    @to_static
    def forward(self, x):
        h = paddle.tanh(self.first(x))
        y = self.second(h) if paddle.mean(h) > 0 else self.second(-h)
        return y + self.offset


class Plain(nn.Layer):
    def __init__(self, rng):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        for p in self.parameters():
            p.set_value(rng.normal(0, 0.6, p.shape).astype("float32"))

    def forward(self, x):
        return self.net(x)

    def features(self, x):
        return self.net[0](x)


@paddle.jit.to_static
def collatz(n):
    steps = paddle.zeros([1], "int64")
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    return steps


def train(layer, x, y, steps, lr=0.1):
    opt = paddle.optimizer.SGD(learning_rate=lr, parameters=layer.parameters())
    losses = []
    for _ in range(steps):
        loss = nn.functional.mse_loss(layer(x), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss.item())
    return losses


def main():
    rng = np.random.default_rng(15)
    x = paddle.to_tensor(rng.normal(size=(5, 3)).astype("float32"))
    y = paddle.to_tensor(rng.normal(size=(5, 2)).astype("float32"))
    controller = Controller(rng)
    controlled = train(controller, x, y, 3)
    steps = [collatz(paddle.to_tensor([n])).item() for n in (6, 7, 27)]
    plain = Plain(rng)
    plain_losses = train(plain, x, y, 2)
    feats = plain.features(x)
    plain.eval()
    expected = plain(x)
    paddle.jit.save(
        plain, "./saved/net", input_spec=[InputSpec(shape=[None, 3], dtype="float32", name="x")]
    )
    loaded = paddle.jit.load("./saved/net")
    loaded.eval()
    same = loaded(x)
    loaded.train()
    tuned = train(loaded, x, y, 2)
    reference = train(plain, x, y, 2)
    x.stop_gradient = False
    (gx,) = paddle.grad(loaded(x).sum(), x)
    fresh = Plain(rng)
    state = paddle.jit.load("./saved/net").state_dict()
    print(len(state), type(loaded).__name__)
    static_plain = paddle.jit.to_static(fresh, input_spec=[InputSpec([None, 3])])
    out = static_plain(x)
    print(sorted(tuple(v.shape) for v in state.values()))
    paddle.jit.enable_to_static(False)
    eager = collatz(paddle.to_tensor([3]))
    paddle.jit.enable_to_static(True)

    @paddle.jit.not_to_static
    def helper(v):
        return v * 2

    fn = paddle.jit.to_static(lambda v: helper(v) + 1)
    return {
        "controlled": controlled,
        "steps": steps,
        "plain": plain_losses,
        "features": feats,
        "expected": expected,
        "same": same,
        "tuned": tuned,
        "reference": reference,
        "gx": gx,
        "out": out,
        "eager": eager,
        "fn": fn(paddle.to_tensor([1.0])),
    }
