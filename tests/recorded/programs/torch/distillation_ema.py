"""Distillation into a student whose moving average is kept; mixup."""

import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn


def weights(model, seed, scale=0.5):
    rng = np.random.default_rng(seed)
    for m in model.modules():
        if hasattr(m, "weight") and m.weight is not None and m.weight.ndim > 1:
            m.weight.data = (
                torch.from_numpy(rng.normal(size=tuple(m.weight.shape)).astype(np.float32)) * scale
            )
            nn.init.zeros_(m.bias)
    return model


class EMA:
    def __init__(self, model, decay):
        self.model, self.decay, self.shadow, self.backup = model, decay, {}, {}

    def register(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                assert name in self.shadow
                self.shadow[name] = (
                    (1.0 - self.decay) * param.data + self.decay * self.shadow[name]
                ).clone()

    def apply_shadow(self):
        for name, param in self.model.named_parameters():
            self.backup[name] = param.data
            param.data = self.shadow[name]

    def restore(self):
        for name, param in self.model.named_parameters():
            param.data = self.backup[name]
        self.backup = {}


class KDLoss(nn.Module):
    def __init__(self, T, alpha):
        super().__init__()
        self.T, self.alpha = T, alpha
        self.ce = nn.CrossEntropyLoss(label_smoothing=0.1)
        self.kl = nn.KLDivLoss(reduction="batchmean", log_target=True)

    def forward(self, student, teacher, y):
        soft = (
            self.kl(F.log_softmax(student / self.T, 1), F.log_softmax(teacher / self.T, 1))
            * self.T**2
        )
        return self.alpha * soft + (1 - self.alpha) * self.ce(student, y)


def mixup(x, y, lam, index):
    return lam * x + (1 - lam) * x[index], lam * F.one_hot(y, 3).float() + (1 - lam) * F.one_hot(
        y[index], 3
    ).float()


def main():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(32, 4)).astype(np.float32))
    y = torch.from_numpy((x.numpy()[:, 0] > 0).astype(np.int64) + (x.numpy()[:, 1] > 0.3))
    teacher = weights(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)), 1)
    opt = torch.optim.NAdam(teacher.parameters(), lr=0.02)
    for _step in range(15):
        mixed, target = mixup(x, y, 0.8, torch.from_numpy(rng.permutation(32)))
        loss = F.cross_entropy(teacher(mixed), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    teacher.requires_grad_(False).eval()
    student = weights(
        nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.PReLU(5), nn.Linear(5, 3)), 2
    )
    ema, avg = EMA(student, 0.9), AveragedModel(student, multi_avg_fn=get_ema_multi_avg_fn(0.8))
    ema.register()
    criterion = KDLoss(2.0, 0.7)
    opt = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.2, total_steps=12)
    losses = []
    for _step in range(12):
        rows = torch.from_numpy(rng.choice(32, 16, replace=False))
        with torch.no_grad():
            soft = teacher(x[rows])
        loss = criterion(student(x[rows]), soft, y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        ema.update()
        avg.update_parameters(student)
        losses.append(loss.item())
    student.eval()
    plain = student(x[:2])
    ema.apply_shadow()
    shadow = student(x[:2])
    ema.restore()
    again = student(x[:2])
    update_bn([x[:16], x[16:]], avg)
    avg.eval()
    frozen = copy.deepcopy(student)
    return (
        losses,
        plain,
        shadow,
        torch.equal(plain, again),
        avg(x[:2]),
        int(avg.n_averaged),
        frozen[2].weight,
        [g["lr"] for g in opt.param_groups],
    )
