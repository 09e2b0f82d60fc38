"""Triplet loss with batch-hard mining, a sampler of classes and a collate_fn."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler


class Points(Dataset):
    def __init__(self, n=30):
        rng = np.random.default_rng(1)
        self.y = np.repeat(np.arange(5), n // 5)
        self.x = rng.normal(size=(5, 3))[self.y] * 2 + rng.normal(size=(n, 3)) * 0.5

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {
            "x": self.x[i].astype(np.float32),
            "y": int(self.y[i]),
            "name": f"p{i}",
            "len": 1 + i % 3,
        }


class ClassSampler(Sampler):
    """P classes with K items for each batch."""

    def __init__(self, labels, p, k, batches, seed=0):
        self.labels, self.p, self.k, self.batches = labels, p, k, batches
        self.rng = np.random.default_rng(seed)

    def __iter__(self):
        for _ in range(self.batches):
            chosen = self.rng.choice(np.unique(self.labels), self.p, replace=False)
            yield [
                int(i)
                for c in chosen
                for i in self.rng.choice(np.flatnonzero(self.labels == c), self.k, replace=False)
            ]

    def __len__(self):
        return self.batches


def collate(rows):
    longest = max(r["len"] for r in rows)
    padded = torch.zeros(len(rows), longest, 3)
    for i, r in enumerate(rows):
        padded[i, : r["len"]] = torch.from_numpy(r["x"])
    mask = torch.arange(longest)[None] < torch.tensor([r["len"] for r in rows])[:, None]
    return padded, mask, torch.tensor([r["y"] for r in rows]), [r["name"] for r in rows]


def batch_hard(emb, labels, margin=0.3):
    d2 = torch.cdist(emb, emb, p=2)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    pos = (d2 * same.float()).max(dim=1, keepdim=True)[0]
    far = d2.max(dim=1, keepdim=True)[0]
    neg, _ = (d2 + far * same.float()).min(dim=1, keepdim=True)
    tl = pos - neg + margin
    tl[tl < 0] = 0
    return tl.mean()


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Hardswish(), nn.Linear(8, 2))

    def forward(self, x, mask):
        x = (x * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return F.normalize(self.net(x), p=2, dim=-1)


def main():
    data = Points()
    loader = DataLoader(data, batch_sampler=ClassSampler(data.y, 3, 4, 5), collate_fn=collate)
    model = Embed()
    rng = np.random.default_rng(3)
    nn.utils.vector_to_parameters(
        torch.tensor(
            rng.normal(size=sum(p.numel() for p in model.parameters())) * 0.6, dtype=torch.float32
        ),
        model.parameters(),
    )
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05, lr_decay=1e-3)
    losses, names = [], []
    for _epoch in range(2):
        for x, mask, y, batch_names in loader:
            emb = model(x, mask)
            loss = batch_hard(emb, y) + 0.1 * nn.TripletMarginLoss(margin=0.5, swap=True)(
                emb[0::4], emb[1::4], emb.roll(4, 0)[2::4]
            )
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
            names.append(batch_names[0])
    cosine = nn.TripletMarginWithDistanceLoss(
        distance_function=lambda a, b: 1.0 - F.cosine_similarity(a, b), margin=0.2
    )
    plain = DataLoader(data, batch_size=8, shuffle=False, drop_last=True)
    first = next(iter(plain))
    return (
        losses,
        names,
        len(loader),
        cosine(emb[0::4], emb[1::4], emb[2::4]),
        first["x"],
        first["y"],
        first["name"],
        len(plain),
    )
