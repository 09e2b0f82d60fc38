"""A convolutional classifier of digits in dynamic mode, with checkpoints."""

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.io import BatchSampler, DataLoader, Dataset

SIZE = 8


class Digits(Dataset):
    """Images of rings, bars and diagonals with noise."""

    def __init__(self, count, rng):
        super().__init__()
        self.images = rng.normal(0.0, 0.2, (count, 1, SIZE, SIZE)).astype("float32")
        self.labels = np.arange(count) % 3
        for image, label in zip(self.images[:, 0], self.labels, strict=True):
            if label == 0:
                image[1:7, 1:7] += 1.0
                image[3:5, 3:5] -= 1.0
            elif label == 1:
                image[1:7, 3:5] += 1.0
            else:
                image += np.eye(SIZE, dtype="float32")

    def __getitem__(self, index):
        return self.images[index], self.labels[index]

    def __len__(self):
        return len(self.labels)


class Classifier(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(1, 3, 3, padding=1)
        self.norm = nn.BatchNorm2D(3)
        self.pool = nn.MaxPool2D(kernel_size=2, stride=2)
        self.fc = nn.Linear(48, 3)

    def forward(self, x):
        x = self.pool(F.relu(self.norm(self.conv(x))))
        return self.fc(paddle.flatten(x, start_axis=1))


def initialize(model, rng):
    for parameter in filter(lambda p: p.trainable, model.parameters()):
        value = rng.normal(0.0, 0.2, tuple(parameter.shape))
        parameter.set_value(value.astype("float32"))


def train(model, loader, optimizer, scheduler, epochs):
    losses = []
    model.train()
    for _ in range(epochs):
        for images, labels in loader():
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(loss.item())
        scheduler.step()
    return losses


def make_optimizer(model):
    scheduler = paddle.optimizer.lr.StepDecay(learning_rate=0.05, step_size=1, gamma=0.5)
    optimizer = paddle.optimizer.Momentum(
        learning_rate=scheduler,
        momentum=0.9,
        parameters=model.parameters(),
        weight_decay=paddle.regularizer.L2Decay(1e-3),
    )
    return optimizer, scheduler


def main():
    rng = np.random.default_rng(0)
    dataset = Digits(18, rng)
    loader = DataLoader(dataset, batch_sampler=BatchSampler(dataset, batch_size=9))
    model = Classifier()
    initialize(model, rng)
    optimizer, scheduler = make_optimizer(model)
    losses = train(model, loader, optimizer, scheduler, epochs=2)
    paddle.save(model.state_dict(), "model.pdparams")
    paddle.save(scheduler.state_dict(), "scheduler.pdopt")
    resumed = Classifier()
    resumed.set_state_dict(paddle.load("model.pdparams"))
    optimizer, scheduler = make_optimizer(resumed)
    scheduler.set_state_dict(paddle.load("scheduler.pdopt"))
    losses += train(resumed, loader, optimizer, scheduler, epochs=1)
    resumed.eval()
    with paddle.no_grad():
        scores = resumed(paddle.to_tensor(dataset.images[:4]))
        accuracy = (scores.argmax(axis=1).numpy() == dataset.labels[:4]).mean()
    return {
        "losses": np.array(losses, "float32"),
        "rate": optimizer.get_lr(),
        "probabilities": F.softmax(scores, axis=1).numpy(),
        "accuracy": float(accuracy),
    }
