"""Kernels: what they take, whom they share memory with, and what they say when they fail."""

import copy
import gc
import pickle
import signal
import threading
import traceback
import weakref

import numpy as np
import pytest

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.runtime.feeds import as_feed
from primgraph.errors import ArgumentError, CompileError, FeedError, RunError
from primgraph.ir.builder import Builder
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Op, Primitive, registered
from primgraph.ir.text import parse
from primgraph.ir.types import DTYPE_OF_NAME, TensorType

STYLES = ("planned", "readable")


def tensor(text: str) -> TensorType:
    """`f64[3,4]` as a type."""
    name, _, extents = text.rstrip("]").partition("[")
    return TensorType(tuple(int(n) for n in extents.split(",") if n), DTYPE_OF_NAME[name])


def feeds_of(types, seed=0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=type.shape) for type in types]


X = TensorType((2, 3), DTYPE_OF_NAME["f64"])
GOOD = np.arange(6.0).reshape(2, 3)


class Sub(np.ndarray):
    pass


def misaligned() -> np.ndarray:
    raw = np.zeros(8 * 6 + 1, np.uint8)
    view = raw[1:].view(np.float64).reshape(2, 3)
    view[...] = GOOD
    return view


EXACT = [2**53, -(2**53), 2**60, 2**53 + 2, -(2**63)]
ROUNDED = [2**53 + 1, -(2**53) - 1, 2**60 + 1, 2**63 - 1]


@pytest.mark.parametrize("spelled", [np.array, list])
def test_integers_are_not_rounded_in_silence(spelled):
    type = TensorType((2,), DTYPE_OF_NAME["f64"])
    for n in EXACT:
        assert as_feed(spelled([n, 1]), type, "x")[0] == n
    for n in ROUNDED:
        with pytest.raises(FeedError, match="integers would be rounded"):
            as_feed(spelled([n, 1]), type, "x")
    with pytest.raises(FeedError, match="integers would be rounded"):
        as_feed(np.array([2**64 - 1, 1], np.uint64), type, "x")
    assert as_feed(np.array([2**63, 1], np.uint64), type, "x")[0] == 2.0**63


def test_integers_of_a_list_are_not_rounded_to_small_floats():
    for name, held in (("f32", 2**24), ("f16", 2**11)):
        type = TensorType((1,), DTYPE_OF_NAME[name])
        assert as_feed([held], type, "x")[0] == held
        for n in (held + 1, -held - 1, 10**6 + 1 if name == "f16" else 2**62 + 1):
            with pytest.raises(FeedError, match="integers would be rounded"):
                as_feed([n], type, "x")


class Column:
    """What a column of pandas is for NumPy: missing values become NaN."""

    def __init__(self, values):
        self.values = values
        self.dtype = type("Float64Dtype", (), {"na_value": None})()

    def isna(self):
        return np.array([v is None for v in self.values])

    def __array__(self, dtype=None, copy=None):
        return np.array([np.nan if v is None else v for v in self.values])


def test_missing_values_are_no_numbers():
    type = TensorType((2,), DTYPE_OF_NAME["f64"])
    assert as_feed(Column([1.0, 2.0]), type, "x").tolist() == [1, 2]
    with pytest.raises(FeedError, match=r"missing values(.|\n)*fillna"):
        as_feed(Column([1.0, None]), type, "x")


def test_missing_values_of_pandas_are_no_numbers():
    pandas = pytest.importorskip("pandas")
    type = TensorType((2,), DTYPE_OF_NAME["f64"])
    for dtype in ("Float64", "Int64"):
        with pytest.raises(FeedError, match="missing values"):
            as_feed(pandas.Series([1, None], dtype=dtype), type, "x")
        assert as_feed(pandas.Series([1, 2], dtype=dtype), type, "x").tolist() == [1, 2]
    assert np.isnan(as_feed(pandas.Series([1, np.nan]), type, "x")[1])


@pytest.mark.parametrize("shape", ["1", "1,1", "1,5", "3,1", "1,1,3"])
@pytest.mark.parametrize("op", ["sinh", "arctan2", "matmul"])
def test_strides_of_axes_of_one_element_change_no_bit(op, shape):
    """NumPy takes other loops for these, though it says that such arrays are contiguous."""
    rank = shape.count(",") + 1
    second = ",".join(reversed(shape.split(","))) if op == "matmul" else shape
    if op == "matmul" and rank != 2:
        return
    arguments = "%x, %y" if op != "sinh" else "%x"
    result = f"{shape[0]},{shape[0]}" if op == "matmul" else shape
    graph = parse(f"""graph f(%x: f64[{shape}], %y: f64[{second}]) {{
      %0: f64[{result}] = {op}({arguments})
      return %0
    }}""")
    kernels = [compile_graph(graph, style=style) for style in STYLES]
    for seed in range(30):
        feeds = feeds_of([v.type for v in graph.inputs], seed)
        for views in ([turned(x) for x in feeds], [repeated(x) for x in feeds]):
            for compute in (*kernels, lambda *arrays: interpret(graph, *arrays)):
                expected = compute(*feeds)[0].tobytes()
                assert compute(*views)[0].tobytes() == expected


def turned(x: np.ndarray) -> np.ndarray:
    """The same with the stride negative along axes of one element."""
    whole = np.zeros([n + 2 * (n == 1) for n in x.shape])
    view = whole[tuple(slice(1, 0, -1) if n == 1 else slice(None) for n in x.shape)]
    view[...] = x
    return view


def repeated(x: np.ndarray) -> np.ndarray:
    """The same with no stride along axes of one element."""
    one = x[tuple(0 if n == 1 else slice(None) for n in x.shape)]
    return one[tuple(None if n == 1 else slice(None) for n in x.shape)]


@pytest.mark.parametrize(
    "feed",
    [
        GOOD.astype(">f8"),
        misaligned(),
        np.asfortranarray(GOOD),
        GOOD[::-1, ::-1][::-1, ::-1],
        np.repeat(GOOD, 2, axis=1)[:, ::2],
        GOOD.view(Sub),
        np.ma.array(GOOD),
        GOOD.tolist(),
        GOOD.astype(int).tolist(),
        GOOD.astype(np.float32),
        GOOD.astype(np.int32),
        GOOD.astype(np.uint8),
    ],
)
def test_a_feed_is_converted_where_no_value_changes(feed):
    made = as_feed(feed, X, "x")
    assert type(made) is np.ndarray
    assert made.dtype == np.float64
    assert made.flags.c_contiguous
    assert made.flags.aligned
    np.testing.assert_array_equal(made, GOOD)
    assert as_feed(made, X, "x") is made


def test_a_feed_with_zero_strides_is_written_out():
    made = as_feed(np.broadcast_to(1.5, (2, 3)), X, "x")
    assert made.strides == (24, 8)


@pytest.mark.parametrize(
    ("type", "feed"),
    [
        ("f64[2,3]", GOOD[0]),
        ("f64[2,3]", GOOD.T),
        ("f64[2,3]", 1.0),
        ("f64[3]", np.ones((1, 3))),
        ("f64[]", np.ones(1)),
        ("f64[2]", np.array([1, None])),
        ("f64[2]", ["a", "b"]),
        ("f64[2]", [[1.0], [1.0, 2.0]]),
        ("f64[1]", np.array([(1.0,)], [("a", float)])),
        ("f64[1]", np.array([1j])),
        ("f64[1]", np.array(["2020-01-01"], "M8[D]")),
        ("f64[1]", np.ones(1, np.longdouble)),
        ("f32[1]", np.ones(1)),
        ("i64[1]", [1.5]),
        ("i64[1]", np.ones(1)),
        ("u8[1]", [256]),
        ("u8[1]", [-1]),
        ("bool[1]", [1]),
        ("f64[2]", np.ma.array([1.0, 2.0], mask=[True, False])),
        ("f64[1]", {"a": 1}),
        ("f64[]", 2**53 + 1),
        ("f64[]", 10**400),
        ("i64[]", 2**63),
        ("i64[2]", [2**63, 2**63]),
        ("i8[]", 300),
        ("i8[2]", [1, -129]),
        ("i32[]", 2**31),
        ("i64[]", 1.0),
        ("bool[]", 1),
        ("f32[]", np.float64(1.0)),
        ("f64[]", "1.0"),
    ],
)
def test_a_feed_that_does_not_fit_is_an_error_with_declared_and_given(type, feed):
    with pytest.raises(FeedError, match=r"input 'x' is " + type.replace("[", r"\[")):
        as_feed(feed, tensor(type), "x")


@pytest.mark.parametrize(
    ("type", "feed", "value"),
    [
        ("f32[]", 1.5, 1.5),
        ("f32[]", np.float32(0.1), np.float32(0.1)),
        ("f64[]", 0.1, 0.1),
        ("f64[]", np.float64(0.1), 0.1),
        ("f64[]", -3, -3.0),
        ("i64[]", -3, -3),
        ("i64[]", 2**62 + 1, 2**62 + 1),
        ("i32[]", np.int32(7), 7),
        ("bool[]", True, True),
        ("f32[2]", [1, 2], [1, 2]),
        ("u8[1]", [200], [200]),
        ("f64[0]", [], []),
    ],
)
def test_python_numbers_take_the_declared_dtype(type, feed, value):
    made = as_feed(feed, tensor(type), "x")
    assert made.dtype == tensor(type).dtype
    np.testing.assert_array_equal(made, value)


def test_a_wrong_number_of_feeds_is_an_error():
    with pytest.raises(FeedError, match="takes 1 arrays, 2 given"):
        compile_graph(parse("graph f(%x: f64[2]) {\n  return %x\n}"))(GOOD, GOOD)


MODEL = """
graph f(%x: f64[40,30], %w: f64[30,20]) {
  %0: f64[40,20] = matmul(%x, %w)
  %1: f64[40,20] = tanh(%0)
  %2: f64[40,20] = mul(%1, %1)
  %3: f64[40] = reduce_sum(%2, axes=(1,))
  %4: f64[40,20] = broadcast(%3, shape=(40, 20), new_axes=(1,))
  %5: f64[40,20] = div(%1, %4)
  return %5, %3
}"""


@pytest.mark.parametrize("style", STYLES)
def test_threads_share_a_kernel(style):
    graph = parse(MODEL)
    kernel = compile_graph(graph, style=style)
    wrong, together = [], threading.Barrier(16)

    def work(seed):
        feeds = feeds_of(graph.input_types, seed)
        expected = [r.tobytes() for r in kernel(*feeds)]
        together.wait(timeout=60)
        for _ in range(200):
            if [r.tobytes() for r in kernel(*feeds)] != expected:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("style", STYLES)
def test_a_kernel_keeps_no_feed_and_no_result(style):
    kernel = compile_graph(parse(MODEL), style=style)
    feeds = feeds_of(kernel.graph.input_types)
    results = kernel(*feeds)
    seen = [weakref.ref(a) for a in (*feeds, *results)]
    del feeds, results
    gc.collect()
    assert not any(r() is not None for r in seen)


@pytest.mark.parametrize("style", STYLES)
def test_pickles_copies_and_prints(style):
    kernel = compile_graph(parse(MODEL), style=style)
    again = pickle.loads(pickle.dumps(kernel))
    feeds = feeds_of(kernel.graph.input_types)
    assert [r.tobytes() for r in again(*feeds)] == [r.tobytes() for r in kernel(*feeds)]
    assert again.style == style
    assert again.source == kernel.source
    assert again.planned_source == kernel.planned_source
    assert copy.deepcopy(kernel) is kernel
    assert repr(kernel) == (
        f"<{style} kernel f: (f64[40,30], f64[30,20]) -> (f64[40,20], f64[40])>"
    )
    with pytest.raises(AttributeError):
        kernel.style = "other"


BAD_GATHER = """
graph lookup_rows(%table: f64[3,2], %rows: i64[2]) {
  %0: f64[3,2] = sin(%table)
  %1: f64[2,2] = gather(%0, %rows, axis=0)
  %2: f64[2,2] = exp(%1)
  return %2
}"""


@pytest.mark.parametrize("style", STYLES)
def test_a_failure_names_the_equation_the_line_and_the_users_line(style):
    kernel = compile_graph(parse(BAD_GATHER), style=style)
    table, rows = np.ones((3, 2)), np.array([0, 7])
    with pytest.raises(RunError) as caught:
        kernel(table, rows)
    text = str(caught.value)
    assert "gather failed in kernel lookup_rows: IndexError: index 7" in text
    assert "%1: f64[2,2] = gather(%0: f64[3,2], %rows: i64[2], axis=0)" in text
    assert "graph text:2" in text
    assert isinstance(caught.value.__cause__, IndexError)
    shown = "".join(traceback.format_exception(caught.value))
    line = "take(x1, 0, b1)" if style == "planned" else "[rows]"
    assert line in text
    assert line in shown.split("During handling")[0]
    kept = kernel(table, np.array([0, -1]))
    np.testing.assert_allclose(kept[0], np.exp(np.sin(np.ones((2, 2)))))


@pytest.mark.parametrize("style", STYLES)
def test_a_failure_late_in_a_long_graph_names_its_own_line(style):
    lines = [f"  %{i}: f64[3] = sin(%{i - 1 if i else 'x'})" for i in range(2500)]
    lines[1700] = "  %1700: f64[3] = gather(%1699, %rows, axis=0)"
    text = "\n".join(["graph f(%x: f64[3], %rows: i64[3]) {", *lines, "  return %2499", "}"])
    kernel = compile_graph(parse(text), style=style)
    with pytest.raises(RunError, match="gather failed") as caught:
        kernel(np.ones(3), np.full(3, 9))
    frame = traceback.extract_tb(caught.value.__cause__.__traceback__)[-1]
    assert frame.lineno is not None
    assert f"{frame.filename}:{frame.lineno}   {frame.line}" in str(caught.value)
    assert "take" in frame.line or "[rows]" in frame.line


@pytest.mark.parametrize("style", STYLES)
def test_an_interrupt_in_the_middle_leaves_the_kernel_usable(style, unregistered):
    raised = []

    def impl(x):
        if not raised:
            raised.append(True)
            raise KeyboardInterrupt
        return x

    op = unregistered("test_interrupt", lambda x: x, impl)
    with Builder("f") as builder:
        x = builder.input(tensor("f64[3]"), "x")
        outputs = [op(x * x) + x]
    kernel = compile_graph(builder.graph(outputs), style=style)
    with pytest.raises(KeyboardInterrupt):
        kernel(np.ones(3))
    np.testing.assert_array_equal(kernel(np.ones(3))[0], [2.0, 2.0, 2.0])


class TooLong(ValueError):
    """What a handler of signals raises here."""


class Deadline:
    """A handler of signals that takes whatever it is called with."""

    def __call__(self, *_):
        raise TooLong


def too_long(number, frame):
    raise TooLong


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("handler", [too_long, Deadline()])
def test_what_a_handler_of_signals_raises_comes_out_as_itself(style, handler, unregistered):
    signals = [signal.SIGALRM]

    def impl(x):
        if signals:
            signal.raise_signal(signals.pop())
        return x

    op = unregistered("test_signal", lambda x: x, impl)
    with Builder("f") as builder:
        x = builder.input(tensor("f64[3]"), "x")
        outputs = [op(x * x) + x]
    kernel = compile_graph(builder.graph(outputs), style=style)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(TooLong):
            kernel(np.ones(3))
    finally:
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(kernel(np.ones(3))[0], [2.0, 2.0, 2.0])


@pytest.fixture
def unregistered(monkeypatch):
    """Primitives that are forgotten when the test ends."""
    monkeypatch.setattr("primgraph.ir.facts.ops._registry", dict(registered()))
    return Primitive


def test_a_primitive_of_the_users_runs_through_its_impl(unregistered, tmp_path):
    cache = np.ones(3)
    identity = unregistered("test_identity", lambda x, *, text: x, lambda x, *, text: x)
    cached = unregistered("test_cached", lambda x: x, lambda x: cache)
    pair = unregistered("test_pair", lambda x: (x, x), lambda x: [x + 1.0, x.T], multiple=True)
    with Builder("f") as builder:
        x = builder.input(tensor("f64[3]"), "x")
        y = identity(x * 2.0, text="\n'\"")
        first, second = pair(y)
        outputs = [y, y + 1.0, identity(x, text=""), cached(x), first, second * second]
    graph = builder.graph(outputs)
    for style in STYLES:
        kernel = compile_graph(graph, style=style)
        feed = np.arange(3.0)
        results = kernel(feed)
        for got, wanted in zip(results, interpret(graph, feed), strict=True):
            np.testing.assert_array_equal(got, wanted)
            assert not any(np.shares_memory(got, other) for other in (feed, cache))
    with pytest.raises(CompileError, match="test_identity"):
        kernel.save(tmp_path / "k.py")


def test_an_impl_with_a_wrong_shape_is_an_error(unregistered):
    op = unregistered("test_shape", lambda x: x, lambda x: x[:1])
    with Builder("f") as builder:
        graph = builder.graph([op(builder.input(tensor("f64[3]")))])
    for style in STYLES:
        with pytest.raises(RunError, match=r"gave shape \(1,\), not \(3,\)"):
            compile_graph(graph, style=style)(np.ones(3))


def test_an_op_that_is_no_primitive_is_refused():
    class Operator(Op):
        __slots__ = ()

        def infer(self, types, params):
            return types

        def evaluate(self, arrays, params):
            return arrays

    op = Operator.__new__(Operator)
    op.name, op.multiple, op.commutative = "softmax", False, False
    op.formal, op.has_bodies = False, False
    builder = Builder("f")
    x = builder.input(tensor("f64[3]"))
    graph = builder.graph(builder.emit(op, (x,), {}))
    with pytest.raises(CompileError, match="softmax"):
        compile_graph(graph)
    with pytest.raises(CompileError, match="no style 'fast'"):
        compile_graph(parse(MODEL), style="fast")


@pytest.mark.parametrize("style", STYLES)
def test_the_users_state_stays_as_it_was(style):
    graph = parse("graph f(%x: f64[2]) {\n  %0: f64[2] = log(%x)\n  return %0\n}")
    kernel = compile_graph(graph, style=style)
    with np.errstate(all="raise"):
        before = np.geterr()
        assert kernel(np.array([0.0, -1.0]))[0][0] == -np.inf
        assert np.geterr() == before


DONATED = """graph f(%w: f64[3], %v: f64[3], %g: f64[3]) {
  %0: f64[3] = mul(%w, %g)
  %1: f64[3] = sub(%w, %0)
  %2: f64[3] = add(%v, %w)
  %3: f64[3] = reverse(%w, axes=(0,))
  return %1, %2, %3, %1
}"""


@pytest.mark.parametrize("style", ["planned", "readable"])
@pytest.mark.parametrize("donated", [{0: 0}, {0: 0, 1: 1}, {1: 1}, {3: 0, 1: 1}, {2: 0, 0: 1}])
def test_donated_arrays_are_overwritten_with_the_outputs(style, donated):
    graph = parse(DONATED)
    kernel = pickle.loads(pickle.dumps(compile_graph(graph, style=style, donated=donated)))
    arrays = [np.array([1.0, 2, 3]), np.array([4.0, 5, 6]), np.array([0.5, 0.25, 2])]
    expected = interpret(graph, *arrays)
    found = kernel(*arrays)
    for k, (value, known) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(value, known)
        if k in donated:
            assert value is arrays[donated[k]]
        others = [a for j, a in enumerate(arrays) if j != donated.get(k)]
        others += [f for i, f in enumerate(found) if i != k]
        assert not any(np.shares_memory(value, other) for other in others)
    for j, array in enumerate(arrays):
        if j not in donated.values():
            np.testing.assert_array_equal(array, [[1, 2, 3], [4, 5, 6], [0.5, 0.25, 2]][j])


@pytest.mark.parametrize("style", ["planned", "readable"])
@pytest.mark.parametrize(
    ("outputs", "donated"),
    [
        ("%v, %w", {0: 0, 1: 1}),
        ("%0, %1", {0: 0, 1: 1}),
        ("%0, %1", {1: 1, 0: 0}),
        ("%1, %0", {0: 1, 1: 0}),
        ("%1, %1", {0: 1, 1: 0}),
        ("%0, %0", {0: 0, 1: 1}),
        ("%0, %w", {0: 0, 1: 1}),
    ],
)
def test_donated_arrays_may_exchange_what_they_hold(style, outputs, donated):
    text = f"""graph f(%w: f64[3], %v: f64[3]) {{
      %0: f64[3] = reverse(%v, axes=(0,))
      %1: f64[3] = mul(%v, %v)
      return {outputs}
    }}"""
    graph = parse(text)
    arrays = [np.array([1.0, 2, 3]), np.array([4.0, 5, 6])]
    expected = interpret(graph, *arrays)
    found = compile_graph(graph, style=style, donated=donated)(*arrays)
    for k, (value, known) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(value, known)
        assert value is arrays[donated[k]]


def test_donated_arrays_are_known_in_all_functions_of_a_long_kernel():
    lines = ["%0: f64[3] = add(%w, %w)", "%1: f64[3] = mul(%v, %v)"]
    lines += [f"%{i}: f64[3] = sin(%{i - 1})" for i in range(2, 2500)]
    text = "graph f(%w: f64[3], %v: f64[3]) {\n" + "\n".join(lines) + "\nreturn %0, %2499, %w\n}"
    kernel = compile_graph(parse(text), donated={0: 0, 1: 1})
    w, v = np.array([1.0, 2, 3]), np.array([4.0, 5, 6])
    first, second, before = kernel(w, v)
    assert first is w
    assert second is v
    assert (w.tolist(), before.tolist()) == ([2, 4, 6], [1, 2, 3])


def test_a_run_that_fails_leaves_donated_arrays_as_they_were():
    graph = parse("""graph f(%w: f64[3], %v: f64[3], %i: i64[1]) {
      %0: f64[3] = add(%w, %w)
      %1: f64[1] = gather(%v, %i, axis=0)
      %2: f64[3] = mul(%v, %v)
      return %0, %1, %2
    }""")
    kernel = compile_graph(graph, donated={0: 0, 2: 1})
    w, v = np.array([1.0, 2, 3]), np.array([4.0, 5, 6])
    with pytest.raises(RunError):
        kernel(w, v, np.array([9]))
    assert (w.tolist(), v.tolist()) == ([1, 2, 3], [4, 5, 6])
    kernel(w, v, np.array([1]))
    assert (w.tolist(), v.tolist()) == ([2, 4, 6], [16, 25, 36])


def test_a_donated_array_must_be_one_that_can_be_overwritten():
    kernel = compile_graph(parse(DONATED), donated={0: 0})
    locked = np.ones(3)
    locked.setflags(write=False)
    for array in ([1.0, 2, 3], np.ones(3, np.float32), np.ones(6)[::2], locked):
        with pytest.raises(FeedError, match="'w' is overwritten by the kernel"):
            kernel(array, np.ones(3), np.ones(3))
    with pytest.raises(CompileError, match="donated to two outputs"):
        compile_graph(parse(DONATED), donated={0: 0, 1: 0})
    small = "graph f(%x: f64[3]) {\n%0: f64[] = reduce_sum(%x, axes=(0,))\nreturn %0\n}"
    with pytest.raises(CompileError, match="does not fit input 0"):
        compile_graph(parse(small), donated={0: 0})


@pytest.mark.parametrize("style", ["planned", "readable", "native"])
def test_a_donated_array_shares_no_memory_with_another_one(style):
    text = """graph f(%x: f64[4], %y: f64[4], %z: f64[4]) {
      %0: f64[4] = mul(%x, %y)
      %1: f64[4] = sin(%x)
      %2: f64[4] = add(%1, %z)
      return %0, %2
    }"""
    kernel = compile_graph(parse(text), style=style, donated={0: 1})
    room = np.arange(12.0)
    same, beside = room[:4], room[4:8]
    for feeds in ((same, same, beside), (beside, same, same), (room[2:6], same, room[8:])):
        before = room.copy()
        with pytest.raises(FeedError, match=r"'y' is overwritten.*shares? no memory"):
            kernel(*feeds)
        assert (room == before).all()
    expected = [beside * same, np.sin(same) + room[8:]]
    for made, wanted in zip(kernel(same, beside, room[8:]), expected, strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-15)
    both = compile_graph(parse(text), style=style, donated={0: 0, 1: 1})
    with pytest.raises(FeedError, match="is overwritten"):
        both(same, same, room[8:])


def test_a_file_of_source_that_primgraph_did_not_write_is_not_overwritten(tmp_path):
    kernel = compile_graph(parse("graph f(%x: f64[2]) {\n%0: f64[2] = sin(%x)\nreturn %0\n}"))
    path = tmp_path / "model.py"
    kernel.save(path)
    written = path.read_text()
    for mine in ("import primgraph as pg\n", f'"""My own."""\n{written}'):
        path.write_text(mine)
        with pytest.raises(ArgumentError, match="was not written by primgraph"):
            kernel.save(path)
        assert path.read_text() == mine
    kernel.save(path, force=True)
    path.write_text(f"{written}# changed\n")
    kernel.save(path)
    assert path.read_text() == written


def test_the_flat_kernel_is_made_once():
    kernel = pg.compile(pg.trace(lambda x: {"y": 2.0 * x}, pg.spec(3)))
    assert kernel.flat is kernel.flat
    assert kernel.flat.flat is kernel.flat
    assert isinstance(kernel.flat(np.ones(3)), list)
