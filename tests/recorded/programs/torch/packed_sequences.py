"""A classifier of sequences of different lengths: embedding, packed LSTM, last states."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

VOCABULARY, PAD = 7, 0


class Tagger(nn.Module):
    def __init__(self, embedding, hidden, classes):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, embedding, padding_idx=PAD)
        self.lstm = nn.LSTM(embedding, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(
            self.embedding(tokens), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        output, (h, _) = self.lstm(packed)
        padded, _ = pad_packed_sequence(output, batch_first=True)
        summary = torch.cat([h[-2], h[-1]], dim=1)
        return self.head(summary), padded


def make_sentences(rng, count):
    sentences, labels = [], []
    for _ in range(count):
        length = int(rng.integers(2, 6))
        words = rng.integers(1, VOCABULARY, length)
        sentences.append(torch.tensor(words))
        labels.append(int(words[0] > words[-1]))
    return sentences, torch.tensor(labels)


def collate(sentences):
    lengths = torch.tensor([len(s) for s in sentences])
    return pad_sequence(sentences, batch_first=True, padding_value=PAD), lengths


def fill(model, rng):
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.tensor(rng.normal(0.0, 0.4, tuple(p.shape))))
        model.embedding.weight[PAD].fill_(0)


def main():
    rng = np.random.default_rng(8)
    model = Tagger(embedding=3, hidden=4, classes=2).double()
    fill(model, rng)
    sentences, labels = make_sentences(rng, 12)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    losses = []
    for _ in range(3):
        model.train()
        for start in range(0, len(sentences), 6):
            tokens, lengths = collate(sentences[start : start + 6])
            scores, _ = model(tokens, lengths)
            loss = criterion(scores, labels[start : start + 6])
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            losses.append((loss.item(), float(norm)))
        scheduler.step()
    model.eval()
    tokens, lengths = collate(sentences[:3])
    with torch.no_grad():
        scores, padded = model(tokens, lengths)
    mask = torch.arange(padded.size(1))[None, :] < lengths[:, None]
    mean = (padded * mask.unsqueeze(-1)).sum(dim=1) / lengths.unsqueeze(1)
    return {
        "losses": np.array(losses),
        "scores": scores.numpy(),
        "mean": mean.numpy(),
        "padding": model.embedding.weight[PAD].detach().numpy(),
        "lengths": lengths.tolist(),
    }
