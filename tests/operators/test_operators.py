"""Every public function against NumPy, SciPy or a formula: values, dtypes and shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.special
from helpers import evaluate, evaluate_one, same, sample, traced

import primgraph as pg
import primgraph.operators as ops
from primgraph.codegen import compile_graph
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import registered
from primgraph.operators.call import Operator
from primgraph.operators.lazy_loading import functions
from primgraph.transforms import lower

FLOATS = [np.float64, np.float32, np.float16]
SHAPES: list[tuple[int, ...]] = [(), (1,), (0, 3), (2, 3)]
PAIRS = [((), ()), ((3,), ()), ((2, 1), (3,)), ((0, 3), (1,)), ((2, 3), (2, 3)), ((1,), (4, 1, 2))]
# SciPy and the C library round float16 and float32 in their own ways.
TOLERANCE = {np.dtype(np.float16): 4e-3, np.dtype(np.float32): 2e-6, np.dtype(np.float64): 1e-13}


def check(function: Any, reference: Any, *arrays: Any, exact: bool = True) -> None:
    """`function` on handles gives what `reference` gives on the arrays, before and after lower."""
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(*arrays))
    found = evaluate_one(function, *arrays)
    same(found, expected, 0.0 if exact else TOLERANCE.get(expected.dtype, 0.0))
    types = traced(function, *arrays).output_types
    assert lower(traced(function, *arrays)).output_types == types


ELEMENTARY = [
    ("sqrt", 0), ("exp", 0), ("expm1", 0), ("log", 0), ("log1p", 0), ("sin", 0), ("cos", 0),
    ("tan", 0), ("sinh", 0), ("cosh", 0), ("tanh", 0), ("arcsin", 0), ("arccos", 0),
    ("arctan", 0), ("arcsinh", 0), ("arccosh", 0), ("arctanh", 0),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [*FLOATS, np.int64, np.int32, np.uint8, np.int8, np.bool_])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [name for name, _ in ELEMENTARY])
def test_elementary_functions_are_numpys(name: str, shape: Any, dtype: Any) -> None:
    check(getattr(ops, name), getattr(np, name), sample(shape, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (ops.erf, scipy.special.erf),
        (ops.erfc, scipy.special.erfc),
        (ops.sigmoid, scipy.special.expit),
        (ops.log2, np.log2),
        (ops.log10, np.log10),
        (ops.exp2, np.exp2),
        (ops.rsqrt, lambda x: (1 / np.sqrt(x)).astype(x.dtype)),
        (ops.reciprocal, np.reciprocal),
        (ops.gelu, lambda x: x * scipy.special.ndtr(x.astype("f8")).astype(x.dtype)),
        (
            lambda x: ops.gelu(x, approximate=True),
            lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        ),
        (ops.silu, lambda x: x * scipy.special.expit(x)),
        (ops.softplus, lambda x: np.log1p(np.exp(x.astype("f8"))).astype(x.dtype)),
        (ops.relu, lambda x: np.maximum(x, 0).astype(x.dtype)),
    ],
)
@pytest.mark.parametrize("shape", SHAPES)
def test_functions_that_numpy_lacks(function: Any, reference: Any, shape: Any, dtype: Any) -> None:
    x = sample(shape, dtype, low=-3)
    check(function, lambda v: np.asarray(reference(v)).astype(dtype), x, exact=False)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int64, np.int8, np.uint8, np.bool_])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "name",
    [
        "negative",
        "positive",
        "abs",
        "sign",
        "floor",
        "ceil",
        "square",
        "round",
        "isnan",
        "isinf",
        "isfinite",
        "logical_not",
    ],
)
def test_unary_functions_are_numpys(name: str, shape: Any, dtype: Any) -> None:
    x = sample(shape, dtype)
    if name in ("floor", "ceil") and x.dtype.kind != "f":
        # NumPy leaves integers as they are from version 2.1 on.
        check(getattr(ops, name), lambda v: v, x)
        return
    try:
        getattr(np, name)(x)
    except TypeError:
        with pytest.raises(TypeError, match=r"(does not|cannot) take|takes"):
            traced(getattr(ops, name), x)
    else:
        check(getattr(ops, name), getattr(np, name), x)


BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "maximum",
    "minimum",
    "arctan2",
    "logaddexp",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
]


@pytest.mark.parametrize("dtypes", ["dd", "ff", "ee", "ll", "ii", "BB", "??", "fd", "iB", "el"])
@pytest.mark.parametrize("shapes", PAIRS)
@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_broadcast_and_promote(name: str, shapes: Any, dtypes: str) -> None:
    x, y = (sample(s, t, seed=i) for i, (s, t) in enumerate(zip(shapes, dtypes, strict=True)))
    if name == "subtract" and dtypes == "??":
        with pytest.raises(TypeError, match="subtract does not take bool"):
            traced(ops.subtract, x, y)
        return
    if name in ("floor_divide", "remainder"):
        y = np.asarray(np.where(y == 0, y.dtype.type(1), y))
    check(getattr(ops, name), getattr(np, name), x, y)


def test_python_operators_are_those_of_numpy() -> None:
    def computed(x: Any, y: Any) -> list[Any]:
        return [
            x + y, x - y, x * y, x / y, x // y, x % y, x**2, -x, +x, abs(x), 1 - x, 2 / y, 2 // y,
            3 % y, 1 + x, 2 * x, 2.0**x, x < y, x <= y, x > y, x >= y, x == y, x != y,
            (x < y) & (x > 0), (x < y) | (x > 0), (x < y) ^ (x > 0), ~(x < y),
        ]  # fmt: skip

    x, y = sample((2, 3)), sample((3,), seed=1)
    for found, expected in zip(evaluate(computed, x, y), computed(x, y), strict=True):
        same(found, expected)


def test_arrays_on_the_left_and_numpys_own_functions_build_the_program() -> None:
    x = sample((2, 3))
    check(lambda v: x - v, lambda v: x - v, x)
    check(lambda v: np.float32(2) * v, lambda v: np.float32(2) * v, x)
    check(lambda v: np.float64(2) * v, lambda v: np.float64(2) * v, x.astype("f4"))
    check(lambda v: np.sin(v), np.sin, x)
    check(lambda v: np.sum(v, axis=0), lambda v: np.sum(v, axis=0), x)
    check(lambda v: np.concatenate([v, x], axis=1), lambda v: np.concatenate([v, x], axis=1), x)
    check(lambda v: x.T @ v, lambda v: x.T @ v, x)
    check(lambda v: np.linalg.norm(v, axis=1), lambda v: np.linalg.norm(v, axis=1), x)
    with pytest.raises(ShapeError, match="det takes square matrices"):
        traced(np.linalg.det, x)
    for found, expected in zip(evaluate(np.frexp, x), np.frexp(x), strict=True):
        same(found, expected)
    check(lambda v: v + 1j, lambda v: v + 1j, x)
    check(lambda v: v.astype("complex64"), lambda v: v.astype("complex64"), x)
    with pytest.raises(TypeError, match=r"np\.isnat"):
        traced(np.isnat, x)


@pytest.mark.parametrize("n", [-2, -1, 0, 1, 2, 3, 5, 1025, 2.0, -1.0, 0.5, 1.5, 1e300])
@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_floats(n: Any, dtype: Any) -> None:
    x = np.array([-np.inf, -2, -1, -0.5, -0.0, 0.0, 0.5, 1, 2, np.inf, np.nan], dtype)

    def reference(v: Any) -> Any:
        return np.sqrt(v) if n == 0.5 else np.power(v, np.full_like(v, n))

    check(lambda v: v**n, reference, x, exact=n % 1 != 0)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8])
def test_powers_of_integers(dtype: Any) -> None:
    x = np.array([0, 1, 2, 3], dtype)
    for n in (0, 1, 2, 3, 2.0, -1.0):
        check(lambda v, n=n: v**n, lambda v, n=n: v**n, x)
    check(lambda v: v**v, lambda v: v**v, x)
    check(lambda v: 2**v, lambda v: 2**v, x)
    assert "integer_pow" in str(traced(lambda v: v**3, x))
    assert "integer_pow" not in str(traced(lambda v: v ** np.int64(3), x))


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1, 1), (-0.5, None), (None, 0.5), (None, None), (1, -1), (np.full(3, -1.0), 1.0)],
)
@pytest.mark.parametrize("dtype", [*FLOATS, np.int64, np.int8])
def test_clip(low: Any, high: Any, dtype: Any) -> None:
    def reference(v: Any) -> Any:
        # NumPy takes two missing bounds from version 2.1 on.
        return v if low is None and high is None else np.clip(v, low, high)

    check(lambda v: ops.clip(v, low, high), reference, sample((2, 3), dtype))
    check(lambda v: v.clip(low, max=high), reference, sample((3,), dtype))


def test_clip_keeps_nan_in_the_array_and_in_the_bounds() -> None:
    x = np.array([np.nan, -3, 0, 3])
    check(lambda v: ops.clip(v, -1, 1), lambda v: np.clip(v, -1, 1), x)
    low = np.array([0, np.nan, 0, np.nan])
    check(lambda v, b: ops.clip(v, b, 1), lambda v, b: np.clip(v, b, 1), x, low)
    check(lambda v: ops.clip(v, np.nan, 1), lambda v: np.clip(v, np.nan, 1), x)


def test_relu_and_softplus_keep_nan() -> None:
    x = np.array([np.nan, -np.inf, np.inf, -0.0])
    same(evaluate_one(ops.relu, x), np.array([np.nan, 0, np.inf, 0]))
    same(evaluate_one(ops.softplus, x), np.array([np.nan, 0, np.inf, math.log(2)]))


def test_gelu_is_exact_in_the_left_tail() -> None:
    x = np.array([-30.0, -10.0])
    same(evaluate_one(ops.gelu, x), x * scipy.special.ndtr(x), 1e-12)
    assert evaluate_one(ops.gelu, x)[1] < 0


@pytest.mark.parametrize("condition", [np.bool_, np.int64, np.float64])
@pytest.mark.parametrize("dtypes", ["dd", "fl", "??", "eB"])
def test_where(condition: Any, dtypes: str) -> None:
    x, y = sample((3, 1), dtypes[0]), sample((4,), dtypes[1])
    check(ops.where, np.where, sample((4,), condition, seed=2), x, y)
    check(lambda c: ops.where(c, 1, 2.5), lambda c: np.where(c, 1, 2.5), sample((4,), condition))
    check(lambda v: ops.where(v, v, 0), lambda v: np.where(v, v, 0), x)


AXES = [None, 0, -1, 1, (0, 1), [2, 0], (), (-1, 0, 1)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "count_nonzero"])
def test_reductions(name: str, axis: Any, dtype: Any) -> None:
    x, numpys = sample((2, 3, 2), dtype), tuple(axis) if isinstance(axis, list) else axis
    function, reference = getattr(ops, name), getattr(np, name)
    exact = np.dtype(dtype).kind != "f"
    check(lambda v: function(v, axis), lambda v: reference(v, axis=numpys), x, exact=exact)
    check(
        lambda v: function(v, axis=axis, keepdims=True),
        lambda v: reference(v, axis=numpys, keepdims=True),
        x,
        exact=exact,
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.int8, np.bool_])
@pytest.mark.parametrize("axis", AXES)
def test_means_and_spreads(axis: Any, dtype: Any) -> None:
    x, numpys = sample((2, 3, 2), dtype), tuple(axis) if isinstance(axis, list) else axis
    for name, options in [("mean", {}), ("var", {}), ("std", {}), ("var", {"ddof": 1})]:
        if axis == () and options:
            continue
        for keepdims in (False, True):
            check(
                lambda v, n=name, k=keepdims, o=options: getattr(ops, n)(v, axis, k, **o),
                lambda v, n=name, k=keepdims, o=options: getattr(np, n)(
                    v, axis=numpys, keepdims=k, **o
                ),
                x,
                exact=False,
            )


@pytest.mark.parametrize(
    "name", ["sum", "prod", "any", "all", "count_nonzero", "mean", "var", "std", "norm"]
)
@pytest.mark.filterwarnings("ignore:Mean of empty", "ignore:Degrees of freedom")
def test_reductions_of_no_elements(name: str) -> None:
    reference = np.linalg.norm if name == "norm" else getattr(np, name)
    for x in (np.zeros((0, 3)), np.zeros(0)):
        check(getattr(ops, name), reference, x)
        check(lambda v: getattr(ops, name)(v, axis=0), lambda v: reference(v, axis=0), x)
    check(
        lambda v: getattr(ops, name)(v, axis=1),
        lambda v: reference(v, axis=1),
        np.zeros((0, 3)),
    )


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes_of_no_elements_are_refused_as_numpy_does(name: str) -> None:
    x = np.zeros((0, 3))
    function, reference = getattr(ops, name), getattr(np, name)
    check(lambda v: function(v, axis=1), lambda v: reference(v, axis=1), x)
    with pytest.raises(ValueError, match="no elements"):
        traced(function, x)
    with pytest.raises(ValueError, match=rf"{name} of f64\[0,3\]"):
        traced(lambda v: function(v, axis=0), x)
    for shape in ((0, 0), (0, 3, 0), (3, 0)):
        with pytest.raises(ValueError, match=r"zero-size|empty"):
            reference(np.zeros(shape), axis=-1)
        with pytest.raises(ValueError, match="no elements"):
            traced(lambda v: function(v, axis=-1), np.zeros(shape))


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1)])
def test_positions_and_running_sums(axis: Any, shape: Any, dtype: Any) -> None:
    x = sample(shape, dtype)
    for name in ("argmax", "argmin", "cumsum"):
        function, reference = getattr(ops, name), getattr(np, name)
        check(lambda v, f=function: f(v, axis), lambda v, f=reference: f(v, axis), x)
    check(
        lambda v: ops.argmax(v, axis, keepdims=True),
        lambda v: np.argmax(v, axis, keepdims=True),
        x,
    )


def test_positions_and_sums_of_0d_arrays_and_nan() -> None:
    for name in ("argmax", "argmin", "cumsum", "sum", "max", "mean", "std"):
        check(getattr(ops, name), getattr(np, name), np.array(2.5))
    x = np.array([1, np.nan, 3, np.nan])
    for name in ("argmax", "argmin", "max", "min", "sum"):
        check(getattr(ops, name), getattr(np, name), x)


def test_sums_in_another_dtype() -> None:
    x = sample((2, 3), np.int8)
    check(lambda v: ops.sum(v, dtype=np.int8), lambda v: np.sum(v, dtype=np.int8), x)
    check(lambda v: ops.prod(v, 0, dtype="f4"), lambda v: np.prod(v, 0, dtype="f4"), x)
    check(lambda v: ops.cumsum(v, dtype=float), lambda v: np.cumsum(v, dtype=float), x)


def test_means_of_float16_do_not_overflow() -> None:
    x = np.full(200, 1000, np.float16)
    same(evaluate_one(ops.mean, x), np.float16(1000))
    same(evaluate_one(ops.norm, x), np.float16(1000 * math.sqrt(200)))
    same(evaluate_one(ops.std, x), np.float16(0))


@pytest.mark.parametrize("order", [1, 2, math.inf])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_norm(order: Any, axis: int) -> None:
    for x in (sample((2, 3)), sample((2, 3), np.float32), sample((2, 3), np.int64)):
        for keep in (False, True):
            check(
                lambda v, k=keep: ops.norm(v, order, axis, k),
                lambda v, k=keep: np.linalg.norm(v, order, axis, k),
                x,
                exact=False,
            )
    matrix = sample((2, 3))
    check(lambda v: ops.norm(v, order), lambda v: np.linalg.norm(v, order), matrix, exact=False)
    check(ops.norm, np.linalg.norm, np.array([3.0, np.nan]))
    check(ops.norm, np.linalg.norm, np.zeros(3))
    check(ops.norm, np.linalg.norm, sample((2, 2, 3)), exact=False)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int64])
@pytest.mark.parametrize("axis", [0, -1, (0, 1), None])
def test_softmax_family(axis: Any, dtype: Any) -> None:
    x = sample((2, 3), dtype)
    for name in ("softmax", "log_softmax", "logsumexp"):

        def reference(v: Any, name: str = name) -> Any:
            wide = v.astype("f8") if v.dtype != np.float32 else v
            result = getattr(scipy.special, name)(wide, axis=axis)
            return np.asarray(result).astype(v.dtype if v.dtype.kind == "f" else "f8")

        check(lambda v, n=name: getattr(ops, n)(v, axis=axis), reference, x, exact=False)


def test_softmax_family_at_the_edges() -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, 1], [np.nan, 1], [1000, 1000], [-np.inf, 0]])
    expected = np.array([-np.inf, np.inf, np.nan, 1000 + math.log(2), 0])
    same(evaluate_one(lambda v: ops.logsumexp(v, 1), x), expected, 1e-15)
    kept = evaluate_one(lambda v: ops.logsumexp(v, 1, keepdims=True), x)
    same(kept, expected[:, None], 1e-15)
    same(evaluate_one(lambda v: ops.softmax(v)[3:], x), np.array([[0.5, 0.5], [0, 1]]))
    same(evaluate_one(ops.logsumexp, np.zeros((0, 3))), np.float64(-np.inf))
    same(evaluate_one(lambda v: ops.softmax(v, 0), np.zeros((0, 3))), np.zeros((0, 3)))
    same(evaluate_one(ops.log_softmax, np.zeros((0, 3))), np.zeros((0, 3)))
    same(evaluate_one(lambda v: ops.softmax(v, None), np.array(3.0)), np.float64(1))


def test_layer_norm() -> None:
    x, weight, bias = sample((2, 3, 4)), sample((3, 4), seed=1), sample((3, 4), seed=2)
    for axis, w, b in [((1, 2), weight, bias), (1, weight[:, 0], bias[:, 0]), (-1, None, bias[0])]:
        mean, var = (f(x, axis=axis, keepdims=True) for f in (np.mean, np.var))
        shape = (3, 1) if axis == 1 else (4,) if axis == -1 else (3, 4)
        normal = (x - mean) / np.sqrt(var + 1e-5)
        expected = normal if w is None else normal * w.reshape(shape)
        found = evaluate_one(
            lambda v, w=w, b=b, axis=axis: ops.layer_norm(v, w, b, axis=axis, eps=1e-5), x
        )
        same(found, expected + b.reshape(shape), 1e-12)
    half = evaluate_one(ops.layer_norm, np.full((2, 3), 300, np.float16))
    same(half, np.zeros((2, 3), np.float16))


def test_batch_norm() -> None:
    x, mean, weight, bias = sample((4, 3, 2)), *(sample((3,), seed=i) for i in range(3))
    var = np.abs(sample((3,), seed=3))

    def reference(v: Any, m: Any, s: Any, w: Any = 1.0, b: Any = 0.0) -> Any:
        m, s, w, b = (np.reshape(np.broadcast_to(a, (3,)), (3, 1)) for a in (m, s, w, b))
        return (v - m) / np.sqrt(s + 1e-5) * w + b

    args = (x, mean, var, weight, bias)
    check(ops.batch_norm, reference, *args, exact=False)
    own = np.mean(x, (0, 2)), np.var(x, (0, 2))
    same(evaluate_one(ops.batch_norm, x), reference(x, *own), 1e-12)
    last = evaluate_one(lambda v: ops.batch_norm(v, axis=-1), np.moveaxis(x, 1, -1))
    same(last, np.moveaxis(reference(x, *own), 1, -1), 1e-12)


def test_cross_entropy() -> None:
    logits, labels = sample((4, 3)), np.array([0, 2, 1, 1])
    logs = scipy.special.log_softmax(logits, axis=1)
    losses = -logs[np.arange(4), labels]
    same(evaluate_one(ops.cross_entropy, logits, labels), np.mean(losses), 1e-14)
    dense = np.eye(3)[labels]
    same(evaluate_one(ops.cross_entropy, logits, dense), np.mean(losses), 1e-14)
    for reduction, expected in [("sum", np.sum(losses)), ("none", losses)]:
        found = evaluate_one(
            lambda v, r=reduction: ops.cross_entropy(v.T, labels, axis=0, reduction=r), logits
        )
        same(found, expected, 1e-14)
    vector = evaluate_one(lambda v: ops.cross_entropy(v, 1), logits[0])
    same(vector, -scipy.special.log_softmax(logits[0])[1], 1e-14)


def test_losses_and_linear() -> None:
    x, y, b = sample((4, 3)), sample((3, 2), seed=1), sample((2,), seed=2)
    check(ops.mse_loss, lambda u, v: np.mean((u - v) ** 2), x, x[:1] + 1, exact=False)
    check(lambda v, w: ops.linear(v, w), lambda v, w: v @ w, x, y)
    check(ops.linear, lambda v, w, c: v @ w + c, x, y, b)
    check(lambda v: ops.scale(v, 2.0, 1.0), lambda v: 2 * v + 1, x)
    check(lambda v: ops.scale(v, 2, 1, bias_after_scale=False), lambda v: 2 * (v + 1), x)
    check(lambda v: ops.scale(v, 2.5), lambda v: v * 2.5, sample((2,), np.float32))
    check(lambda v, w: ops.add_n([v, w, 1.0]), lambda v, w: v + w + 1, x, x[0])
    check(lambda v: ops.add_n([v]), np.positive, x)


def test_random_numbers_are_functions_of_the_key() -> None:
    one, again, other = evaluate(
        lambda k: [ops.uniform(k, (50,)), ops.uniform(7, 50), ops.uniform(k + 1, 50)], np.array(7)
    )
    same(one, again)
    assert not np.array_equal(one, other)
    wide = evaluate_one(lambda k: ops.uniform(k, (2000,), -3, 5, "f4"), np.array(1))
    assert wide.dtype == np.float32
    assert -3 <= wide.min() < -2.9
    assert 4.9 < wide.max() <= 5
    for keys in (np.array(3), np.array([3, 4])):
        drawn = evaluate_one(lambda k: ops.normal(k, (5000,)), keys)
        assert drawn.shape == (*keys.shape, 5000)
        assert abs(drawn.mean()) < 0.05
        assert abs(drawn.std() - 1) < 0.05
    half = evaluate_one(lambda k: ops.normal(k, 5000, np.float16), np.array(3))
    assert half.dtype == np.float16
    assert np.isfinite(half).all()
    for p in (0, 0.2, 1.0):
        hits = evaluate_one(lambda k, p=p: ops.bernoulli(k, 4000, p), np.array(3))
        assert hits.dtype == bool
        assert abs(hits.mean() - p) < (0.03 if 0 < p < 1 else 1e-9)


@pytest.mark.parametrize("rate", [0, 0.1, 0.5, 0.8, 1])
@pytest.mark.parametrize("mode", ["upscale_in_train", "downscale_in_infer"])
def test_dropout_keeps_with_probability_one_minus_rate(rate: float, mode: str) -> None:
    x = np.full(4000, 2.0)
    x[0] = np.nan
    found = evaluate_one(lambda v, k: ops.dropout(v, k, rate, mode), x, np.array(5))[1:]
    kept = found != 0
    assert abs(kept.mean() - (1 - rate)) < (0.03 if 0 < rate < 1 else 1e-9)
    scale = 1 / (1 - rate) if mode == "upscale_in_train" and rate < 1 else 1
    np.testing.assert_allclose(found[kept], 2.0 * scale)
    still = evaluate_one(lambda v: ops.dropout(v, 5, rate, mode, training=False), x)
    same(still, x if mode == "upscale_in_train" else x * (1 - rate))


def test_every_name_is_exported_and_serves_by_name() -> None:
    assert len(set(ops.__all__)) == len(ops.__all__)
    for name in ops.__all__:
        function = getattr(ops, name)
        assert function.__doc__, name
        assert functions[function.__name__] is function, name
    operators = [op.name for op in registered().values() if isinstance(op, Operator)]
    assert set(operators) <= set(ops.__all__)


@pytest.mark.parametrize("first", [*np.typecodes["AllInteger"], "?", "e", "f", "d"])
def test_promotion_agrees_with_numpy_for_all_pairs(first: str) -> None:
    for second in [*"bhilqBHILQ?efd"]:
        x, y = np.ones(2, first), np.ones(1, second)
        for name in ("add", "multiply", "divide", "maximum", "power"):
            expected = getattr(np, name)(x, y).dtype
            assert traced(getattr(ops, name), x, y).output_types[0].dtype == expected
        joined = traced(lambda u, v: ops.concatenate([u, v]), x, y).output_types[0]
        assert joined.dtype == np.result_type(x, y)
    for scalar in (1, 1.5, True):
        for name in ("add", "multiply", "divide", "maximum", "floor_divide"):
            expected = getattr(np, name)(np.ones(2, first), scalar).dtype
            found = traced(lambda u, n=name, s=scalar: getattr(ops, n)(u, s), np.ones(2, first))
            assert found.output_types[0].dtype == expected, (name, scalar)


def test_integers_of_both_signs_are_compared_exactly() -> None:
    signed = np.array([-1, 0, 2**62 + 1, 2**63 - 1])
    unsigned = np.array([2**64 - 1, 0, 2**62, 2**63], np.uint64)
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        check(getattr(ops, name), getattr(np, name), signed, unsigned)
        check(getattr(ops, name), getattr(np, name), unsigned, signed)
        for scalar in (300, -1, 5):
            check(
                lambda v, n=name, s=scalar: getattr(ops, n)(v, s),
                lambda v, n=name, s=scalar: getattr(np, n)(v, s),
                sample((3,), np.uint8),
            )
            check(
                lambda v, n=name, s=scalar: getattr(ops, n)(s, v),
                lambda v, n=name, s=scalar: getattr(np, n)(s, v),
                sample((3,), np.uint8),
            )


def test_rounding_to_decimals() -> None:
    x = np.array([0.5, 1.5, -2.345, 1234.5678, np.nan, np.inf])
    for decimals in (0, 2, -2):
        check(lambda v, d=decimals: ops.round(v, d), lambda v, d=decimals: np.round(v, d), x)
    check(ops.round, np.round, sample((3,), np.int8))


def test_methods_are_those_of_numpy() -> None:
    def computed(v: Any) -> list[Any]:
        return [
            v.sum(0), v.mean(axis=1), v.max(), v.min(-1, keepdims=True), v.prod(0), v.var(0),
            v.std(axis=0, ddof=1), (v > 0).any(1), (v > 0).all(), v.argmax(1), v.argmin(),
            v.cumsum(1), v.take([0, -1], 1), v.ravel(), v.swapaxes(0, 1), v.round(1), v.dot(v.T),
        ]  # fmt: skip

    x = sample((2, 3))
    for found, expected in zip(evaluate(computed, x), computed(x), strict=True):
        same(found, expected, 1e-14)


# Where NumPy takes more than one might think.


@pytest.mark.parametrize("second", [*"bhilqBHILQ?"])
@pytest.mark.parametrize("first", [*"bhilqBHILQ?"])
def test_bits_of_integers_are_numpys(first: str, second: str) -> None:
    names = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
    x, y = (np.array([0, 1, 5, 100, 77]).astype(c) for c in (first, second))
    x, y = (v if v.dtype.kind != "i" else v * np.array([1, -1, 1, -1, 1], v.dtype) for v in (x, y))
    for name in names:
        try:
            getattr(np, name)(x, y)
        except TypeError:
            with pytest.raises(TypeError, match="takes integers and booleans"):
                traced(getattr(ops, name), x, y)
        else:
            check(getattr(ops, name), getattr(np, name), x, y)
    check(ops.invert, np.invert, x)


def test_bits_are_written_as_pythons_operators() -> None:
    x, y = np.array([[12, 10], [-3, 255]]), np.array([3, 1])

    def function(v: Any, w: Any) -> Any:
        return (v & w | 8) ^ ~v, v << w, 1 << w, v >> 1, 1000 >> w, True & v, v ^ False

    graph = traced(function, x, y)
    for found in (interpret(graph, x, y), compile_graph(lower(graph))(x, y)):
        for a, b in zip(found, function(x, y), strict=True):
            same(a, b)


@pytest.mark.parametrize(
    "name",
    [
        "sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "cumsum", "count_nonzero",
        "squeeze", "mean", "var", "std", "flip", "take", "repeat", "expand_dims",
    ],
)  # fmt: skip
@pytest.mark.parametrize("axis", [None, 0, -1, 1, (0,), ()])
def test_axes_of_an_array_without_axes_are_numpys(name: str, axis: Any) -> None:
    x = np.array(2.5)
    more = {"take": ([0, 0],), "repeat": (2,)}.get(name, ())
    try:
        expected = np.asarray(getattr(np, name)(x, *more, axis=axis))
    except (TypeError, ValueError, IndexError):
        with pytest.raises((ArgumentError, ShapeError)):
            traced(lambda v: getattr(ops, name)(v, *more, axis=axis), x)
    else:
        same(evaluate_one(lambda v: getattr(ops, name)(v, *more, axis=axis), x), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum"])
def test_sums_in_dtype_bool(name: str, dtype: Any) -> None:
    for x in (np.array([0.4, 0, 2, -1]), np.zeros(3), np.ones(2), np.zeros(0)):
        x = x.astype(dtype)
        check(
            lambda v: getattr(ops, name)(v, dtype=bool),
            lambda v: getattr(np, name)(v, dtype=bool), x,
        )  # fmt: skip
    x = np.array([[1, 0], [3, 4]]).astype(dtype)
    check(
        lambda v: getattr(ops, name)(v, 1, dtype="bool"),
        lambda v: getattr(np, name)(v, 1, dtype="bool"), x,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [*np.typecodes["AllInteger"], "?"])
def test_reciprocals_of_integers_are_numpys(dtype: str) -> None:
    x = np.array([1, 2, 3, 100] if dtype in "?BHILQ" else [1, -1, 2, -2, 100, -100]).astype(dtype)
    check(ops.reciprocal, np.reciprocal, x)


def test_numbers_are_compared_as_numbers() -> None:
    pairs = [(2, 3), (3, 2), (2, 2.0), (2**70, 3), (True, 1), (np.nan, 1.0), (0.1, 1)]
    for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
        for a, b in pairs:
            found = evaluate_one(lambda v, n=name, a=a, b=b: getattr(ops, n)(a, b), np.zeros(1))
            same(found, np.asarray(getattr(np, name)(a, b), np.bool_))


def test_options_that_numpy_has() -> None:
    x = sample((3, 4))
    for name in ("var", "std"):
        reference, function = getattr(np, name), getattr(ops, name)
        check(
            lambda v, f=function: f(v, 1, correction=1), lambda v, f=reference: f(v, 1, ddof=1), x
        )
        check(lambda v, n=name: getattr(v, n)(correction=2), lambda v, f=reference: f(v, ddof=2), x)
    check(lambda v: ops.clip(v, a_min=0, a_max=1), lambda v: np.clip(v, 0, 1), x)
    check(lambda v: ops.clip(v, a_max=0), lambda v: np.clip(v, None, 0), x)
    check(lambda v: ops.astype(v, "f4", copy=False), lambda v: v.astype("f4"), x)
    check(lambda v: v.astype("f4", copy=False), lambda v: v.astype("f4"), x)
    check(lambda v: ops.array(v, copy=False), lambda v: v, x)
    for count in (0, 1, 2, 7):
        for endpoint in (True, False):
            found = evaluate_one(lambda v, n=count, e=endpoint: ops.linspace(-1, 2, n, e), x)
            same(found, np.linspace(-1, 2, count, endpoint))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [0, 1, 2, 5, 64])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_of_variables_is_numpys(endpoint: bool, count: int, dtype: Any) -> None:
    cases = [
        (np.array(-1.3), np.array(2.7)),
        (sample((3,)), sample((2, 1), seed=1)),
        (np.arange(3.0), 2.0),
    ]
    for start, stop in [*cases, (np.array(0.0), np.array(5e-324)), (np.array(1.0), np.array(1.0))]:
        start, stop = np.asarray(start, dtype), np.asarray(stop, dtype)
        check(
            lambda a, b: ops.linspace(a, b, count, endpoint),
            lambda a, b: np.linspace(a, b, count, endpoint), start, stop,
        )  # fmt: skip
    wide = evaluate_one(lambda a: ops.linspace(0, a, 3, dtype="float32"), np.array(1))
    same(wide, np.array([0, 0.5, 1], np.float32))
    with pg.Program() as program:
        a, b = pg.data("a", ()), pg.data("b", ())
        slopes = pg.grad(pg.sum(pg.linspace(a, b, 5)), [a, b])
    for slope in pg.Executor().run(program, {"a": 1.0, "b": 3.0}, slopes):
        assert slope == pytest.approx(2.5)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8"])
def test_linspace_of_integers_rounds_down_as_numpys(dtype: str) -> None:
    for stop in (7.5, 10.0) if dtype == "uint8" else (-7.5, 7.5, -1.0):
        wanted = np.linspace(0.0, stop, 6, dtype=dtype)
        same(evaluate_one(lambda a: ops.linspace(0.0, a, 6, dtype=dtype), np.array(stop)), wanted)
        constant = evaluate_one(lambda a, b=stop: ops.linspace(0.0, b, 6, dtype=dtype), wanted)
        same(constant, wanted)


def test_logsumexp_with_weights() -> None:
    x, b = sample((3, 4)), sample((4,), seed=1, low=0.1)
    for axis in (None, 0, 1):
        for keepdims in (False, True):
            same(
                evaluate_one(lambda v, w, a=axis, k=keepdims: ops.logsumexp(v, a, k, b=w), x, b),
                scipy.special.logsumexp(x, axis, np.broadcast_to(b, x.shape), keepdims), 1e-13,
            )  # fmt: skip
    x, b = np.array([1.0, np.inf, 800.0]), np.array([2.0, 0.0, 1.0])
    same(evaluate_one(lambda v, w: ops.logsumexp(v, b=w), x, b), np.asarray(800.0))
    found = evaluate_one(lambda v: ops.logsumexp(v, b=[1, -2]), np.zeros(2))
    assert np.isnan(found)


def test_einsum_with_lists_of_labels() -> None:
    x, y = sample((2, 3)), sample((3, 4), seed=1)
    for last in ([], [[0, 2]], [[2, 0]], [[]]):
        check(
            lambda u, v, last=last: ops.einsum(u, [0, 1], v, [1, 2], *last),
            lambda u, v, last=last: np.einsum(u, [0, 1], v, [1, 2], *last), x, y, exact=False,
        )  # fmt: skip
    check(lambda u: ops.einsum(u, [30, 2]), lambda u: np.einsum(u, [30, 2]), x)
    check(
        lambda u: ops.einsum(u, [..., 0], [0, ...]), lambda u: np.einsum(u, [..., 0], [0, ...]), x
    )
