"""Model.fit with callbacks: early stopping, checkpoints, schedules, and metrics of one's own."""

import os

import numpy as np
import paddle
from paddle import nn
from paddle.io import Dataset
from paddle.static import InputSpec


class Rings(Dataset):
    def __init__(self, mode="train", count=24):
        rng = np.random.default_rng(0 if mode == "train" else 1)
        radius = np.repeat([0.5, 1.5], count // 2)
        angle = rng.uniform(0, 2 * np.pi, count)
        self.x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).astype("float32")
        self.y = (radius > 1).astype("int64").reshape(-1, 1)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

    def __len__(self):
        return len(self.x)


class RecallAtOne(paddle.metric.Metric):
    def __init__(self):
        super().__init__()
        self.reset()

    def compute(self, pred, label):
        return paddle.cast(paddle.argmax(pred, axis=1) == label.squeeze(1), "float32"), label

    def update(self, correct, label):
        self.hits += float((correct * label.reshape(correct.shape)).sum())
        self.total += float(label.sum())
        return self.hits / max(self.total, 1)

    def reset(self):
        self.hits = self.total = 0.0

    def accumulate(self):
        return self.hits / max(self.total, 1)

    def name(self):
        return "recall"


class History(paddle.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.events, self.losses = [], []

    def on_train_begin(self, logs=None):
        self.events.append(("train_begin", sorted(self.params)))

    def on_epoch_begin(self, epoch, logs=None):
        self.events.append(("epoch_begin", epoch))

    def on_train_batch_end(self, step, logs=None):
        self.losses.append(float(np.asarray(logs["loss"]).ravel()[0]))

    def on_epoch_end(self, epoch, logs=None):
        self.events.append(("epoch_end", epoch, sorted(logs)))

    def on_eval_end(self, logs=None):
        self.events.append(("eval_end", sorted(logs)))

    def on_train_end(self, logs=None):
        self.events.append(("train_end", self.model.stop_training))


def make_network(rng):
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
    for p in net.parameters():
        p.set_value(rng.normal(0, 0.7, p.shape).astype("float32"))
    return net


def main():
    rng = np.random.default_rng(6)
    train, val = Rings(), Rings("val")
    with paddle.utils.unique_name.guard():
        network = make_network(rng)
    model = paddle.Model(
        network, InputSpec([None, 2], "float32", "x"), InputSpec([None, 1], "int64", "y")
    )
    sched = paddle.optimizer.lr.StepDecay(0.1, step_size=2, gamma=0.5)
    with paddle.utils.unique_name.guard():
        opt = paddle.optimizer.Adam(sched, parameters=model.parameters())
    model.prepare(opt, nn.CrossEntropyLoss(), [paddle.metric.Accuracy(), RecallAtOne()])
    history = History()
    early = paddle.callbacks.EarlyStopping(
        "acc", mode="max", patience=1, verbose=0, baseline=None, save_best_model=True
    )
    model.fit(
        train,
        val,
        batch_size=8,
        epochs=4,
        verbose=0,
        shuffle=False,
        save_dir="./out",
        save_freq=2,
        callbacks=[history, early, paddle.callbacks.LRScheduler(by_step=False, by_epoch=True)],
    )
    files = sorted(os.listdir("./out"))
    result = model.evaluate(val, batch_size=8, verbose=0)
    predicted = model.predict(val, batch_size=10, stack_outputs=True, verbose=0)
    model.save("./model/final")
    with paddle.utils.unique_name.guard():
        other = paddle.Model(make_network(np.random.default_rng(50)))
    with paddle.utils.unique_name.guard():
        other.prepare(
            paddle.optimizer.Adam(0.1, parameters=other.parameters()),
            nn.CrossEntropyLoss(),
            paddle.metric.Accuracy(),
        )
    other.load("./model/final", reset_optimizer=True)
    reloaded = other.predict_batch([val.x[:3]])
    loss_batch = other.train_batch([train.x[:6]], [train.y[:6]])
    eval_batch = other.eval_batch([train.x[:6]], [train.y[:6]])
    reduce = paddle.callbacks.ReduceLROnPlateau(
        monitor="loss", factor=0.5, patience=1, verbose=0, mode="min", min_delta=10.0, cooldown=0
    )
    other.fit(train, val, batch_size=12, epochs=4, verbose=0, shuffle=False, callbacks=[reduce])
    rate = other._optimizer.get_lr()
    info = paddle.summary(make_network(rng), (4, 2))
    print(info)
    return {
        "events": [list(e) for e in history.events],
        "losses": history.losses,
        "files": files,
        "result": {k: np.asarray(v, "float32") for k, v in result.items()},
        "predicted": predicted[0],
        "reloaded": reloaded[0],
        "lr": opt.get_lr(),
        "rate": rate,
        "batch": [np.asarray(loss_batch[0], "float32"), np.asarray(eval_batch[0], "float32")],
    }
