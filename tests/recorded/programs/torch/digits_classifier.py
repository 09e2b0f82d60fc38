"""A convolutional classifier of digits, with a scheduler, a checkpoint, and training resumed."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

SIZE = 8


def make_digits(count, rng):
    """Images of 0, 1 and 2, drawn as rings, bars and diagonals with noise."""
    images = rng.normal(0.0, 0.2, (count, 1, SIZE, SIZE))
    labels = np.arange(count) % 3
    for image, label in zip(images[:, 0], labels, strict=True):
        if label == 0:
            image[1:7, 1:7] += 1.0
            image[3:5, 3:5] -= 1.0
        elif label == 1:
            image[1:7, 3:5] += 1.0
        else:
            image += np.eye(SIZE)
    return torch.tensor(images), torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 4, 3)
        self.dropout = nn.Dropout(0.0)
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        x = F.relu(self.conv2(x))
        return self.fc(self.dropout(torch.flatten(x, 1)))


def initialize(model, rng):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(0.0, 0.3, tuple(parameter.shape))))


def train_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model, images, labels):
    model.eval()
    scores = model(images)
    correct = (scores.argmax(dim=1) == labels).double().mean()
    return scores.softmax(dim=1), correct.item()


def make_training(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    return optimizer, StepLR(optimizer, step_size=2, gamma=0.5)


def main():
    torch.set_default_dtype(torch.float64)
    rng = np.random.default_rng(0)
    images, labels = make_digits(24, rng)
    loader = DataLoader(TensorDataset(images, labels), batch_size=8)
    model = Classifier()
    initialize(model, rng)
    optimizer, scheduler = make_training(model)
    losses = []
    epochs = 3
    for _ in range(epochs):
        losses.append(train_epoch(model, loader, optimizer))
        scheduler.step()
    torch.save(
        {
            "epoch": epochs - 1,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
        },
        "checkpoint.pt",
    )
    checkpoint = torch.load("checkpoint.pt")
    resumed = Classifier()
    resumed.load_state_dict(checkpoint["model"])
    optimizer, scheduler = make_training(resumed)
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    for _ in range(checkpoint["epoch"] + 1, 5):
        losses.append(train_epoch(resumed, loader, optimizer))
        scheduler.step()
    probabilities, accuracy = evaluate(resumed, images, labels)
    torch.set_default_dtype(torch.float32)
    return {
        "losses": np.array(losses),
        "lr": optimizer.param_groups[0]["lr"],
        "probabilities": probabilities[:4].numpy(),
        "accuracy": accuracy,
        "running_mean": resumed.norm.running_mean.numpy(),
    }
