"""Word vectors by negative sampling: embeddings, Momentum, clipping and a regularizer."""

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "the", "dog", "sat", "on", "a", "log"]


def make_vocabulary(words):
    names = sorted(set(words))
    return names, {name: i for i, name in enumerate(names)}


def skip_grams(indices, window):
    pairs = []
    for i, center in enumerate(indices):
        for j in range(max(0, i - window), min(len(indices), i + window + 1)):
            if i != j:
                pairs.append((center, indices[j]))
    return np.array(pairs)


class SkipGram(nn.Layer):
    def __init__(self, size, width, values):
        super().__init__()
        self.center = nn.Embedding(
            size,
            width,
            weight_attr=paddle.ParamAttr(name="center", initializer=nn.initializer.Assign(values)),
        )
        self.context = nn.Embedding(
            size,
            width,
            weight_attr=paddle.ParamAttr(
                name="context",
                initializer=nn.initializer.Constant(0.1),
                regularizer=paddle.regularizer.L2Decay(0.01),
            ),
        )

    def forward(self, center, context, negatives):
        v = self.center(center)
        positive = paddle.sum(v * self.context(context), axis=1)
        others = paddle.bmm(self.context(negatives), v.unsqueeze(2)).squeeze(2)
        return -(F.log_sigmoid(positive) + F.log_sigmoid(-others).sum(axis=1)).mean()

    def nearest(self, index, count):
        table = F.normalize(self.center.weight, axis=1)
        similarity = paddle.matmul(table, table[index].unsqueeze(1)).squeeze(1)
        return paddle.topk(similarity, count)


def main():
    rng = np.random.default_rng(12)
    names, lookup = make_vocabulary(WORDS)
    pairs = skip_grams([lookup[w] for w in WORDS], window=2)
    values = rng.normal(0.0, 0.5, (len(names), 3)).astype("float32")
    model = SkipGram(len(names), 3, values)
    rate = paddle.optimizer.lr.PiecewiseDecay(boundaries=[4, 8], values=[0.5, 0.2, 0.1])
    optimizer = paddle.optimizer.Momentum(
        learning_rate=rate,
        momentum=0.8,
        parameters=model.parameters(),
        grad_clip=nn.ClipGradByNorm(clip_norm=0.5),
    )
    losses = []
    for step in range(10):
        batch = pairs[(step * 8) % 40 : (step * 8) % 40 + 8]
        negatives = rng.integers(0, len(names), (len(batch), 2))
        loss = model(
            paddle.to_tensor(batch[:, 0]),
            paddle.to_tensor(batch[:, 1]),
            paddle.to_tensor(negatives),
        )
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        rate.step()
        losses.append(float(loss))
    similarity, index = model.nearest(lookup["cat"], 3)
    return {
        "losses": np.array(losses, "float32"),
        "rate": rate(),
        "similarity": similarity.numpy(),
        "first": names[int(index[0])],
        "center": model.center.weight.numpy(),
        "names": [p.name for p in model.parameters()],
    }
