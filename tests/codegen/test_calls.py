"""Long programs run as calls without text: they compute what the text of their plan does."""

import re
import signal
import threading
import weakref

import numpy as np
import pytest
from plan_checks import results_of_calls, results_of_text

import primgraph as pg
from primgraph.codegen import calls, compile_graph, compiled, planned
from primgraph.codegen.ir.schedule import CHUNK
from primgraph.errors import RunError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Primitive, registered

X = np.linspace(0.1, 1.0, 6)


def mixed(x, k):
    """Steps with moves, sums, products, choices, stacks and a loop."""
    for i in range(8):
        y = pg.concatenate([x[3:], x[:3]]) * 1.01
        m = pg.reshape(y, (2, 3))
        z = pg.matmul(m, m.T) + float(i % 3)
        x = pg.where(x > 0.5, pg.tanh(y), pg.sigmoid(x)) + pg.tanh(pg.sum(z)) + pg.maximum(y, 0.2)
        x = pg.set_slice(x, slice(1, 3), x[2:4] * 0.5)
    first = pg.fori_loop(0, 3, lambda _, c: c * 1.1, x)
    values, vectors = pg.linalg.eigh(pg.outer(x, x))
    return x, first, pg.take(x, k), values, pg.abs(vectors), x[::-1], m.T


def graph_of(function, *arrays):
    return pg.transforms.clean_up(pg.transforms.lower(pg.trace(function, *arrays)))


@pytest.fixture
def as_calls(monkeypatch):
    """Make all planned code without loops over blocks run as calls."""
    monkeypatch.setattr(planned, "CHUNK", -1)


def has_text(kernel) -> bool:
    return compiled._has(kernel._code, "loaded")


def bits(arrays):
    return [a.tobytes() for a in arrays]


def test_calls_have_the_bits_of_the_text(monkeypatch):
    graph, k = graph_of(mixed, X, np.array([0, 5])), np.array([0, 5])
    expected = compile_graph(graph).flat(X, k)
    monkeypatch.setattr(planned, "CHUNK", -1)
    kernel = compile_graph(graph).flat
    results = kernel(X, k)
    assert not has_text(kernel)
    assert bits(results) == bits(expected)
    assert bits(kernel(X, k)) == bits(expected)
    for one, other in zip(results, kernel(X, k), strict=True):
        assert one.flags.writeable
        assert not np.shares_memory(one, other)
    out = [np.empty(r.shape, r.dtype) for r in results]
    assert bits(kernel(X, k, out=out)) == bits(expected) == bits(out)
    assert bits(kernel(X, k, borrow=True)) == bits(expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: pg.sum(x, axis=1),
        lambda x: pg.matmul(x, x.T),
        lambda x: (pg.exp(x), pg.expm1(x), pg.erf(x), pg.erfc(x)),
        lambda x: pg.power(x[0, 0], x[1, 1]),
    ],
)
def test_calls_of_small_programs_have_the_bits_of_the_text(function):
    """Kernels of these have scalar code, too, which rounds sums and functions in its own way."""
    feeds = [np.random.default_rng(3).uniform(0.01, 3.0, (3, 4))]
    graph = graph_of(function, *feeds)
    assert bits(results_of_calls(graph, feeds)) == bits(results_of_text(graph, feeds))


def long_chain(x):
    for _ in range(CHUNK):
        x = pg.sin(x) + 0.5
    return x


def test_only_long_programs_run_as_calls():
    graph = graph_of(long_chain, X)
    kernel = compile_graph(graph)
    np.testing.assert_array_equal(kernel(X), interpret(graph, X))
    assert not has_text(kernel)
    short = compile_graph(graph_of(lambda x: pg.sin(x) + 0.5, X))
    assert has_text(short)


def test_the_text_is_there_for_those_who_look():
    kernel = compile_graph(graph_of(long_chain, X))
    source, graph = kernel.planned_source, kernel.graph
    assert source.count("sin(") >= CHUNK
    steps = {i for _, i in kernel.lines()}
    assert steps >= {i for i, e in enumerate(graph.body) if e.op.name in ("sin", "add")}
    np.testing.assert_array_equal(kernel(X), interpret(graph, X))
    timed, clocks, _ = kernel.with_clocks()
    np.testing.assert_array_equal(timed(X), kernel(X))
    assert sum(clocks.take()[1]) >= 2 * CHUNK


def indexed(x, k):
    y = long_chain(x)
    y = pg.take(y, k)
    return y * 2.0


def error_of(kernel, *arrays):
    with pytest.raises(RunError) as info:
        kernel(*arrays)
    return re.sub(r"kernel run \d+", "kernel", str(info.value))


def test_errors_are_those_of_the_text(monkeypatch):
    graph, bad = graph_of(indexed, X, np.array([1])), np.array([17])
    kernel = compile_graph(graph)
    found = error_of(kernel, X, bad)
    assert "take" in found
    assert "test_calls.py" in found
    assert "kernel line" in found
    np.testing.assert_array_equal(kernel(X, np.array([1])), interpret(graph, X, np.array([1])))
    del kernel
    monkeypatch.setattr(planned, "CHUNK", 10 * CHUNK)
    assert error_of(compile_graph(graph), X, bad) == found


def test_an_error_in_a_body_is_that_of_the_text(as_calls, monkeypatch):
    def looped(x, k):
        return pg.fori_loop(0, 3, lambda i, c: c + pg.sum(pg.take(x, k + i)), pg.zeros(()))

    graph, bad = graph_of(looped, X, np.array([1])), np.array([17])
    kernel = compile_graph(graph)
    found = error_of(kernel, X, bad)
    del kernel
    monkeypatch.setattr(planned, "CHUNK", CHUNK)
    assert error_of(compile_graph(graph), X, bad) == found


def updated(x, k):
    y = long_chain(x)
    return y * 2.0 + pg.take(x, k)


def test_a_failed_run_leaves_donated_arrays_as_they_were():
    graph = graph_of(updated, X, np.arange(6))
    kernel = compile_graph(graph, donated={0: 0})
    x = X.copy()
    error_of(kernel, x, np.full(6, 17))
    np.testing.assert_array_equal(x, X)
    result = kernel.flat(x, np.arange(6))[0]
    assert result is x
    np.testing.assert_array_equal(x, interpret(graph, X, np.arange(6))[0])


def test_a_failed_run_is_repeated_as_text_unless_an_argument_is_overwritten(as_calls):
    def fail():
        raise MemoryError("no memory")

    graph = graph_of(lambda x: (pg.sin(x) * 2.0, pg.sum(x)), X)
    code, x = compile_graph(graph, donated={0: 0})._code, X.copy()
    space = code.start()
    space.calls.insert(0, fail)
    results = code.run(space, [x])
    assert bits(results) == bits(interpret(graph, X))
    assert results[0] is x
    space, x = code.start(), X.copy()
    space.calls.append(fail)
    with pytest.raises(MemoryError, match="no memory"):
        code.run(space, [x])


def test_functions_of_the_user_are_called_once(monkeypatch):
    monkeypatch.setattr("primgraph.ir.facts.ops._registry", dict(registered()))
    counted = []
    op = Primitive("test_counted", lambda x: x, lambda x: counted.append(1) or x * 2.0)
    builder = Builder("f")
    with builder:
        y = x = builder.input(pg.spec(6), "x")
        for _ in range(CHUNK + 1):
            y = y * x
        graph = builder.graph([op(y)])
    kernel = compile_graph(graph)
    assert has_text(kernel)
    kernel(X)
    assert counted == [1]


def test_loops_over_blocks_have_text():
    def large(x):
        y = long_chain(x)
        return pg.sum(y * x)

    kernel = compile_graph(graph_of(large, np.ones(1_000_000)))
    assert kernel.plan.regions
    assert has_text(kernel)


def test_threads_may_run_their_first_calls_at_once(monkeypatch):
    # Text takes over in the meantime.
    monkeypatch.setattr(calls, "_RUNS", 11)
    graph = graph_of(long_chain, X)
    kernel, expected = compile_graph(graph).flat, interpret(graph, X)[0]
    found, start = [], threading.Barrier(4)

    def run():
        start.wait()
        found.extend(kernel(X) for _ in range(5))

    crew = [threading.Thread(target=run) for _ in range(4)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert len(found) == 20
    for (result,) in found:
        np.testing.assert_array_equal(result, expected)


def call_until_interrupted(kernel, x):
    for _ in range(1000):
        kernel(x)


def test_an_interrupted_call_leaves_the_kernel_usable():
    x = np.linspace(0.0, 1.0, 2000)
    graph = graph_of(long_chain, x)
    kernel = compile_graph(graph).flat
    assert not has_text(kernel)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            call_until_interrupted(kernel, x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(kernel(x)[0], interpret(graph, x)[0])


def test_interrupted_writing_of_text_is_done_again(monkeypatch):
    kernel = compile_graph(graph_of(long_chain, X))
    written = planned.print_plan

    def interrupt(plan):
        raise KeyboardInterrupt

    monkeypatch.setattr(planned, "print_plan", interrupt)
    with pytest.raises(KeyboardInterrupt):
        kernel.planned_source  # noqa: B018
    monkeypatch.setattr(planned, "print_plan", written)
    assert "sin(" in kernel.planned_source


def test_text_takes_over_after_many_runs(as_calls, monkeypatch):
    monkeypatch.setattr(calls, "_RUNS", 3)
    graph, k = graph_of(mixed, X, np.array([0, 5])), np.array([0, 5])
    kernel = compile_graph(graph).flat
    code = kernel._code
    spare = code.new_workspace()
    expected = [bits(kernel(X, k)), bits(kernel(X, k))]
    (space,) = [space for _, space in code.pool]
    assert space.text is None
    # All workspaces run the text from then on: that of these calls, an older one, and new ones.
    expected.append(bits(kernel(X, k)))
    assert space.text is not None
    assert space.calls == []
    for context, other in (spare, code.new_workspace()):
        expected.append(bits(context.run(code.run, other, [X, k])))
        assert other.text is not None
    assert [b == expected[0] for b in expected] == [True] * 5
    assert "take" in error_of(kernel, X, np.array([0, 17]))


def test_interrupted_writing_leaves_calls_until_later(as_calls, monkeypatch):
    monkeypatch.setattr(calls, "_RUNS", 3)
    kernel = compile_graph(graph_of(mixed, X, np.array([0]))).flat
    arrays, written = (X, np.array([0])), planned.print_plan
    found = [bits(kernel(*arrays)), bits(kernel(*arrays))]

    def interrupt(plan):
        raise KeyboardInterrupt

    monkeypatch.setattr(planned, "print_plan", interrupt)
    with pytest.raises(KeyboardInterrupt):
        kernel(*arrays)
    monkeypatch.setattr(planned, "print_plan", written)
    for _ in range(6):
        found.append(bits(kernel(*arrays)))
    assert [b == found[0] for b in found] == [True] * 8
    assert kernel._code.pool[0][1].text is not None


def test_a_workspace_keeps_no_arrays_of_a_call_alive():
    kernel = compile_graph(graph_of(long_chain, X)).flat
    x = X.copy()
    kept = [weakref.ref(x), weakref.ref(kernel(x)[0])]
    del x
    assert [r() for r in kept] == [None, None]


def test_a_function_is_compiled_once_for_equal_statements(as_calls):
    def many(x):
        for i in range(50):
            x = pg.sum(pg.maximum(x, 0.5)) + x[::-1] * float(i)
        return x

    before = calls._compiled.cache_info()
    kernel = compile_graph(graph_of(many, X))
    kernel(X)
    assert calls._compiled.cache_info().misses - before.misses < 10


def test_graphs_of_no_equations_run_as_calls(as_calls):
    builder = Builder("f")
    x = builder.input(pg.spec(6), "x")
    graph = Graph((x,), (), (x, x), "f")
    results = compile_graph(graph)(X)
    assert bits(results) == bits([X, X])
    assert not np.shares_memory(*results)


def test_a_statement_may_have_nothing_to_do():
    assert calls._compiled(("x0",), ())(X) is None
