"""Packed sequences, attention pooling, CTC, and teacher forcing with a GRU cell.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from oneflow.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class Encoder(nn.Module):
    def __init__(self, vocab, dim, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, num_layers=1, batch_first=True, bidirectional=True)
        self.score = nn.Linear(2 * hidden, 1)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(
            self.embed(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        out, (h, _c) = self.lstm(packed)
        out, sizes = pad_packed_sequence(out, batch_first=True)
        mask = flow.arange(out.shape[1])[None, :] >= sizes[:, None]
        weight = self.score(out).squeeze(-1).masked_fill(mask, float("-inf")).softmax(dim=1)
        return flow.bmm(weight.unsqueeze(1), out).squeeze(1), h


class Decoder(nn.Module):
    def __init__(self, vocab, dim, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.cell = nn.GRUCell(dim, hidden)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, state, targets):
        logits = []
        token = flow.ones(targets.shape[0], dtype=flow.int64)
        for t in range(targets.shape[1]):
            state = self.cell(self.embed(token), state)
            logits.append(self.out(state))
            token = targets[:, t]
        return flow.stack(logits, dim=1)


def set_parameters(module, rng):
    for p in module.parameters():
        p.data.copy_(flow.tensor(rng.normal(0, 0.4, tuple(p.shape)), dtype=flow.float32))


def main():
    rng = np.random.default_rng(16)
    encoder, decoder = Encoder(8, 3, 2), Decoder(6, 3, 4)
    set_parameters(encoder, rng)
    set_parameters(decoder, rng)
    seqs = [flow.tensor(rng.integers(1, 8, n)) for n in (3, 5, 2)]
    lengths = flow.tensor([len(s) for s in seqs])
    tokens = pad_sequence(seqs, batch_first=True, padding_value=0)
    targets = flow.tensor(rng.integers(1, 6, (3, 4)))
    params = list(encoder.parameters()) + list(decoder.parameters())
    opt = flow.optim.Adam(params, lr=0.02)
    sched = flow.optim.lr_scheduler.ReduceLROnPlateau(
        opt, mode="min", factor=0.5, patience=0, threshold=10.0
    )
    losses = []
    for _ in range(4):
        opt.zero_grad()
        context, h = encoder(tokens, lengths)
        logits = decoder(context, targets)
        loss = F.cross_entropy(logits.reshape(-1, 6), targets.reshape(-1), ignore_index=5)
        loss.backward()
        nn.utils.clip_grad_value_(params, 0.3)
        opt.step()
        sched.step(loss.item())
        losses.append([loss.item(), opt.param_groups[0]["lr"]])
    ctc = nn.CTCLoss(blank=0, reduction="mean", zero_infinity=True)
    frames = flow.tensor(rng.normal(size=(7, 3, 6)), dtype=flow.float32, requires_grad=True)
    value = ctc(
        F.log_softmax(frames, dim=-1), targets, flow.tensor([7, 6, 7]), flow.tensor([4, 2, 3])
    )
    value.backward()
    print(tokens)
    print(encoder)
    return {
        "losses": losses,
        "h": h.detach().numpy(),
        "logits": logits.detach().numpy(),
        "ctc": value.item(),
        "grad": frames.grad.numpy(),
        "pad": encoder.embed.weight.grad[0].numpy(),
    }
