"""Index maps against numbers: which result elements change where one operand element does."""

from math import prod

import numpy as np
import pytest
from test_primitives import CASES, ours

import primgraph as pg
from primgraph.custom import primitives as custom
from primgraph.ir import dims
from primgraph.ir.facts.choices import RAISES
from primgraph.ir.index_maps import IndexMap, Opaque, RowMajor
from primgraph.ir.primitive import lookup, primitive
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.primitives.elementwise import SIGNS, UNIT
from primgraph.primitives.linear_algebra.products import CONTRACTS
from primgraph.primitives.reductions import REDUCES, SUMS

# As many elements of each operand are changed at most.
MOST = 24


def test_every_primitive_declares_what_its_results_depend_on():
    lacking = [n for n, op in ours().items() if not op.literal and not op.has_index_map]
    assert not lacking
    for op in (custom.as_custom, custom.custom_tangents):
        assert op.has_index_map


def test_what_declares_no_map_is_opaque_and_a_reason_is_given():
    @primitive(name="without_map", impl=np.sort, flops=0)
    def without_map(x):
        return x

    assert not without_map.has_index_map
    x = TensorType((3,), FLOAT64)
    assert without_map.dependence(0, 0, (x,), (x,), {}) == Opaque("it is not declared")
    without_map.opaque("it sorts")
    assert without_map.has_index_map
    assert without_map.dependence(0, 0, (x,), (x,), {}) == Opaque("it sorts")
    with pytest.raises(pg.PrimgraphError):
        without_map.opaque("it sorts")


def resolved(found):
    return found.refine_axes() if isinstance(found, RowMajor) else found


def changed(array, place):
    """The array with another element at one place."""
    other = array.copy()
    if array.dtype == bool:
        other.flat[place] = not other.flat[place]
    elif array.dtype.kind in "iu":
        other.flat[place] = int(array.flat[place]) - 1 if array.flat[place] > 0 else 1
    else:
        other.flat[place] += 0.0078125 * (1 + 1j if array.dtype.kind == "c" else 1)
    return other


def differing(op, arrays, params, before, k):
    with np.errstate(all="ignore"):
        after = op.evaluate(arrays, params)[k]
    return {
        n
        for n, (a, b) in enumerate(zip(np.ravel(before), np.ravel(after), strict=True))
        if a.tobytes() != b.tobytes()
    }


@pytest.mark.parametrize("case", CASES)
def test_no_element_depends_on_any_that_the_map_leaves_out(case):
    op, params = case.op, case.call.params
    dtype = case.row.dtypes[0]
    types, arrays = tuple(case.types(dtype)), case.arrays(dtype)
    if op.literal or op.random or any(type(n) is not int for t in types for n in t.shape):
        pytest.skip("there is nothing to be changed")
    results = op.infer(types, params)
    with np.errstate(all="ignore"):
        before = op.evaluate(arrays, params)
    linear = op.linear_operands(len(types), params)
    for k, result in enumerate(results):
        for i, x in enumerate(types):
            found = resolved(op.dependence(k, i, types, results, params))
            if not isinstance(found, IndexMap):
                assert found is None or found.reason
                continue
            pairs = expected(found, result, x, arrays)
            for place in range(min(x.size, MOST)):
                others = [*arrays[:i], changed(arrays[i], place), *arrays[i + 1 :]]
                try:
                    moved = differing(op, others, params, before[k], k)
                except (IndexError, np.linalg.LinAlgError, ValueError):
                    continue
                assert moved <= pairs.get(place, set())
                if found.exact and i in linear and not (op.elementwise or op.linear == "each"):
                    assert moved == pairs.get(place, set())


def test_places_that_are_looked_up_may_be_out_of_range_but_for_a_permutation():
    looking = set()
    for case in (parameter.values[0] for parameter in CASES):
        types, params = tuple(case.types(case.row.dtypes[0])), case.call.params
        results = case.op.infer(types, params)
        maps = [case.op.dependence(0, i, types, results, params) for i in range(len(types))]
        if any(isinstance(m, IndexMap) and m.lookups() for m in maps):
            looking.add(case.op)
    assert {op.name for op in looking if not op.fact(RAISES)} == {"reorder"}
    raising = {op for op in ours().values() if op.fact(RAISES)}
    assert {op.name for op in raising & looking} == {"gather", "scatter_add"}


def expected(found, result, x, arrays):
    targets, sources = found.pairs(result.shape, x.shape, dict(enumerate(arrays)))
    pairs = {}
    for target, source in zip(targets.tolist(), sources.tolist(), strict=True):
        pairs.setdefault(source, set()).add(target)
    return pairs


@pytest.mark.parametrize("case", [c for c in CASES if c.values[0].op.name == "matmul"])
def test_the_maps_of_both_factors_count_products_by_the_same_variables(case):
    types = tuple(case.types("f64"))
    results = case.op.infer(types, {})
    left, right = (case.op.dependence(0, i, types, results, {}) for i in (0, 1))
    assert (left.extents, left.result) == (right.extents, right.result)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((6, 4), (3, 8)), ((24,), (2, 3, 4)), ((2, 3, 4), (24,)), ((2, 1, 3), (6,)),
        ((), (1, 1)), ((1, 1), ()), ((4, 1, 6), (2, 2, 6)), ((5,), (5, 1)), ((2, 6), (1, 4, 3)),
    ],
)  # fmt: skip
def test_a_reshape_is_affine_over_common_factors(old, new):
    found = RowMajor(new, old).refine_axes()
    targets, sources = found.pairs(new, old)
    assert targets.tolist() == sources.tolist()
    assert sorted(targets.tolist()) == list(range(prod(old)))


def test_a_reshape_without_common_factors_is_no_affine_map():
    assert RowMajor((3, 2), (2, 3)).refine_axes() is None
    assert RowMajor((2, 5, 3), (5, 6)).refine_axes() is None


def test_maps_of_symbolic_sizes_are_those_of_the_sizes_put_in():
    n = dims.size("n")
    for function, shape, params in [
        ("pad", (n, 3), {"low": (n, 1), "high": (2, 0)}),
        ("slice", (2 * n, 3), {"starts": (n, 0), "sizes": (n, 2), "steps": (1, 1)}),
        ("reverse", (n, 3), {"axes": (0,)}),
        ("concat", (n, 3), {"axis": 0}),
        ("reduce_sum", (n, 3), {"axes": (0,)}),
        ("split", (n + 2, 3), {"sizes": (n, 2), "axis": 0}),
        ("permute", (n, 3), {"axes": (1, 0)}),
        ("broadcast", (3,), {"shape": (n, 3), "new_axes": (0,)}),
        ("cumsum", (n, 3), {"axis": 0, "reverse": True}),
    ]:
        op = lookup(function)
        count = 2 if function == "concat" else 1
        for i in range(count):
            symbolic = maps(op, shape, params, count, i)
            plain = maps(op, put_in(shape), put_in(params), count, i)
            assert put_in(symbolic) == plain, function


def maps(op, shape, params, count, i):
    types = (TensorType(shape, FLOAT64),) * count
    results = op.infer(types, params)
    return [parts(op.dependence(k, i, types, results, params)) for k in range(len(results))]


def parts(found):
    return (
        found.extents,
        *(((p.start, p.terms)) for p in (*found.result, *found.operand)),
        found.order,
    )


def put_in(sizes):
    """With 5 in the place of the symbolic size."""
    if isinstance(sizes, dict):
        return {k: put_in(v) for k, v in sizes.items()}
    if isinstance(sizes, tuple | list):
        return type(sizes)(put_in(v) for v in sizes)
    return sizes.at({"n": 5}) if isinstance(sizes, dims.Dim) else sizes


def declared(fact):
    """The primitives of the package that declare a fact."""
    return {name: op for name, op in ours().items() if op.fact(fact)}


def test_sums_have_the_signs_that_they_declare():
    x, y = np.array([3.0, -2.0]), np.array([0.5, 4.0])
    for op in declared(SIGNS).values():
        signs = op.fact(SIGNS)
        (found,) = op.evaluate([x, y][: len(signs)], {})
        assert np.array_equal(found, sum(s * v for s, v in zip(signs, (x, y), strict=False)))


def test_units_leave_the_other_operand_as_it_is():
    x = np.arange(256, dtype=np.uint8)
    ends = {"least": np.zeros_like(x), "largest": np.full_like(x, 255)}
    for op in declared(UNIT).values():
        assert np.array_equal(op.evaluate([x, ends[op.fact(UNIT)]], {})[0], x)


def test_products_and_sums_are_what_they_declare():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for op in declared(CONTRACTS).values():
        assert np.array_equal(op.evaluate([x, y], {})[0], x @ y)
    for op in declared(SUMS).values():
        assert np.array_equal(op.evaluate([x], {"axes": (1,)})[0], x.sum(1))
    assert declared(SUMS).keys() < declared(REDUCES).keys()


def test_equations_say_what_literals_hold():
    spec = pg.spec(("n", 3))
    graph = pg.trace(lambda x: (x * 0.5, x + np.arange(3.0), x * x.shape[0]), spec)
    held = [(e.number, e.size, None if e.array is None else e.array.tolist()) for e in graph.body]
    n = spec.shape[0]
    assert [h for h in held if h != (None, None, None)] == [
        (0.5, None, None),
        (None, None, [0.0, 1.0, 2.0]),
        (None, n, None),
    ]
