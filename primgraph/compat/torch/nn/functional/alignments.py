"""Losses of sequences without alignment."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch.nn.functional.losses import reduce_losses, require_reduction
from primgraph.errors import ArgumentError, ShapeError

__all__ = ["ctc_loss"]


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Compute minus the log-likelihood of sequences without alignment (Graves et al., 2006).

    `log_probs` is of shape (times, samples, classes) or (times, classes); `targets` are padded
    rows, or all rows one behind the other.

    >>> logs = torch.zeros(2, 1, 2).log_softmax(2)
    >>> torch.nn.functional.ctc_loss(logs, torch.tensor([[1]]), [2], [1])
    tensor(0.2877)
    """
    require_reduction(reduction)
    single = log_probs.ndim == 2
    logs = pg.expand_dims(log_probs, 1) if single else log_probs
    if logs.ndim != 3:
        raise ShapeError(f"ctc_loss takes times, samples and classes, not {log_probs.ndim} axes")
    samples = logs.shape[1]
    times = np.broadcast_to(np.asarray(input_lengths).reshape(-1), (samples,))
    counts = np.broadcast_to(np.asarray(target_lengths).reshape(-1), (samples,))
    if (times > logs.shape[0]).any():
        raise ArgumentError(
            f"Expected input_lengths to have value at most {logs.shape[0]}, but got value "
            f"{times.max()}"
        )
    labels = _labels(np.asarray(targets), counts, blank)
    losses = _forward(logs, labels, times, counts)
    if zero_infinity:
        losses = pg.where(pg.isinf(losses), 0, losses)
    if reduction == "mean":
        shares = np.maximum(counts, 1).astype(logs.type.dtype)
        return pg.mean(pg.divide(losses, shares))
    found = reduce_losses(losses, reduction)
    return pg.squeeze(found, 0) if single and reduction == "none" else found


def _labels(targets: Any, counts: Any, blank: int) -> Any:
    """Return rows of labels with blanks around and between them."""
    rows = len(counts)
    if targets.ndim == 1:
        ends = np.cumsum(counts)
        parts = [targets[e - n : e] for e, n in zip(ends, counts, strict=True)]
    else:
        parts = [row[:n] for row, n in zip(targets.reshape(rows, -1), counts, strict=True)]
    found = np.full((rows, 2 * int(counts.max(initial=0)) + 1), blank)
    for row, part in zip(found, parts, strict=True):
        row[1 : 2 * len(part) : 2] = part
    return found


def _forward(logs: Any, labels: Any, times: Any, counts: Any) -> Any:
    """Return minus the logarithms of the sums over all alignments."""
    width = labels.shape[1]
    low = float(np.finfo(logs.type.dtype).min) / 4
    rows = np.broadcast_to(labels, (logs.shape[0], *labels.shape))
    emitted = pg.take_along_axis(logs, rows, 2)
    may_skip = np.zeros(labels.shape, bool)
    may_skip[:, 2:] = (labels[:, 2:] != labels[:, :-2]) & (np.arange(2, width) % 2 == 1)
    state = pg.where(np.arange(width) < 2, emitted[0], low)
    for t in range(1, logs.shape[0]):
        one = pg.pad(state[:, :-1], [(0, 0), (1, 0)], "constant", constant_values=low)
        two = pg.pad(state[:, :-2], [(0, 0), (2, 0)], "constant", constant_values=low)
        if width < 3:
            two = pg.full_like(state, low)
        paths = pg.stack([state, one, pg.where(may_skip, two, low)])
        new = pg.maximum(pg.logsumexp(paths, 0) + emitted[t], low)
        state = pg.where((t < times)[:, None], new, state)
    last = pg.take_along_axis(state, 2 * counts[:, None], 1)
    before = pg.take_along_axis(state, np.maximum(2 * counts - 1, 0)[:, None], 1)
    before = pg.where((counts > 0)[:, None], before, low)
    total = pg.logsumexp(pg.concatenate([last, before], 1), 1)
    return pg.where(pg.less(total, low / 2), np.inf, pg.negative(total))
