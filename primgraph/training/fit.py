"""Training: runs of a program over batches and epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from primgraph.errors import ArgumentError, BuildError, ShapeError
from primgraph.ir.signature import applied, checked
from primgraph.operators.variable import Variable
from primgraph.program.program import Program
from primgraph.program.run import Executor
from primgraph.training.progress import progress as shown

Feed: TypeAlias = Mapping[str, Any]
Feeds: TypeAlias = Iterable[Feed] | Callable[[int], Iterable[Feed]]


@checked
def fit(
    program: Program,
    loss: Variable | str,
    feeds: Feeds,
    epochs: int,
    callback: Callable[[int, float], bool | None] | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> list[float]:
    """Run `program`, with all its updates, once for each feed in each of `epochs` epochs.

    `feeds` is a collection of feeds, or a function of the epoch, from 0, that gives one.
    Returns the mean of `loss`, which has one element, over the runs of each epoch.
    `callback(epoch, loss)` sees that mean, and ends training by returning True.

    `progress` tells how far it has come: in a notebook by a table that renews itself, on a
    terminal by a bar, for which rich has to be installed. By default these are shown where they
    can be, and nothing where the output is a file.
    `executor` is a new one unless given.

    Raises `BuildError` for a program that updates nothing, `ShapeError` for a loss of more than
    one element, `ArgumentError` for arguments of other kinds and for an epoch without feeds.
    """
    if not program.updates:
        raise BuildError(
            "the program updates nothing, so there is nothing to train",
            hint="call the minimize of an optimizer on its loss first",
        )
    target = program.variable(loss) if isinstance(loss, str) else loss
    if target is not None and target.size != 1:
        raise ShapeError(f"a loss has one element, not {target.type}")
    if isinstance(epochs, bool) or not isinstance(epochs, int | np.integer) or epochs < 0:
        raise ArgumentError(f"the number of epochs is an integer from 0 on, not {epochs!r:.80}")
    runner = Executor() if executor is None else executor
    history: list[float] = []
    with shown(progress, epochs, program.name) as advance:
        for epoch in range(epochs):
            batches = applied(feeds, epoch) if callable(feeds) else feeds
            losses = [runner.run(program, batch, [loss])[0].item() for batch in batches]
            if not losses:
                raise ArgumentError(
                    f"there are no feeds in epoch {epoch}",
                    hint="give a list, or a function of the epoch: an iterator is used up by one",
                )
            history.append(float(np.mean(losses)))
            advance(history[-1])
            if callback is not None and applied(callback, epoch, history[-1]) is True:
                break
    return history


@checked
def minibatches(
    arrays: Mapping[str, Any],
    size: int,
    rng: np.random.Generator | None = None,
    drop_last: bool | None = None,
) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    """Feeds of `size` samples each, in the order of the arrays or in one drawn from `rng`.

    Samples lie along the first axis of all `arrays`. Programs have fixed shapes, in which a last
    batch of fewer samples does not fit. So where there would be one, `drop_last` has to say what
    is to become of it: True leaves its samples out, False gives it as it is. Raises
    `ArgumentError` where that is not said, for arrays of different lengths and for a size that is
    not positive.
    """
    samples = {name: np.asarray(array) for name, array in arrays.items()}
    lengths = {array.shape[:1] for array in samples.values()}
    if len(lengths) != 1 or () in lengths:
        raise ArgumentError("minibatches takes arrays with one number of samples along axis 0")
    if size < 1:
        raise ArgumentError(f"a batch has at least one sample, not {size}")
    ((count,),) = lengths
    if drop_last is None and count % size:
        raise ArgumentError(
            f"{count} samples make {count // size} batches of {size}, and {count % size} are left",
            hint="drop_last=True leaves them out, drop_last=False gives them as a smaller batch",
        )
    order = np.arange(count) if rng is None else rng.permutation(count)
    end = count - count % size if drop_last else count
    return ({n: a[order[i : i + size]] for n, a in samples.items()} for i in range(0, end, size))
