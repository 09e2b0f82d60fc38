"""Products of vectors, matrices and labelled axes against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import evaluate_one, same, sample, traced
from program_tolerance import same_bits

import primgraph as pg
import primgraph.operators as ops
from primgraph.codegen import compile_graph
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.interpret import interpret
from primgraph.operators.linear_algebra.products import trace
from primgraph.transforms import lower

TOLERANCE = 1e-13
# The leading axes of a stack of matrices, for each rank.
LEFT = [(4,), (3, 4), (2, 3, 4), (1, 2, 3, 4)]
RIGHT = [(4,), (4, 5), (2, 4, 5), (6, 1, 4, 5)]


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("right", RIGHT)
def test_matmul_of_all_ranks(left: Any, right: Any) -> None:
    x, y = sample(left), sample(right, seed=1)
    same(evaluate_one(ops.matmul, x, y), x @ y, TOLERANCE)
    same(evaluate_one(lambda u, v: u @ v, x, y), x @ y, TOLERANCE)


@pytest.mark.parametrize("dtypes", ["dd", "ff", "ee", "ll", "bb", "??", "fd", "iB", "?d"])
def test_matmul_promotes_as_numpy(dtypes: str) -> None:
    x, y = sample((2, 3), dtypes[0]), sample((3, 2), dtypes[1], seed=1)
    expected = x @ y
    same(evaluate_one(ops.matmul, x, y), expected, 2e-3 if expected.dtype == "e" else 1e-6)


@pytest.mark.parametrize(
    ("left", "right"), [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((0,), (0,)), ((0, 2, 3), (3, 0))]
)
def test_matmul_of_empty_arrays(left: Any, right: Any) -> None:
    x, y = np.zeros(left), np.zeros(right)
    same(evaluate_one(ops.matmul, x, y), x @ y)


def test_a_matrix_on_the_right_of_a_stack_is_not_repeated() -> None:
    text = str(traced(ops.matmul, sample((7, 2, 3)), sample((3, 4))))
    assert "broadcast" not in text
    assert "f64[14,4] = matmul" in text


@pytest.mark.parametrize(
    ("left", "right"),
    [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5)), ((2, 3, 4), (5, 4, 2)),
     ((2, 3, 4), (4,)), ((), (3,)), ((3, 2), ())],
)  # fmt: skip
def test_dot(left: Any, right: Any) -> None:
    x, y = sample(left), sample(right, seed=1)
    same(evaluate_one(ops.dot, x, y), np.dot(x, y), TOLERANCE)
    same(evaluate_one(lambda u, v: u.dot(v), x, y), np.dot(x, y), TOLERANCE)
    same(evaluate_one(ops.outer, x, y), np.outer(x, y), TOLERANCE)
    if x.ndim == 0 or y.ndim == 0 or x.shape[-1] == y.shape[-1]:
        same(evaluate_one(ops.inner, x, y), np.inner(x, y), TOLERANCE)


@pytest.mark.parametrize("axes", [0, 1, 2, ([1, 2], [0, 1]), (-1, 1), ([2], [1]), ([], [])])
def test_tensordot(axes: Any) -> None:
    x, y = sample((2, 3, 3)), sample((3, 3, 4), seed=1)
    found = evaluate_one(lambda u, v: ops.tensordot(u, v, axes), x, y)
    same(found, np.tensordot(x, y, axes), TOLERANCE)


EINSUMS = [
    ("ij->ji", "23"), ("ij", "23"), ("ji", "23"), ("ij->", "23"), ("ij->i", "23"), ("ii", "33"),
    ("ii->i", "33"), ("iij->ji", "332"), ("iii->i", "333"), ("i,i", "3 3"), ("i,i->i", "3 3"),
    ("i,j", "2 3"), ("i,j->ji", "2 3"), ("ij,jk", "23 34"), ("ij,jk->ki", "23 34"),
    ("ij,kj->ik", "23 43"), ("bij,bjk->bik", "223 234"), ("bij,jk->bik", "223 34"),
    ("ijk,jil->kl", "234 325"), ("ij,ij->ij", "23 23"), ("ij,ij", "23 23"), ("ij,j->i", "23 3"),
    ("ab,bc,cd", "23 34 45"), ("ab,bc,cd,de->ae", "23 34 42 25"), ("i,i,i->", "3 3 3"),
    ("i,j,k->kji", "2 3 4"), ("...ij,...jk->...ik", "423 34"), ("...ij,...jk", "1423 5134"),
    ("...i->...", "234"), ("...", "234"), ("i...->i", "2"), ("i...,i...->...", "23 243"),
    ("...ii->...i", "233"), ("ij,j", "21 3"), ("ij,ij->ij", "13 23"), ("ij,ij->", "13 23"),
    ("ij,jk,ik->", "23 34 24"), (" i j , j k -> i k ", "23 34"), ("Ab,bC", "23 34"),
    (",i->i", " 3"), ("->", ""), ("ij,jk->ik", "03 34"), ("ij,jk->ik", "20 04"),
    ("bhqd,bhkd->bhqk", "2234 2254"), ("ii,ij,jj->i", "22 23 33"),
]  # fmt: skip


@pytest.mark.parametrize(("subscripts", "shapes"), EINSUMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8, np.bool_])
def test_einsum_is_numpys(subscripts: str, shapes: str, dtype: Any) -> None:
    arrays = [
        sample(tuple(map(int, shape)), dtype, seed=i) for i, shape in enumerate(shapes.split(" "))
    ]
    expected = np.asarray(np.einsum(subscripts, *arrays))
    found = evaluate_one(lambda *xs: ops.einsum(subscripts, *xs), *arrays)
    same(found, expected, 1e-5 if dtype is np.float32 else TOLERANCE)
    lower(traced(lambda *xs: ops.einsum(subscripts, *xs), *arrays))


@pytest.mark.parametrize("seed", range(6))
def test_random_einsums_are_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(25):
        sizes = dict(zip("abcde", rng.integers(1, 4, 5).tolist(), strict=True))
        terms = ["".join(rng.choice(list("abcde"), rng.integers(0, 4))) for _ in range(3)]
        used = sorted(set("".join(terms)))
        rng.shuffle(used)
        output = "".join(used[: rng.integers(0, len(used) + 1)])
        subscripts = ",".join(terms) + "->" + output
        arrays = [sample(tuple(sizes[k] for k in term), seed=i + 1) for i, term in enumerate(terms)]
        found = evaluate_one(lambda *xs, s=subscripts: ops.einsum(s, *xs), *arrays)
        same(found, np.asarray(np.einsum(subscripts, *arrays)), 1e-12)


# Of two operands, that is: more are multiplied two at a time, as NumPy does only if asked to.
_PAIRS = (
    "ab,cd->ba", "a,bc->", "a,bc->a", "a,b->a", "a,b->", "ab,bc->ac", "ab,ab->", "ab,ab->a",
    "ab,c->", "ab,c->c", "ab,cb->", "ab,b->", "ab,cd->", "ab,bc->",
    "ac,b->", "ab,ba->", "a,ab->b", "ba,bc->", "ab,cb->b", "ba,b->a", "ca,bd->", "dab,cb->d",
)  # fmt: skip


_OTHER_LOOPS = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="einsum goes through it in another order"
)


@pytest.mark.parametrize(
    "subscripts",
    [*_PAIRS, "ab->", "ab->b", "aab->b", pytest.param("abc,bd->ad", marks=_OTHER_LOOPS)],
)
def test_einsum_has_numpys_special_values_and_zeros(subscripts: str) -> None:
    rng = np.random.default_rng(0)
    special = np.array([1.0, -1.0, 2.0, 0.0, -0.0, np.inf, -np.inf, np.nan])
    parts = subscripts.partition("->")[0].split(",")
    for turn in range(30):
        sizes = dict(zip("abcd", rng.choice([0, 1, 2, 3], 4).tolist(), strict=True))
        among = special[: (3, 5, 8)[turn % 3]]
        arrays = [rng.choice(among, tuple(sizes[k] for k in part)) for part in parts]
        with np.errstate(all="ignore"):
            expected = np.asarray(np.einsum(subscripts, *arrays))
        graph = traced(lambda *xs: ops.einsum(subscripts, *xs), *arrays)
        for found in (interpret(graph, *arrays)[0], compile_graph(lower(graph))(*arrays)[0]):
            assert np.all(same_bits(found, expected)), (arrays, found, expected)


def test_einsum_over_an_axis_without_elements_has_derivatives_of_zero() -> None:
    with pg.Program() as program:
        x, y = pg.data("x", (2, 3)), pg.data("y", (0,))
        slopes = pg.grad(pg.sum(pg.einsum("ab,c->b", x, y)), [x, y])
    feed = {"x": np.full((2, 3), np.nan), "y": np.zeros(0)}
    dx, dy = pg.Executor().run(program, feed, slopes)
    same(dx, np.zeros((2, 3)))
    same(dy, np.zeros(0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("rows", "columns"), [((1,), 1), ((3,), 4), ((3, 4), 4), ((64,), 65)])
def test_products_that_underflow_have_the_sign_of_numpys(
    rows: tuple[int, ...], columns: int, dtype: Any
) -> None:
    tiny = 1e-200 if dtype is np.float64 else 1e-30
    x, y = np.full((*rows, 1), -tiny, dtype), np.full((1, columns), tiny, dtype)
    graph = traced(lambda a, b: a @ b, x, y)
    for style in ("planned", "readable"):
        (found,) = compile_graph(lower(graph), style=style)(x, y)
        assert np.all(same_bits(found, x @ y))
    assert np.all(same_bits(interpret(graph, x, y)[0], x @ y))


def test_einsum_contracts_through_small_intermediate_results() -> None:
    x, y, v = sample((20, 30)), sample((30, 40)), sample((40,))
    text = str(lower(traced(lambda *xs: ops.einsum("ij,jk,k->i", *xs), x, y, v)))
    assert "20,40" not in text


@pytest.mark.parametrize(
    ("subscripts", "shapes", "error", "words"),
    [
        ("ij,jk", [(2, 3)], ArgumentError, "are for 2 operands, 1 are given"),
        ("ij", [(2, 3, 4)], ShapeError, r"'ij' do not fit f64\[2,3,4\]"),
        ("i...j", [(2,)], ShapeError, "do not fit"),
        ("i,i", [(2,), (3,)], ShapeError, "label 'i' has sizes 2 and 3"),
        ("ii", [(2, 3)], ShapeError, "diagonal|sizes 2 and 3"),
        ("i->j", [(2,)], ArgumentError, "each label of the output"),
        ("i->ii", [(2,)], ArgumentError, "each label of the output"),
        ("i1", [(2, 2)], ArgumentError, "cannot be read"),
        ("i.", [(2,)], ArgumentError, "cannot be read"),
        ("...i->i", [(2, 3)], ArgumentError, "ellipsis that the output lacks"),
        (3, [(2, 3)], ArgumentError, "as a string"),
    ],
)
def test_einsum_refuses_what_does_not_fit(
    subscripts: Any, shapes: Any, error: Any, words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        traced(lambda *xs: ops.einsum(subscripts, *xs), *map(np.zeros, shapes))
    assert "test_products.py" in str(caught.value)


@pytest.mark.parametrize(
    ("function", "shapes", "words"),
    [
        (
            ops.matmul,
            [(3, 4), (5, 2)],
            r"matmul cannot multiply f64\[3,4\] by f64\[5,2\]: inner sizes 4 and 5 differ",
        ),
        (ops.matmul, [(), (3,)], r"f64\[\] by f64\[3\]: both need at least one axis"),
        (ops.matmul, [(2, 3, 4), (5, 4, 2)], r"the stacks differ, cannot broadcast \[2\] with"),
        (ops.matmul, [(3,), (4,)], "inner sizes 3 and 4 differ"),
        (ops.dot, [(2, 3), (2, 3)], r"dot cannot multiply f64\[2,3\] by f64\[2,3\]: inner sizes"),
        (ops.inner, [(2, 3), (2, 4)], "axis 1 has extent 3, axis 1 has 4"),
        (ops.tensordot, [(2,), (2,)], r"tensordot of f64\[2\] and f64\[2\] over 2 axes"),
        (ops.linear, [(2, 3), (4, 5)], "inner sizes 3 and 4 differ"),
        (trace, [(2,)], "axis 1 is out of bounds"),
    ],
)
def test_products_refuse_what_does_not_fit(function: Any, shapes: Any, words: str) -> None:
    with pytest.raises(ShapeError, match=words) as caught:
        traced(function, *map(np.zeros, shapes))
    assert "is input 'x0'" in str(caught.value)


@pytest.mark.parametrize(("rows", "turned"), [(3, False), (30, True)])
def test_a_product_is_turned_unless_it_would_have_few_columns(rows: int, turned: bool) -> None:
    def function(x: pg.Variable, y: pg.Variable) -> pg.Variable:
        product = pg.reshape(x.T @ y, (rows, 5, 4))
        return pg.transpose(product, (1, 2, 0))

    graph = pg.trace(function, pg.spec((50, rows)), pg.spec((50, 20)))
    (product,) = [e for e in pg.compile(graph, math="fast").graph.body if e.op.name == "matmul"]
    assert product.output.shape == ((20, rows) if turned else (rows, 20))
