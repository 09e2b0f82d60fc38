"""Datasets, samplers and collation, with a ranker, class weights and metrics."""

import numpy as np
import paddle
from paddle import io
from paddle.metric import Auc, Precision, Recall


class Pairs(io.Dataset):
    def __init__(self, rng, n):
        self.user = rng.integers(0, 5, n)
        self.items = [rng.integers(1, 8, rng.integers(1, 5)) for _ in range(n)]
        self.label = (rng.uniform(size=n) > 0.6).astype("float32")

    def __getitem__(self, i):
        return {"user": self.user[i], "items": self.items[i], "label": self.label[i]}

    def __len__(self):
        return len(self.user)


class Stream(io.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        for i in range(self.n):
            yield np.array([i, i * i], "float32"), i % 2


class EveryOther(io.Sampler):
    def __init__(self, data_source):
        super().__init__(data_source)

    def __iter__(self):
        n = len(self.data_source)
        yield from range(0, n, 2)
        yield from range(1, n, 2)

    def __len__(self):
        return len(self.data_source)


def collate(batch):
    longest = max(len(b["items"]) for b in batch)
    items = np.zeros((len(batch), longest), "int64")
    for row, b in zip(items, batch, strict=False):
        row[: len(b["items"])] = b["items"]
    return (
        paddle.to_tensor(np.array([b["user"] for b in batch])),
        paddle.to_tensor(items),
        paddle.to_tensor(np.array([b["label"] for b in batch])).unsqueeze(1),
    )


class Ranker(paddle.nn.Layer):
    def __init__(self, rng):
        super().__init__()

        def make(*s):
            return paddle.nn.initializer.Assign(rng.normal(0, 0.3, s).astype("float32"))

        self.user = paddle.nn.Embedding(5, 3, weight_attr=paddle.ParamAttr(initializer=make(5, 3)))
        self.item = paddle.nn.Embedding(8, 3, padding_idx=0, weight_attr=make(8, 3))
        self.bilinear = paddle.nn.Bilinear(3, 3, 2, weight_attr=make(2, 3, 3))
        self.out = paddle.nn.Linear(2, 1, weight_attr=make(2, 1))
        self.dropout = paddle.nn.Dropout(0.0)

    def forward(self, user, items):
        mask = (items != 0).astype("float32").unsqueeze(-1)
        pooled = (self.item(items) * mask).sum(axis=1) / mask.sum(axis=1)
        return self.out(
            self.dropout(paddle.nn.functional.tanh(self.bilinear(self.user(user), pooled)))
        )


def main():
    rng = np.random.default_rng(12)
    dataset = Pairs(rng, 12)
    train, test = io.Subset(dataset, range(8)), io.Subset(dataset, list(range(8, 12)))
    loader = io.DataLoader(
        train,
        batch_sampler=io.BatchSampler(sampler=EveryOther(train), batch_size=3),
        collate_fn=collate,
    )
    model = Ranker(rng)
    loss_fn = paddle.nn.BCEWithLogitsLoss(pos_weight=paddle.to_tensor([2.0]))
    opt = paddle.optimizer.Lamb(0.05, lamb_weight_decay=0.01, parameters=model.parameters())
    losses, shapes = [], []
    for _epoch in range(2):
        for _batch_id, (user, items, label) in enumerate(loader()):
            loss = loss_fn(model(user, items), label)
            loss.backward()
            opt.step()
            opt.clear_grad()
            losses.append(loss.item())
            shapes.append(items.shape)
    model.eval()
    user, items, label = next(iter(io.DataLoader(test, batch_size=4, collate_fn=collate)))
    score = paddle.nn.functional.sigmoid(model(user, items))
    p, r, auc = Precision(), Recall(), Auc(num_thresholds=200)
    p.update(score, label)
    r.update(score, label)
    auc.update(paddle.concat([1 - score, score], axis=1), label)
    stream = [(a.numpy(), b) for a, b in io.DataLoader(Stream(5), batch_size=2)]
    plain = io.DataLoader(
        io.TensorDataset([paddle.arange(6), paddle.arange(6) * 2]), batch_size=4, drop_last=False
    )
    joined = io.ConcatDataset([Pairs(rng, 2), Pairs(rng, 3)])
    composed = io.ComposeDataset(
        [io.TensorDataset([paddle.ones([3, 2])]), io.TensorDataset([paddle.zeros([3])])]
    )
    chained = io.ChainDataset([Stream(2), Stream(3)])
    paddle.seed(7)
    parts = io.random_split(io.TensorDataset([paddle.arange(10)]), [7, 3])
    weighted = list(io.WeightedRandomSampler(np.array([0.0, 1.0, 0.0]), 4, replacement=True))
    shuffled = sorted(int(i) for i in io.RandomSampler(joined))
    nested = io.DataLoader(Pairs(rng, 2), batch_size=1)
    first = next(iter(nested))
    print(len(loader), len(plain), type(first).__name__, sorted(first))
    print([t.shape for t in next(iter(plain))])
    return {
        "losses": losses,
        "shapes": shapes,
        "score": score,
        "metrics": [p.accumulate(), r.accumulate(), auc.accumulate()],
        "stream": stream,
        "joined": len(joined),
        "composed": list(composed[1]),
        "chained": [b for _, b in chained],
        "parts": [len(q) for q in parts],
        "weighted": weighted,
        "shuffled": shuffled,
        "acc": paddle.metric.accuracy(
            paddle.to_tensor([[0.2, 0.8], [0.6, 0.4]]), paddle.to_tensor([[1], [1]])
        ),
    }
