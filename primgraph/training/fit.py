"""Training loops: runs of a program, or eager steps, over batches and epochs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from primgraph.base.providers import provider
from primgraph.eager.tensor import Tensor, tensor
from primgraph.errors import ArgumentError, BuildError, OptionError, ShapeError
from primgraph.ir.frontend.signature import call_user_function, check_arguments
from primgraph.operators.variable import Variable
from primgraph.optimizer import Optimizer
from primgraph.program.program import Program
from primgraph.program.run import Executor
from primgraph.training.progress import progress as shown

Feed: TypeAlias = Mapping[str, Any]


@check_arguments
def fit(
    program: Program | Callable[..., Tensor],
    loss: Variable | str | Optimizer,
    feeds: Any,
    epochs: int = 1,
    callback: Callable[[int, float], bool | None] | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
    *,
    target: str | None = None,
    client: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 1,
    chunks_per_step: int | None = None,
    shuffle: int | None = None,
) -> list[float]:
    """Train `program`: run it once for each feed in each epoch, and return the mean losses.

    `feeds` is a collection of feeds, or a function of the epoch, from 0, that returns one. The
    result has the mean of `loss`, which has one element, over the runs of each epoch.
    `callback(epoch, loss)` receives that mean, and ends training by returning True.

    Eagerly, `fit(function, optimizer, feeds, epochs)` calls `function` with the arrays of each feed
    as tensors, by name, and steps `optimizer` along the gradients of the loss that it returns:

        pg.fit(lambda x, labels: loss(network(x), labels), adam, batches, epochs=10)

    `progress` shows a table in a notebook, a bar on a terminal with rich installed, and nothing if
    the output is a file. `executor` is a new one by default, for a `target` as in `pg.compile`:
    "numpy", "c" or "auto". Eager training uses the environment variable PRIMGRAPH_TARGET.

    With a dask `client`, `feeds` are the samples: a dict of arrays in chunks by the names of
    inputs, as for `pg.distributed.chunks`. A step covers `chunks_per_step` chunks, by default all.
    Workers compute their parts of the gradients, which are added in a fixed order, and the client
    updates once. `shuffle`, an integer, draws the order of chunks in each epoch. A `checkpoint`
    file is written after each epoch and every `every` steps; if it exists, training resumes from it
    with the same bits. Programs that mix samples other than by sums, as batch normalization does,
    are refused with their line.

    Raises `BuildError` for a program without updates, and for an optimizer without parameters;
    `ShapeError` for a loss of more than one element; `CompileError` for an unknown target;
    `ArgumentError` for other arguments, for a target beside an executor or a function, and for an
    epoch without feeds.

    >>> with pg.Program() as program:
    ...     x, y = pg.data("x", (4, 1)), pg.data("y", (4, 1))
    ...     loss = pg.mse_loss(pg.nn.Linear(1, 1)(x), y)
    ...     updates = pg.optimizer.SGD(0.1).minimize(loss)
    >>> feed = {"x": np.ones((4, 1)), "y": np.ones((4, 1))}
    >>> losses = pg.fit(program, loss, [feed], epochs=20)
    >>> losses[-1] < losses[0]
    True
    """
    _require_epochs(epochs)
    if target is not None and (
        executor is not None or client is not None or not isinstance(program, Program)
    ):
        raise ArgumentError(
            "a target is for programs that a new executor runs in this process",
            hint="say pg.Executor(target=...), or set PRIMGRAPH_TARGET for all else",
        )
    over_chunks = {
        "checkpoint": checkpoint,
        "every": every,
        "chunks_per_step": chunks_per_step,
        "shuffle": shuffle,
    }
    if client is not None:
        if executor is not None:
            raise ArgumentError("an executor runs in this process, and a client was given")
        module = provider("distributed training")
        options = {"callback": callback, "progress": progress, **over_chunks}
        found: list[float] = module.fit(program, loss, feeds, epochs, client=client, **options)
        return found
    for name, value in over_chunks.items():
        if value is not None and (name, value) != ("every", 1):
            raise OptionError(f"{name} is for training with a client")
    _require_feeds(feeds)
    run, name = _run_of(program, loss, executor, target)
    history: list[float] = []
    with shown(progress, epochs, name) as advance:
        for epoch in range(epochs):
            history.append(_mean_loss(run, feeds, epoch))
            advance(history[-1])
            if callback is not None and call_user_function(callback, epoch, history[-1]) is True:
                break
    return history


def _require_epochs(epochs: Any) -> None:
    if isinstance(epochs, bool) or not isinstance(epochs, int | np.integer) or epochs < 0:
        raise ArgumentError(f"the number of epochs is an integer from 0 on, not {epochs!r:.80}")


def _require_feeds(feeds: Any) -> None:
    if not callable(feeds) and (isinstance(feeds, Mapping) or not isinstance(feeds, Iterable)):
        raise ArgumentError(
            f"feeds is a list or a function, not {type(feeds).__name__} {feeds!r:.60}",
            hint="put it in a list" if isinstance(feeds, Mapping) else "",
        )


def _run_of(
    program: Program | Callable[..., Tensor], loss: Any, executor: Executor | None, target: Any
) -> tuple[Callable[[Feed], float], str]:
    """Return a function that takes a step with a feed and returns the loss before it, and its
    name."""
    if isinstance(program, Program):
        runner = Executor(target=target) if executor is None else executor
        return _runner(program, loss, runner), program.name
    name = getattr(program, "__name__", type(program).__name__)
    return _stepper(program, loss, executor), name


def _mean_loss(run: Callable[[Feed], float], feeds: Any, epoch: int) -> float:
    """Return the mean of the losses of an epoch, with one step for each feed."""
    batches = call_user_function(feeds, epoch) if callable(feeds) else feeds
    losses = [run(batch) for batch in batches]
    if not losses:
        raise ArgumentError(
            f"there are no feeds in epoch {epoch}",
            hint="give a list, or a function of the epoch: an iterator is used up by one",
        )
    return float(np.mean(losses))


def _runner(program: Program, loss: Any, runner: Executor) -> Callable[[Feed], float]:
    """Return a function that runs a program with a feed, and returns the loss."""
    if isinstance(loss, Optimizer):
        raise ArgumentError(
            "fit of a program takes its loss, and not the optimizer",
            hint="optimizer.minimize(loss) is part of the program",
        )
    if not program.updates:
        raise BuildError(
            "the program updates nothing, so there is nothing to train",
            hint="call the minimize of an optimizer on its loss first",
        )
    found = program.variable(loss) if isinstance(loss, str) else loss
    if found is not None and found.size != 1:
        raise ShapeError(f"a loss has one element, not {found.type}")
    return lambda feed: float(runner.run(program, feed, [loss])[0].item())


def _stepper(
    function: Callable[..., Tensor], optimizer: Any, executor: Executor | None
) -> Callable[[Feed], float]:
    """Return a function that takes an eager step with a feed, and returns the loss before it."""
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(
            f"fit of a function takes an optimizer, not {type(optimizer).__name__}",
            hint="make one of parameters: pg.optimizer.Adam(parameters=layer.parameters())",
        )
    if executor is not None:
        raise ArgumentError("an executor runs programs, and fit was given a function")

    def step(feed: Feed) -> float:
        loss = call_user_function(
            function, **{name: _as_tensor(array) for name, array in feed.items()}
        )
        if not isinstance(loss, Tensor):
            raise ArgumentError(f"the function gives the loss as a tensor, not {loss!r:.60}")
        if loss.size != 1:
            raise ShapeError(f"a loss has one element, not {loss.type}")
        optimizer.clear_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def _as_tensor(array: Any) -> Tensor:
    """Convert `array` to a tensor; return a tensor as it is."""
    return array if isinstance(array, Tensor) else tensor(array)


@check_arguments
def minibatches(
    arrays: Mapping[str, Any],
    size: int,
    rng: np.random.Generator | None = None,
    drop_last: bool | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield feeds of `size` samples each, in the order of the arrays, or shuffled by `rng`.

    Samples lie along the first axis of all `arrays`. Tensors give tensors, as constants. If `size`
    does not divide the number of samples, `drop_last` is required: True drops the rest, False
    yields a smaller batch, for programs with a symbolic size such as `pg.data("x", ("N", 3))`.
    Raises `ArgumentError` if it is missing, for arrays of different lengths and for a size that is
    not positive.

    >>> [batch["x"].shape for batch in pg.minibatches({"x": np.ones((5, 2))}, 2, drop_last=False)]
    [(2, 2), (2, 2), (1, 2)]
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
    tensors = {name for name, array in arrays.items() if isinstance(array, Tensor)}

    def batch(places: np.ndarray[Any, Any]) -> dict[str, Any]:
        found = {name: array[places] for name, array in samples.items()}
        return {n: tensor(array) if n in tensors else array for n, array in found.items()}

    return (batch(order[i : i + size]) for i in range(0, end, size))
