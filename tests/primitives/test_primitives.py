"""The registry test: every primitive, on every sample, through every check.

A primitive without a row in `samples` fails it, and so does one that lacks a rule.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from density import thinned
from derive import (
    build,
    complex_step,
    cotangents_of,
    differences,
    float_inputs,
    tangents_of,
    type_of,
)
from program_tensors import as_tensors, ways
from program_tolerance import differs
from samples import ROWS
from samples.rows import DIFFERENCES, INTS, Call, Row, Union

import primgraph as pg
import primgraph.primitives
from primgraph.errors import MissingRuleError
from primgraph.ir.facts import ops as registry
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Primitive, registered
from primgraph.ir.types import TensorType, real_dtype
from primgraph.transforms import batch, linearize, transpose

# How far a result may be off, as a multiple of the rounding unit of the coarsest float dtype in
# the graph, relative to the largest number expected, or absolutely where that is below one.
TOLERANCE = {
    # One rounding of the reference and one of the result; matmul and cumsum add up to five terms.
    "value": 8,
    # A rule applies a few functions of condition below ten, each good to about one rounding.
    "jvp": 200,
    # Cancellation once more, in a rule of a rule.
    "second": 2000,
    # Both sides are sums of the same products, in other orders; relative to their absolute sum.
    "adjoint": 100,
    # The same functions of the same numbers; vectorised loops and sums may round differently.
    "batch": 20,
    # As "jvp", in the rounding unit of float32.
    "float32": 200,
}
# Differences of fourth order with a step of 2e-3: f'''''/30 h^4 of truncation, below 1e-10.
OF_DIFFERENCES = 1e-9


class Case(NamedTuple):
    op: Primitive
    row: Row
    call: Call

    def types(self, dtype: str) -> list[TensorType]:
        return [
            type_of(a.replace("x[", f"{dtype}[", 1)) if isinstance(a, str) else of_array(a)
            for a in self.call.operands
        ]

    def graph(self, dtype: str) -> Graph:
        return build(lambda *xs: self.op(*xs, **self.call.params), *self.types(dtype))

    def arrays(self, dtype: str, seed: int = 0) -> list[np.ndarray]:
        """Operands for the call; given ones are turned round by `seed` places."""
        rng = np.random.default_rng(1234 + seed)
        found = []
        for i, (given, type) in enumerate(zip(self.call.operands, self.types(dtype), strict=True)):
            domain = self.row.domain[min(i, len(self.row.domain) - 1)]
            fixed = not isinstance(given, str)
            drawn = np.roll(given, seed) if fixed else draw(rng, type, domain)
            found.append(np.asarray(self.row.made_fit(i, drawn), type.dtype))
        return found

    @property
    def has_complex(self) -> bool:
        """Whether complex numbers go in or come out."""
        graph = self.graph(self.row.dtypes[0])
        return any(v.type.is_complex for v in (*graph.inputs, *graph.outputs))

    @property
    def is_float(self) -> bool:
        """Whether there is anything to differentiate, in the first dtype of the row."""
        graph = self.graph(self.row.dtypes[0])
        return bool(float_inputs(graph)) and any(v.type.is_inexact for v in graph.outputs)


def of_array(array: np.ndarray) -> TensorType:
    return TensorType(array.shape, array.dtype)


def draw(rng: np.random.Generator, type: TensorType, domain: Union) -> np.ndarray:
    """Random numbers of `type` in the intervals of `domain`; complex ones lie above these."""
    if type.is_complex:
        real = draw(rng, type.with_dtype(real_dtype(type.dtype)), domain)
        return np.asarray(real + 1j * rng.uniform(0.4, 1.2, type.shape), type.dtype)
    if type.dtype.kind == "b":
        return rng.random(type.shape) < 0.5
    if type.is_float:
        low, high = np.transpose(domain)
        which = rng.integers(len(domain), size=type.shape)
        return np.asarray(rng.uniform(low[which], high[which]), type.dtype)
    least = 0 if type.dtype.kind == "u" else -math.inf
    allowed = [n for a, b in domain for n in range(math.ceil(a), math.floor(b) + 1) if n >= least]
    return rng.choice(np.array(allowed, type.dtype), type.shape)


def directions(types: Sequence[TensorType], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(4321 + seed)
    return [
        np.asarray(rng.uniform(-1, 1, t.shape) + 1j * rng.uniform(-1, 1, t.shape), t.dtype)
        if t.is_complex
        else np.asarray(rng.uniform(-1, 1, t.shape), t.dtype)
        for t in types
    ]


# The registry.


@cache
def ours() -> dict[str, Primitive]:
    """The primitives that primgraph declares; tests that run later may declare others."""
    rooms = ("primgraph.primitives", "primgraph.transforms")
    return {
        name: op
        for name, op in registered().items()
        if isinstance(op, Primitive) and op.type_rule.__module__.startswith(rooms)
    }


CASES = [
    pytest.param(Case(op, ROWS[name], call), id=f"{name} {call}")
    for name, op in ours().items()
    if name in ROWS
    for call in ROWS[name].calls
]
every_case = pytest.mark.parametrize("case", CASES)
FLOAT_CASES = [c for c in CASES if c.values[0].is_float]
every_float_case = pytest.mark.parametrize("case", FLOAT_CASES)


def missing(op: Primitive, rows: dict[str, Row]) -> list[str]:
    """What `op` lacks: a row of samples, or a rule that its samples call for."""
    if op.name not in rows:
        return [f"add a row for {op.name} to ROWS of its family in tests/primitives/samples"]
    row = rows[op.name]
    if not row.calls:
        return [f"the row of {op.name} has no calls"]
    faults = []
    if any(call.operands for call in row.calls) and not op.has_batch_rule:
        faults.append(f"{op.name} has no batching rule")
    cases = [Case(op, row, call) for call in row.calls]
    faults += sorted({fault for case in cases for fault in uncosted(case)})
    if op.constant or not any(case.is_float for case in cases):
        return faults
    if op.linear is not None and not op.has_transpose_rule:
        faults.append(f"{op.name} is linear and has no transpose rule")
    for graph in [case.graph("f64") for case in cases if case.is_float]:
        linear = op.linear_operands(len(graph.inputs))
        for i in float_inputs(graph):
            if i not in linear and op.jvp_rule(i) is None and op.pushforward_rule is None:
                faults.append(f"{op.name} has no jvp rule for operand {i}")
    return list(dict.fromkeys(faults))


def uncosted(case: Case) -> list[str]:
    """What is wrong with the cost of a call, in any dtype."""
    name = case.op.name
    try:
        found = [case.op.flops(tuple(case.types(d)), case.call.params) for d in case.row.dtypes]
    except MissingRuleError:
        return [f"{name} does not say what it costs"]
    return [] if all(type(n) is int and n >= 0 for n in found) else [f"{name} costs {found}"]


@pytest.mark.parametrize("op", ours().values(), ids=lambda op: op.name)
def test_every_primitive_has_samples_and_rules(op: Primitive) -> None:
    faults = missing(op, ROWS)
    assert not faults, "\n".join(faults)


def test_every_row_is_of_a_primitive() -> None:
    assert set(ROWS) <= set(ours())


@pytest.fixture
def throw_away() -> Iterator[Callable[..., Primitive]]:
    """Declares primitives that are forgotten after the test."""
    before = dict(registry._registry)

    def declare(**properties: Any) -> Primitive:
        return Primitive("throw_away", lambda x: x, lambda x: x, **properties)

    yield declare
    registry._registry.clear()
    registry._registry.update(before)


def test_a_primitive_without_a_row_is_noticed(throw_away: Callable[..., Primitive]) -> None:
    (fault,) = missing(throw_away(), ROWS)
    assert "add a row for throw_away" in fault


@pytest.mark.parametrize(
    ("linear", "faults"),
    [
        (None, ["has no jvp rule for operand 0"]),
        (True, ["is linear and has no transpose rule"]),
        ("each", ["is linear and has no transpose rule"]),
    ],
)
def test_a_primitive_without_rules_is_noticed(
    throw_away: Callable[..., Primitive], linear: Any, faults: list[str]
) -> None:
    op = throw_away(linear=linear)
    rows = {"throw_away": Row([Call("x[3]")], [])}
    faults = ["has no batching rule", "does not say what it costs", *faults]
    assert missing(op, rows) == [f"throw_away {fault}" for fault in faults]
    graph = Case(op, rows["throw_away"], rows["throw_away"].calls[0]).graph("f64")
    with pytest.raises(MissingRuleError, match=r"throw_away has no batching rule[^$]*written here"):
        batch(graph, 2)
    with pytest.raises(MissingRuleError, match=r"throw_away has no[^$]*written here"):
        transpose(tangents_of(graph, [0]), [1])


def test_a_primitive_with_all_rules_is_complete(throw_away: Callable[..., Primitive]) -> None:
    op = throw_away(flops=1)
    op.jvp()(lambda z, x, d: d)
    op.batch(lambda batched, x: op(x))
    assert missing(op, {"throw_away": Row([Call("x[3]")], [])}) == []


# Types and values.


def unit(graph: Graph) -> float:
    """The rounding unit of the coarsest float dtype in `graph`."""
    values = graph.numbering()
    return max((float(np.finfo(v.dtype).eps) for v in values if v.type.is_inexact), default=0.0)


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    """Equal up to `tolerance` relative to the largest number expected, or to one."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert np.array_equal(np.isfinite(found), np.isfinite(expected)), (found, expected)
    if found.dtype.kind not in "fc":
        assert np.array_equal(found, expected), (found, expected)
        return
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))))
    assert np.allclose(found, expected, rtol=0, atol=tolerance * scale), (found, expected)


@every_case
def test_impl_gives_the_type_and_value(case: Case) -> None:
    for dtype in case.row.dtypes:
        arrays = case.arrays(dtype)
        types = case.op.infer(tuple(case.types(dtype)), case.call.params)
        before = [a.copy() for a in arrays]
        with np.errstate(all="ignore"):
            results = case.op.evaluate(arrays, case.call.params)
        assert [of_array(np.asarray(r)) for r in results] == list(types), dtype
        assert all(np.array_equal(a, b) for a, b in zip(arrays, before, strict=True))
        if case.row.reference is None:
            continue
        wide = [np.asarray(a, np.float64) if a.dtype.kind == "f" else a for a in arrays]
        expected = case.row.reference(*wide, **case.call.params)
        for result, reference in zip(
            results, expected if case.op.multiple else (expected,), strict=True
        ):
            eps = float(np.finfo(result.dtype).eps) if result.dtype.kind in "fc" else 0.0
            assert_close(result, np.asarray(reference), TOLERANCE["value"] * eps)


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        pytest.param(name, refused, id=f"{name} {refused.call}")
        for name, row in ROWS.items()
        for refused in row.refused
    ],
)
def test_wrong_types_are_refused(name: str, refused: Any) -> None:
    op = ours()[name]
    with pytest.raises(refused.error) as caught:
        build(lambda *xs: op(*xs, **refused.call.params), *refused.call.operands)
    assert type(caught.value) is refused.error
    assert "written here:  test_primitives.py" in str(caught.value)


# Derivatives.


def independent(
    graph: Graph, arrays: Sequence[np.ndarray], along: dict[int, np.ndarray]
) -> tuple[list[np.ndarray], float]:
    """Directional derivatives without any rule of primgraph, and how exact they are."""
    rows = {e.op.name: ROWS[e.op.name].analytic for e in graph.body}
    if DIFFERENCES in rows.values() or any(v.type.is_complex for v in graph.numbering()):
        return differences(graph, arrays, along), OF_DIFFERENCES
    analytic = {name: a for name, a in rows.items() if callable(a)}
    return complex_step(graph, arrays, along, analytic), 0.0


def subsets(places: Sequence[int]) -> list[tuple[int, ...]]:
    """Each place by itself, and all together."""
    return [*((i,) for i in places), *([tuple(places)] if len(places) > 1 else [])]


@every_float_case
def test_jvp(case: Case) -> None:
    graph, arrays = case.graph("f64"), case.arrays("f64")
    for wrt in subsets(float_inputs(graph)):
        tangents = directions([graph.inputs[i].type for i in wrt], 1)
        jvp = linearize(graph, wrt)
        results = interpret(jvp, *arrays, *tangents)
        values = interpret(graph, *arrays)
        along = dict(zip(wrt, tangents, strict=True))
        expected, slack = independent(graph, arrays, along)
        for found, value in zip(results[: len(values)], values, strict=True):
            assert np.array_equal(found, value)
        for found, derivative in zip(results[len(values) :], expected, strict=True):
            assert_close(found, derivative, slack + TOLERANCE["jvp"] * unit(jvp))


def is_linear(case: Case, wrt: Sequence[int]) -> bool:
    """Whether sums and multiples of these operands together, others as they are, go through."""
    one, other = case.arrays("f64"), case.arrays("f64")
    for i, along in zip(wrt, directions([of_array(one[i]) for i in wrt], 5), strict=True):
        other[i] = along
    joined = [
        a - 2.5 * b if i in wrt else a for i, (a, b) in enumerate(zip(one, other, strict=True))
    ]
    try:
        with np.errstate(all="ignore"):
            of_one, of_other, found = (
                np.concatenate([np.ravel(r) for r in case.op.evaluate(xs, case.call.params)])
                for xs in (one, other, joined)
            )
    except pg.LinAlgError:
        # What is linear has a value at every sum.
        return False
    return bool(np.allclose(found, of_one - 2.5 * of_other, rtol=1e-6, atol=1e-6))


@pytest.mark.parametrize("name", [n for n, op in ours().items() if not (op.constant or op.formal)])
def test_a_primitive_is_linear_in_what_it_says_and_says_so(name: str) -> None:
    op, row = ours()[name], ROWS[name]
    cases = [c for c in (Case(op, row, call) for call in row.calls) if c.is_float]
    if name == "cholesky":
        # A sum of multiples of positive definite matrices may be none.
        cases = []
    together = []
    for case in cases:
        inputs = float_inputs(case.graph("f64"))
        declared = [i for i in inputs if i in op.linear_operands(len(case.call.operands))]
        groups = [[i] for i in declared] if op.linear == "each" else [declared]
        assert all(is_linear(case, group) for group in groups if group), (str(case.call), groups)
        together.append(is_linear(case, inputs))
    if cases and all(together):
        assert op.linear


def test_functions_of_integers_alone_are_constant() -> None:
    integers = [
        op
        for name, op in ours().items()
        if op.elementwise and all(dtype in INTS for dtype in ROWS[name].dtypes)
    ]
    assert len(integers) > 4
    assert all(op.constant for op in integers)


def paired(ct: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The products of a cotangent and a tangent, whose sum is what transposition leaves alone.

    Neither is conjugated; of complex products the real part counts.
    """
    if ct.dtype.kind == "c":
        return np.real(np.ravel(ct) * np.ravel(d))
    return np.ravel(ct).astype(float) * np.ravel(d)


@every_float_case
def test_transpose_is_the_adjoint(case: Case) -> None:
    graph, arrays = case.graph("f64"), case.arrays("f64")
    for wrt in subsets(float_inputs(graph)):
        forward, reverse = tangents_of(graph, wrt), cotangents_of(graph, wrt)
        tangents = directions([graph.inputs[i].type for i in wrt], 2)
        cotangents = directions([v.type for v in forward.outputs], 3)
        pushed = interpret(forward, *arrays, *tangents)
        pulled = interpret(reverse, *arrays, *cotangents)
        left, right = (
            [paired(a, b) for a, b in zip(xs, ys, strict=True)]
            for xs, ys in ((cotangents, pushed), (pulled, tangents))
        )
        size = sum(float(np.abs(p).sum()) for p in (*left, *right))
        gap = abs(sum(p.sum() for p in left) - sum(p.sum() for p in right))
        assert gap <= TOLERANCE["adjoint"] * unit(forward) * size


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.values[0].is_float and not c.values[0].op.own_slope]
)
def test_second_order_agrees_in_all_modes(case: Case) -> None:
    """The Hessian of `<w, f(x)>` in four modes, against a derivative of the gradient."""
    graph, arrays = case.graph("f64"), case.arrays("f64")
    wrt = float_inputs(graph)
    forward, gradient = tangents_of(graph, wrt), cotangents_of(graph, wrt)
    kinds = [graph.inputs[i].type for i in wrt]
    u, v = directions(kinds, 4), directions(kinds, 5)
    w = directions([o.type for o in forward.outputs], 6)

    expected, slack = independent(gradient, [*arrays, *w], dict(zip(wrt, v, strict=True)))
    forward_over_reverse = interpret(tangents_of(gradient, wrt), *arrays, *w, *v)
    reverse_over_reverse = interpret(cotangents_of(gradient, wrt), *arrays, *w, *v)
    reverse_over_forward = interpret(cotangents_of(forward, wrt), *arrays, *v, *w)
    forward_over_forward = interpret(tangents_of(forward, wrt), *arrays, *v, *u)

    allowed = slack + TOLERANCE["second"] * unit(gradient)
    for found in (forward_over_reverse, reverse_over_reverse, reverse_over_forward):
        for mine, theirs in zip(found, expected, strict=True):
            assert_close(mine, theirs, allowed)
    second = sum(float(paired(a, b).sum()) for a, b in zip(w, forward_over_forward, strict=True))
    product_of_both = sum(float(paired(a, b).sum()) for a, b in zip(u, expected, strict=True))
    assert_close(second, product_of_both, 10 * allowed)
    swapped = interpret(tangents_of(gradient, wrt), *arrays, *w, *u)
    symmetric = sum(float(paired(a, b).sum()) for a, b in zip(v, swapped, strict=True))
    assert_close(symmetric, product_of_both, 10 * allowed)


@pytest.mark.parametrize("case", thinned(CASES, 4))
def test_tensors_are_what_the_primitive_means_whenever_they_are_looked_at(case: Case) -> None:
    dtype = case.row.dtypes[0]
    graph, arrays = case.graph(dtype), case.arrays(dtype)
    expected = interpret(graph, *arrays)
    for look in ways(np.random.default_rng(0)):
        inputs = [pg.tensor(a) for a in arrays]
        found = [t.numpy() for t in as_tensors(graph, inputs, look)]
        assert not differs(graph, arrays, expected, found)


@pytest.mark.parametrize("case", thinned(FLOAT_CASES, 8))
def test_gradients_of_tensors_are_those_of_the_transpose(case: Case) -> None:
    graph, arrays = case.graph("f64"), case.arrays("f64")
    wrt = float_inputs(graph)
    outputs = [v for v in graph.outputs if v.type.is_inexact]
    seeds = directions([v.type for v in outputs], 0)
    vjp = cotangents_of(graph, wrt)
    expected = interpret(vjp, *arrays, *seeds)
    for _ in range(3):
        inputs = [pg.tensor(a, requires_grad=i in wrt) for i, a in enumerate(arrays)]
        found = as_tensors(graph, inputs, lambda t: None)
        reached = [(t, s) for t, s in zip((t for t in found if t.type.is_inexact), seeds,
                                          strict=True) if t.requires_grad]  # fmt: skip
        if not reached:
            assert all(not np.any(e) for e in expected)
            return
        slopes = pg.autograd.grad(
            [t for t, _ in reached],
            [inputs[i] for i in wrt],
            [s for _, s in reached],
            materialize_grads=True,
        )
        for slope, known in zip(slopes, expected, strict=True):
            assert_close(slope, known, TOLERANCE["jvp"] * unit(vjp))


@every_float_case
def test_float32_derivatives(case: Case) -> None:
    """The gradient in float32 against that in float64, at the same numbers."""
    if "f32" not in case.row.dtypes or "x[" not in str(case.call):
        return
    single, double = (cotangents_of(g, float_inputs(g)) for g in map(case.graph, ("f32", "f64")))
    arrays = case.arrays("f32")
    w = [
        np.asarray(a, np.float32)
        for a in directions([v.type for v in case.graph("f32").outputs if v.type.is_float], 7)
    ]
    found = interpret(single, *arrays, *w)
    expected = interpret(double, *arrays, *w)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == np.float32
        assert_close(mine, theirs, TOLERANCE["float32"] * float(np.finfo(np.float32).eps))


# Batching.


def stacked(samples: Sequence[list[np.ndarray]], place: int, like: np.ndarray) -> np.ndarray:
    """Operand `place` of all samples, one after the other."""
    parts = [s[place] for s in samples]
    return np.stack(parts) if parts else np.zeros((0, *like.shape), like.dtype)


@every_case
@pytest.mark.parametrize("size", [0, 1, 3])
def test_batch_is_a_loop(case: Case, size: int) -> None:
    dtype = "f64" if "f64" in case.row.dtypes else case.row.dtypes[0]
    graph, shared = case.graph(dtype), case.arrays(dtype)
    samples = [case.arrays(dtype, seed) for seed in range(1, size + 1)]
    for axes in product((0, None), repeat=len(shared)):
        mapped = batch(graph, size, axes)
        arrays = [
            a if axis is None else stacked(samples, i, a)
            for i, (a, axis) in enumerate(zip(shared, axes, strict=True))
        ]
        found = interpret(mapped, *arrays)
        for i, sample in enumerate(samples):
            mixed = [
                a if axis is None else s for s, a, axis in zip(sample, shared, axes, strict=True)
            ]
            for result, expected in zip(found, interpret(graph, *mixed), strict=True):
                assert_close(result[i], expected, TOLERANCE["batch"] * unit(graph))
        for result, value in zip(found, graph.outputs, strict=True):
            assert of_array(result) == TensorType((size, *value.shape), value.dtype)


# Calls in which one operand is large where others are small.
LARGE = "f64[40,30]"
UNEVEN: dict[str, list[Call]] = {
    "as_softmax_of": [Call("f64[40,30]", "f64[40,30]", axes=(1,))],
    "as_function_of": [Call("f64[2]", LARGE), Call(LARGE, "f64[2]")],
    "concat": [Call("f64[40,1]", LARGE, axis=1), Call(LARGE, "f64[40,1]", axis=1)],
    "placed": [
        Call("f64[2]", LARGE, shape=(60, 30), starts=(1500, 0), strides=((1,), (30, 1))),
        Call(LARGE, "f64[2]", shape=(60, 30), starts=(0, 1500), strides=((30, 1), (1,))),
    ],
    "gather": [
        Call("f64[1000]", "i64[]", axis=0),
        Call(LARGE, "i64[]", axis=0),
        Call(LARGE, "i64[2]", axis=1),
        Call(LARGE, "i64[3]", "i64[3]", axis=0),
        Call("f64[4,3]", "i64[1000]", axis=0),
    ],
    "matmul": [
        Call(LARGE, "f64[30,1]"),
        Call("f64[1,40]", LARGE),
        Call("f64[2,40,30]", "f64[2,30,1]"),
        Call("f64[2,1,40]", "f64[2,40,30]"),
    ],
    "solve": [Call("f64[20,20]", "f64[20,40]"), Call("f64[2,20,20]", "f64[2,20,1]")],
    "random_variate": [Call("i64[20]", "f64[20,40]", name="standard_gamma")],
    "triangular_solve": [
        Call("f64[20,20]", "f64[20,40]", lower=True, transposed=False, unit=False),
        Call("f64[2,20,20]", "f64[2,20,1]", lower=True, transposed=False, unit=False),
    ],
    "sparse_triangular_solve": [Call("f64[20]", "f64[20,40]", "i64[20]", "i64[20]", reverse=False)],
    "cholesky_tangent": [Call("f64[20,20]", "f64[20,20]")],
    "cholesky_slope": [Call("f64[20,20]", "f64[20,20]")],
    **{f"{name}_slope": [Call("f64[20,20]", "f64[20,20]")] for name in ("expm", "sqrtm", "logm")},
    "as_symmetric": [Call("f64[20,20]", "f64[20,20]")],
    "as_cholesky_of": [Call("f64[20,20]", "f64[20,20]")],
    "scatter_add": [
        Call("f64[1000]", "f64[]", "i64[]", axis=0),
        Call("f64[3,2]", "f64[3,500]", "i64[500]", axis=1),
        Call("f64[3,2]", "f64[500,2]", "i64[500]", axis=0),
    ],
    "reorder": [Call(LARGE, "i64[40,30]", axis=0)],
    "reorder_back": [Call(LARGE, "i64[40,30]", axis=0)],
    "sort_by": [Call(LARGE, "i64[40,30]", axis=0)],
    "searchsorted": [Call("f64[1000]", "f64[]", right=False), Call("f64[3]", LARGE, right=False)],
    "root_of_squares": [
        # A sum is not without its terms: many sums of the same large array are not met.
        Call("f64[2,3]", "f64[3]", axes=(0,), divisor=1.0),
    ],
    "slice_assign": [
        Call(LARGE, "f64[1,1]", starts=(0, 0), steps=(1, 1)),
        Call(LARGE, "f64[40,29]", starts=(0, 0), steps=(1, 1)),
    ],
}


def _uneven() -> list[Any]:
    cases = []
    for name, op in ours().items():
        calls = UNEVEN.get(name, [])
        if op.elementwise:
            calls = [c for c in ROWS[name].calls if len(c.operands) > 1][:2]
        for call in calls:
            case = Case(op, ROWS[name], call)
            for flags in product((0, None), repeat=len(call.operands)):
                if 0 in flags:
                    cases.append(pytest.param(case, flags, id=f"{name} {call} {flags}"))
    return cases


def test_every_primitive_of_several_operands_has_uneven_samples() -> None:
    several = {n for n in ours() if any(len(c.operands) > 1 for c in ROWS[n].calls)}
    # A loop that differs between samples is another loop for all: test_loops.py has those.
    exempt = {n for n in several if ours()[n].elementwise or ours()[n].has_bodies}
    # Derivatives at ties have batches of matrices with and without ties in test_ties.py.
    exempt |= {"as_spectral_tangent", "as_spectral_gradient", "if_distinct", "unless_any"}
    lacking = sorted(several - exempt - set(UNEVEN))
    assert not lacking, f"add rows for {lacking} to UNEVEN"
    assert several - exempt == set(UNEVEN)


@pytest.mark.parametrize(("case", "flags"), _uneven())
def test_a_batch_copies_nothing_that_all_samples_share(
    case: Case, flags: tuple[int | None, ...]
) -> None:
    """What is created beside views is no more than a few times the operands and the result."""
    if case.op.name == "searchsorted" and flags[0] == 0:
        # In vectors that differ between samples, elements are counted.
        return
    size = 50
    many = batch(case.graph(case.row.dtypes[0]), size, flags)
    views = ("reshape", "permute")
    created = sum(v.type.size for e in many.body for v in e.outputs if e.op.name not in views)
    given = sum(v.type.size for v in (*many.inputs, *many.outputs))
    # Additions at computed positions are work in themselves, for each sample.
    at_positions = case.op.name in ("scatter_add", "sparse_triangular_solve")
    work = size * case.types(case.row.dtypes[0])[1].size if at_positions else 0
    assert created <= 2 * given + 2 * work


@every_float_case
def test_batch_of_a_gradient_and_gradient_of_a_batch(case: Case) -> None:
    """The passes commute: the transpose of a batched tangent graph is the batched transpose."""
    graph, size = case.graph("f64"), 2
    wrt = float_inputs(graph)
    samples = [case.arrays("f64", seed) for seed in range(1, size + 1)]
    arrays = [stacked(samples, i, a) for i, a in enumerate(samples[0])]
    outside = cotangents_of(batch(graph, size), wrt)
    inside = batch(cotangents_of(graph, wrt), size)
    count = len(graph.inputs)
    between = transpose(batch(tangents_of(graph, wrt), size), range(count, count + len(wrt)))
    w = directions([v.type for v in outside.inputs[count:]], 8)
    expected = interpret(inside, *arrays, *w)
    for other in (outside, between):
        for mine, theirs in zip(interpret(other, *arrays, *w), expected, strict=True):
            assert_close(mine, theirs, TOLERANCE["jvp"] * unit(inside))
