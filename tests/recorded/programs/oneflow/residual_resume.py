"""A residual classifier with warmup, parameter groups, hooks, and resumption.

The twin is this text with torch in place of oneflow.
"""

import copy

import numpy as np
import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from oneflow.utils.data import DataLoader, Dataset, Subset, random_split


class Toy(Dataset):
    def __init__(self, rng, n):
        self.x = flow.tensor(rng.normal(size=(n, 2, 6, 6)), dtype=flow.float32)
        self.y = flow.tensor(rng.integers(0, 3, n), dtype=flow.int64)

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Block(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, layers, num_classes=3):
        super().__init__()
        self.inplanes = 3
        self.conv1 = nn.Conv2d(2, 3, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(3)
        self.layer1 = self._make_layer(3, layers[0])
        self.layer2 = self._make_layer(5, layers[1], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(5, num_classes)
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, planes, blocks, stride=1):
        downsample = None
        if stride != 1 or self.inplanes != planes:
            downsample = nn.Sequential(
                nn.Conv2d(self.inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes)
            )
        layers = [Block(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes
        layers += [Block(planes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer2(self.layer1(x))
        x = flow.flatten(self.avgpool(x), 1)
        return self.fc(x)


def training(model):
    decay, plain = [], []
    for name, p in model.named_parameters():
        (plain if p.ndim == 1 or name.endswith("bias") else decay).append(p)
    optimizer = flow.optim.SGD(
        [{"params": decay, "weight_decay": 0.01}, {"params": plain, "lr": 0.02}],
        lr=0.05,
        momentum=0.9,
    )
    scheduler = flow.optim.lr_scheduler.LambdaLR(
        optimizer, lr_lambda=lambda e: min(1.0, (e + 1) / 3)
    )
    return optimizer, scheduler


def run_epoch(model, loader, optimizer, scheduler, criterion, seen):
    model.train()
    total = []
    handle = model.fc.register_forward_hook(
        lambda m, inp, out: seen.append(out.detach().abs().max().item())
    )
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=2.0, norm_type=2.0)
        optimizer.step()
        total.append([loss.item(), *(g["lr"] for g in optimizer.param_groups)])
    scheduler.step()
    handle.remove()
    return total


def main():
    rng = np.random.default_rng(3)
    data = Toy(rng, 12)
    loader = DataLoader(Subset(data, list(range(9))), batch_size=3, shuffle=False, num_workers=0)
    model = ResNet([1, 1])
    with flow.no_grad():
        for p in model.parameters():
            if "bn" not in "".join(n for n, q in model.named_parameters() if q is p):
                p.copy_(flow.tensor(rng.normal(0, 0.3, tuple(p.shape)), dtype=flow.float32))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.0, reduction="mean")
    optimizer, scheduler = training(model)
    seen, history = [], []
    for _ in range(2):
        history += run_epoch(model, loader, optimizer, scheduler, criterion, seen)
    flow.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 2}, "ckpt"
    )
    state = flow.load("ckpt")
    other = ResNet([1, 1])
    print(other.load_state_dict(state["model"]))
    optimizer2, scheduler2 = training(other)
    optimizer2.load_state_dict(state["optimizer"])
    scheduler2.load_state_dict(scheduler.state_dict())
    a = run_epoch(model, loader, optimizer, scheduler, criterion, seen)
    b = run_epoch(other, loader, optimizer2, scheduler2, criterion, seen)
    frozen = copy.deepcopy(model).eval()
    for p in frozen.parameters():
        p.requires_grad_(False)
    with flow.no_grad():
        logits = frozen(data.x[9:])
    print(model)
    print(len(loader), [len(s) for s in random_split(data, [8, 4])], scheduler.get_last_lr())
    return {
        "history": history,
        "a": a,
        "b": b,
        "seen": seen,
        "probs": F.softmax(logits, dim=1).numpy(),
        "top": [t.numpy() for t in flow.topk(logits, 2, dim=-1)],
        "keys": list(state["model"])[:8],
        "mean": model.bn1.running_mean.numpy(),
        "tracked": int(model.bn1.num_batches_tracked),
    }
