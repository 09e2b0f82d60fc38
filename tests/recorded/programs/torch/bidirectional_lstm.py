"""Bidirectional LSTM of sequences that are padded, packed and collated."""

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import (
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
)
from torch.utils.data import DataLoader, Dataset


class Text(Dataset):
    def __init__(self, rng, n=24):
        self.items = []
        for _ in range(n):
            length = rng.integers(2, 8)
            seq = rng.integers(1, 12, length)
            self.items.append((torch.LongTensor(seq), int(seq.sum() % 2)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    batch.sort(key=lambda b: len(b[0]), reverse=True)
    seqs, labels = zip(*batch, strict=False)
    lengths = torch.tensor([len(s) for s in seqs])
    return (
        pad_sequence(seqs, batch_first=True, padding_value=0),
        lengths,
        torch.tensor(labels, dtype=torch.float),
    )


class Tagger(nn.Module):
    def __init__(self, vocab, emb, hid, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=0)
        self.lstm = nn.LSTM(
            emb, hid, num_layers=layers, bidirectional=True, batch_first=True, dropout=0.0
        )
        self.fc = nn.Linear(hid * 2, 1)
        self.hid, self.layers = hid, layers

    def init_hidden(self, b):
        weight = next(self.parameters()).data
        return (
            weight.new(self.layers * 2, b, self.hid).zero_(),
            weight.new_zeros(self.layers * 2, b, self.hid),
        )

    def forward(self, x, lengths):
        e = self.embedding(x)
        packed = pack_padded_sequence(e, lengths, batch_first=True)
        out, (h, _c) = self.lstm(packed, self.init_hidden(x.size(0)))
        out, lens = pad_packed_sequence(out, batch_first=True)
        last = torch.cat((h[-2], h[-1]), dim=1)
        pooled = out.sum(1) / lens.unsqueeze(1).float()
        return self.fc(last + pooled).squeeze(1), out


def main():
    rng = np.random.default_rng(6)
    model = Tagger(12, 5, 6)
    for name, p in model.named_parameters():
        if "weight" in name or "bias" in name:
            with torch.no_grad():
                p.copy_(torch.tensor(rng.uniform(-0.4, 0.4, p.shape)))
        if "bias_ih" in name:
            n = p.size(0)
            p.data[n // 4 : n // 2].fill_(1.0)
    model.embedding.weight.data[0].zero_()
    loader = DataLoader(Text(rng), batch_size=8, collate_fn=collate)
    crit = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(1.5))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for _epoch in range(2):
        for x, lengths, y in loader:
            opt.zero_grad()
            logit, out = model(x, lengths)
            loss = crit(logit, y)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            losses.append([loss.item(), norm.item()])
    with torch.no_grad():
        ps = pack_sequence([torch.ones(3, 5), torch.ones(1, 5)])
        _o, _ = model.lstm(ps)
        preds = torch.round(torch.sigmoid(logit))
    return (
        losses,
        preds,
        out.shape,
        x,
        lengths,
        [n for n, _ in model.lstm.named_parameters()],
        model.lstm.weight_hh_l1_reverse[:2],
    )
