"""A classifier of three classes by a multilayer perceptron and Adam."""

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.autodiff import GradManager
from megengine.optimizer import Adam

STEPS, RATE, BETAS, EPS = 5, 0.05, (0.9, 0.99), 1e-8


def make_data():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(12, 2)).astype("float32")
    labels = (np.arctan2(x[:, 1], x[:, 0]) // 2.1 + 2).astype("int32") % 3
    values = [rng.normal(0.0, 0.5, s).astype("float32") for s in ((4, 2), (4,), (3, 4), (3,))]
    return x, labels, values


class Net(M.Module):
    def __init__(self):
        super().__init__()
        self.fc0 = M.Linear(2, 4)
        self.fc1 = M.Linear(4, 3)

    def forward(self, x):
        return self.fc1(F.tanh(self.fc0(x)))


def main():
    x, labels, values = make_data()
    net = Net()
    names = ("fc0.weight", "fc0.bias", "fc1.weight", "fc1.bias")
    net.load_state_dict(dict(zip(names, values, strict=True)))
    optimizer = Adam(net.parameters(), lr=RATE, betas=BETAS, eps=EPS)
    gm = GradManager().attach(net.parameters())
    data, label = mge.tensor(x), mge.tensor(labels)
    losses = []
    for _ in range(STEPS):
        with gm:
            logits = net(data)
            loss = F.nn.cross_entropy(logits, label)
            gm.backward(loss)
        optimizer.step().clear_grad()
        losses.append(loss.item())
    net.eval()
    logits = net(data)
    return {
        "losses": np.array(losses, "float32"),
        "probabilities": F.softmax(logits, axis=1).numpy(),
        "predicted": F.argmax(logits, axis=1).numpy().tolist(),
        "bias": net.fc1.bias.numpy(),
        "names": sorted(name for name, _ in net.named_parameters()),
    }


def expected():
    """Backpropagation and Adam by hand."""
    x, labels, values = make_data()
    p = [v.astype(float) for v in values]
    m, s = [np.zeros_like(v) for v in p], [np.zeros_like(v) for v in p]
    target = np.eye(3)[labels]

    def forward():
        h = np.tanh(x @ p[0].T + p[1])
        z = h @ p[2].T + p[3]
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return h, e / e.sum(axis=1, keepdims=True)

    losses = []
    for t in range(1, STEPS + 1):
        h, q = forward()
        losses.append(-np.log((q * target).sum(axis=1)).mean())
        dz = (q - target) / len(x)
        dh = dz @ p[2] * (1 - h**2)
        gradients = [dh.T @ x, dh.sum(axis=0), dz.T @ h, dz.sum(axis=0)]
        for k, g in enumerate(gradients):
            m[k] = BETAS[0] * m[k] + (1 - BETAS[0]) * g
            s[k] = BETAS[1] * s[k] + (1 - BETAS[1]) * g**2
            root = np.sqrt(s[k] / (1 - BETAS[1] ** t))
            p[k] = p[k] - RATE * m[k] / (1 - BETAS[0] ** t) / (root + EPS)
    _, q = forward()
    return {
        "losses": np.array(losses, "float32"),
        "probabilities": q.astype("float32"),
        "predicted": q.argmax(axis=1).tolist(),
        "bias": p[3].astype("float32"),
        "names": ["fc0.bias", "fc0.weight", "fc1.bias", "fc1.weight"],
    }
