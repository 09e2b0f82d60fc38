"""Programs, executors, tracing and compiling: what a user touches."""

import contextlib
import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import primgraph as pg
from primgraph.operators.lazy_loading import functions


def small():
    with pg.Program("small") as program:
        x = pg.data("x", (3,))
        y = pg.data("y", (3,))
        z = x * y + 1.0
    return program, x, y, z


ONES = np.ones(3)


def test_programs_stand_side_by_side_and_nest():
    with pg.Program() as outer:
        x = pg.data("x", (2,))
        with pg.Program() as inner:
            a = pg.data("a", (3,))
            b = a + 1
        y = x + 1
        with pg.program_guard(inner):
            c = pg.data("c", (3,))
    assert list(inner.inputs) == ["a", "c"]
    assert list(outer.inputs) == ["x"]
    run = pg.Executor().run
    np.testing.assert_array_equal(run(outer, {"x": [1, 2]}, [y])[0], [2, 3])
    np.testing.assert_array_equal(run(inner, {"a": [1, 2, 3]}, [b])[0], [2, 3, 4])
    assert c.shape == (3,)
    with pytest.raises(pg.BuildError, match="two different programs") as caught:
        x + a
    assert "test_program.py" in str(caught.value)
    with pytest.raises(pg.ArgumentError, match="takes a Program"), pg.program_guard("main"):
        pass


def parts(names, entered):
    """Builds a program in steps, one for each name, with a break before each."""
    with entered as program:
        for name in names:
            yield program
            x = pg.data(name, (2,))
            pg.exp(pg.ones(2) * 3.0) * x
    yield program


@pytest.mark.parametrize("around", [False, True])
def test_generators_that_take_turns_build_programs_of_their_own(around):
    def make():
        first = parts("abc", pg.Program("first"))
        second = parts("uvw", pg.program_guard(pg.Program("second")))
        programs = [next(first), next(second)]
        for _ in range(3):
            next(first)
            next(second)
        # They are left in the order in which they were entered.
        first.close()
        second.close()
        return programs

    if not around:
        programs = make()
    else:
        with pg.Program() as outer:
            x = pg.data("x", (2,))
            programs = make()
            assert pg.default_main_program() is outer
            pg.data("y", (2,))
        assert list(outer.inputs) == ["x", "y"]
        assert x.shape == (2,)
    assert [list(p.inputs) for p in programs] == [["a", "b", "c"], ["u", "v", "w"]]
    sizes = [len(p.builder) for p in programs]
    assert sizes[0] == sizes[1] > 3


def test_contexts_of_ones_own_may_enter_programs():
    @contextlib.contextmanager
    def building():
        with pg.Program("inner") as program:
            yield program

    def functions():
        with pg.Program("waiting") as program:
            yield program

    with pg.Program("outer") as outer:
        waiting = functions()
        between = next(waiting)
        pg.data("x", (2,))
        with building() as inner:
            pg.data("a", (2,))
            with pg.Program() as third:
                pg.data("b", (2,))
            graph = pg.trace(lambda x: x * 2.0, pg.spec(2))
            pg.data("c", (2,))
        waiting.close()
        pg.data("y", (2,))
    assert [list(p.inputs) for p in (outer, inner, third)] == [["y"], ["a", "c"], ["b"]]
    # What a generator has entered before, where it was asked, is what its caller is in.
    assert list(between.inputs) == ["x"]
    assert len(graph.body) > 0


def test_the_default_main_program_is_the_one_that_is_built():
    hidden = pg.default_main_program()
    with pg.Program() as program:
        assert pg.default_main_program() is program
        with pg.program_guard(pg.Program()) as guarded:
            assert pg.default_main_program() is guarded
            y = pg.data("x", (2,)) * 2.0
            assert pg.Executor().run(feed={"x": [1, 2]}, fetch_list=[y])[0].tolist() == [2, 4]
    assert pg.default_main_program() is hidden


def test_building_outside_of_any_program_is_said_once():
    code = (
        "import warnings, primgraph as pg\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        "    with pg.Program(): pg.data('x', 2)\n"
        "    pg.trace(lambda x: x, 2.0)\n"
        "    assert not told\n"
        "    pg.data('x', 2)\n"
        "    pg.data('y', 2)\n"
        "(one,) = told\n"
        "assert one.filename == '<string>' and one.lineno == 7, (one.filename, one.lineno)\n"
        "print(one.category.__name__, one.message)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.stdout.startswith("HiddenProgramWarning no program is entered"), run.stderr


@pytest.mark.filterwarnings("ignore:no program is entered")
def test_the_default_program_needs_no_guard():
    main = pg.default_main_program()
    x = pg.data("only here", (2,))
    y = x * 2.0
    (found,) = pg.Executor().run(feed={"only here": [1.0, 2.0]}, fetch_list=[y])
    np.testing.assert_array_equal(found, [2, 4])
    assert "only here" in main.inputs


def test_threads_build_their_own_programs():
    failures = []

    def build(number):
        try:
            with pg.Program() as program:
                x = pg.data("x", (3,))
                for _ in range(50):
                    x = pg.tanh(x) * float(number)
            assert len(program.builder) <= 101
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=build, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_fetches_are_variables_names_and_lists_of_them():
    program, _x, _y, z = small()
    z.name = "z"
    run = pg.Executor().run
    found = run(program, {"x": ONES, "y": 2 * ONES}, [z, "z", ["x", z], "y"])
    for value, expected in zip(found, [3, 3, 1, 3, 2], strict=True):
        np.testing.assert_array_equal(value, np.full(3, expected))
    assert not any(np.shares_memory(a, b) for a in found for b in found if a is not b)
    assert run(program, {}, []) == []
    with pytest.raises(pg.FeedError, match="cannot fetch 'zz'") as caught:
        run(program, {}, ["zz"])
    assert "did you mean 'z'" in str(caught.value)
    with pytest.raises(TypeError, match="cannot fetch None"):
        run(program, {}, [None])
    with pytest.raises(TypeError, match="cannot fetch a int"):
        run(program, {}, [3])
    with pytest.raises(TypeError, match="fetch_list is a list"):
        run(program, {}, z)
    with pytest.raises(TypeError, match="run takes a Program"):
        run("program", {}, [z])
    with pytest.raises(TypeError, match="feed is a mapping"):
        run(program, [ONES], [z])
    _other, *_, foreign = small()
    with pytest.raises(pg.FeedError, match="another program"):
        run(program, {"x": ONES, "y": ONES}, [foreign])


def test_only_what_the_fetches_need_runs():
    program, x, _y, _z = small()
    with program:
        w = pg.sin(x)
    run = pg.Executor().run
    np.testing.assert_array_equal(run(program, {"x": ONES}, [w])[0], np.sin(ONES))
    assert len(pg.Executor().kernel(program, [w]).graph) == 1
    run(program, {"x": ONES, "y": ONES}, [w])


def test_a_second_run_does_not_compile():
    program, _x, _y, z = small()
    executor = pg.Executor()
    feed = {"x": ONES, "y": ONES}
    executor.run(program, feed, [z])
    kernel = executor.kernel(program, [z])
    executor.run(program, feed, [[z]])
    assert executor.kernel(program, [z]) is kernel
    assert len(program.kernels) == 1


@pytest.mark.parametrize(
    ("feed", "words"),
    [
        ({"x": ONES}, ["missing 'y' f64[3]", "declared at test_program.py", 'pg.data("y", (3,))']),
        ({}, ["missing 'x' f64[3], 'y' f64[3]"]),
        ({"x": ONES, "yy": ONES}, ["missing 'y'", "unexpected 'yy'", "did you mean 'y'?"]),
        ({"x": ONES, "y": ONES, "extra": 1}, ["unexpected 'extra'"]),
        ({"x": np.ones(4), "y": ONES}, ["'x'", "f64[3]", "4", "declared at test_program.py"]),
        ({"x": 1.0, "y": ONES}, ["'x'", "f64[3]", 'pg.data("x", (3,))']),
        ({"x": np.ones((1, 3)), "y": ONES}, ["'x'", "f64[3]"]),
        ({"x": ONES.astype(complex), "y": ONES}, ["'x'", "complex", "declared at"]),
        ({"x": ["a", "b", "c"], "y": ONES}, ["'x'"]),
        ({"x": [None, None, None], "y": ONES}, ["'x'"]),
    ],
)
def test_feeds_that_do_not_fit_are_refused(feed, words):
    program, *_, z = small()
    with pytest.raises(pg.FeedError) as caught:
        pg.Executor().run(program, feed, [z])
    for word in words:
        assert word in str(caught.value)


def test_feeds_of_any_layout_give_the_same_bits():
    with pg.Program() as program:
        x = pg.data("x", (4, 6))
        y = pg.sum(pg.tanh(x) * x, axis=0)
    base = np.random.default_rng(0).standard_normal((4, 6))
    wide = np.zeros((8, 12))
    wide[::2, ::2] = base
    packed = np.zeros(8 * 24 + 1, np.uint8)[1:].view(np.float64).reshape(4, 6)
    packed[...] = base
    locked = base.copy()
    locked.setflags(write=False)
    layouts = [
        base,
        np.asfortranarray(base),
        wide[::2, ::2],
        base[::-1][::-1],
        base.astype(">f8"),
        packed,
        locked,
        base.tolist(),
        np.ma.masked_array(base),
    ]
    results = [pg.Executor().run(program, {"x": a}, [y])[0].tobytes() for a in layouts]
    assert set(results) == {results[0]}


def test_names_are_checked():
    with pg.Program():
        x = pg.data("x", (2,))
        for bad in ("", "a\nb", "a\rb", "\u202e", "x" * 10_000, "\x00"):
            with pytest.raises(pg.BuildError):
                pg.data(bad, (2,))
        with pytest.raises(pg.ArgumentError):
            pg.data(3, (2,))
        with pytest.raises(pg.BuildError, match="named 'x' already") as caught:
            pg.data("x", (2,))
        assert "test_program.py" in str(caught.value)
        pg.data("fi", (2,))
        with pytest.raises(pg.BuildError, match="looks like 'fi'"):
            pg.data("\ufb01", (2,))
        y = x + 1
        y.name = "y"
        with pytest.raises(pg.BuildError, match="taken"):
            (x + 2).name = "y"
        with pytest.raises(pg.BuildError, match="one name"):
            x.name = "z"
        for bad in ((-2,), (2, "a b"), (1.5,)):
            with pytest.raises(pg.PrimgraphError):
                pg.data("shape", bad)
        for bad in ("clongdouble", "O", "U1"):
            with pytest.raises(pg.DTypeError):
                pg.data("dtype", (2,), bad)


def test_copies_are_clones_and_pickles_are_refused():
    with pg.Program() as program:
        w = pg.create_parameter((2,), name="w")
        program.update(w, w + 1.0)
    pg.Executor().run(program, {}, [])
    shallow, deep = copy.copy(program), copy.deepcopy(program)
    pg.Executor().run(shallow, {}, [])
    start = deep.state_dict()["w"]
    np.testing.assert_array_equal(program.state_dict()["w"], start + 1)
    with deep:
        pg.create_parameter((3,), name="v")
    assert program.variable("v") is None
    with pytest.raises(pg.BuildError, match=r"cannot be pickled(.|\n)*pg\.save"):
        pickle.dumps(program)


def test_the_default_dtype_is_what_was_set():
    assert pg.get_default_dtype() == np.float64
    pg.set_default_dtype("float32")
    try:
        with pg.Program():
            x = pg.data("x", (2,))
            assert x.dtype == np.float32
            assert (x * 2.0).dtype == np.float32
            assert pg.zeros((2,)).dtype == np.float32
            assert pg.data("y", (2,), np.float64).dtype == np.float64
        with pytest.raises(pg.DTypeError, match="float dtype"):
            pg.set_default_dtype(int)
    finally:
        pg.set_default_dtype("float64")


def test_programs_print_as_text_that_reads_back():
    program, *_ = small()
    assert pg.parse(str(program)) == program.graph()
    assert "2 equations" not in repr(program)
    assert "small" in repr(program)


def test_handles_have_an_arrays_manners():
    with pg.Program() as program:
        x = pg.data("x", (2, 3))
        assert (x.shape, x.dtype, x.ndim, x.size, len(x)) == ((2, 3), np.float64, 2, 6, 2)
        array = np.arange(6.0).reshape(2, 3)
        fetches = {
            "T": x.T,
            "sum": x.sum(axis=0),
            "mean": x.mean(),
            "max": x.max(1),
            "min": x.min(axis=-1, keepdims=True),
            "prod": x.prod(),
            "reshape": x.reshape(3, 2),
            "reshape1": x.reshape((6,)),
            "transpose": x.transpose(1, 0),
            "astype": x.astype(np.float32),
            "squeeze": x[:1].squeeze(),
            "flatten": x.flatten(),
            "dot": x.dot(array.T),
            "clip": x.clip(1, 3),
            "left": array - x,
            "rmatmul": array.T @ x,
            "ufunc": np.sin(x),
            "function": np.sum(x, axis=1),
        }
        rows = list(x)
    found = dict(
        zip(
            fetches,
            pg.Executor().run(program, {"x": array + 1}, list(fetches.values())),
            strict=True,
        )
    )
    a = array + 1
    expected = {
        "T": a.T,
        "sum": a.sum(axis=0),
        "mean": a.mean(),
        "max": a.max(1),
        "min": a.min(axis=-1, keepdims=True),
        "prod": a.prod(),
        "reshape": a.reshape(3, 2),
        "reshape1": a.reshape(6),
        "transpose": a.T,
        "astype": a.astype(np.float32),
        "squeeze": a[0],
        "flatten": a.ravel(),
        "dot": a.dot(array.T),
        "clip": a.clip(1, 3),
        "left": array - a,
        "rmatmul": array.T @ a,
        "ufunc": np.sin(a),
        "function": a.sum(axis=1),
    }
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_allclose(found[name], value, rtol=1e-15)
    assert len(rows) == 2
    with pytest.raises(TypeError, match="truth of a variable"):
        bool(x)
    with pytest.raises(TypeError, match="has no elements before"):
        np.asarray(x)
    for number in (float, int, complex):
        with pytest.raises(TypeError, match="no number before the program runs"):
            number(x[0, 0])
    with pytest.raises(TypeError, match="counterpart"):
        np.emath.sqrt(x)
    with pytest.raises(TypeError, match="no length"):
        len(x[0, 0])


def test_every_method_finds_its_function():
    names = set(pg.Variable.__dict__) & {"sum", "mean", "max", "min", "prod", "reshape"}
    assert names <= set(functions)
    for name in ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power"):
        assert functions[name] is getattr(pg, name)


def test_trace_gives_a_graph_with_the_functions_names():
    def model(x, w):
        h = pg.tanh(x @ w)
        return h, pg.grad(pg.sum(h), w)

    graph = pg.trace(model, pg.spec((2, 3)), np.ones((3, 4)))
    assert graph.name == "model"
    assert [v.hint for v in graph.inputs] == ["x", "w"]
    x, w = np.ones((2, 3)), np.full((3, 4), 0.1)
    h, dw = pg.compile(graph)(x, w)
    np.testing.assert_allclose(h, np.tanh(x @ w), rtol=1e-15)
    np.testing.assert_allclose(dw, x.T @ (1 - np.tanh(x @ w) ** 2), rtol=1e-14)
    for name, function in {"None": lambda x: None, "nothing": lambda x: ()}.items():
        with pytest.raises(pg.ArgumentError, match="not a variable"):
            pg.trace(function, pg.spec((2,)))
        assert name
    assert pg.trace(lambda *xs: xs[0] + xs[1], 1.0, 2.0).input_types[0].shape == ()


def test_compile_runs_saves_and_pickles(tmp_path):
    graph = pg.trace(lambda x: pg.softmax(x), pg.spec((2, 3)))
    x = np.random.default_rng(0).standard_normal((2, 3))
    expected = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    for style in ("planned", "readable"):
        kernel = pg.compile(graph, style=style)
        np.testing.assert_allclose(kernel(x), expected, rtol=1e-14)
        np.testing.assert_allclose(pickle.loads(pickle.dumps(kernel))(x), expected, rtol=1e-14)
    path = tmp_path / "saved.py"
    kernel.save(path)
    assert "import numpy as np" in path.read_text()
    with pytest.raises(pg.ArgumentError, match="compile takes a graph"):
        pg.compile(lambda x: x)
    with pytest.raises(pg.CompileError):
        pg.compile(graph, style="fast")


def test_results_belong_to_the_caller():
    program, x, _y, z = small()
    executor = pg.Executor()
    feed = {"x": ONES.copy(), "y": ONES.copy()}
    first = executor.run(program, feed, [z, x, x.T])
    before = [f.copy() for f in first]
    executor.run(program, {"x": 5 * ONES, "y": 5 * ONES}, [z, x, x.T])
    for value, kept in zip(first, before, strict=True):
        np.testing.assert_array_equal(value, kept)
        assert not any(np.shares_memory(value, f) for f in feed.values())
        value[...] = 0


def test_a_failure_at_run_time_names_the_users_line():
    with pg.Program() as program:
        x, i = pg.data("x", (3,)), pg.data("i", (2,), "int64")
        y = pg.take(x, i)  # the line that fails
    run = pg.Executor().run
    with pytest.raises(pg.RunError) as caught:
        run(program, {"x": ONES, "i": [0, 9]}, [y])
    assert "the line that fails" in str(caught.value)
    assert "gather" in str(caught.value)
    np.testing.assert_array_equal(run(program, {"x": ONES, "i": [0, 1]}, [y])[0], [1, 1])


def test_a_dict_of_fetches_gives_a_dict_of_results():
    with pg.Program() as program:
        a = pg.data("a", (2,))
        double, more = a * 2.0, a + 1.0
    executor, feed = pg.Executor(), {"a": np.ones(2)}
    found = executor.run(program, feed, {"a": double, "all": [more, "a"], "in": {"it": more}})
    assert list(found) == ["a", "all", "in"]
    assert found["a"].tolist() == [2.0, 2.0]
    assert [x.tolist() for x in found["all"]] == [[2.0, 2.0], [1.0, 1.0]]
    assert found["in"]["it"].tolist() == [2.0, 2.0]
    target = np.empty(2)
    for out in ({"a": target, "all": None}, {"a": target, "all": [None, None]}):
        found = executor.run(program, feed, {"a": double, "all": [more, "a"]}, out=out)
        assert found["a"] is target
    lent = executor.run(program, feed, {"a": double}, borrow=True)["a"]
    assert executor.run(program, feed, {"a": double}, borrow=True)["a"] is lent
    assert executor.run(program, feed, {}) == {}
    assert executor.run(program, feed, {"a": double}, debug="nan")["a"].tolist() == [2.0, 2.0]
    with pytest.raises(pg.ArgumentError, match="missing 'all'"):
        executor.run(program, feed, {"a": double, "all": [more]}, out={"a": target})


def test_a_dict_of_fetches_beside_updates_gives_the_fetches_only():
    with pg.Program() as program:
        w = pg.create_parameter((2,), name="w", initializer=pg.initializers.Constant(1.0))
        loss = pg.sum(w * w)
        pg.optimizer.SGD(0.25).minimize(loss)
    found = pg.Executor().run(program, {}, {"loss": loss, "w": w})
    assert found["loss"] == 2.0
    assert found["w"].tolist() == [0.5, 0.5]


def test_other_containers_of_fetches_are_read_in_order_or_refused():
    with pg.Program() as program:
        a = pg.data("a", (2,))
        double, more = a * 2.0, a + 1.0
    executor, feed = pg.Executor(), {"a": np.ones(2)}
    wanted = [[2.0, 2.0], [2.0, 2.0], [1.0, 1.0]]
    listed = [double, more, "a"]
    for fetches in (
        listed,
        tuple(listed),
        [listed],
        iter(listed),
        dict(enumerate(listed)).values(),
    ):
        assert [x.tolist() for x in executor.run(program, feed, fetches)] == wanted
    strange = (
        {double, more},
        frozenset({double}),
        [{"a": double}],
        [double, {more}],
        {"x": {more}},
        {"x": None},
        {"x": iter([more])},
        [[double, [more]]],
        "a",
        double,
    )
    for fetches in strange:
        with pytest.raises(pg.ArgumentError, match="fetch"):
            executor.run(program, feed, fetches)
    for method in (executor.kernel, executor.repeated_kernel):
        with pytest.raises(pg.ArgumentError, match="fetch_list is a list"):
            method(program, {"a": double})


def test_results_of_a_loop_that_nobody_has_are_no_outputs_of_the_program():
    with pg.Program() as program:
        x, w = pg.data("x", (5,)), pg.data("w", ())
        y, _ = pg.scan(lambda c, a: (pg.tanh(c * w + a), None), 0.0, x)
        slope = pg.grad(y, w)
    graph = program.graph()
    assert len(graph.outputs) == 2
    feed = {"x": np.linspace(0.0, 1.0, 5), "w": 0.5}
    found = pg.compile(graph)(feed["x"], np.float64(0.5))
    for array, expected in zip(found, pg.Executor().run(program, feed, [y, slope]), strict=True):
        np.testing.assert_array_equal(array, expected)


def test_unused_results_of_what_is_used_are_no_outputs_of_the_program_without_a_name():
    with pg.Program() as program:
        first, rest = pg.split(pg.data("x", (5,)), [2])
        pg.sin(first)
        pg.linalg.svd(pg.data("a", (2, 2)))
    assert len(program.graph().outputs) == 4
    assert rest.value not in program.graph().outputs
    rest.name = "rest"
    assert rest.value in program.graph().outputs
