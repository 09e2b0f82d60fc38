"""Generated code computes what the interpreter does, in both styles, and reads well."""

import itertools
import math
import runpy
import statistics
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest
from density import DENSE
from samples import ROWS
from samples.rows import Row
from test_primitives import CASES, Case

import primgraph as pg
import primgraph.primitives
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ops.spelling.literals import array_lines, array_text, short_text
from primgraph.codegen.runtime.support import erf, erfc
from primgraph.codegen.targets.text.names import Names, comment, is_safe
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.params import Array
from primgraph.ir.primitive import Primitive, lookup, registered
from primgraph.ir.text import parse
from primgraph.ir.types import DTYPE_OF_NAME, TensorType
from primgraph.primitives.constants import filled_constant

STYLES = ("planned", "readable")
TOLERANCE = {"f64": 1e-13, "f32": 1e-5, "f16": 4e-3}

FLOATS = ("f64", "f32", "f16")
NUMBERS = (*FLOATS, "i64", "i8", "u8", "u64")
ANY = (*NUMBERS, "bool")
SHAPES = ((), (0,), (1,), (5,), (3, 4), (2, 0), (2, 3, 4))


def tensor(text: str) -> TensorType:
    """`f64[3,4]` as a type."""
    name, _, extents = text.rstrip("]").partition("[")
    return TensorType(tuple(int(n) for n in extents.split(",") if n), DTYPE_OF_NAME[name])


def listed(name: str, shape: tuple[int, ...]) -> TensorType:
    return TensorType(shape, DTYPE_OF_NAME[name])


def elementwise_samples() -> list[tuple[str, list[TensorType], dict]]:
    samples = []
    for name, op in registered().items():
        if not isinstance(op, Primitive) or not op.elementwise:
            continue
        for dtype in ANY:
            for shape in SHAPES if dtype in ("f64", "i8", "bool") else ((), (5,), (3, 4)):
                samples += _elementwise_sample(name, op, listed(dtype, shape))
        for dtype, shapes in (("c128", ((), (0,), (3, 4))), ("c64", ((5,),))):
            for shape in shapes:
                samples += _elementwise_sample(name, op, listed(dtype, shape))
    return samples


def _params_of(name: str) -> list[dict]:
    """Return the parameters of a primitive in the calls of its row of samples, each once."""
    found: list[dict] = []
    for call in ROWS[name].calls if name in ROWS else ():
        if call.params not in found:
            found.append(call.params)
    return found or [{}]


def _elementwise_sample(name, op, type):
    boolean = type.with_dtype(np.dtype(bool))
    if name == "select":
        return [(name, [boolean, type, type], {})]
    if name == "cast":
        wanted = ("c128", "c64", "bool") if type.is_complex else ("f64", "f16", "i8", "bool", "c64")
        return [(name, [type], {"dtype": DTYPE_OF_NAME[to]}) for to in wanted]
    if name == "integer_pow":
        powers = range(-3, 5) if type.is_inexact else range(4)
        return [(name, [type], {"n": n}) for n in powers] if type.dtype.kind != "b" else []
    for operands in (1, 2, 3, 4):
        samples = []
        for params in _params_of(name):
            with suppress(TypeError, ValueError):
                op.infer((type,) * operands, params)
                samples.append((name, [type] * operands, params))
        if samples:
            return samples
    return []


STRUCTURAL = [
    ("full", [], {"value": 1.5, "shape": (2, 3), "dtype": np.dtype("f4")}),
    ("full", [], {"value": 7, "shape": (), "dtype": np.dtype("u1")}),
    ("constant", [], {"value": Array(np.arange(6.0).reshape(2, 3))}),
    ("constant", [], {"value": Array(np.arange(600, dtype=np.int16))}),
    ("constant", [], {"value": Array(np.float32(2.5))}),
    *(
        ("iota", [], {"shape": shape, "axis": axis, "dtype": np.dtype(dtype)})
        for shape, axis in (((4,), 0), ((2, 3), 0), ((2, 3), 1), ((0,), 0), ((2, 3, 4), 1))
        for dtype in ("i8", "f8", "f2", "i1")
    ),
    ("full", [], {"value": complex(-0.0, 1.5), "shape": (2,), "dtype": np.dtype("c8")}),
    ("constant", [], {"value": Array(np.array([1j, complex(np.inf, -0.0)]))}),
    ("slice_assign", ["c128[5]", "c128[2]"], {"starts": (1,), "steps": (2,)}),
    ("concat", ["c128[2,3]", "c128[1,3]"], {"axis": 0}),
    ("gather", ["c128[5]", "index[3]"], {"axis": 0}),
    ("scatter_add", ["c128[5]", "c128[3]", "index[3]"], {"axis": 0}),
    *((name, ["c128[3,4]"], {"axes": (axis,)}) for name in ("reduce_sum", "reduce_prod")
      for axis in (0, 1)),
    *(("fft", [t], {"axes": axes, "inverse": False, "norm": "ortho"})
      for t, axes in (("c128[3,4]", (1,)), ("c64[3,4]", (0,)), ("c128[2,3,4]", (0, 2)))),
    ("rfft", ["f64[3,5]"], {"axis": 1, "norm": "backward"}),
    ("rfft", ["f32[4,3]"], {"axis": 0, "norm": "forward"}),
    ("irfft", ["c128[3,3]"], {"n": 5, "axis": 0, "norm": "forward"}),
    ("irfft", ["c64[3,3]"], {"n": 4, "axis": 1, "norm": "backward"}),
    ("cumsum", ["c64[3,4]"], {"axis": 1, "reverse": True}),
    ("cumprod", ["c128[3,4]"], {"axis": 0}),
    ("sort", ["c128[3,4]"], {"axis": 1}),
    ("matmul", ["c128[2,3]", "c128[3,4]"], {}),
    ("matmul", ["c64[5,2,3]", "c64[5,3,1]"], {}),
    ("random_uniform", ["i64[]"], {"shape": (3,), "dtype": np.dtype("f4"), "low": -1.0,
      "high": 2.0}),
    ("random_uniform", ["u64[2]"], {"shape": (), "dtype": np.dtype("f8"), "low": 0.0, "high": 1.0}),
    ("random_bernoulli", ["i64[2,2]"], {"shape": (50,), "p": 0.25}),
    ("random_variate", ["i64[2]", "f32[2,3]"], {"name": "standard_gamma"}),
    ("random_variate", ["u64[]", "f64[]"], {"name": "standard_gamma"}),
    ("random_variate", ["i64[]", "i64[0]", "f64[0]"], {"name": "binomial"}),
    ("reshape", ["f64[6]"], {"shape": (2, 3)}),
    ("reshape", ["f64[6]"], {"shape": (2, 3, 1)}),
    ("reshape", ["i8[1,1]"], {"shape": ()}),
    ("reshape", ["f32[]"], {"shape": (1, 1)}),
    ("reshape", ["f32[0,3]"], {"shape": (5, 0)}),
    ("permute", ["f64[2,3]"], {"axes": (1, 0)}),
    ("permute", ["f64[2,3,4]"], {"axes": (2, 0, 1)}),
    ("permute", ["bool[]"], {"axes": ()}),
    ("broadcast", ["f64[]"], {"shape": (2, 3), "new_axes": (0, 1)}),
    ("broadcast", ["f64[3]"], {"shape": (2, 3), "new_axes": (0,)}),
    ("broadcast", ["f64[2]"], {"shape": (2, 3), "new_axes": (1,)}),
    ("broadcast", ["u8[2,4]"], {"shape": (5, 2, 3, 4), "new_axes": (0, 2)}),
    ("broadcast", ["f64[3]"], {"shape": (3,), "new_axes": ()}),
    ("broadcast", ["f64[3]"], {"shape": (1, 3), "new_axes": (0,)}),
    ("broadcast", ["f64[3]"], {"shape": (0, 3), "new_axes": (0,)}),
    ("broadcast", ["f64[3]"], {"shape": (1, 3, 1), "new_axes": (0, 2)}),
    ("broadcast", ["f64[3,2]"], {"shape": (2, 3, 1, 2, 1), "new_axes": (0, 2, 4)}),
    ("broadcast", ["f64[]"], {"shape": (1, 1), "new_axes": (0, 1)}),
    ("reverse", ["f64[3,4]"], {"axes": (1,)}),
    ("reverse", ["f64[]"], {"axes": ()}),
    ("pad", ["f64[2,3]"], {"low": (1, 0), "high": (0, 2)}),
    ("pad", ["i8[2]"], {"low": (0,), "high": (0,)}),
    ("pad", ["f64[3,2]"], {"low": (0, 1), "high": (0, 2)}),
    ("pad", ["f64[3,2]"], {"low": (2, 0), "high": (0, 0)}),
    ("pad", ["f64[0]"], {"low": (1,), "high": (2,)}),
    ("pad", ["f64[]"], {"low": (), "high": ()}),
    ("slice", ["f64[6]"], {"starts": (1,), "sizes": (2,), "steps": (3,)}),
    ("slice", ["f64[6,3]"], {"starts": (5, 0), "sizes": (6, 3), "steps": (-1, 1)}),
    ("slice", ["f64[6]"], {"starts": (4,), "sizes": (2,), "steps": (-4,)}),
    ("slice", ["f64[6]"], {"starts": (2,), "sizes": (0,), "steps": (1,)}),
    ("slice", ["f64[]"], {"starts": (), "sizes": (), "steps": ()}),
    ("slice_assign", ["f64[5]", "f64[2]"], {"starts": (1,), "steps": (2,)}),
    ("slice_assign", ["f32[3,4]", "f32[2,4]"], {"starts": (2, 0), "steps": (-1, 1)}),
    ("slice_assign", ["i8[]", "i8[]"], {"starts": (), "steps": ()}),
    ("slice_assign", ["f64[3]", "f64[0]"], {"starts": (1,), "steps": (1,)}),
    ("concat", ["f64[2,3]", "f64[1,3]"], {"axis": 0}),
    ("concat", ["u8[2,3]", "u8[2,0]", "u8[2,1]"], {"axis": 1}),
    ("concat", ["f64[2]"] * 130, {"axis": 0}),
    ("concat", ["f64[2]"], {"axis": 0}),
    ("split", ["f64[6]"], {"sizes": (1, 0, 5), "axis": 0}),
    ("split", ["i8[2,3]"], {"sizes": (1, 2), "axis": 1}),
    (
        "placed",
        ["f64[2]", "f64[3]"],
        {"shape": (3, 3), "starts": (1, 0), "strides": ((4,), (4,))},
    ),
    ("placed", ["f32[2,3]"], {"shape": (2, 7), "starts": (0,), "strides": ((2,),)}),
    ("placed", ["i8[]"], {"shape": (3,), "starts": (1,), "strides": ((),)}),
    ("gather", ["f64[5]", "index[3]"], {"axis": 0}),
    ("gather", ["f64[5,2]", "index[]"], {"axis": 0}),
    ("gather", ["f64[5]", "index[]"], {"axis": 0}),
    ("gather", ["f64[2,5]", "index[2,2]"], {"axis": 1}),
    ("gather", ["f32[4,5,2]", "index[3]", "index[3]"], {"axis": 0}),
    ("gather", ["f32[2,4,5]", "index[3]", "index[3]"], {"axis": 1}),
    ("scatter_add", ["f64[5]", "f64[3]", "index[3]"], {"axis": 0}),
    ("scatter_add", ["f64[2,5]", "f64[2,3]", "index[3]"], {"axis": 1}),
    ("scatter_add", ["i8[4,5,2]", "i8[3,2]", "index[3]", "index[3]"], {"axis": 0}),
    ("scatter_add", ["f32[2,4,5]", "f32[2,3]", "index[3]", "index[3]"], {"axis": 1}),
    ("scatter_add", ["f64[5]", "f64[]", "index[]"], {"axis": 0}),
    *(
        (name, [f"{dtype}[{shape}]"], {"axes": axes})
        for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")
        for dtype in NUMBERS
        for shape, axes in (("", ()), ("3", (0,)), ("2,3", (1,)), ("2,3,4", (0, 2)),
                            ("2,3", (0, 1)), ("2,3", ()))
    ),
    ("reduce_sum", ["f64[0,3]"], {"axes": (0,)}),
    ("reduce_prod", ["f32[2,0]"], {"axes": (1,)}),
    ("reduce_max", ["bool[2,3]"], {"axes": (1,)}),
    *(
        ("root_of_squares", [f"{d}[{shape}]", f"{d}[{rest}]"], {"axes": axes, "divisor": divisor})
        for d in ("f16", "f32", "f64")
        for divisor in (1.0, 3.0)
        for shape, rest, axes in (("", "", ()), ("3", "", (0,)), ("2,3", "2", (1,)),
                                  ("2,3,4", "3", (0, 2)), ("2,3", "2,3", ()), ("2,0", "0", (0,)),
                                  ("2,0", "2", (1,)))
    ),
    ("argmax", ["f64[5]"], {"axis": 0}),
    ("argmin", ["i8[3,4]"], {"axis": 1}),
    ("argmax", ["bool[3,4]"], {"axis": 0}),
    *(
        ("cumsum", [f"{dtype}[3,4]"], {"axis": axis, "reverse": reverse})
        for dtype in NUMBERS
        for axis in (0, 1)
        for reverse in (False, True)
    ),
    *(
        (name, [f"{dtype}[3,4]"], {"axis": axis})
        for name in ("cumprod", "cummax", "cummin", "sort", "argsort")
        for dtype in NUMBERS
        for axis in (0, 1)
    ),
    *((name, ["bool[3,4]"], {"axis": 1}) for name in ("sort", "argsort")),
    ("sort", ["f64[0]"], {"axis": 0}),
    ("reorder", ["f64[1,3]", "index[1,3]"], {"axis": 0}),
    ("searchsorted", ["f64[4]", "f64[2,3]"], {"right": False}),
    ("searchsorted", ["i8[4]", "i8[]"], {"right": True}),
    *(
        ("windows", [f"{dtype}[{shape}]"], {"axis": axis, "sizes": sizes, "steps": steps,
                                            "dilations": apart})
        for dtype in ("f16", "f32", "f64", "i8")
        for shape, axis, sizes, steps, apart in (
            ("5", 0, (2,), (1,), (1,)), ("2,7,3", 1, (2,), (2,), (3,)),
            ("2,5,6", 1, (2, 3), (2, 1), (2, 1)), ("40", 0, (30,), (3,), (1,)),
            ("2,0,4", 2, (3,), (1,), (1,)))
    ),
    *(
        ("overlap_add", [f"{dtype}[{shape}]"], {"axis": axis, "extents": extents, "steps": steps,
                                                "dilations": apart})
        for dtype in ("f16", "f32", "f64", "i8")
        for shape, axis, extents, steps, apart in (
            ("2,4", 0, (5,), (1,), (1,)), ("2,2,2,3", 1, (7,), (2,), (3,)),
            ("2,2,3,2,4", 1, (5, 6), (2, 1), (2, 1)), ("30,4", 0, (40,), (3,), (1,)),
            ("2,0,3,2", 2, (4,), (1,), (1,)))
    ),
    *(
        ("matmul", [f"{dtype}[{x}]", f"{dtype}[{y}]"], {})
        for dtype in NUMBERS
        for x, y in (("2,3", "3,4"), ("2,0", "0,4"), ("5,2,3", "5,3,1"))
    ),
]  # fmt: skip

SAMPLES = elementwise_samples() + STRUCTURAL


def feeds_of(types, seed=0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    feeds = []
    for type in types:
        if type.dtype.kind == "f":
            array = rng.normal(size=type.shape) * 1.5
        elif type.is_complex:
            array = rng.normal(size=type.shape) + 1j * rng.normal(size=type.shape)
        else:
            array = rng.integers(0, 2 if type.dtype.kind == "b" else 4, size=type.shape)
        feeds.append(np.asarray(array).astype(type.dtype))
    return feeds


def check(graph: Graph, feeds, exact: bool = False) -> None:
    """Both styles agree with the interpreter, in values, shapes, dtypes, and ownership."""
    expected = interpret(graph, *feeds)
    before = [np.array(f) for f in feeds]
    for f in feeds:
        f.setflags(write=False)
    for style in STYLES:
        kernel = compile_graph(graph, style=style)
        first = kernel(*feeds)
        kept = [np.array(r) for r in first]
        second = kernel(*feeds)
        for made, again, copied, wanted, value in zip(
            first, second, kept, expected, graph.outputs, strict=True
        ):
            assert type(made) is np.ndarray
            assert made.dtype == value.dtype
            assert made.shape == value.shape
            assert made.flags.writeable
            assert made.tobytes() == again.tobytes() == copied.tobytes()
            agrees(made, wanted, exact)
        arrays = [*first, *second]
        for i, one in enumerate(arrays):
            for other in (*arrays[i + 1 :], *feeds, *constants(graph)):
                assert not np.shares_memory(one, other)
    for f, b in zip(feeds, before, strict=True):
        assert f.tobytes() == b.tobytes()


def agrees(made, wanted, exact=False) -> None:
    name = {8: "f64", 4: "f32", 2: "f16"}.get(made.real.itemsize, "f64")
    if exact or made.dtype.kind not in "fc":
        np.testing.assert_array_equal(made, wanted)
    else:
        np.testing.assert_allclose(made, wanted, rtol=TOLERANCE[name], atol=TOLERANCE[name] / 10)


def constants(graph):
    return [v.data for e in graph.body for _, v in e.params if isinstance(v, Array) and v.data.size]


def owned(value: Value) -> Value:
    """What is computed of `value`, into a buffer of the kernel's."""
    if value.type.is_complex:
        return lookup("conj")(value)
    return lookup("maximum")(value, value)


def sample_graphs(name, types, params) -> list[Graph]:
    """The op on feeds with results for the user, and between buffers that the kernel owns."""
    op = lookup(name)
    assert isinstance(op, Primitive)
    graphs = []
    for inside in (False, True):
        with Builder(name) as builder:
            inputs = [builder.input(t, f"a{i}") for i, t in enumerate(types)]
            operands = [owned(v) for v in inputs] if inside else inputs
            results = op(*operands, **params)
            results = list(results) if op.multiple else [results]
            if inside:
                results = [owned(r) for r in results]
        graphs.append(builder.graph(results))
    return graphs


def typed(types) -> list[TensorType]:
    if not types or isinstance(types[0], TensorType):
        return types
    return [tensor(t.replace("index", "i64")) for t in types]


@pytest.mark.parametrize("name", sorted({s[0] for s in SAMPLES}))
def test_a_primitive_in_both_styles_is_what_the_interpreter_says(name):
    for sample, types, params in SAMPLES:
        if sample != name:
            continue
        for graph in sample_graphs(name, typed(types), params):
            feeds = feeds_of(graph.input_types)
            with np.errstate(all="ignore"):
                check(graph, feeds)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "i64", "i8", "bool"])
def test_many_choices_keep_every_bit(dtype):
    """By masks of bits, where there are many: NaN, infinities and both zeros stay as they are."""
    type = tensor(f"{dtype}[64,65]")
    rng = np.random.default_rng(0)
    edges = [0, 1, 2, 3] if type.dtype.kind != "f" else [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5]
    x, y = (rng.choice(np.array(edges).astype(type.dtype), size=type.shape) for _ in range(2))
    condition = rng.random(type.shape) < 0.5
    select, maximum = lookup("select"), lookup("maximum")
    for kept in (False, True):
        with Builder("choices") as builder:
            c, *both = (builder.input(t) for t in (type.with_dtype(np.dtype(bool)), type, type))
            p, q = both if kept or dtype == "bool" else [maximum(v, v) for v in both]
            zero, one = (filled_constant(type.dtype.type(n).item(), type) for n in (0, 1))
            pairs = [(p, q), (zero, p), (q, zero), (one, q), (zero, one), (p, one)]
            pairs.append((p, maximum(*both)))
            results = [select(c, *pair) for pair in pairs]
            if dtype not in ("bool", "i64", "i8"):
                results.append(select(c, filled_constant(-0.0, type), p))
        check(builder.graph(results), [condition, x, y], exact=True)
        expected = interpret(builder.graph(results), condition, x, y)
        for made, wanted in zip(
            compile_graph(builder.graph(results), style="planned")(condition, x, y),
            expected,
            strict=True,
        ):
            if type.dtype.kind == "f":
                np.testing.assert_array_equal(np.signbit(made), np.signbit(wanted))


# Their operands have to be permutations.
OF_ORDERS = {"reorder_back", "sort_by"}
FIT: list[Case] = [
    case
    for c in CASES
    if (case := c.values[0]).row.made_fit is not Row.made_fit or case.op.name in OF_ORDERS
]


@pytest.mark.parametrize("case", FIT, ids=lambda c: f"{c.op.name} {c.call}")
def test_a_primitive_of_fit_operands_in_both_styles_is_what_the_interpreter_says(case):
    if case.op.formal:
        return
    for dtype in case.row.dtypes:
        for graph in sample_graphs(case.op.name, case.types(dtype), case.call.params):
            check(graph, case.arrays(dtype))


def test_every_primitive_has_samples():
    names = {n for n, op in registered().items() if isinstance(op, Primitive)}
    # What only derivatives see is gone before code is generated.
    formal = {n for n in names if registered()[n].formal} | {"custom_tangents"}
    # Those of matrices that are fit for them have a test of their own.
    formal |= {case.op.name for case in FIT}
    # Branches and loops have tests of their own in both styles.
    formal |= {n for n in names if registered()[n].has_bodies}
    # The number of a size is one in the code for it.
    formal.add("extent")
    # What is an error for most feeds has tests of its own in both styles.
    formal.add("unless_any")
    built_in = {n for n in names if not n.startswith("test_")} - formal
    missing = sorted(built_in - {s[0] for s in SAMPLES})
    assert not missing, f"add rows for {missing} to STRUCTURAL"


GRAPHS = {
    "in_place_and_views": """
graph f(%x: f64[2,3]) {
  %0: f64[2,3] = sin(%x)
  %1: f64[3,2] = permute(%0, axes=(1, 0))
  %2: f64[2,3] = exp(%0)
  %3: f64[2,3] = reshape(%1, shape=(2, 3))
  %4: f64[2,3] = add(%2, %3)
  %5: f64[6] = reshape(%4, shape=(6,))
  %6: f64[6] = mul(%5, %5)
  %7: f64[6] = reverse(%6, axes=(0,))
  %8: f64[6] = add(%6, %7)
  %9: f64[3] = slice(%8, starts=(5,), sizes=(3,), steps=(-2,))
  return %9, %1, %4
}""",
    "a_matrix_plus_its_transpose": """
graph f(%x: f64[3,3]) {
  %0: f64[3,3] = sin(%x)
  %1: f64[3,3] = permute(%0, axes=(1, 0))
  %2: f64[3,3] = add(%0, %1)
  %3: f64[3,3] = matmul(%2, %2)
  %4: f64[3,3] = cos(%3)
  return %4
}""",
    "the_same_thing_many_times": """
graph f(%x: f64[3], %k: f64[3]) {
  %0: f64[3] = constant(value=f64[3]{1.0, 2.0, 3.0})
  %1: f64[3] = stop_gradient(%x)
  %2: f64[3] = add(%x, %0)
  %3: f64[3] = stop_gradient(%2)
  %4: f64[2] = slice(%2, starts=(0,), sizes=(2,), steps=(1,))
  %5: f64[3] = full(value=2.0, shape=(3,), dtype=f64)
  return %x, %x, %0, %0, %1, %2, %2, %3, %4, %5, %5
}""",
    "literals_only": """
graph f() {
  %0: f32[2] = full(value=0.10000000149011612, shape=(2,), dtype=f32)
  %1: f32[2] = full(value=2.0, shape=(2,), dtype=f32)
  %2: f32[2] = add(%0, %1)
  %3: bool[2] = less(%0, %1)
  %4: f32[2] = select(%3, %0, %1)
  %5: f32[] = reduce_sum(%0, axes=(0,))
  %6: f32[1,2] = reshape(%1, shape=(1, 2))
  %7: f32[2,1] = permute(%6, axes=(1, 0))
  %8: f32[1,1] = matmul(%6, %7)
  %9: i8[2] = cast(%1, dtype=i8)
  %10: f32[2] = integer_pow(%1, n=-2)
  %11: f32[2] = neg(%1)
  return %2, %3, %4, %5, %6, %7, %8, %9, %10, %11
}""",
    "weak_literals": """
graph f(%x: f32[3], %i: u8[3], %b: bool[3], %h: f16[]) {
  %0: f32[3] = full(value=0.10000000149011612, shape=(3,), dtype=f32)
  %1: f32[3] = mul(%x, %0)
  %2: f32[3] = select(%b, %x, %0)
  %3: f32[3] = full(value=-0.0, shape=(3,), dtype=f32)
  %4: f32[3] = select(%b, %0, %3)
  %5: u8[3] = full(value=250, shape=(3,), dtype=u8)
  %6: u8[3] = add(%i, %5)
  %7: bool[3] = full(value=True, shape=(3,), dtype=bool)
  %8: bool[3] = logical_xor(%b, %7)
  %9: bool[3] = logical_not(%7)
  %10: f16[] = full(value=inf, shape=(), dtype=f16)
  %11: f16[] = mul(%h, %10)
  %12: f32[3] = full(value=nan, shape=(3,), dtype=f32)
  %13: f32[3] = maximum(%x, %12)
  %14: f32[3] = div(%x, %3)
  %15: i8[3] = cast(%i, dtype=i8)
  %16: i8[3] = full(value=-128, shape=(3,), dtype=i8)
  %17: i8[3] = sub(%16, %15)
  return %1, %2, %4, %6, %8, %9, %11, %13, %14, %17
}""",
    "broadcasting": """
graph f(%x: f64[3,4], %r: f64[4], %c: f64[3], %s: f64[]) {
  %0: f64[3,4] = broadcast(%r, shape=(3, 4), new_axes=(0,))
  %1: f64[3,4] = broadcast(%c, shape=(3, 4), new_axes=(1,))
  %2: f64[3,4] = broadcast(%s, shape=(3, 4), new_axes=(0, 1))
  %3: f64[3,4] = add(%x, %0)
  %4: f64[3,4] = mul(%3, %1)
  %5: f64[3,4] = sub(%0, %1)
  %6: f64[3,4] = mul(%0, %2)
  %7: f64[4,3] = permute(%6, axes=(1, 0))
  %8: f64[12] = reshape(%1, shape=(12,))
  %9: f64[3] = reduce_sum(%6, axes=(1,))
  %10: f64[3,3] = matmul(%0, %7)
  %11: f64[2,3,4] = broadcast(%1, shape=(2, 3, 4), new_axes=(0,))
  %12: f64[2,3,4] = exp(%11)
  %13: f64[3,4] = integer_pow(%2, n=3)
  return %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %0
}""",
    "no_dimension_at_all": """
graph f(%x: f64[], %i: i64[]) {
  %0: f64[] = sin(%x)
  %1: f64[1] = reshape(%0, shape=(1,))
  %2: f64[] = reduce_sum(%1, axes=(0,))
  %3: f64[] = slice_assign(%0, %2, starts=(), steps=())
  %4: f32[] = cast(%3, dtype=f32)
  %5: f64[] = stop_gradient(%0)
  %6: bool[] = less(%0, %5)
  %7: f64[] = select(%6, %0, %5)
  %8: i64[] = mul(%i, %i)
  %9: f64[] = erf(%7)
  return %0, %1, %2, %3, %4, %6, %7, %8, %9, %x
}""",
    "nothing_to_compute": "graph f(%x: f64[2]) {\n  return %x\n}",
    "no_outputs": "graph f(%x: f64[2]) {\n  %0: f64[2] = sin(%x)\n  return\n}",
    "zeros_filled_in": """
graph f(%x: f64[2], %i: i64[2]) {
  %0: f64[5] = full(value=0.0, shape=(5,), dtype=f64)
  %1: f64[5] = slice_assign(%0, %x, starts=(1,), steps=(2,))
  %2: f64[5] = scatter_add(%1, %x, %i, axis=0)
  %3: f64[5] = scatter_add(%2, %x, %i, axis=0)
  %4: f64[2] = slice(%3, starts=(0,), sizes=(2,), steps=(1,))
  %5: f64[5] = slice_assign(%3, %4, starts=(2,), steps=(1,))
  return %5, %1
}""",
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_in_both_styles_is_what_the_interpreter_says(name):
    graph = parse(GRAPHS[name])
    with np.errstate(all="ignore"):
        check(graph, feeds_of(graph.input_types))


def test_the_readable_source_is_what_a_person_would_write(tmp_path):
    path = tmp_path / "model.py"
    source = primgraph.base.user_lines.Source(str(path), 1, text="y = pg.tanh(x)")
    with Builder("tanh_grad", source) as builder:
        x = builder.input(tensor("f64[3]"), "x")
        y = lookup("tanh")(x)
        builder.source = source.mark_derivative("gradient")
        graph = builder.graph([1.0 - y * y])
    assert compile_graph(graph).source == (
        "import numpy as np\n"
        "\n\n"
        "def tanh_grad(x):\n"
        '    """Compute 1 result from x.\n'
        "\n"
        "    x: float64, shape (3,)\n"
        "    Returns float64, shape (3,)\n"
        '    """\n'
        "    # model.py:1  y = pg.tanh(x)\n"
        "    y = np.tanh(x)\n"
        "    # in the gradient of model.py:1\n"
        "    return 1.0 - y * y\n"
    )


def test_parentheses_are_written_where_python_needs_them_only():
    graph = parse("""
graph f(%a: f64[3], %b: f64[3], %m: f64[3,3]) {
  %0: f64[3] = sub(%a, %b)
  %1: f64[3] = sub(%b, %0)
  %2: f64[3] = neg(%1)
  %3: f64[3] = integer_pow(%2, n=3)
  %7: f64[3] = neg(%b)
  %8: f64[3] = integer_pow(%7, n=3)
  %4: f64[3,3] = matmul(%m, %m)
  %5: f64[3,3] = broadcast(%3, shape=(3, 3), new_axes=(1,))
  %6: f64[3,3] = mul(%4, %5)
  return %6, %8
}""")
    source = compile_graph(graph).source
    assert "= (-(b - (a - b))) ** 3\n" in source
    assert "(-b) ** 3" in source
    assert "(m @ m) * v1[:, None]" in source


def test_buffers_are_reused_and_results_are_computed_where_they_are_handed_out():
    graph = parse("""
graph f(%x: f64[9]) {
  %0: f64[9] = sin(%x)
  %1: f64[9] = exp(%0)
  %2: f64[9] = mul(%1, %1)
  %3: f64[9] = add(%2, %x)
  return %3
}""")
    source = compile_graph(graph).planned_source
    assert source.count("np.ndarray(") == 1
    assert "exp(b0, b0)" in source
    assert "r0 = add(b0, x0)" in source
    assert "copy" not in source


def saved(graph: Graph, path, feeds) -> list[np.ndarray]:
    """What the saved file computes in a process that cannot import primgraph."""
    compile_graph(graph).save(path)
    name = graph.name if is_safe(graph.name) else "kernel"
    np.savez(path.with_suffix(".npz"), *feeds)
    code = (
        "import sys, runpy, numpy as np\n"
        f"f = runpy.run_path({str(path)!r})[{name!r}]\n"
        f"with np.load({str(path.with_suffix('.npz'))!r}) as data:\n"
        "    results = f(*(data[k] for k in data))\n"
        "results = results if type(results) is tuple else (results,)\n"
        "assert 'primgraph' not in sys.modules\n"
        f"np.savez({str(path.with_suffix('.out.npz'))!r}, *results)\n"
    )
    subprocess.run([sys.executable, "-I", "-W", "error", "-c", code], check=True, cwd=path.parent)
    with np.load(path.with_suffix(".out.npz")) as data:
        return [data[k] for k in data]


@pytest.mark.parametrize("name", sorted(set(GRAPHS) - {"no_outputs"}))
def test_a_saved_file_needs_numpy_only(name, tmp_path):
    graph = parse(GRAPHS[name])
    feeds = feeds_of(graph.input_types)
    made = saved(graph, tmp_path / "kernel.py", feeds)
    for got, wanted, type in zip(made, interpret(graph, *feeds), graph.output_types, strict=True):
        assert got.dtype == type.dtype
        agrees(got, wanted)


def test_a_saved_file_holds_constants_of_any_size_exactly(tmp_path):
    values = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    values[0, :4] = np.nan, np.inf, -np.inf, -0.0
    small = np.array([-0.0, 1e-300, np.inf, 0.1])
    with Builder("f") as builder:
        outputs = [lookup("constant")(value=v) for v in (values, small, np.arange(9, dtype=">i2"))]
    graph = builder.graph(outputs)
    made = saved(graph, tmp_path / "k.py", [])
    expected = interpret(graph)
    for got, wanted in zip(made, expected, strict=True):
        assert got.tobytes() == wanted.tobytes()
    assert max(map(len, (tmp_path / "k.py").read_text().splitlines())) <= 100


PATTERNS = [
    "np.eye(9)", "np.eye(4, 7, 2)", "np.eye(5, 3, -1)", "np.eye(20, dtype=np.float32)",
    "np.eye(9, dtype=np.bool_)", "np.tril(np.ones((9, 9)))",
    "np.tril(np.ones((4, 9), np.float32), 2)", "np.tril(np.ones((9, 4), np.int64), -3)",
    "np.triu(np.ones((9, 9)), -2)", "np.triu(np.ones((9, 9), np.bool_), 3)",
    "np.arange(20)", "np.arange(20.0)", "np.arange(3.0, 43.0, 2.0)", "np.arange(9, dtype=np.int8)",
    "np.arange(127, -1, -1, dtype=np.int8)", "np.arange(10, 0, -1, dtype=np.uint8)",
    "np.arange(24.0).reshape((2, 3, 4))", "np.linspace(0.0, 1.0, 11)",
    "np.linspace(-2.0, 3.0, 50, dtype=np.float32)", "np.zeros((3, 4))",
    "np.ones((9,))", "np.full((40,), np.nan)",
    "np.full((4, 4), -0.0)", "np.full((9,), 2.5, np.float16)",
    "np.eye(9) * 2.0", "np.eye(6, 5, -1) * 0.1", "np.eye(9, dtype=np.float32) * 0.1",
    "np.eye(9, dtype=np.int8) * -3", "np.tril(np.ones((9, 9)), -1) * 1e+30",
    "np.triu(np.ones((4, 9), np.float16), 2) * 0.1",
    "np.repeat(np.eye(3, 4)[:, :, None], 4, axis=2)",
    "np.repeat((np.eye(9) * -1.0)[:, :, None], 2, axis=2)",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPE_OF_NAME.values(), ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (0, 2), (1,), (3,), (2, 2), (1, 2, 3)])
def test_small_arrays_are_spelled_with_their_dtype_and_shape(dtype, shape):
    array = (np.arange(np.prod(shape)).reshape(shape) * 3 % 5).astype(dtype)
    found = eval(array_text(array), {"np": np})
    assert (found.dtype, found.shape, found.tobytes()) == (dtype, shape, array.tobytes())


@pytest.mark.parametrize("text", PATTERNS)
def test_constants_with_a_pattern_are_spelled_as_that(text):
    array = eval(text, {"np": np})
    assert short_text(array) == text
    with Builder("f") as builder:
        graph = builder.graph([lookup("constant")(value=array)])
    assert f" = {text}\n" in compile_graph(graph).source


@pytest.mark.parametrize("text", PATTERNS)
def test_constants_that_differ_from_a_pattern_in_one_bit_are_not_spelled_as_it(text):
    array = eval(text, {"np": np})
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = array.copy()
        byte = rng.integers(other.nbytes)
        if array.dtype == bool:
            other.reshape(-1)[byte] ^= True
        else:
            other.reshape(-1).view(np.uint8)[byte] ^= 1 << rng.integers(8)
        found = short_text(other)
        assert found is None or eval(found, {"np": np}).tobytes() == other.tobytes()


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, -2.0, 0.5, -0.0])
@pytest.mark.parametrize("pattern", [np.eye(9), np.tril(np.ones((9, 9))), np.eye(2, 1)])
def test_multiples_of_a_pattern_keep_the_bits_of_zeros(pattern, number):
    array = np.where(pattern != 0, number, 0.0)
    found = short_text(array)
    assert found is None or eval(found, {"np": np}).tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8", "float64", "float16"])
def test_constants_at_the_limits_of_their_type_are_spelled(dtype):
    limits = np.finfo(dtype) if dtype.startswith("f") else np.iinfo(dtype)
    for first in itertools.product((limits.min, limits.max, 1), repeat=3):
        array = np.array([*first, *range(10)], dtype)
        for part in (array[:3], array):
            found = short_text(part)
            assert found is None or eval(found, {"np": np}).tobytes() == part.tobytes()


ERRORS = """graph f(%x: f64[], %y: f32[3], %z: f16[2]) {
  %0: f64[] = erf(%x)
  %1: f64[] = erfc(%x)
  %2: f64[] = div(%0, %x)
  %3: f32[3] = erf(%y)
  %4: f16[2] = erfc(%z)
  return %0, %1, %2, %3, %4
}"""


@pytest.mark.parametrize("scipy", [False, True])
def test_error_functions_in_a_saved_file_are_those_of_libraries(scipy, tmp_path):
    path, kernel = tmp_path / "errors.py", compile_graph(parse(ERRORS))
    kernel.save(path, scipy=scipy)
    text = path.read_text()
    assert ("import math\n" in text) == (not scipy)
    assert ("from scipy import special\n" in text) == scipy
    namespace: dict = {}
    exec(text, namespace)
    y, z = np.array([-0.5, 1.0, np.nan], np.float32), np.array([0.1, -3.0], np.float16)
    for x in (0.0, -0.0, 0.3, -2.5, 30.0, np.inf, np.nan):
        found = namespace["f"](x, y, z)
        for a, b in zip(found, kernel(np.array(x), y, z), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            eps = np.finfo(b.dtype).eps
            np.testing.assert_allclose(a, b, rtol=4 * eps, atol=0)


@pytest.mark.parametrize("name", ["math", "special"])
def test_names_of_the_user_do_not_hide_the_libraries_of_a_file(name, tmp_path):
    text = ERRORS.replace("%x", f"%{name}").replace("graph f", f"graph {name}")
    path = tmp_path / "errors.py"
    compile_graph(parse(text)).save(path, scipy=name == "special")
    namespace: dict = {}
    exec(path.read_text(), namespace)
    found = namespace["kernel"](0.5, np.zeros(3, np.float32), np.zeros(2, np.float16))
    assert float(found[0]) == pytest.approx(0.5204998778130465)


@pytest.mark.parametrize("style", STYLES)
def test_constants_are_exact(style):
    specials = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 0.1, 1e308]
    with Builder("f") as builder:
        outputs = [
            lookup("full")(value=dtype.type(v).item(), shape=shape, dtype=dtype)
            for v in specials[:6]
            for shape in ((), (2,))
            for dtype in map(np.dtype, ("f8", "f4", "f2"))
        ]
        outputs.append(lookup("constant")(value=np.array(specials)))
        outputs.append(lookup("constant")(value=np.array([2**63, 2**64 - 1], np.uint64)))
    graph = builder.graph(outputs)
    for got, wanted in zip(compile_graph(graph, style=style)(), interpret(graph), strict=True):
        assert got.dtype == wanted.dtype
        assert got.tobytes() == wanted.tobytes()


def test_large_constants_stay_out_of_the_source():
    with Builder("f") as builder:
        big = lookup("constant")(value=np.random.default_rng(0).normal(size=100_000))
    kernel = compile_graph(builder.graph([big]))
    assert len(kernel.source) < 1000
    assert len(kernel.planned_source) < 1000
    assert not any("normal" in line for line in array_lines("k0", np.geomspace(1, 9, 20)))


def drawn_arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    drawn = [rng.normal(size=s) * 10.0 ** rng.integers(-9, 9) for s in ((12,), (4, 4), (2, 3, 4))]
    drawn += [rng.normal(size=(2, 20)), rng.normal(size=(3, 4)) + 1j, rng.normal(size=(4, 4)) > 0]
    drawn += [x.astype(d) for x in drawn[:3] for d in ("f2", "f4", "i1", "u8", "c8")]
    return [*drawn, np.where(drawn[1] > 0, -0.0, np.inf), rng.normal(size=100)]


@pytest.mark.parametrize("array", drawn_arrays(), ids=lambda a: f"{a.dtype}-{a.shape}")
def test_arrays_are_written_number_by_number_and_read_back(array):
    lines = array_lines("k0", array)
    namespace = {"np": np}
    exec("\n".join(lines), namespace)
    found = namespace["k0"]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()
    assert max(map(len, lines)) <= 88
    assert "fromhex" in lines[0] or array.size <= 64
    assert "fromhex" not in lines[0] or array.size > 16


def test_a_matrix_of_a_file_has_a_line_for_each_row():
    noise = np.diag([1e-4, 1e-4, 1e-6]) + np.diag([0.5, 0.25], 1)
    assert array_lines("noise", noise) == [
        "noise = np.array(",
        "    [",
        "        [0.0001, 0.5, 0.0],",
        "        [0.0, 0.0001, 0.25],",
        "        [0.0, 0.0, 1e-06],",
        "    ],",
        ")",
    ]


def test_matrices_with_few_elements_are_diagonals_or_set_one_by_one():
    assert array_lines("k", np.diag([1.0, 2.5, -0.5])) == ["k = np.diag([1.0, 2.5, -0.5])"]
    sparse = np.zeros((3, 4, 2))
    sparse[0, 1, 1], sparse[2, 3, 1] = 2.0, -3.0
    lines = ["k = np.zeros((3, 4, 2))", "k[[0, 2], [1, 3], 1] = [2.0, -3.0]"]
    assert array_lines("k", sparse) == lines
    sparse[0, 0, 0] = -0.0
    found = {"np": np}
    exec("\n".join(array_lines("k", sparse)), found)
    assert found["k"].tobytes() == sparse.tobytes()


HOSTILE = [
    "", "def", "None", "np", "print", "__builtins__", "carried", "part_0", "erf", "match", "_",
    "x\n    canary()", "x\r canary()", "x; canary()", "'", '"', '"""', "\\", "#", "{{ canary() }}",
    "{% raw %}", "x" * 10_000, "ﬁ", "é", "x\u202e", "x\u2028canary()", "\x00", "\x1b[31m",
    "lambda: 0",
    "f", "v0", "x0", "b0", "r0", "w", "np.x", "type", "self",
]  # fmt: skip


def test_hostile_names_never_reach_code(tmp_path, monkeypatch):
    path = tmp_path / "evil\ncanary().py"
    monkeypatch.setattr(
        "builtins.canary", lambda: pytest.fail("a name was executed"), raising=False
    )
    source = primgraph.base.user_lines.Source(
        str(path), 1, text="canary()  # \r canary()\n canary()"
    )
    for role in ("", "x\ncanary()"):
        with Builder(
            "f\n    canary()", source.mark_derivative(role) if role else source
        ) as builder:
            inputs = [builder.input(tensor("f64[]"), name) for name in HOSTILE]
            total = inputs[0]
            for value in inputs[1:]:
                total = total + value
            for value, name in zip((e.output for e in builder.body), HOSTILE, strict=False):
                value.hint = name
        graph = builder.graph([total])
        for style in STYLES:
            kernel = compile_graph(graph, style=style)
            assert kernel(*[1.0] * len(inputs))[0] == len(inputs)
            for text in (kernel.source, kernel.planned_source):
                assert text.isascii()
                lines = [line.lstrip() for line in text.splitlines()]
                assert not any(line.startswith("canary") for line in lines)
        kernel.save(tmp_path / "saved.py")
        assert (tmp_path / "saved.py").read_text().count("def kernel(") == 1


def test_names_are_plain_and_given_once():
    names = Names()
    assert names.name_from_hint("loss", "v") == "loss"
    assert names.name_from_hint("loss", "v") == "loss_2"
    assert names.name_from_hint("class", "v") == "v0"
    assert names.name_from_hint("v1", "v") == "v1"
    assert names.next_name("v") == "v2"
    assert not any(map(is_safe, ("", "if", "np", "len", "ﬁ", "a b", "x" * 41, "_x", "1x", "x\n")))
    assert comment("a\nb\u202e") == "a\\u000ab\\u202e"
    assert len(comment("\n" * 10_000)) < 100


def chain(length: int, live: bool) -> Graph:
    """Long, and with `live` a value for every second equation that is needed at the end."""
    builder = Builder("f")
    builder.source = primgraph.base.user_lines.Source("graph text", 1)
    x = value = builder.input(tensor("f64[2]"), "x")
    kept = []
    for _ in range(length // 2):
        value = builder.emit(lookup("sin"), (value,), {})[0]
        kept.append(value)
    for other in kept if live else [x] * (length // 2):
        value = builder.emit(lookup("add"), (value, other), {})[0]
    return builder.graph([value])


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("live", [False, True])
@pytest.mark.long
def test_long_graphs_compile_in_linear_time(style, live):
    length = 40_000 if DENSE else 10_000
    small, graph, kernels = chain(length // 10, live), chain(length, live), {}

    def seconds(graph):
        start = time.process_time()
        kernels[len(graph)] = compile_graph(graph, style=style)
        return time.process_time() - start

    # The first time may be disturbed by others; the exponent counts once it has been seen low.
    for _ in range(3):
        exponent = math.log10(seconds(graph) / statistics.median(seconds(small) for _ in range(3)))
        if exponent < 1.25:
            break
    assert exponent < 1.25
    kernel = kernels[length]
    np.testing.assert_allclose(kernel(np.ones(2)), interpret(graph, np.ones(2)))
    assert max(map(len, kernel.source.splitlines())) < 120


@pytest.mark.dense
def test_a_hundred_thousand_equations_compile():
    graph = chain(100_000, live=False)
    assert len(schedule(graph).steps) == 100_000
    kernel = compile_graph(graph)
    np.testing.assert_allclose(kernel(np.ones(2)), interpret(graph, np.ones(2)))


@pytest.mark.long
def test_many_inputs_and_outputs():
    builder = Builder("f")
    inputs = [builder.input(tensor("f64[]"), f"x{i}") for i in range(210)]
    outputs = [builder.emit(lookup("sin"), (v,), {})[0] for v in inputs]
    graph = builder.graph([*outputs, *inputs])
    check(graph, feeds_of(graph.input_types))


@pytest.mark.long
def test_a_long_graph_is_saved_in_parts(tmp_path):
    graph = chain(2_500, live=True)
    (made,) = saved(graph, tmp_path / "k.py", [np.ones(2)])
    agrees(made, interpret(graph, np.ones(2))[0])


@pytest.mark.parametrize("function", [erf, erfc])
def test_the_error_functions_are_accurate(function):
    """Against the C library's, which is within about one unit in the last place of the truth."""
    x = np.concatenate([np.linspace(-28, 28, 40_001), np.geomspace(1e-300, 1, 5_000)])
    exact = np.array([getattr(math, function.__name__)(v) for v in x])
    with np.errstate(all="ignore"):
        got = function(x)
    assert np.all(np.abs(got - exact) <= 6 * np.spacing(np.abs(exact)))
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0])
    with np.errstate(all="ignore"):
        got = function(special)
    np.testing.assert_array_equal(got, [getattr(math, function.__name__)(v) for v in special])
    assert np.signbit(erf(special))[-1]


@pytest.mark.long
def test_a_file_holds_several_functions_which_share_constants(tmp_path):
    table = np.geomspace(1.0, 9.0, 100)

    def value(x):
        return pg.sum(pg.erf(x) * table)

    def slope(x):
        return pg.grad(value(x), x)

    def long(x):
        for i in range(3000):
            x = x * (1.0 + 1e-6 * i)
        return x + table

    def longer(x):
        return long(long(x))

    functions = [value, slope, long, longer]
    kernels = [pg.compile(pg.trace(f, pg.spec(100))) for f in functions]
    path = tmp_path / "several.py"
    kernels[0].save(path, *kernels[1:])
    source = path.read_text()
    assert source.count("np.frombuffer(") == 1
    assert source.count("import numpy as np") == 1
    assert source.count("def erf(") == 1
    found = runpy.run_path(str(path))
    x = np.linspace(-2.0, 2.0, 100)
    for kernel in kernels:
        np.testing.assert_allclose(found[kernel.graph.name](x), kernel(x), rtol=1e-14)


def test_a_file_has_no_room_for_two_functions_of_one_name(tmp_path):
    one = compile_graph(parse(GRAPHS["in_place_and_views"]))
    with pytest.raises(pg.CompileError, match="one function of a name, not"):
        one.save(tmp_path / "twice.py", one)
    assert not (tmp_path / "twice.py").exists()
