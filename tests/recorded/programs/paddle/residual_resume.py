"""A residual classifier with warmup, weight decay by name, and resumption."""

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.io import DataLoader, DistributedBatchSampler, TensorDataset
from paddle.optimizer.lr import CosineAnnealingDecay, LinearWarmup


class ConvBNLayer(nn.Layer):
    def __init__(self, in_c, out_c, stride=1, act=None):
        super().__init__()
        self.conv = nn.Conv2D(in_c, out_c, 3, stride=stride, padding=1, bias_attr=False)
        self.bn = nn.BatchNorm2D(out_c, momentum=0.8)
        self.act = act

    def forward(self, x):
        x = self.bn(self.conv(x))
        return getattr(F, self.act)(x) if self.act else x


class BasicBlock(nn.Layer):
    def __init__(self, in_c, out_c, stride=1):
        super().__init__()
        self.branch = nn.Sequential(
            ("conv0", ConvBNLayer(in_c, out_c, stride, "relu")),
            ("conv1", ConvBNLayer(out_c, out_c)),
        )
        self.short = None
        if stride != 1 or in_c != out_c:
            self.short = nn.Conv2D(in_c, out_c, 1, stride=stride, bias_attr=False)

    def forward(self, x):
        identity = x if self.short is None else self.short(x)
        return F.relu(paddle.add(identity, self.branch(x)))


class ResNet(nn.Layer):
    def __init__(self, num_classes=4):
        super().__init__(name_scope="resnet")
        self.stem = ConvBNLayer(1, 3, act="relu")
        self.layer1 = BasicBlock(3, 3)
        self.layer2 = BasicBlock(3, 5, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2D((1, 1))
        self.fc = nn.Linear(5, num_classes)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(paddle.flatten(self.avgpool(x), 1))


def make_training(model):
    base = CosineAnnealingDecay(learning_rate=0.05, T_max=6, eta_min=0.001)
    scheduler = LinearWarmup(base, warmup_steps=3, start_lr=0.0, end_lr=0.05)
    names = [p.name for n, p in model.named_parameters() if n.endswith("conv.weight")]
    optimizer = paddle.optimizer.AdamW(
        learning_rate=scheduler,
        parameters=model.parameters(),
        weight_decay=0.05,
        apply_decay_param_fun=lambda name: name in names,
        grad_clip=nn.ClipGradByGlobalNorm(clip_norm=1.0),
    )
    return scheduler, optimizer


def train_epoch(model, loader, scheduler, optimizer, criterion, metric):
    history = []
    metric.reset()
    model.train()
    for step, (image, label) in enumerate(loader):
        logits = model(image)
        loss = criterion(logits, label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        correct = metric.compute(logits, paddle.unsqueeze(label, 1))
        metric.update(correct)
        history.append([float(loss), optimizer.get_lr()])
        scheduler.step()
        if step % 2 == 0:
            print(f"step {step}, lr {optimizer.get_lr():.5f}, loss {loss.item():.3f}")
    return history, metric.accumulate()


def main():
    paddle.seed(102)
    rng = np.random.default_rng(4)
    images = rng.normal(0, 1, (24, 1, 8, 8)).astype("float32")
    labels = rng.integers(0, 4, 24)
    dataset = TensorDataset([paddle.to_tensor(images), paddle.to_tensor(labels)])
    sampler = DistributedBatchSampler(
        dataset, batch_size=8, num_replicas=1, rank=0, shuffle=False, drop_last=True
    )
    loader = DataLoader(dataset, batch_sampler=sampler, num_workers=0, return_list=True)
    model = ResNet()
    for name, p in model.named_parameters():
        if "bn" not in name:
            p.set_value(rng.normal(0, 0.3, p.shape).astype("float32"))
    print(model)
    print("parameters:", sum(int(np.prod(p.shape)) for p in model.parameters() if p.trainable))
    scheduler, optimizer = make_training(model)
    criterion, metric = (
        nn.CrossEntropyLoss(label_smoothing=0.1),
        paddle.metric.Accuracy(topk=(1, 2)),
    )
    history, accuracies = [], []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        rows, accuracy = train_epoch(model, loader, scheduler, optimizer, criterion, metric)
        history += rows
        accuracies.append(list(accuracy))
    state = {"model": model.state_dict(), "opt": optimizer.state_dict(), "epoch": epoch}
    paddle.save(state, "checkpoints/last.pdparams")
    loaded = paddle.load("checkpoints/last.pdparams")
    print(sorted(loaded), loaded["epoch"], len(loaded["opt"]))
    again = ResNet()
    missing = again.set_state_dict(loaded["model"])
    print(missing)
    sched2, opt2 = make_training(again)
    other = {}
    for (_, p), (_, q) in zip(model.named_parameters(), again.named_parameters(), strict=False):
        other.update(
            {
                k.replace(p.name, q.name): v
                for k, v in loaded["opt"].items()
                if k.startswith(p.name + "_")
            }
        )
    other["LR_Scheduler"] = loaded["opt"]["LR_Scheduler"]
    opt2.set_state_dict(other)
    print(sched2.last_epoch, sched2.last_lr)
    rows_a, acc_a = train_epoch(model, loader, scheduler, optimizer, criterion, metric)
    rows_b, acc_b = train_epoch(again, loader, sched2, opt2, criterion, metric)
    again.eval()
    with paddle.no_grad():
        scores = F.softmax(again(paddle.to_tensor(images[:3])))
    return {
        "history": history,
        "accuracies": accuracies,
        "resumed": rows_a,
        "again": rows_b,
        "acc": [acc_a, acc_b],
        "scores": scores,
        "metric": metric.name(),
        "mean": again.stem.bn._mean,
        "keys": list(model.state_dict().keys()),
    }
