"""Worker threads: the same bits however many there are, and nothing left behind when they end."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import weakref
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest
from density import starts
from plan_checks import SHARED, SMALL, poisoned_results
from program_checks import demand_equal
from random_programs import random_program
from test_blocks import ELEMENTWISE, FAILING, graphs_of, network
from thread_checks import threads_at_work

import primgraph as pg
from primgraph.codegen import compile_graph, compiled
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.ir.verify import verify
from primgraph.codegen.runtime import blas, threads
from primgraph.errors import ArgumentError, OptionError, RunError
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse

pytestmark = pytest.mark.long

PACKAGE = Path(pg.__file__).parent


def bits(results):
    return [r.tobytes() for r in results]


@pytest.fixture(autouse=True)
def as_before():
    """Every test leaves the number of threads as it was."""
    before = pg.get_num_threads()
    yield
    pg.set_num_threads(before)


# Bits.


@pytest.mark.parametrize("start", starts(7000, 60, 10, dense=40))
def test_random_programs_have_the_same_bits_in_any_number_of_threads(start):
    for seed in range(start, start + 10):
        program = random_program(seed)
        for graph, feeds, others in graphs_of(program):
            try:
                check_threads(graph, feeds, others)
            except Exception as error:
                raise AssertionError(f"{program}\n{error}") from error


def check_threads(graph, feeds, others):
    known = compile_graph(graph, limits=SMALL)(*feeds)
    kernel = compile_graph(graph, limits=SHARED)
    for count in (1, 2, 3):
        with threads_at_work(count):
            assert bits(kernel(*feeds)) == bits(known), f"{count} threads change bits"
    with threads_at_work(2), np.errstate(all="ignore"):
        demand_equal("threads", graph, others, interpret(graph, *others), kernel(*others))
        poisoned = poisoned_results(graph, list(feeds), SHARED)
    demand_equal("poisoned", graph, feeds, known, poisoned)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("extent", [2, 7, 23])
def test_a_training_step_has_the_same_bits_in_any_number_of_threads(rows, extent):
    graph, feeds = network(extent)
    known = compile_graph(graph, limits=replace(SMALL, rows=rows))(*feeds)
    kernel = compile_graph(graph, limits=replace(SHARED, rows=rows))
    verify(kernel.plan)
    for count in (1, 2, 3, 5):
        with threads_at_work(count):
            for _ in range(5):
                assert bits(kernel(*feeds)) == bits(known)


def test_large_programs_have_the_same_bits_in_any_number_of_threads():
    with pg.Program() as program:
        x, w = pg.data("x", (60_000, 20)), pg.data("w", (20, 20))
        y = pg.sin(x @ w) * x
        loss = pg.sum(y * y)
        outputs = [loss, *pg.grad(loss, [x, w])]
    kernel = compile_graph(
        pg.transforms.lower(program.graph(outputs)), limits=Limits(1 << 20, processors=2)
    )
    assert any(r.threads > 1 for r in kernel.plan.regions)
    rng = np.random.default_rng(0)
    feeds = [rng.normal(size=v.shape) for v in kernel.graph.inputs]
    found = []
    for count in (1, 2, 3):
        pg.set_num_threads(count)
        found.append(bits(kernel(*feeds)))
    assert found[0] == found[1] == found[2]


# Which regions run in threads.

LONG = """graph f(%x: f64[{n}]) {{
  %0: f64[{n}] = sin(%x)
  %1: f64[{n}] = mul(%0, %0)
  %2: f64[] = reduce_sum(%1, axes=(0,))
  return %2
}}"""


def regions_of(n, **changes):
    limits = replace(Limits(1 << 20, processors=4), **changes)
    return compile_graph(parse(LONG.format(n=n)), limits=limits).plan.regions


def test_only_long_work_is_shared_and_never_in_small_pieces():
    assert regions_of(30_000) == ()
    (region,) = regions_of(1_000_000)
    assert 4 <= region.threads <= 20
    assert region.rows >= 1000
    (larger,) = regions_of(10_000_000)
    assert larger.threads > region.threads
    (alone,) = regions_of(1_000_000, processors=1)
    assert alone.threads == 1
    (cheap,) = compile_graph(
        parse(LONG.format(n=4_000_000).replace("sin", "neg")), limits=Limits(1 << 20, processors=2)
    ).plan.regions
    assert cheap.threads > 1
    assert cheap.rows >= 25_000


def test_work_for_two_shares_runs_in_two_threads():
    """The number of threads grows by one with each `least_share` of work."""
    shares = np.geomspace(1e6, 1e8, 24).astype(int).tolist()
    found = [regions_of(1_000_000, least_share=share)[0].threads for share in shares]
    assert found == sorted(found, reverse=True)
    assert {1, 2, 3} <= set(found)


def test_a_single_long_step_is_shared_too():
    text = "graph f(%x: f64[{n}]) {{\n%0: f64[{n}] = sin(%x)\nreturn %0\n}}"
    limits = Limits(1 << 20, processors=2)
    (region,) = compile_graph(parse(text.format(n=1_000_000)), limits=limits).plan.regions
    assert region.threads > 1
    assert compile_graph(parse(text.format(n=20_000)), limits=limits).plan.regions == ()
    product = """graph f(%x: f64[400,400], %y: f64[400,400]) {
      %0: f64[400,400] = matmul(%x, %y)
      return %0
    }"""
    kernel = compile_graph(parse(product), limits=limits)
    assert [r.threads > 1 for r in kernel.plan.regions] == [blas.is_controlled()]
    x, y = np.random.default_rng(0).normal(size=(2, 400, 400))
    np.testing.assert_allclose(kernel(x, y)[0], x @ y, rtol=1e-10, atol=1e-10)


def test_blocks_depend_on_the_machine_not_on_the_setting(monkeypatch):
    plans = set()
    for count in (1, 2, 7):
        pg.set_num_threads(count)
        # Or the second kernel would have the code of the first.
        monkeypatch.setattr(compiled, "_shared", WeakValueDictionary())
        plans.add(str(compile_graph(parse(LONG.format(n=1_000_000))).plan))
    assert len(plans) == 1


def test_blocks_are_long_beside_the_totals_that_they_add_to():
    text = """graph f(%x: f64[{n},784], %w: f64[784,256]) {{
      %0: f64[{n},256] = matmul(%x, %w)
      %1: f64[{n},256] = tanh(%0)
      %2: f64[784,{n}] = permute(%x, axes=(1, 0))
      %3: f64[784,256] = matmul(%2, %1)
      return %3
    }}"""
    limits = Limits(1 << 20, processors=2)
    few, many = (compile_graph(parse(text.format(n=n)), limits=limits).plan for n in (128, 2000))
    assert few.regions == ()
    assert [r.threads > 1 for r in many.regions] == [blas.is_controlled()]
    assert many.regions[0].rows > 200


@pytest.mark.parametrize("n", [200_001, 200_003, 300_007, 1_000_003])
def test_odd_extents_are_shared_as_well(n):
    (region,) = regions_of(n, processors=2)
    assert region.threads > 1
    assert n % region.rows != 1


# The setting.


def test_the_number_of_threads_can_be_set():
    pg.set_num_threads(3)
    assert pg.get_num_threads() == 3
    pg.set_num_threads(np.int64(1))
    assert pg.get_num_threads() == 1
    for wrong in (0, -1, 1.5, True, "2", None):
        with pytest.raises(ArgumentError, match="number of threads is a positive integer"):
            pg.set_num_threads(wrong)


def test_the_number_at_the_start_is_that_of_the_environment_or_of_the_processors(monkeypatch):
    for text, number in (("3", 3), (" 12 ", 12), ("", None)):
        monkeypatch.setenv("PRIMGRAPH_THREADS", text)
        monkeypatch.setattr(threads, "_chosen", [])
        found = pg.get_num_threads()
        assert found == number if number else 1 <= found <= (os.cpu_count() or 1)
    for wrong in ("0", "two", "-1", "1.5"):
        monkeypatch.setenv("PRIMGRAPH_THREADS", wrong)
        monkeypatch.setattr(threads, "_chosen", [])
        with pytest.raises(OptionError, match="PRIMGRAPH_THREADS is"):
            pg.get_num_threads()


# What else a kernel promises.


def test_an_error_is_that_of_the_first_block_that_has_one():
    kernel = compile_graph(parse(FAILING), limits=SHARED)
    table, rows = np.arange(4.0), np.arange(9) % 4
    rows[5], rows[8] = 14, 28
    for count in (1, 2, 3):
        with threads_at_work(count):
            for _ in range(10):
                with pytest.raises(RunError, match="index 14 is out of bounds") as caught:
                    kernel(np.ones(9), rows, table)
    text = str(caught.value)
    assert "f64[9] = gather(%table: f64[4], %rows: i64[9], axis=0)" in text
    assert "graph text:2" in text
    assert "take(" in text
    good = np.arange(9) % 4
    with threads_at_work(2):
        np.testing.assert_allclose(kernel(np.ones(9), good, table)[0], np.sin(1) * table[good])


def test_results_are_written_into_given_and_donated_arrays_by_all_threads():
    graph = parse(ELEMENTWISE)
    rng = np.random.default_rng(0)
    feeds = [rng.normal(size=v.shape) for v in graph.inputs]
    kernel = compile_graph(graph, limits=SHARED)
    known = bits(kernel(*feeds))
    donated = parse("""graph f(%w: f64[9], %m: f64[9], %g: f64[9]) {
      %0: f64[9] = mul(%m, %m)
      %1: f64[9] = add(%0, %g)
      %2: f64[9] = sub(%w, %1)
      return %2, %1
    }""")
    with threads_at_work(2):
        out = [np.empty(v.shape, v.dtype) for v in graph.outputs]
        assert all(a is b for a, b in zip(kernel(*feeds, out=out), out, strict=True))
        assert bits(out) == known
        assert bits(kernel(*feeds, borrow=True)) == known
        assert bits(pickle.loads(pickle.dumps(kernel))(*feeds)) == known
        arrays = [np.arange(9.0) + i for i in range(3)]
        expected = interpret(donated, *arrays)
        update = compile_graph(donated, donated={0: 0, 1: 1}, limits=SHARED)
        found = update(*arrays)
    assert found[0] is arrays[0]
    assert found[1] is arrays[1]
    assert bits(found) == bits(expected)


def test_a_loop_may_read_hundreds_of_arrays_and_fill_hundreds():
    inputs = ", ".join(f"%x{i}: f64[7]" for i in range(450))
    lines = [f"%{i}: f64[7] = mul(%x{i}, %x{(i + 1) % 450})" for i in range(450)]
    outputs = ", ".join(f"%{i}" for i in range(450))
    graph = parse("\n".join([f"graph f({inputs}) {{", *lines, f"return {outputs}", "}"]))
    kernel = compile_graph(graph, limits=SHARED)
    assert len(kernel.plan.regions) == 1
    feeds = list(np.random.default_rng(0).normal(size=(450, 7)))
    with threads_at_work(2):
        assert bits(kernel(*feeds)) == bits(interpret(graph, *feeds))


def test_threads_keep_no_feed_and_no_result():
    graph, feeds = network(23)
    kernel = compile_graph(graph, limits=SHARED)
    with threads_at_work(3):
        results = kernel(*feeds)
        seen = [weakref.ref(a) for a in (*feeds, *results)]
        del feeds, results
        gc.collect()
        assert not any(r() is not None for r in seen)


def test_threads_are_as_quiet_as_the_caller(recwarn):
    text = """graph f(%x: f64[8]) {
      %0: f64[8] = log(%x)
      %1: f64[8] = div(%0, %0)
      return %1
    }"""
    kernel = compile_graph(parse(text), limits=SHARED)
    with threads_at_work(3), np.errstate(all="raise"):
        assert np.isnan(kernel(np.zeros(8))[0]).all()
    assert not recwarn.list


def test_a_saved_file_has_no_threads(tmp_path):
    path = tmp_path / "saved.py"
    compile_graph(parse(LONG.format(n=1_000_000))).save(path)
    assert "thread" not in path.read_text()
    assert "share" not in path.read_text()


# Many callers.


def test_sixteen_threads_run_one_kernel_two_thousand_times_each():
    text = """graph f(%x: f64[6,2], %w: f64[6,6]) {
      %0: f64[6,2] = tanh(%x)
      %1: f64[6,2] = matmul(%w, %0)
      %2: f64[] = reduce_sum(%1, axes=(0, 1))
      return %1, %2
    }"""
    assert runs_that_differ(compile_graph(parse(text)), 2000) == []


def test_sixteen_threads_share_the_blocks_of_one_kernel():
    pg.set_num_threads(3)
    kernel = compile_graph(parse(ELEMENTWISE), limits=SHARED)
    most = max(2, len(threads._crew.threads))
    assert runs_that_differ(kernel, 100) == []
    assert len(threads._crew.threads) <= most


def runs_that_differ(kernel, count, callers=16):
    """The callers whose runs gave other bits than the first, each with feeds of its own."""
    wrong, together = [], threading.Barrier(callers)

    def work(seed):
        rng = np.random.default_rng(seed)
        feeds = [rng.normal(size=v.shape) for v in kernel.graph.inputs]
        expected = bits(kernel(*feeds))
        together.wait(timeout=60)
        if any(bits(kernel(*feeds)) != expected for _ in range(count)):
            wrong.append(seed)

    started = [threading.Thread(target=work, args=(i,)) for i in range(callers)]
    for t in started:
        t.start()
    for t in started:
        t.join()
    return wrong


# The threads themselves.


def shared(body, count=6, most=3, turns=False):
    """Share blocks 0, 1, ... of a loop that calls `body` for each."""

    def loop(blocks, turn, outside):
        for i in blocks:
            body(i)
            if turns:
                turn()
                outside.append(i)

    order = []
    threads.share(loop, range(count), order, most, 0, lambda: [range(count)], [])
    return order


def test_blocks_are_worked_on_at_the_same_time_and_added_in_order():
    pg.set_num_threads(3)
    together = threading.Barrier(3)
    seen = set()

    def body(i):
        if i < 3:
            together.wait(timeout=60)
        seen.add(threading.current_thread())

    assert shared(body, turns=True) == list(range(6))
    assert len(seen) == 3
    assert sum(t.daemon for t in seen) == 2


def test_no_more_threads_than_pay_take_part():
    pg.set_num_threads(3)
    seen = set()
    for _ in range(20):
        shared(lambda i: seen.add(threading.get_ident()), most=1)
    assert seen == {threading.get_ident()}


def test_blocks_that_wait_for_one_that_fails_are_given_up():
    pg.set_num_threads(3)
    together = threading.Barrier(3)

    def body(i):
        if i < 3:
            together.wait(timeout=60)
        if i == 1:
            raise KeyError(i)

    for _ in range(20):
        order = []
        with pytest.raises(KeyError):
            order = shared(body, turns=True)
        assert order == []
    assert shared(lambda i: None, turns=True) == list(range(6))


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("in_caller", [True, False])
def test_an_interrupt_waits_for_the_other_threads_and_leaves_all_usable(in_caller):
    pg.set_num_threads(2)
    together, ended = threading.Barrier(2), []
    caller = threading.current_thread()

    def body(i):
        if i >= 2:
            return
        together.wait(timeout=60)
        if (threading.current_thread() is caller) == in_caller:
            signal.raise_signal(signal.SIGINT)
        ended.append(i)

    with pytest.raises(KeyboardInterrupt):
        shared(body, turns=True)
    assert len(ended) >= 1
    assert shared(lambda i: None, turns=True) == list(range(6))
    assert not getattr(threads._here, "busy", False)


def test_a_kernel_called_within_a_block_runs_in_that_thread():
    pg.set_num_threads(3)
    graph, feeds = network(23)
    kernel = compile_graph(graph, limits=SHARED)
    known = bits(kernel(*feeds))
    together = threading.Barrier(3)

    def body(i):
        if i < 3:
            together.wait(timeout=60)
        assert bits(kernel(*feeds)) == known
        shared(lambda j: seen.setdefault(i, set()).add(threading.get_ident()))

    seen = {}
    assert shared(body, turns=True) == list(range(6))
    assert [len(s) for s in seen.values()] == [1] * 6


# BLAS.

needs_openblas = pytest.mark.skipif(
    not blas.is_controlled(), reason="NumPy's BLAS is not an OpenBLAS whose threads can be set"
)


@pytest.fixture
def setting():
    """The setting of BLAS, at two threads."""
    found = blas._setting()
    before = found.get()
    found.put(2)
    yield found
    found.put(before)


@needs_openblas
def test_blas_has_one_thread_while_a_kernel_runs_and_as_many_as_before_afterwards(setting):
    seen = []

    def run(*arrays):
        seen.append(setting.get())
        if arrays == ("nested",):
            return
        blas.single_threaded(run)("nested")
        seen.append(setting.get())
        if arrays == ("wrong",):
            raise ValueError("wrong")

    blas.single_threaded(run)("right")
    assert (seen, setting.get()) == ([1, 1, 1], 2)
    with pytest.raises(ValueError, match="wrong"):
        blas.single_threaded(run)("wrong")
    assert setting.get() == 2


@needs_openblas
def test_blas_has_its_threads_again_when_the_last_of_several_kernels_ends(setting):
    first, second = object(), object()
    setting.hold(first)
    setting.hold(second)
    setting.release_threads(first)
    assert setting.get() == 1
    setting.release_threads(second)
    setting.release_threads(second)
    assert setting.get() == 2
    setting.hold(first)
    setting.put(3)
    setting.release_threads(first)
    assert setting.get() == 3


@needs_openblas
def test_kernels_with_products_in_blocks_hold_blas_and_give_it_back(setting, monkeypatch):
    graph, feeds = network(23)
    kernel = compile_graph(graph, limits=SHARED)
    text = """graph f(%x: f64[9,2], %w: f64[2,2], %i: i64[9]) {
      %0: f64[9,2] = matmul(%x, %w)
      %1: f64[9,2] = gather(%w, %i, axis=0)
      %2: f64[9,2] = mul(%0, %1)
      return %2
    }"""
    failing = compile_graph(parse(text), limits=SHARED)
    held, hold = [], type(setting).hold
    monkeypatch.setattr(
        type(setting), "hold", lambda s, holder: (hold(s, holder), held.append(s.get()))
    )
    with threads_at_work(2):
        kernel(*feeds)
        assert (held, setting.get()) == ([1], 2)
        with pytest.raises(RunError):
            failing(np.ones((9, 2)), np.ones((2, 2)), np.full(9, 7))
        assert (held, setting.get()) == ([1, 1], 2)


@needs_openblas
def test_where_blas_cannot_be_held_products_are_not_shared(monkeypatch):
    monkeypatch.setattr(blas, "_setting", lambda: None)
    graph, feeds = network(23)
    kernel = compile_graph(graph, limits=replace(SHARED, least_bytes=2))
    assert kernel.plan.regions
    assert {r.threads for r in kernel.plan.regions if r.products} == {1}
    known = interpret(graph, *feeds)
    for one, other in zip(kernel(*feeds), known, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    shared_text = LONG.format(n=10).replace("reduce_sum", "reduce_max")
    (region,) = compile_graph(parse(shared_text), limits=SHARED).plan.regions
    assert region.threads > 1


@needs_openblas
def test_the_bits_of_blocks_do_not_depend_on_the_threads_of_blas():
    code = """
import hashlib, numpy as np, primgraph as pg
with pg.Program() as p:
    x, w = pg.data("x", (4096, 257)), pg.data("w", (257, 257))
    y = pg.tanh(x @ w)
    outputs = [y, *pg.grad(pg.sum(y * y), [x, w])]
kernel = pg.compile(p.graph(outputs))
assert kernel.plan.regions
rng = np.random.default_rng(0)
feeds = [rng.normal(size=v.shape) for v in kernel.graph.inputs]
print(hashlib.sha256(b"".join(r.tobytes() for r in kernel(*feeds))).hexdigest())
"""
    found = {
        run_python(code, OPENBLAS_NUM_THREADS=b, PRIMGRAPH_THREADS=n).stdout
        for b, n in (("1", "1"), ("2", "1"), ("2", "2"))
    }
    assert len(found) == 1
    assert len(found.pop()) == 65


# Processes.


def run_python(code, **variables):
    path = {"PYTHONPATH": str(PACKAGE.parent), "PRIMGRAPH_DEBUG": "0"}
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **path, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run


KERNEL = """
import atexit, os, sys, threading, time
import numpy as np, primgraph, primgraph as pg
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen import compile_graph
limits = Limits(cache=1, least_bytes=1, least_block=1, processors=2, least_share=0, rows=20)
kernel = compile_graph(pg.parse(\"\"\"graph f(%x: f64[200,3], %w: f64[3,3]) {
  %0: f64[200,3] = matmul(%x, %w)
  %1: f64[200,3] = sin(%0)
  %2: f64[3] = reduce_sum(%1, axes=(0,))
  return %1, %2
}\"\"\"), limits=limits)
rng = np.random.default_rng(0)
feeds = [rng.normal(size=v.shape) for v in kernel.graph.inputs]
def run():
    return [r.tobytes() for r in kernel(*feeds)]
known = run()
def forever():
    while True:
        run()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_kernels_run_in_children_that_are_forked_while_others_run():
    # The others have no products: a fork in the midst of one may leave OpenBLAS locked in the
    # child, in NumPy alone too.
    code = '''
import warnings
warnings.simplefilter("ignore")
plain = compile_graph(pg.parse("""graph g(%x: f64[200,3]) {
  %0: f64[200,3] = sin(%x)
  %1: f64[3] = reduce_sum(%0, axes=(0,))
  return %0, %1
}"""), limits=limits)
def others():
    while True:
        plain(feeds[0])
for _ in range(2):
    threading.Thread(target=others, daemon=True).start()
for i in range(10):
    pid = os.fork()
    if pid == 0:
        if i % 2 and os.fork() == 0:
            os._exit(0 if run() == known else 3)
        good = all(run() == known for _ in range(20))
        crew = primgraph.codegen.runtime.threads._crew.threads
        good = good and len(crew) == 1 and crew[0].is_alive()
        os._exit(0 if good and (not i % 2 or os.wait()[1] == 0) else 3)
    end = time.monotonic() + 60
    while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < end:
        time.sleep(0.01)
    assert ended == (pid, 0), ended
print("fine")
'''
    assert run_python(KERNEL + code, PRIMGRAPH_THREADS="2").stdout == "fine\n"


@needs_openblas
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_blas_has_its_threads_in_a_child_that_is_forked_while_a_kernel_has_it():
    code = """
from primgraph.codegen.runtime import blas
setting = blas._setting()
setting.put(2)
setting.hold(holder := object())
pid = os.fork()
if pid == 0:
    fine = setting.get() == 2
    fine = fine and run() == known and setting.get() == 2
    os._exit(0 if fine else 3)
assert os.waitpid(pid, 0)[1] == 0
assert setting.get() == 1
setting.release_threads(holder)
print(setting.get())
"""
    assert run_python(KERNEL + code, PRIMGRAPH_THREADS="2").stdout == "2\n"


@pytest.mark.parametrize("others", ["", "threading.Thread(target=forever, daemon=True).start()"])
def test_an_interpreter_ends_while_kernels_run(others):
    code = f"""
atexit.register(lambda: print(run() == known, flush=True))
{others}
for _ in range(20):
    run()
"""
    run = run_python(KERNEL + code, PRIMGRAPH_THREADS="2")
    assert (run.stdout, run.stderr) == ("True\n", "")


def test_a_thread_may_run_kernels_when_the_main_one_has_ended():
    code = """
def late():
    time.sleep(0.2)
    print(run() == known, flush=True)
threading.Thread(target=late).start()
"""
    run = run_python(KERNEL + code, PRIMGRAPH_THREADS="2")
    assert (run.stdout, run.stderr) == ("True\n", "")
