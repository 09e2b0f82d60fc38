"""The intermediate representation: interning, text, equality, verification, interpretation."""

import copy
import gc
import os
import pickle
import subprocess
import sys
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from density import DENSE

import primgraph as pg
from primgraph.base.interpreter_limits import uncollected
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.containers import open_container
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import Array, InternedParams, bits, freeze
from primgraph.ir.primitive import Primitive, lookup
from primgraph.ir.text import to_text
from primgraph.ir.types import FLOAT32, FLOAT64, TensorType, as_dtype
from primgraph.primitives.constants import constant_op, filled_constant, full
from primgraph.primitives.elementwise import add, mul, sin, tanh
from primgraph.primitives.shapes import reshape

VECTOR = TensorType((3,), FLOAT64)

TEXT = """graph f(%x: f64[3], %y: f64[3]) {
  %0: f64[3] = sin(%x)
  %1: f64[3] = mul(%0, %y)
  %2: f64[] = reduce_sum(%1, axes=(0,))
  return %2, %x
}"""


def chain(length: int) -> Graph:
    """A graph of `length` equations, each on the result of the one before."""
    with pg.Builder("chain") as builder:
        x = builder.input(VECTOR, "x")
        y = x
        for _ in range(length):
            y = tanh(y)
    return builder.graph([y])


def test_text_prints_as_it_was_parsed():
    assert str(pg.parse(TEXT)) == TEXT


def test_equal_expressions_are_one_equation():
    with pg.Builder() as builder:
        x, y = builder.input(VECTOR, "x"), builder.input(VECTOR, "y")
        assert mul(x, y) is mul(x, y)
        assert mul(x, y) is mul(y, x), "a product does not depend on the order of its factors"
        assert x - y is not y - x
        assert reshape(x, shape=(3, 1)) is not reshape(x, shape=(1, 3))
    assert len(builder) == 5


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0), (1, True), (0.0, -0.0), (0, False), ((1,), (1.0,)), (np.int64(1), np.float64(1)),
        (("bool", 1), True), (("float", 1.0), 1.0), ((("bool", 1),), (True,)),
    ],
)  # fmt: skip
def test_parameters_are_told_apart_by_bits(one, other):
    assert bits(freeze(one)) != bits(freeze(other))
    assert bits(freeze(one)) == bits(freeze(one))


def test_interned_parameters_are_told_apart_by_bits():
    nan = float("nan")
    values = [0.0, -0.0, 1, True, 1.0, 1j, "1", None, (1, 2), (1, True), (1.0, 2), FLOAT32, FLOAT64]
    table = InternedParams()
    found = [table.frozen({"value": v}) for v in (*values, nan)]
    assert len({id(params) for params in found}) == len(found)
    again = [table.frozen({"value": v}) for v in (*values, float("nan"))]
    assert all(one is other for one, other in zip(found, again, strict=True))
    assert table.frozen({"value": [1, 2]}) is table.frozen({"value": (1, 2)})


def test_a_value_of_a_user_is_its_own_also_after_a_scratch():
    builder = Builder()
    x = builder.input(TensorType((3,), FLOAT64))
    builder.begin_call()
    (held,) = builder.emit(sin, (x,), {})
    with builder.scratch():
        builder.emit(tanh, (x,), {})
    assert builder.hand_out([held]) == [held]
    assert builder.emit(sin, (x,), {}) != (held,), "later equations are not merged with it"


def test_constants_are_told_apart_by_bits():
    plus, minus = Array(np.array([0.0, 1.0])), Array(np.array([-0.0, 1.0]))
    assert plus != minus
    assert plus == Array(np.array([0.0, 1.0]))
    assert plus != Array(np.array([0.0, 1.0], np.float32))
    nan = Array(np.array([np.nan, 1.0]))
    assert nan == Array(np.array([np.nan, 1.0]))
    with pg.Builder() as builder:
        assert filled_constant(0.0, VECTOR) is not filled_constant(-0.0, VECTOR)
        assert filled_constant(1.0, VECTOR) is not filled_constant(1.0, VECTOR.with_dtype(FLOAT32))
    assert len(builder) == 4


def test_constants_are_private_and_frozen():
    source = np.array([1.0, 2.0])
    frozen = Array(source)
    source[0] = 5.0
    assert frozen.data[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        frozen.data[0] = 5.0


SPECIALS = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.7976931348623157e308, 0.1]


@pytest.mark.parametrize("value", SPECIALS)
@pytest.mark.parametrize("count", [1, 3, 20])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_special_constants_survive_text(value, count, dtype):
    for array in (np.full(count, value), np.append(np.full(count, value), 1.5)):
        with np.errstate(over="ignore", under="ignore"):
            array = array.astype(dtype)
        builder = pg.Builder()
        with builder:
            op, params = constant_op(array)
            output = op(**params)
        graph = builder.graph([output])
        again = pg.parse(str(graph))
        assert again == graph
        assert pg.interpret(again)[0].tobytes() == array.tobytes()


def test_nan_payload_survives_text():
    array = np.array([0x7FF8000000000123, 0xFFF8000000000001], np.uint64).view(np.float64)
    builder = pg.Builder()
    with builder:
        op, params = constant_op(array)
        graph = builder.graph([op(**params)])
    assert pg.interpret(pg.parse(str(graph)))[0].tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "name", ["x y", 'a"b', "<b>", "0", "%x", "naïve", "x" * 200, "\\", "def", "np"]
)
def test_any_visible_name_survives_text(name):
    with pg.Program() as program:
        pg.tanh(pg.data(name, (2,)))
    again = pg.parse(str(program))
    assert again == program.graph()
    assert again.inputs[0].hint == name


@pytest.mark.long
def test_printed_text_is_the_same_in_every_process():
    code = (
        "import primgraph as pg\n"
        "with pg.Program() as p:\n"
        "    x = pg.data('x', (2, 3)); w = pg.data('w', (3, 2))\n"
        "    y = pg.softmax(pg.tanh(x @ w) * 2.0); g = pg.grad(pg.sum(y * y), [x, w])\n"
        "print(p)\n"
    )
    outputs = set()
    for seed in range(20 if DENSE else 2):
        env = {**os.environ, "PYTHONHASHSEED": str(seed)}
        run = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1
    assert "tanh" in outputs.pop()


def test_graph_equality_ignores_names_and_sees_all_else():
    graph = pg.parse(TEXT)
    renamed = pg.parse(TEXT.replace("%x", "%z").replace("graph f", "graph g"))
    assert graph == renamed
    assert hash(graph) == hash(renamed)
    for old, new in (
        ("sin", "cos"),
        ("mul(%0, %y)", "mul(%0, %x)"),
        ("return %2, %x", "return %2"),
    ):
        assert pg.parse(TEXT.replace(old, new)) != graph
    assert pg.parse(TEXT.replace("f64", "f32")) != graph


def test_a_graph_never_changes():
    graph = pg.parse(TEXT)
    with pytest.raises(AttributeError, match="never changes"):
        graph.name = "other"
    assert copy.deepcopy(graph) is graph


def test_pickle_gives_an_equal_graph_with_its_lines():
    graph = pg.parse(TEXT)
    again = pickle.loads(pickle.dumps(graph))
    assert again == graph
    assert [e.source for e in again.body] == [e.source for e in graph.body]
    assert [v.hint for v in again.inputs] == ["x", "y"]


def test_interpreter_follows_the_equations():
    x, y = np.array([1.0, 2, 3]), np.array([2.0, 0, 1])
    total, same = pg.interpret(pg.parse(TEXT), x, y)
    np.testing.assert_allclose(total, np.sum(np.sin(x) * y))
    np.testing.assert_array_equal(same, x)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("sin(%x)", "sin(%q)", "line 2, column 20: %q is used before it is bound"),
        ("sin(%x)", "sine(%x)", "did you mean 'sin'"),
        ("sin(%x)", "sin(%x, axis=0)", "sin: there is no argument 'axis'"),
        ("%0: f64[3] = sin", "%0: f64[4] = sin", "line 2, column 3: sin has type f64[3]"),
        ("%1: f64[3] = mul", "%0: f64[3] = mul", "%0 is bound twice"),
        ("mul(%0, %y)", "mul(%0)", "mul takes 2 operands"),
        ("axes=(0,)", "axes=(7,)", "does not fit f64[3]"),
        ("axes=(0,)", "axes=(0,", "expected"),
        ("return", "give", "expected 'return'"),
        ("f64[3]) {", "f65[3]) {", "'f65' is not a dtype"),
        ("graph f(", "f(", "expected 'graph'"),
        ("sin(%x)", "sin(%x) !", "cannot read '!'"),
    ],
)
def test_malformed_text_is_refused_with_its_line_and_column(old, new, words):
    with pytest.raises(pg.LoadError) as caught:
        pg.parse(TEXT.replace(old, new))
    assert words in str(caught.value)


def test_comments_and_sources_are_read_over():
    graph = pg.parse(TEXT)
    assert pg.parse("# a graph\n" + to_text(graph, sources=True)) == graph


def broken(kind: str) -> Graph:
    """A graph that breaks one law."""
    x, y, z = Value(VECTOR, "x"), Value(VECTOR), Value(VECTOR)
    first = Equation(sin, (x,), (), (y,))
    second = Equation(add, (y, x), (), (z,))
    wrong = Equation(add, (y, x), (), (Value(VECTOR.with_dtype(FLOAT32)),))
    return {
        "order": Graph([x], [second, first], [z]),
        "twice": Graph([x], [first, first], [y]),
        "output": Graph([x], [first], [z]),
        "input": Graph([x, x], [first], [y]),
        "type": Graph([x], [first, wrong], [y]),
        "ill-typed": Graph([x], [Equation(add, (x,), (), (y,))], [y]),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("order", "before it is bound"),
        ("twice", "is bound twice"),
        ("output", "is not bound"),
        ("input", "is listed twice"),
        ("type", "add has type f32[3], its rule says f64[3]"),
        ("ill-typed", "add takes 2 operands"),
    ],
)
def test_verify_finds_every_broken_law_and_shows_the_place(kind, words):
    with pytest.raises(pg.InternalError) as caught:
        pg.verify(broken(kind))
    assert words in str(caught.value)
    assert "%x" in str(caught.value)


def test_an_ill_typed_equation_cannot_be_built():
    with pg.Builder() as builder:
        x = builder.input(VECTOR, "x")
        y = builder.input(TensorType((4,), FLOAT64), "y")
        with pytest.raises(
            pg.ShapeError, match=r"add takes equal types, not f64\[3\] and f64\[4\]"
        ):
            add(x, y)
        with pytest.raises(pg.ShapeError) as caught:
            mul(x, y)
    assert "test_ir.py" in str(caught.value)
    assert "is input 'y'" in str(caught.value)
    assert len(builder) == 0


def test_values_of_two_builders_do_not_meet():
    with pg.Builder() as one:
        x = one.input(VECTOR, "x")
    with pg.Builder() as other:
        y = other.input(VECTOR, "y")
        with pytest.raises(pg.BuildError, match="belongs to another program"):
            add(x, y)


def test_names_of_ops_are_unique():
    with pytest.raises(pg.BuildError, match="registered already"):
        Primitive("sin", lambda x: x, np.sin)
    with pytest.raises(pg.BuildError, match="already"):
        sin.batch(lambda *_: None)
    with pytest.raises(pg.MissingRuleError, match="did you mean 'tanh'"):
        lookup("tanhh")


@pytest.mark.parametrize(
    "bad", ["clongdouble", "U3", "O", "M8[s]", [("a", "i4")], "nonsense", object]
)
def test_unsupported_dtypes_are_refused(bad):
    with pytest.raises(pg.DTypeError):
        as_dtype(bad)


def test_uniform_arrays_become_full():
    assert constant_op(np.ones((2, 2)))[0] is full
    assert constant_op(np.array([0.0, -0.0]))[0] is not full
    assert constant_op(np.zeros((0,)))[0] is not full


@pytest.mark.long
def test_a_chain_of_very_many_equations_needs_no_recursion():
    count = 100_000 if DENSE else 8_000
    graph = chain(count)
    text = str(graph)
    assert pg.parse(text) == graph
    assert pg.verify(graph) is graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert copy.deepcopy(graph) == graph
    # A tanh many times over leaves the root of three halves of one by their number.
    np.testing.assert_allclose(pg.interpret(graph, np.ones(3))[0], np.sqrt(1.5 / count), rtol=1e-3)
    jvp = pg.transforms.linearize(graph)
    back = pg.transforms.transpose(jvp.with_outputs(jvp.outputs[1:]), [1])
    # A tanh, its square, one minus it, and a product for each equation; the one is shared.
    assert len(pg.transforms.simplify(back)) == len(back) == 4 * count + 1


def test_the_collector_waits_while_graphs_are_made_and_is_as_before_afterwards():
    assert gc.isenabled()
    with uncollected:
        assert not gc.isenabled()
        with uncollected:
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with uncollected:
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_collector_runs_again_after_an_error():
    @uncollected
    def fail() -> None:
        raise KeyError("reason")

    with pytest.raises(KeyError, match="reason"):
        fail()
    assert gc.isenabled()


def test_threads_share_one_pause_of_the_collector():
    inside, leave = Barrier(3), Event()

    def work() -> None:
        with uncollected:
            inside.wait(10)
            leave.wait(10)

    threads = [Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait(10)
    with uncollected:
        pass
    assert not gc.isenabled()
    leave.set()
    for thread in threads:
        thread.join()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("forks_inside", [False, True])
def test_the_collector_runs_in_a_child_that_is_forked_while_it_waits(forks_inside):
    inside, leave = Barrier(2), Event()

    def work() -> None:
        with uncollected:
            inside.wait(10)
            leave.wait(10)

    def is_fine() -> bool:
        if forks_inside:
            with uncollected:
                child = os.fork()
                waits = not gc.isenabled()
        else:
            child, waits = os.fork(), True
        if child:
            return os.waitpid(child, 0)[1] == 0
        try:
            fine = waits and gc.isenabled()
            with uncollected:
                fine = fine and not gc.isenabled()
            os._exit(0 if fine and gc.isenabled() else 3)
        finally:
            os._exit(4)

    thread = Thread(target=work)
    thread.start()
    inside.wait(10)
    try:
        assert is_fine()
    finally:
        leave.set()
        thread.join()
    assert gc.isenabled()


def test_extents_that_are_no_integers_leave_the_types_as_they_are():
    with pytest.raises(pg.ShapeError, match="no integer"):
        TensorType((1.5, 30, 20), FLOAT32)
    assert TensorType((1, 30, 20), FLOAT32).size == 600


def test_values_and_equations_are_no_containers():
    """Containers of the user's are taken apart, dataclasses among them."""
    builder = Builder("f")
    (out,) = builder.emit(lookup("sin"), [builder.input(TensorType((3,), FLOAT64))], {})
    assert open_container(out) is None
    assert open_container(builder.definition(out)) is None
