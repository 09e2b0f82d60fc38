"""A transformer encoder that sorts digits: attention, layer norms, warm-up, masks."""

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

VOCABULARY, LENGTH, WIDTH = 5, 4, 4


class MultiHead(nn.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.width = heads, width
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def split(self, x):
        x = x.reshape([0, 0, self.heads, self.width // self.heads])
        return x.transpose([0, 2, 1, 3])

    def forward(self, x, mask=None):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = paddle.matmul(q, k, transpose_y=True) / float(np.sqrt(q.shape[-1]))
        if mask is not None:
            scores = scores + mask
        mixed = paddle.matmul(F.softmax(scores, axis=-1), v)
        mixed = mixed.transpose([0, 2, 1, 3]).reshape([0, 0, self.width])
        return self.out(mixed)


class EncoderLayer(nn.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = MultiHead(width, heads)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 8), nn.GELU(), nn.Linear(8, width))

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.feed(x))


class Sorter(nn.Layer):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = self.create_parameter([LENGTH, WIDTH])
        self.layers = nn.LayerList([EncoderLayer(WIDTH, 2) for _ in range(2)])
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, x, mask=None):
        y = self.tokens(x) + self.places
        for layer in self.layers:
            y = layer(y, mask)
        return self.head(y)


def main():
    rng = np.random.default_rng(11)
    model = Sorter()
    for p in model.parameters():
        p.set_value(rng.normal(0.0, 0.4, tuple(p.shape)).astype("float32"))
    inputs = rng.integers(0, VOCABULARY, (6, LENGTH))
    x, y = paddle.to_tensor(inputs), paddle.to_tensor(np.sort(inputs, axis=1))
    blocked = np.zeros((1, 1, LENGTH, LENGTH), "float32")
    blocked[..., -1] = -1e4
    rate = paddle.optimizer.lr.LinearWarmup(
        learning_rate=paddle.optimizer.lr.CosineAnnealingDecay(0.05, T_max=6),
        warmup_steps=2,
        start_lr=0.0,
        end_lr=0.05,
    )
    optimizer = paddle.optimizer.AdamW(
        learning_rate=rate,
        parameters=model.parameters(),
        weight_decay=0.01,
        apply_decay_param_fun=lambda name: "norm" not in name and "b_0" not in name,
    )
    losses, rates = [], []
    for _ in range(5):
        scores = model(x)
        loss = F.cross_entropy(scores.reshape([-1, VOCABULARY]), y.reshape([-1]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        rates.append(optimizer.get_lr())
        rate.step()
        losses.append(loss.item())
    model.eval()
    with paddle.no_grad():
        masked = model(x[:1], paddle.to_tensor(blocked))
        predicted = paddle.argmax(model(x[:2]), axis=-1)
    return {
        "losses": np.array(losses, "float32"),
        "rates": np.array(rates),
        "masked": masked.numpy(),
        "predicted": predicted.tolist(),
        "count": sum(int(np.prod(p.shape)) for p in model.parameters()),
    }
