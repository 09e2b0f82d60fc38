"""Distillation with a frozen teacher, weight averages, and schedules of parameter groups.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from oneflow.utils.data import DataLoader, RandomSampler, Sampler, SequentialSampler, TensorDataset


class Alternate(Sampler):
    def __init__(self, source):
        self.source = source

    def __iter__(self):
        n = len(self.source)
        return iter([*range(0, n, 2), *range(1, n, 2)])

    def __len__(self):
        return len(self.source)


class Net(nn.Module):
    def __init__(self, hidden, depth=1):
        super().__init__()
        self.layers = nn.Sequential(
            *[
                m
                for k in range(depth)
                for m in (nn.Linear(4 if k == 0 else hidden, hidden), nn.PReLU())
            ]
        )
        self.dropout = nn.Dropout(p=0.0)
        self.head = nn.Linear(hidden, 3)

    def forward(self, x):
        return self.head(self.dropout(self.layers(x)))


def distill_loss(student, teacher, labels, T, alpha):
    soft = nn.KLDivLoss(reduction="batchmean")(
        F.log_softmax(student / T, dim=1), F.softmax(teacher / T, dim=1)
    )
    hard = F.cross_entropy(student, labels)
    return alpha * T * T * soft + (1 - alpha) * hard


def main():
    rng = np.random.default_rng(30)
    x = flow.tensor(rng.normal(size=(12, 4)), dtype=flow.float32)
    y = flow.tensor(rng.integers(0, 3, 12), dtype=flow.long)
    teacher, student = Net(6, 2), Net(4)
    for net in (teacher, student):
        for p in net.parameters():
            nn.init.constant_(p, 0.25) if p.numel() == 1 else p.data.copy_(
                flow.tensor(rng.normal(0, 0.5, p.shape), dtype=flow.float32)
            )
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad = False
    data = TensorDataset(x, y)
    loader = DataLoader(data, batch_size=5, sampler=Alternate(data), drop_last=False)
    opt = flow.optim.Adam(
        [
            {"params": student.layers.parameters()},
            {"params": student.head.parameters(), "lr": 0.05},
        ],
        lr=0.01,
    )
    sched = flow.optim.lr_scheduler.MultiStepLR(opt, milestones=[1, 3], gamma=0.3)
    snapshots, losses = [], []
    for _epoch in range(4):
        for xb, yb in loader:
            loss = distill_loss(student(xb), teacher(xb), yb, T=2.0, alpha=0.7)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        sched.step()
        snapshots.append({k: v.detach().clone() for k, v in student.state_dict().items()})
    mean = {k: flow.stack([s[k] for s in snapshots]).mean(0) for k in snapshots[0]}
    averaged = Net(4)
    averaged.load_state_dict(mean)
    averaged.eval()
    margin = nn.TripletMarginLoss(margin=0.5)(x[:3], x[3:6], x[6:9])
    huber = nn.SmoothL1Loss(beta=0.5)(x[:3], x[3:6])
    print(averaged)
    print(
        [g["lr"] for g in opt.param_groups],
        sorted(RandomSampler(data)) == list(SequentialSampler(data)),
    )
    print(averaged(x[:2]).argmax(dim=1), f"{margin.item():.4f}")
    return {
        "losses": losses,
        "out": averaged(x[:3]).detach().numpy(),
        "margin": margin.item(),
        "huber": huber.item(),
        "cos": F.cosine_similarity(x[:3], x[3:6]).numpy(),
        "keys": list(mean),
    }
