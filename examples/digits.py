"""
Train a network on handwritten digits
=====================================

A network of two layers reads the digits of scikit-learn. It is trained with Adam by
minibatches. A clone of the program without dropout is evaluated, saved to a file, loaded and
evaluated again.

Needs scikit-learn, and shows a progress bar if rich is there: pip install
'primgraph[examples]'.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

import primgraph as pg
from primgraph import nn

try:
    from sklearn.datasets import load_digits
except ModuleNotFoundError:
    raise SystemExit("this example needs scikit-learn: pip install 'primgraph[examples]'") from None

BATCH = 60
EPOCHS = 40


class Reader(nn.Layer):
    """From the 64 pixels of an image to the scores of the ten digits."""

    def __init__(self, hidden=128):
        super().__init__()
        self.hidden = nn.Linear(64, hidden)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(0.2)
        self.scores = nn.Linear(hidden, 10)

    def forward(self, pixels):
        return self.scores(self.dropout(self.relu(self.hidden(pixels))))


def samples():
    """Images and labels to train on, and 360 others to test with."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    pixels, labels = digits.data[order] / 16.0, digits.target[order]
    test = {"pixels": pixels[:360], "labels": labels[:360]}
    return {"pixels": pixels[360:], "labels": labels[360:]}, test


def build():
    """The program of one training step, and its loss."""
    with pg.Program("digits") as program:
        pixels = pg.data("pixels", (BATCH, 64))
        labels = pg.data("labels", (BATCH,), "int64")
        scores = Reader()(pixels)
        scores.name = "scores"
        loss = nn.CrossEntropyLoss()(scores, labels)
        decay = pg.optimizer.cosine_decay(EPOCHS * (1437 // BATCH))
        pg.optimizer.Adam(0.005, schedule=decay).minimize(loss)
    return program, loss


def batches(samples, rng=None):
    """Feeds of whole batches: the samples that are left over wait for the next epoch's order."""
    return pg.minibatches(samples, BATCH, rng, drop_last=True)


def accuracy(program, test):
    """The share of the test images whose digit has the largest score."""
    executor = pg.Executor()
    hits = []
    for batch in batches(test):
        (scores,) = executor.run(program, {"pixels": batch["pixels"]}, ["scores"])
        hits.append(scores.argmax(axis=1) == batch["labels"])
    return np.mean(hits)


def save_and_evaluate_again(program, test):
    """The accuracy of the program after it went through a file, which any machine can read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.pg"
        pg.save(program, path)
        size = path.stat().st_size
        return accuracy(pg.load(path), test), size


def time_of_a_step(program, loss, feed, steps=300):
    """Seconds of a run with its updates, and of its kernel alone, in a scope of their own."""
    executor = pg.Executor(pg.Scope())
    kernel = executor.kernel(program, [loss])
    state = program.state_dict()
    arrays = [feed[v.hint] if v.hint in feed else state[v.hint] for v in kernel.graph.inputs]
    runs, calls = [], []
    for _ in range(steps):
        start = time.perf_counter()
        executor.run(program, feed, [loss])
        middle = time.perf_counter()
        kernel(*arrays)
        runs.append(middle - start)
        calls.append(time.perf_counter() - middle)
    return np.median(runs), np.median(calls)


def report(epoch, loss):
    """A line of progress now and then, for where there is no bar."""
    if epoch % 10 == 0 or epoch == EPOCHS - 1:
        print(f"epoch {epoch:3d}/{EPOCHS}   loss {loss:.4f}")


def main():
    train, test = samples()
    program, loss = build()
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    history = pg.fit(program, loss, lambda epoch: batches(train, rng), EPOCHS, callback=report)
    took = time.perf_counter() - start
    steps = EPOCHS * (len(train["labels"]) // BATCH)
    print(f"loss {history[0]:.3f} after one epoch, {history[-1]:.4f} after {EPOCHS}")
    print(f"{steps} steps in {took:.2f} s, {1e6 * took / steps:.0f} us each with their batches")

    reader = program.clone(for_test=True)
    found = accuracy(reader, test)
    print(f"accuracy on 360 images that it has not seen: {100 * found:.2f} %")
    assert found >= 0.97

    again, size = save_and_evaluate_again(reader, test)
    print(f"the same from a file of {size} bytes: {100 * again:.2f} %")
    assert again == found

    run, kernel = time_of_a_step(program, loss, next(batches(train)))
    print(
        f"a step takes {1e6 * run:.0f} us, of which {max(0.0, 100 * (1 - kernel / run)):.0f} % "
        "outside the kernel"
    )


if __name__ == "__main__":
    main()
