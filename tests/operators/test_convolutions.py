"""Convolutions, their transposes and pools, against loops over every window in NumPy."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import evaluate_one, same, traced

import primgraph as pg
from primgraph.ir.interpret import interpret

RNG = np.random.default_rng(7)


def each(value: Any, count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


def by_windows(
    x: np.ndarray[Any, Any],
    weight: np.ndarray[Any, Any],
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> np.ndarray[Any, Any]:
    """A convolution: each element of the result by itself."""
    count = weight.ndim - 2
    steps, apart = each(stride, count), each(dilation, count)
    spans = [d * (n - 1) + 1 for n, d in zip(weight.shape[2:], apart, strict=True)]
    if padding == "same":
        ends = [((n - 1) // 2, n - 1 - (n - 1) // 2) for n in spans]
    else:
        ends = [(n, n) for n in each(0 if padding == "valid" else padding, count)]
    x = np.pad(x, [(0, 0), (0, 0), *ends])
    counts = [(n - m) // s + 1 for n, m, s in zip(x.shape[2:], spans, steps, strict=True)]
    result = np.zeros((len(x), len(weight), *counts), x.dtype)
    inner, outer = weight.shape[1], len(weight) // groups
    for sample, channel in np.ndindex(len(x), len(weight)):
        first = channel // outer * inner
        for place in np.ndindex(*counts):
            window = tuple(
                slice(i * s, i * s + m, d)
                for i, s, m, d in zip(place, steps, spans, apart, strict=True)
            )
            part = x[(sample, slice(first, first + inner), *window)]
            result[(sample, channel, *place)] = np.sum(part * weight[channel])
    return result if bias is None else result + np.reshape(bias, (-1, *(1,) * count))


def scattered(
    x: np.ndarray[Any, Any],
    weight: np.ndarray[Any, Any],
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> np.ndarray[Any, Any]:
    """A transposed convolution: each element of `x` adds a window to the result."""
    count = weight.ndim - 2
    steps, apart, cut = each(stride, count), each(dilation, count), each(padding, count)
    more = each(output_padding, count)
    extents = [
        (n - 1) * s + d * (m - 1) + 1 + e
        for n, s, d, m, e in zip(x.shape[2:], steps, apart, weight.shape[2:], more, strict=True)
    ]
    inner, outer = len(weight) // groups, weight.shape[1]
    result = np.zeros((len(x), outer * groups, *extents), x.dtype)
    for index in np.ndindex(*x.shape):
        sample, channel, *place = index
        first = channel // inner * outer
        window = tuple(
            slice(i * s, i * s + d * (m - 1) + 1, d)
            for i, s, d, m in zip(place, steps, apart, weight.shape[2:], strict=True)
        )
        result[(sample, slice(first, first + outer), *window)] += x[index] * weight[channel]
    result = result[(..., *(slice(c, n - c) for c, n in zip(cut, extents, strict=True)))]
    return result if bias is None else result + np.reshape(bias, (-1, *(1,) * count))


def pooled(
    function: Callable[..., Any],
    x: np.ndarray[Any, Any],
    size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> np.ndarray[Any, Any]:
    """`function` of the elements of each window, and of how many places of it are within."""
    count = x.ndim - 2
    sizes, edges, apart = each(size, count), each(padding, count), each(dilation, count)
    steps = sizes if stride is None else each(stride, count)
    starts = []
    for n, m, s, p, d in zip(x.shape[2:], sizes, steps, edges, apart, strict=True):
        rest = n + 2 * p - d * (m - 1) - 1
        number = (math.ceil(rest / s) if ceil_mode else rest // s) + 1
        starts.append([i * s - p for i in range(number) if i * s - p < n or i == 0])
    result = np.zeros((*x.shape[:2], *map(len, starts)), x.dtype)
    for place in np.ndindex(*map(len, starts)):
        inside, framed = [], 1
        for i, first in enumerate(starts[k][place[k]] for k in range(count)):
            reach = range(first, first + apart[i] * sizes[i], apart[i])
            inside.append([k for k in reach if 0 <= k < x.shape[2 + i]])
            framed *= sum(-edges[i] <= k < x.shape[2 + i] + edges[i] for k in reach)
        part = x[:, :, *np.ix_(*inside)]
        axes = tuple(range(2, 2 + count))
        result[(slice(None), slice(None), *place)] = function(part, axes, framed)
    return result


def largest(part: Any, axes: Any, framed: int) -> Any:
    return part.max(axes)


CONVOLUTIONS: list[dict[str, Any]] = [
    {},
    {"stride": 2, "padding": 1},
    {"padding": "same", "dilation": 2, "groups": 2},
    {"padding": "valid", "groups": 4},
    {"stride": (2, 1, 3), "padding": (1, 0, 2), "dilation": (1, 2, 1), "groups": 2},
]
TRANSPOSED: list[dict[str, Any]] = [
    {},
    {"stride": 2, "padding": 1, "output_padding": 1},
    {"stride": 3, "output_padding": 2, "groups": 2},
    {"dilation": 2, "padding": 1, "output_padding": 1, "groups": 4},
    {"stride": (2, 1, 3), "padding": (1, 0, 1), "dilation": (1, 2, 1), "groups": 2},
]
SHAPE, WINDOW = (6, 5, 4), (3, 2, 3)


def cut(options: dict[str, Any], count: int) -> dict[str, Any]:
    return {k: v[:count] if isinstance(v, tuple) else v for k, v in options.items()}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_convolutions_are_sums_over_windows(count: int) -> None:
    function, transposed = (getattr(pg, f"conv{t}{count}d") for t in ("", "_transpose"))
    for dtype, tolerance in ((np.float64, 1e-13), (np.float32, 1e-5)):
        x = RNG.normal(size=(2, 4, *SHAPE[:count])).astype(dtype)
        bias = RNG.normal(size=8).astype(dtype)
        for options in CONVOLUTIONS:
            options = cut(options, count)
            shape = (8, 4 // options.get("groups", 1), *WINDOW[:count])
            weight = RNG.normal(size=shape).astype(dtype)
            found = evaluate_one(lambda x, w, b, o=options: function(x, w, b, **o), x, weight, bias)
            same(found, by_windows(x, weight, bias, **options), tolerance)
        for options in TRANSPOSED:
            options = cut(options, count)
            weight = RNG.normal(size=(4, 2, *WINDOW[:count])).astype(dtype)
            added = bias[: 2 * options.get("groups", 1)]
            found = evaluate_one(
                lambda x, w, b, o=options: transposed(x, w, b, **o), x, weight, added
            )
            same(found, scattered(x, weight, added, **options), tolerance)


def test_a_sample_may_stand_alone_and_there_may_be_none() -> None:
    x, weight = RNG.normal(size=(2, 3, 5, 6)), RNG.normal(size=(4, 3, 2, 2))
    single = evaluate_one(pg.conv2d, x[0], weight)
    same(single, by_windows(x, weight)[0], 1e-13)
    turned = weight.transpose(1, 0, 2, 3)
    same(evaluate_one(pg.conv_transpose2d, x[0], turned), scattered(x, turned)[0], 1e-13)
    same(evaluate_one(lambda x: pg.max_pool2d(x, 2), x[0]), pooled(largest, x, 2)[0])
    for function in (lambda x: pg.conv2d(x, weight), lambda x: pg.max_pool2d(x, 3, 1)):
        assert evaluate_one(function, x[:0]).shape[:1] == (0,)
    whole = evaluate_one(pg.conv2d, np.arange(24).reshape(1, 1, 4, 6), np.ones((1, 1, 2, 2), int))
    same(whole, by_windows(np.arange(24).reshape(1, 1, 4, 6), np.ones((1, 1, 2, 2), int)))


def test_one_transposes_the_other() -> None:
    x, weight = RNG.normal(size=(2, 4, 7, 6)), RNG.normal(size=(6, 2, 3, 2))
    options: dict[str, Any] = {"stride": (2, 3), "padding": 1, "groups": 2, "dilation": (1, 2)}
    y = evaluate_one(lambda x: pg.conv2d(x, weight, **options), x)
    seed = RNG.normal(size=y.shape)
    back = evaluate_one(
        lambda v: pg.conv_transpose2d(v, weight, output_padding=(0, 1), **options), seed
    )
    slope = pg.compile(
        pg.trace(
            lambda x: pg.grad(pg.sum(pg.conv2d(x, weight, **options) * seed), x), pg.spec(x.shape)
        )
    )(x)
    rows, columns = back.shape[2:]
    np.testing.assert_allclose(slope[:, :, :rows, :columns], back, rtol=1e-12, atol=1e-12)
    assert not slope[:, :, rows:].any()
    assert not slope[:, :, :, columns:].any()


POOLS = list(itertools.product((2, (3, 2, 3)), (None, 1, 3), (0, 1), (False, True)))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_pools_are_of_every_window(count: int) -> None:
    x = RNG.normal(size=(2, 2, *(7, 6, 5)[:count]))
    top, average = getattr(pg, f"max_pool{count}d"), getattr(pg, f"avg_pool{count}d")
    for size, stride, padding, ceil_mode in POOLS if count < 3 else POOLS[1::2]:
        size = size[:count] if isinstance(size, tuple) else size
        given = {"stride": stride, "padding": padding, "ceil_mode": ceil_mode}
        found = evaluate_one(lambda x, n=size, g=given: top(x, n, **g), x)
        same(found, pooled(largest, x, size, **given))
        for padded in (True, False):
            found = evaluate_one(
                lambda x, n=size, g=given, p=padded: average(x, n, count_include_pad=p, **g), x
            )

            def mean(part: Any, axes: Any, framed: int, padded: bool = padded) -> Any:
                places = framed if padded else math.prod(part.shape[a] for a in axes)
                return part.sum(axes) / places

            same(found, pooled(mean, x, size, **given), 1e-13)
    found = evaluate_one(lambda x: top(x, 2, 1, dilation=2), x)
    same(found, pooled(largest, x, 2, 1, dilation=2))
    found = evaluate_one(lambda x: average(x, 2, divisor_override=3), x)
    same(found, pooled(lambda part, axes, _: part.sum(axes) / 3, x, 2), 1e-13)


def test_bins_of_adaptive_pools_cover_all_elements() -> None:
    x = RNG.normal(size=(2, 3, 6, 7))
    for size in (1, 2, 3, (3, 5), (None, 4), (7, 9)):
        rows, columns = each(size, 2)
        rows = 6 if rows is None else rows
        top, average = np.zeros((2, 2, 3, rows, columns))
        for i, j in np.ndindex(rows, columns):
            part = x[
                :,
                :,
                i * 6 // rows : -(-(i + 1) * 6 // rows),
                j * 7 // columns : -(-(j + 1) * 7 // columns),
            ]
            top[:, :, i, j], average[:, :, i, j] = part.max((2, 3)), part.mean((2, 3))
        same(evaluate_one(lambda x, n=size: pg.adaptive_max_pool2d(x, n), x), top)
        same(evaluate_one(lambda x, n=size: pg.adaptive_avg_pool2d(x, n), x), average, 1e-13)
    for n in (1, 3):
        whole = getattr(pg, f"adaptive_avg_pool{n}d")(x[0, 0] if n == 1 else x, 1)
        assert whole.shape == ((6, 1) if n == 1 else (2, 1, 1, 1))
        whole = getattr(pg, f"adaptive_max_pool{n}d")(x[0, 0] if n == 1 else x, 1)
        assert whole.shape == ((6, 1) if n == 1 else (2, 1, 1, 1))


def test_bins_beyond_the_elements_take_no_memory_before_a_run() -> None:
    tracemalloc.start()
    for pool in (pg.adaptive_max_pool1d, pg.adaptive_avg_pool1d):
        graph = pg.trace(lambda x, p=pool: p(x, 10**12), pg.spec((2, 3)))
        assert graph.output_types[0].shape == (2, 10**12)
        with pytest.raises(pg.ArgumentError, match="of 3 elements is too large"):
            pg.trace(lambda x, p=pool: p(x, 2**62), pg.spec((2, 3)))
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()
    x = np.array([[1.0, np.inf, -2.0]])
    expected = [[1.0, np.inf, np.inf, np.inf, -2.0]]
    same(evaluate_one(lambda x: pg.adaptive_max_pool1d(x, 5), x), np.array(expected))
    same(evaluate_one(lambda x: pg.adaptive_avg_pool1d(x, 5), x), np.array(expected))
    for pool in (pg.adaptive_max_pool1d, pg.adaptive_avg_pool1d):
        pg.check_grads(lambda x, p=pool: p(x, 5) ** 2, [RNG.normal(size=(2, 3))], order=2)


def test_derivatives_of_order_two_in_both_modes() -> None:
    x, weight, bias = RNG.normal(size=(2, 2, 4, 3)), RNG.normal(size=(2, 1, 2, 2)), np.ones(2)
    given: dict[str, Any] = {"stride": (2, 1), "padding": 1, "groups": 2}
    pg.check_grads(lambda x, w, b: pg.tanh(pg.conv2d(x, w, b, **given)), [x, weight, bias], order=2)
    pg.check_grads(lambda x, w: pg.conv_transpose2d(x, w, **given) ** 2, [x, weight], order=2)
    for function in (
        lambda x: pg.max_pool2d(x, 2, 1, 1) ** 2,
        lambda x: pg.avg_pool2d(x, (3, 2), ceil_mode=True) ** 3,
        lambda x: pg.adaptive_avg_pool2d(x, (3, 2)) ** 2,
    ):
        pg.check_grads(function, [x], order=2)


def test_what_is_tied_in_a_window_shares_the_slope_and_nan_stays() -> None:
    x = np.array([[[1.0, 3.0, 3.0, 3.0, 0.0, np.nan, 2.0, 2.0]]])

    def slope(x: Any) -> Any:
        return pg.grad(pg.sum(pg.max_pool1d(x, 4)), x)

    found = evaluate_one(lambda x: pg.max_pool1d(x, 4), x)
    same(found, np.array([[[3.0, np.nan]]]))
    found = evaluate_one(slope, x)
    same(found, np.array([[[0.0, 1 / 3, 1 / 3, 1 / 3, np.nan, np.nan, np.nan, np.nan]]]), 1e-15)
    # The frame of the largest is lower than all: it is chosen from only where it is alone.
    below = np.full((1, 1, 3), -1e300)
    same(evaluate_one(lambda x: pg.max_pool1d(x, 2, 2, 1), below), below[:, :, :2])
    same(
        evaluate_one(lambda x: pg.max_pool1d(x, 2, 2, 1), np.full((1, 1, 3), -5, np.int8)),
        np.full((1, 1, 2), -5, np.int8),
    )


def small(x: Any, weight: Any, bias: Any) -> Any:
    """A bit of a network."""
    hidden = pg.max_pool2d(pg.relu(pg.conv2d(x, weight, bias, padding=1)), 2)
    return pg.mean(pg.avg_pool2d(hidden, 2, 1), (1, 2, 3))


def small_by_hand(x: Any, weight: Any, bias: Any) -> Any:
    hidden = pooled(largest, np.maximum(by_windows(x, weight, bias, padding=1), 0), 2)
    return pooled(lambda part, axes, _: part.mean(axes), hidden, 2, 1).mean((1, 2, 3))


def sloped(x: Any, weight: Any, bias: Any) -> Any:
    total = pg.sum(small(x, weight, bias) ** 2)
    return (total, *pg.grad(total, [x, weight, bias]))


def test_one_program_serves_all_sizes() -> None:
    weight, bias = RNG.normal(size=(3, 2, 3, 3)), RNG.normal(size=3)
    sizes = ("N", 2, 6, 5)
    open_rows = pg.compile(pg.trace(sloped, pg.spec(sizes), pg.spec(weight.shape), pg.spec(3)))
    for n in (0, 1, 4):
        x = RNG.normal(size=(n, 2, 6, 5))
        found = open_rows(x, weight, bias)
        same(found[0], np.asarray(np.sum(small_by_hand(x, weight, bias) ** 2)), 1e-12)
        fixed = pg.compile(pg.trace(sloped, *map(pg.spec, (x.shape, weight.shape, (3,)))))
        for one, other in zip(found, fixed(x, weight, bias), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    wide = pg.compile(
        pg.trace(
            lambda x, w: pg.conv1d(x, w, padding=1, stride=2),
            pg.spec((1, 1, "L")),
            pg.spec((2, 1, 3)),
        )
    )
    for length in (3, 8):
        x, w = RNG.normal(size=(1, 1, length)), RNG.normal(size=(2, 1, 3))
        same(wide(x, w), by_windows(x, w, padding=1, stride=2), 1e-13)


def test_samples_in_a_batch_and_kernels_of_both_styles() -> None:
    x, weight, bias = RNG.normal(size=(3, 2, 2, 6, 5)), RNG.normal(size=(3, 2, 3, 3)), np.ones(3)
    found = pg.vmap(lambda x, b: small(x, weight, b))(x, np.stack([bias] * 3))
    expected = np.stack([small_by_hand(one, weight, bias) for one in x])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    several = pg.vmap(lambda w: pg.conv_transpose1d(x[0, :, :, 0], w, stride=2))(
        RNG.normal(size=(2, 2, 1, 3))
    )
    assert several.shape == (2, 2, 1, 11)
    for dtype in (np.float64, np.float32):
        arrays = [a.astype(dtype) for a in (x[0], weight, bias)]
        graph = traced(sloped, *arrays)
        expected = interpret(graph, *arrays)
        tolerance = 1e-12 if dtype == np.float64 else 1e-4
        for style in ("readable", "planned"):
            for one, other in zip(pg.compile(graph, style=style)(*arrays), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    with_tensors = pg.tensor(x[0], requires_grad=True)
    pg.sum(small(with_tensors, weight, bias) ** 2).backward()
    same(with_tensors.grad.numpy(), expected_slope(x[0], weight, bias), 1e-12)


def expected_slope(*arrays: Any) -> Any:
    return interpret(traced(sloped, *arrays), *arrays)[1]


def test_a_saved_network_needs_numpy_alone(tmp_path: Path) -> None:
    x, weight, bias = RNG.normal(size=(2, 2, 6, 5)), RNG.normal(size=(3, 2, 3, 3)), np.ones(3)
    kernel = pg.compile(pg.trace(sloped, *map(pg.spec, (x.shape, weight.shape, (3,)))))
    kernel.save(tmp_path / "sloped.py")
    text = (tmp_path / "sloped.py").read_text()
    assert "import primgraph" not in text
    assert "sliding_window_view" in text
    np.savez(tmp_path / "given.npz", x=x, weight=weight, bias=bias)
    program = (
        "import numpy as np\nfrom sloped import sloped\nassert 'primgraph' not in sys.modules\n"
        "found = sloped(**np.load('given.npz'))\nnp.savez('found.npz', *found)\n"
    )
    subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path[:0] = ['.']\n{program}"],
                   cwd=tmp_path, check=True)  # fmt: skip
    with np.load(tmp_path / "found.npz") as found:
        for one, other in zip(found.values(), kernel(x, weight, bias), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_in_the_body_of_a_loop() -> None:
    x, weight = RNG.normal(size=(1, 2, 5)), RNG.normal(size=(2, 2, 3))

    def repeated(x: Any, w: Any) -> Any:
        step = lambda h, _: (pg.tanh(pg.conv1d(h, w, padding="same")), None)  # noqa: E731
        return pg.sum(pg.scan(step, x, length=3)[0] ** 2)

    expected = x
    for _ in range(3):
        expected = np.tanh(by_windows(expected, weight, padding=1))
    same(evaluate_one(repeated, x, weight), np.asarray(np.sum(expected**2)), 1e-13)
    pg.check_grads(repeated, [x, weight], order=1)


def test_samples_that_do_not_meet_have_a_jacobian_each() -> None:
    weight = RNG.normal(size=(2, 1, 3, 3))
    x = RNG.normal(size=(3, 1, 4, 4))

    def each_sample(x: Any) -> Any:
        return pg.mean(pg.tanh(pg.conv2d(x, weight)), (2, 3))

    found = np.asarray(pg.batched_jacobian(each_sample, x))
    whole = np.asarray(pg.jacobian(lambda v: each_sample(v[None])[0], x[1]))
    assert found.shape[0] == 3
    np.testing.assert_allclose(found[1].reshape(-1), whole.reshape(-1), rtol=1e-12, atol=1e-14)
    with pytest.raises(pg.MixedSamplesError):
        pg.batched_jacobian(
            lambda x: pg.conv1d(x[None, None], np.ones((1, 1, 3)), padding=1)[0, 0], np.ones(4)
        )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: pg.conv2d(x, np.ones((2, 2, 3, 3))), pg.ShapeError, "2 channels, there are 3"),
        (lambda x: pg.conv2d(x, np.ones((2, 3, 3))), pg.ShapeError, "takes a weight with channels"),
        (lambda x: pg.conv1d(x, np.ones((2, 3, 3))), pg.ShapeError, "samples, channels and 1 more"),
        (lambda x: pg.conv2d(x, np.ones((2, 3, 9, 1))), pg.ShapeError, "do not fit"),
        (lambda x: pg.conv2d(x, np.ones((2, 3, 3, 3)), np.ones(3)), pg.ShapeError, "of shape"),
        (
            lambda x: pg.conv2d(x, np.ones((2, 3, 3, 3)), stride=2, padding="same"),
            pg.ArgumentError,
            "for a stride of 1",
        ),
        (
            lambda x: pg.conv2d(x, np.ones((2, 3, 3, 3)), padding="full"),
            pg.ArgumentError,
            "padding 'full'",
        ),
        (lambda x: pg.conv2d(x, np.ones((2, 3, 3, 3)), stride=0), pg.ArgumentError, "at least 1"),
        (lambda x: pg.conv2d(x, np.ones((2, 3, 3, 3)), groups=2), pg.ArgumentError, "not divide"),
        (
            lambda x: pg.conv_transpose2d(x, np.ones((3, 1, 2, 2)), output_padding=1),
            pg.ArgumentError,
            "smaller than stride or dilation",
        ),
        (lambda x: pg.max_pool2d(x, 2, padding=2), pg.ArgumentError, "more than half a window"),
        (lambda x: pg.max_pool2d(x, 7), pg.ShapeError, "do not fit"),
        (lambda x: pg.adaptive_avg_pool2d(x, (1, 2, 3)), pg.ArgumentError, "takes 2 extents"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(
    call: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    with pg.Program(), pytest.raises(error, match=message) as caught:
        call(pg.data("x", (2, 3, 5, 5)))
    assert "test_convolutions.py" in str(caught.value)


ARGUMENTS = {
    "conv2d": ("stride", "padding", "dilation"),
    "conv_transpose2d": ("stride", "padding", "dilation"),
    "max_pool2d": ("kernel_size", "stride", "dilation"),
    "avg_pool2d": ("kernel_size", "stride"),
}
LAYERS = {"conv2d": "Conv2d", "conv_transpose2d": "ConvTranspose2d"} | {
    f"{kind}_pool2d": f"{kind.title()}Pool2d" for kind in ("max", "avg")
}


def test_numbers_for_the_axes_stand_in_lists_and_in_nothing_else() -> None:
    x, weight = RNG.normal(size=(1, 2, 6, 6)), np.ones((2, 2, 2, 2))
    for name, arguments in ARGUMENTS.items():
        is_pool = "pool" in name
        for argument in arguments:
            given: dict[str, Any] = {"kernel_size": 2} if is_pool else {}
            operands = (x,) if is_pool else (x, weight)

            def call(value: Any, argument: str = argument, name: str = name) -> Any:
                options = {**given, argument: value}  # noqa: B023
                layer = getattr(pg.nn, LAYERS[name])
                made = layer(**options) if "pool" in name else layer(2, 2, 2, **options)
                assert made(x).shape == getattr(pg, name)(*operands, **options).shape  # noqa: B023
                return getattr(pg, name)(*operands, **options).numpy()  # noqa: B023

            same(call([1, 2]), call((1, 2)))
            for wrong in ({1: 2, 2: 1}, {1, 2}, "12", iter([1, 2]), [1.5, 2], [1, 2, 3], True):
                with pytest.raises(pg.PrimgraphError):
                    call(wrong)


def test_what_depends_on_unknown_extents_is_refused() -> None:
    with pg.Program():
        x = pg.data("x", (1, 1, "L"))
        assert str(pg.max_pool1d(x, 2).shape[2]) == "L//2"
        with pytest.raises(pg.UnknownSizeError, match="how many elements a window has"):
            pg.avg_pool1d(x, 2, padding=1, count_include_pad=False)
        with pytest.raises(pg.UnknownSizeError, match="bins depends on"):
            pg.adaptive_max_pool1d(x, 3)
