"""Curves of learning rates that schedules of several systems have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from primgraph.errors import OptionError


def cosine(start: float, end: float, part: float) -> float:
    """Return the value at `part` of half a cosine from `start` to `end`."""
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def linear(start: float, end: float, part: float) -> float:
    """Return the value at `part` of the line from `start` to `end`."""
    return (end - start) * part + start


def annealing(strategy: Any) -> Callable[[float, float, float], float]:
    """Return the curve of that name. Raises `OptionError` for another name."""
    if strategy not in ("cos", "linear"):
        raise OptionError(
            f"anneal_strategy must be one of 'cos' or 'linear', instead got {strategy!r:.40}"
        )
    return cosine if strategy == "cos" else linear


def chained_cosine(lr: float, base: float, low: float, epoch: int, period: int) -> float:
    """Return the rate after `lr`, the one of the epoch before, along a cosine."""
    if (epoch - 1 - period) % (2 * period) == 0:
        return lr + (base - low) * (1 - math.cos(math.pi / period)) / 2
    before = 1 + math.cos(math.pi * (epoch - 1) / period)
    return (1 + math.cos(math.pi * epoch / period)) / before * (lr - low) + low


def line_factor(epoch: int, steps: int, start: float, end: float) -> float:
    """Return the factor from the rate of the epoch before, along a line of factors."""
    return 1.0 + (end - start) / (steps * start + (epoch - 1) * (end - start))


def restart(epoch: int, first: int, factor: int) -> tuple[float, int]:
    """Return the epoch within a period that contains `epoch`, and the length of that period.

    The first period has `first` epochs, and each one `factor` times as many as the one before.
    """
    if epoch < first:
        return epoch, first
    if factor == 1:
        return epoch % first, first
    count = int(math.log(epoch / first * (factor - 1) + 1, factor))
    begin = first * (factor**count - 1) / (factor - 1)
    return epoch - begin, first * factor**count


def cycle_place(epoch: int, size: float, ratio: float) -> tuple[int, float]:
    """Return the number of a cycle, from 1, and the height in a triangle, from 0 to 1."""
    cycle = math.floor(1 + epoch / size)
    part = 1.0 + epoch / size - cycle
    return cycle, part / ratio if part <= ratio else (part - 1) / (ratio - 1)


def cycle_scale(mode: str, gamma: float) -> tuple[Callable[[float], float], str]:
    """Return the scale of the height of cycles, and whether it is of the cycle or the epoch."""
    if mode == "triangular":
        return (lambda x: 1.0), "cycle"
    if mode == "triangular2":
        return (lambda x: 1 / 2.0 ** (x - 1)), "cycle"
    if mode == "exp_range":
        return (lambda x: gamma**x), "iterations"
    raise OptionError(f"mode is invalid and scale_fn is None: {mode!r:.40}")


def is_better(value: float, best: float, mode: str, threshold: float, kind: str) -> bool:
    """Return whether `value` improves on `best` by a threshold, relative ("rel") or absolute."""
    if mode == "min":
        limit = best * (1.0 - threshold) if kind == "rel" else best - threshold
        return value < limit
    limit = best * (1.0 + threshold) if kind == "rel" else best + threshold
    return value > limit
