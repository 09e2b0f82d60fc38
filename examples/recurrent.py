"""
Recurrent network (GRU) for sequences of any length
===================================================

Learn a grammar, and to remember one letter over many others. Words of the embedded Reber
grammar begin with B and T, or with B and P; then comes a word of Reber's grammar, of any
length; the last letter but one repeats the second one. S. Hochreiter and J. Schmidhuber (Long
short-term memory, 1997) train networks to predict which letters may come next. The last but one
takes a memory as long as the word.

The network is a layer of gated units (K. Cho and others, 2014), whose steps are a loop of the
program, pg.scan. The length and the number of words are symbolic sizes: one program takes
batches of 32, the last 8 words of each epoch, and longer words than any in training.

PRIMGRAPH_EXAMPLE_STEPS sets the number of epochs.
"""

import os
import time

import numpy as np

import primgraph as pg
from primgraph import nn

LETTERS = "BTSXVPE"
# What may come next in each state, and the state after that.
REBER = (
    {"B": 1},
    {"T": 2, "P": 3},
    {"S": 2, "X": 4},
    {"T": 3, "V": 5},
    {"X": 3, "S": 6},
    {"P": 4, "V": 6},
    {"E": 7},
)
WORDS, BATCH, HIDDEN = 1000, 32, 24
EPOCHS = int(os.environ.get("PRIMGRAPH_EXAMPLE_STEPS", "15"))


def word(rng, shortest, longest):
    """A word of the embedded grammar with so many letters, and what may stand at each place."""
    while True:
        first = rng.choice(["T", "P"])
        letters, allowed, state = ["B", first], ["B", "TP"], 0
        while state != 7:
            allowed.append("".join(REBER[state]))
            letters.append(rng.choice(list(REBER[state])))
            state = REBER[state][letters[-1]]
        letters += [first, "E"]
        allowed += [first, "E"]
        if shortest <= len(letters) <= longest:
            return letters, allowed


def words(rng, count, shortest, longest):
    """Numbers of letters, E after the end; lengths; and which letters may stand at each place."""
    text = np.full((count, longest), LETTERS.index("E"))
    legal = np.zeros((count, longest, len(LETTERS)), bool)
    lengths = np.zeros(count, np.int64)
    for i in range(count):
        letters, allowed = word(rng, shortest, longest)
        lengths[i] = len(letters)
        text[i, : len(letters)] = [LETTERS.index(c) for c in letters]
        for k, some in enumerate(allowed):
            legal[i, k, [LETTERS.index(c) for c in some]] = True
    return {"text": text, "length": lengths}, legal


class Gated(nn.Layer):
    """From letters to the scores of those that come next."""

    def __init__(self):
        super().__init__()
        self.of_letter = nn.Linear(len(LETTERS), 3 * HIDDEN)
        self.of_state = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.scores = nn.Linear(HIDDEN, len(LETTERS))

    def forward(self, letters):
        def step(h, x):
            update, reset, new = pg.split(x, 3, axis=1)
            a, b, c = pg.split(self.of_state(h), 3, axis=1)
            keep = pg.sigmoid(update + a)
            new = pg.tanh(new + pg.sigmoid(reset + b) * c)
            h = keep * h + (1 - keep) * new
            return h, h

        # One product for all letters of all words, before the loop.
        xs = self.of_letter(pg.one_hot(letters.T, len(LETTERS)))
        _, states = pg.scan(step, pg.zeros((letters.shape[0], HIDDEN)), xs)
        return self.scores(states)


def build():
    """The program of a training step, and what it gives."""
    with pg.Program("recurrent") as program:
        text = pg.data("text", ("N", "T"), "int64")
        length = pg.data("length", ("N",), "int64")
        scores = Gated()(text[:, :-1])
        scores.name = "scores"
        # Places behind the end of a word do not count.
        place = pg.arange(text.shape[1])[1:, None]
        counts = pg.astype(place < length, "float64")
        losses = pg.cross_entropy(scores, text[:, 1:].T, reduction="none")
        loss = pg.sum(losses * counts) / pg.sum(counts)
        pg.optimizer.Adam(0.01).minimize(loss)
    return program, loss


def judged(program, feed, legal):
    """The part of the probability that goes to letters that may come next, and the part of words
    of which the last letter but one is foreseen."""
    executor = pg.Executor()
    (scores,) = executor.run(program.clone(for_test=True), feed, ["scores"])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    chances = weights / weights.sum(axis=-1, keepdims=True)
    on_legal = np.sum(chances * legal[:, 1:].transpose(1, 0, 2), axis=-1)
    inside = np.arange(1, legal.shape[1])[:, None] < feed["length"]
    last, each = feed["length"] - 3, np.arange(len(feed["length"]))
    right = scores[last, each].argmax(axis=-1) == feed["text"][each, last + 1]
    return np.mean(on_legal[inside]), np.mean(right)


def main():
    rng = np.random.default_rng(0)
    train, _ = words(rng, WORDS, 9, 16)
    short, legal_short = words(rng, 300, 9, 16)
    long, legal_long = words(rng, 200, 17, 30)

    pg.seed(0)
    program, loss = build()
    begun = time.perf_counter()
    losses = pg.fit(
        program,
        loss,
        lambda epoch: pg.minibatches(train, BATCH, rng, drop_last=False),
        EPOCHS,
        callback=lambda epoch, mean: print(f"epoch {epoch + 1:2d}   loss {mean:.4f}"),
    )
    print(f"trained for {time.perf_counter() - begun:.1f} s")

    legal, right = judged(program, short, legal_short)
    print(f"words as long:  {legal:.4f} of the chances are of letters that may come,")
    print(f"                and {100 * right:.1f} % of the letters to be remembered are")
    further, remembered = judged(program, long, legal_long)
    print(f"longer words:   {further:.4f}, and {100 * remembered:.1f} %")
    if EPOCHS >= 15:
        assert losses[-1] < losses[0] / 2
        assert legal > 0.99
        assert right > 0.98


if __name__ == "__main__":
    main()
