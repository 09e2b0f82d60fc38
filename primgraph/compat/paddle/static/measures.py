"""Measures of a classifier in a program: accuracy, and the area under the ROC curve."""

from __future__ import annotations

from typing import Any

from primgraph import operators as pg
from primgraph.compat.paddle.core.assignments import assign_to, current
from primgraph.compat.paddle.core.program import building_program
from primgraph.compat.paddle.framework import paddles, reject_options
from primgraph.compat.paddle.functions import index_add
from primgraph.compat.paddle.initializers import Constant
from primgraph.compat.paddle.utils import unique_name
from primgraph.errors import OptionError
from primgraph.ir.types import INT64, TensorType
from primgraph.operators.variable import Variable


@paddles
def accuracy(
    input: Variable, label: Variable, k: int = 1, correct: Any = None, total: Any = None
) -> Variable:
    """Compute the share of rows whose label is among the `k` largest of `input`.

    >>> scores = paddle.to_tensor([[0.1, 0.9], [0.8, 0.2]])
    >>> paddle.static.accuracy(scores, paddle.to_tensor([[1], [1]])).item()
    0.5
    """
    reject_options("accuracy", correct=correct, total=total)
    labels = pg.reshape(label, (-1, 1))
    score = pg.take_along_axis(input, pg.astype(labels, "int64"), 1)
    # Of equal scores the first counts.
    places = pg.iota(input.type.shape, 1, "int64")
    is_before = pg.logical_and(pg.equal(input, score), pg.less(places, labels))
    better = pg.logical_or(pg.greater(input, score), is_before)
    return pg.mean(pg.astype(pg.less(pg.sum(pg.astype(better, "int64"), 1), k), "float32"))


@paddles
def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 4095,
    topk: int = 1,
    slide_steps: int = 1,
    ins_tag_weight: Any = None,
) -> tuple[Variable, Variable, list[Variable]]:
    """Compute the area under the ROC curve of all batches since the start, and of this one.

    Scores of the class 1 are in the last column of `input`, and are counted in `num_thresholds`
    intervals. The third result has the counts of the batch and of all batches, by the labels 1
    and 0. Raises `OptionError` for another curve, and for more `slide_steps` than one.

    >>> with paddle.static.program_guard(paddle.static.Program()) as program:
    ...     scores = paddle.static.data("scores", [None, 2], "float32")
    ...     labels = paddle.static.data("labels", [None, 1], "int64")
    ...     area, _, _ = paddle.static.auc(scores, labels)
    >>> feed = {"scores": [[0.2, 0.8], [0.9, 0.1]], "labels": [[1], [0]]}
    >>> paddle.static.Executor().run(program, feed, [area])
    [array(1.)]
    """
    reject_options("auc", ins_tag_weight=ins_tag_weight)
    if curve != "ROC" or slide_steps != 1:
        raise OptionError("auc: only curve='ROC' and slide_steps=1 are supported")
    places = pg.astype(input[:, -1] * float(num_thresholds), "int64")
    is_positive = pg.astype(pg.reshape(label, (-1,)), "int64")
    batch, whole = [], []
    for name, counted in (("pos", is_positive), ("neg", 1 - is_positive)):
        empty = pg.zeros((num_thresholds + 1,), "int64")
        batch.append(index_add(empty, places, 0, counted))
        whole.append(_total(name, batch[-1]))
    return _area(*map(current, whole)), _area(*batch), [*batch, *whole]


def _total(name: str, counts: Variable) -> Variable:
    """Return the sum of the counts of all runs, which a state keeps."""
    chosen = unique_name.generate(f"auc_stat_{name}")
    kept = building_program().state(chosen, TensorType(counts.type.shape, INT64), Constant(0.0))
    return assign_to(kept, pg.add(kept, counts))


def _area(positive: Any, negative: Any) -> Variable:
    """Return the area under the curve of true by false positives, 0 without a label of each."""
    above = [pg.astype(pg.flip(counts, 0), "float64") for counts in (positive, negative)]
    true, false = (pg.cumsum(counts, 0) for counts in above)
    area = pg.sum(above[1] * (true - 0.5 * above[0]))
    whole = true[-1] * false[-1]
    return pg.where(whole > 0.0, area / pg.maximum(whole, 1.0), 0.0)
