"""batch_sum is batch and a sum, with what is linear applied once."""

import numpy as np
import pytest

import primgraph as pg
from primgraph.transforms import batch, batch_sum

rng = np.random.default_rng(51)

FUNCTIONS = {
    "linear": lambda x, w: pg.reshape(x @ w, (2, 2))[::-1] * 2.0,
    "product": lambda x, w: x * x,
    "affine": lambda x, w: x + pg.sum(w),
    "mixed": lambda x, w: (pg.tanh(x) @ w + x[:4], pg.sum(x), pg.sin(w), w),
    "twice": lambda x, w: x * pg.sum(x) + pg.cumsum(x),
    "split": lambda x, w: pg.split(x, 3)[1] + pg.split(x * x, 3)[2],
    "joined": lambda x, w: pg.concatenate([x, w[0]]),
    "chosen": lambda x, w: pg.where(w[:, 0] > 0, x, pg.exp(x)),
    "cast": lambda x, w: pg.astype(pg.astype(x, "float32"), "float64") * 3.0,
    "gathered": lambda x, w: pg.scatter_add(w[:, 0], [1, 1], x[[0, 2]]),
    "product of two": lambda x, w: pg.reshape(x, (1, 6)) @ pg.reshape(x, (6, 1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axes", [(0, None), (0, 0), (None, 0)])
def test_it_is_the_sum_of_the_batch(name, axes):
    graph = pg.transforms.lower(pg.trace(FUNCTIONS[name], pg.spec((6,)), pg.spec((6, 4))))
    arrays = [
        rng.standard_normal(s if axis is None else (5, *s))
        for s, axis in zip([(6,), (6, 4)], axes, strict=True)
    ]
    expected = [np.sum(r, axis=0) for r in pg.interpret(batch(graph, 5, axes), *arrays)]
    summed = batch_sum(graph, 5, axes)
    assert summed.output_types == graph.output_types
    for found, known in zip(pg.interpret(summed, *arrays), expected, strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-6, atol=1e-12)


def test_what_is_linear_is_applied_to_the_sum_alone():
    graph = pg.transforms.lower(
        pg.trace(lambda x, w: pg.sum(pg.sin(x) @ w), pg.spec((6,)), pg.spec((6, 4)))
    )
    summed = batch_sum(graph, 100, (0, None))
    sizes = {e.op.name: e.output.type.size for e in summed.body}
    assert sizes["sin"] == 600
    assert sizes["matmul"] == 4


@pytest.mark.parametrize(
    ("dtype", "samples"),
    [("bool", [True, True]), ("uint8", [200, 100]), ("float16", [60000, 60000])],
)
def test_what_a_conversion_makes_room_for_is_added_behind_it(dtype, samples):
    """Sums of few bits wrap round or overflow, and truth values have none."""
    x = np.array(samples, dtype)[:, None]
    graph = pg.trace(lambda x: -pg.astype(x[::-1], "float64"), pg.spec((1,), dtype))
    (found,) = pg.interpret(batch_sum(pg.transforms.lower(graph), 2, (0,)), x)
    assert found == -np.sum(x.astype(float))


def test_wrong_axes_are_refused():
    graph = pg.trace(pg.sin, pg.spec((6,)))
    for axes in ((1,), (), (0, 0)):
        with pytest.raises(pg.BuildError, match="axes are 0 or None"):
            batch_sum(graph, 3, axes)
