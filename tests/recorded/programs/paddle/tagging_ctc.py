"""Tagging and transcription of padded sequences: LSTM with lengths, GRU, CTC."""

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F


class Tagger(nn.Layer):
    def __init__(self, vocab, dim, hidden, tags):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, num_layers=2, direction="bidirect")
        self.fc = nn.Linear(2 * hidden, tags)

    def forward(self, tokens, lengths):
        x = self.embedding(tokens)
        out, (h, c) = self.lstm(x, sequence_length=lengths)
        return self.fc(out), h, c


class Speech(nn.Layer):
    def __init__(self, features, hidden, symbols):
        super().__init__()
        self.gru = nn.GRU(features, hidden, time_major=False)
        self.cell = nn.SimpleRNNCell(hidden, hidden, activation="tanh")
        self.rnn = nn.RNN(self.cell, is_reverse=True)
        self.out = nn.Linear(hidden, symbols)

    def forward(self, x):
        y, _ = self.gru(x)
        y, state = self.rnn(y)
        return self.out(y), state


def randomize(net, rng, scale=0.4):
    with paddle.no_grad():
        for p in net.parameters():
            p.set_value(paddle.to_tensor(rng.normal(0, scale, p.shape), dtype=p.dtype))


def masked_loss(logits, tags, lengths):
    loss = F.cross_entropy(logits, tags, reduction="none").squeeze(-1)
    mask = F.sequence_mask(lengths, maxlen=tags.shape[1], dtype="float32")
    return (loss * mask).sum() / mask.sum()


def collapse(best, blank=0):
    previous, result = blank, []
    for symbol in best:
        if symbol not in (blank, previous):
            result.append(int(symbol))
        previous = symbol
    return result


def main():
    rng = np.random.default_rng(31)
    tagger = Tagger(9, 4, 3, 5)
    randomize(tagger, rng)
    lengths = np.array([6, 3, 5], "int64")
    tokens = rng.integers(1, 9, (3, 6))
    for row, n in zip(tokens, lengths, strict=False):
        row[n:] = 0
    tags = rng.integers(0, 5, (3, 6, 1))
    tokens, tags, lens = map(paddle.to_tensor, (tokens, tags, lengths))
    clip = nn.ClipGradByNorm(clip_norm=0.5)
    opt = paddle.optimizer.Momentum(
        0.2, parameters=tagger.parameters(), use_nesterov=True, grad_clip=clip
    )
    losses = []
    for _ in range(3):
        logits, h, c = tagger(tokens, lens)
        loss = masked_loss(logits, tags, lens)
        loss.backward()
        opt.minimize(loss)
        tagger.clear_gradients()
        losses.append(float(loss.numpy()))
    speech = Speech(4, 5, 4)
    randomize(speech, rng)
    x = paddle.to_tensor(rng.normal(size=(2, 7, 4)).astype("float32"))
    labels = paddle.to_tensor([[1, 2, 2], [3, 1, 0]], dtype="int32")
    in_len, lab_len = paddle.to_tensor([7, 6], "int64"), paddle.to_tensor([3, 2], "int64")
    ctc = nn.CTCLoss(blank=0, reduction="mean")
    opt2 = paddle.optimizer.Adagrad(
        0.1, parameters=speech.parameters(), initial_accumulator_value=0.1
    )
    ctcs = []
    for _ in range(3):
        logits, state = speech(x)
        value = ctc(paddle.transpose(logits, [1, 0, 2]), labels, in_len, lab_len)
        value.backward()
        opt2.step()
        opt2.clear_grad()
        ctcs.append(value.item())
    best = paddle.argmax(logits, axis=-1).numpy()
    print(tagger)
    print(tagger.embedding.weight)
    print(tags.squeeze(-1))
    return {
        "losses": losses,
        "ctcs": ctcs,
        "h": h,
        "c": c,
        "state": state,
        "pad": tagger.embedding.weight[0],
        "decoded": [collapse(b) for b in best],
        "names": [n for n, _ in tagger.named_parameters()][:6],
        "shape": [logits.shape, h.shape],
    }
