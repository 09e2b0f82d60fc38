"""A residual network: augmentation, checkpoints, resumed training, fine-tuning."""

import io
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(
                nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout)
            )

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 4, 3, 1, 1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        self.layer1, self.layer2 = BasicBlock(4, 4), BasicBlock(4, 6, 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(6, classes)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def fill(model):
    rng = np.random.default_rng(0)
    for m in model.modules():
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            fan = nn.init._calculate_correct_fan(m.weight, "fan_in")
            m.weight.data = torch.from_numpy(
                rng.normal(size=tuple(m.weight.shape)).astype(np.float32)
            ) * np.float32(np.sqrt(2 / fan))
            if m.bias is not None:
                m.bias.data.zero_()
        elif isinstance(m, nn.BatchNorm2d):
            nn.init.constant_(m.weight, 1)
            nn.init.constant_(m.bias, 0)


class Augmented(Dataset):
    def __init__(self, base, flip):
        self.base, self.flip = base, flip

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        x, y = self.base[i]
        return (x.flip(-1) if self.flip and i % 2 else x), y


def run(model, opt, sched, loader, epochs, log):
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            loss = F.cross_entropy(model(x), y, label_smoothing=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
            log.append(loss.item())
        sched.step()


def make():
    model = ResNet()
    fill(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    return model, opt, torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[1, 3], gamma=0.3)


def main():
    rng = np.random.default_rng(1)
    y = torch.from_numpy(np.arange(18) % 3)
    x = (
        torch.from_numpy(rng.normal(size=(18, 1, 8, 8)).astype(np.float32))
        + y.view(-1, 1, 1, 1) * 0.5
    )
    data = Augmented(TensorDataset(x, y), True)
    train = Subset(data, list(range(12)))
    loader = DataLoader(train, batch_size=4)
    whole = []
    model, opt, sched = make()
    run(model, opt, sched, loader, 4, whole)
    parts = []
    model, opt, sched = make()
    run(model, opt, sched, loader, 2, parts)
    torch.save(
        {
            "model": model.state_dict(),
            "opt": opt.state_dict(),
            "sched": sched.state_dict(),
            "epoch": 2,
        },
        "checkpoint.pt",
    )
    model, opt, sched = make()
    saved = torch.load("checkpoint.pt", weights_only=True)
    missing = model.load_state_dict(saved["model"])
    opt.load_state_dict(saved["opt"])
    sched.load_state_dict(saved["sched"])
    run(model, opt, sched, loader, 2, parts)
    model.eval()
    with torch.no_grad():
        out = model(x[12:])
    confusion = torch.zeros(3, 3, dtype=torch.int64)
    for t, p in zip(y[12:], out.argmax(1), strict=False):
        confusion[t.long(), p.long()] += 1
    for name, p in model.named_parameters():
        p.requires_grad = name.startswith("fc")
    model.fc = nn.Linear(6, 2)
    nn.init.zeros_(model.fc.weight)
    nn.init.ones_(model.fc.bias)
    F.cross_entropy(model(x[:4]), y[:4] % 2).backward()
    trained = [n for n, p in model.named_parameters() if p.grad is not None]
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    again = torch.load(buffer)
    return (
        whole,
        max(abs(a - b) for a, b in zip(whole, parts, strict=False)) < 1e-5,
        confusion,
        str(missing),
        saved["epoch"],
        trained,
        model.fc.weight.grad,
        len(again),
        sched.last_epoch,
        os.path.exists("checkpoint.pt"),
    )
