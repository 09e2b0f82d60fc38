"""Blocks: regions of steps in loops compute what the interpreter does, whatever their size."""

import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from density import starts
from plan_checks import NEVER, SMALL, poisoned_results
from program_checks import check_kernel, demand_equal
from random_programs import random_program

import primgraph as pg
from primgraph.codegen import compile_graph
from primgraph.codegen.ir.limits import cache_bytes
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.verify import verify
from primgraph.codegen.lower.arrays.fusion_groups import arrange_regions
from primgraph.codegen.ops.table import CARDS
from primgraph.errors import RunError
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse
from primgraph.transforms import linearize, lower, transpose
from primgraph.transforms.optimize.clean_up import clean_up

pytestmark = pytest.mark.long


@pytest.fixture
def in_small_blocks(monkeypatch):
    """All kernels of the test run everything that can in blocks of two or three rows."""
    monkeypatch.setattr("primgraph.codegen.recipe.default_limits", lambda: SMALL)


def graphs_of(program):
    lowered = lower(program.graph)
    yield lowered, program.feeds, program.others
    yield clean_up(lowered), program.feeds, program.others
    wrt = [i for i, v in enumerate(lowered.inputs) if v.type.is_float]
    if not wrt or not any(v.type.is_float for v in lowered.outputs):
        return
    jvp = linearize(lowered, wrt)
    linear = jvp.with_outputs(jvp.outputs[len(lowered.outputs) :])
    count = len(lowered.inputs)
    vjp = clean_up(transpose(linear, range(count, count + len(wrt))))
    rng = np.random.default_rng(program.seed)
    more = [np.asarray(rng.normal(size=v.shape)).astype(v.dtype) for v in vjp.inputs[count:]]
    yield vjp, [*program.feeds, *more], [*program.others, *more]


@pytest.mark.parametrize("start", starts(6000, 120, 10, dense=20))
def test_random_programs_in_small_blocks(start, in_small_blocks):
    for seed in range(start, start + 10):
        program = random_program(seed)
        rng = np.random.default_rng(seed)
        for graph, feeds, others in graphs_of(program):
            try:
                with np.errstate(all="ignore"):
                    check_kernel(graph, "planned", feeds, others, rng)
                    for limits in (SMALL, NEVER):
                        found = poisoned_results(graph, list(feeds), limits)
                        demand_equal("poisoned", graph, feeds, interpret(graph, *feeds), found)
            except Exception as error:
                raise AssertionError(f"{program}\n{error}") from error


def network(rows, widths=(3, 7, 5, 1)):
    """Loss and gradients of a network for rows of points, with a second derivative in the loss."""
    program = pg.Program()
    with program:
        x = pg.data("x", (rows, widths[0]))
        weights, h = [], x
        for i, (n, m) in enumerate(pairwise(widths)):
            weights += [pg.data(f"w{i}", (n, m)), pg.data(f"b{i}", (m,))]
            h = pg.tanh(h @ weights[-2] + weights[-1])
        slope = pg.forward_grad(pg.forward_grad(h, x), x)
        loss = pg.mean((slope + h) ** 2)
        outputs = [loss, *pg.grad(loss, weights)]
    graph = clean_up(lower(program.graph(outputs)))
    rng = np.random.default_rng(0)
    return graph, [rng.normal(size=v.shape) for v in graph.inputs]


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 11, 23])
@pytest.mark.parametrize("extent", [1, 2, 7, 11, 23])
def test_a_training_step_runs_in_one_loop_of_any_size(rows, extent):
    graph, feeds = network(extent)
    kernel = compile_graph(graph, limits=replace(SMALL, rows=rows))
    for found, known in zip(kernel(*feeds), interpret(graph, *feeds), strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-10, atol=1e-12)
    verify(kernel.plan)
    if extent == 23:
        (region,) = (r for r in kernel.plan.regions if r.stop - r.start > 20)
        assert region.extent == extent
        assert len(region.totals) >= len(graph.outputs)
        assert kernel.planned_source.count("for s, ") == len(kernel.plan.regions)


ELEMENTWISE = """graph f(%x: f64[11,4], %r: f64[4], %c: f64[11], %s: f64[]) {
  %0: f64[11,4] = broadcast(%r, shape=(11, 4), new_axes=(0,))
  %1: f64[11,4] = broadcast(%c, shape=(11, 4), new_axes=(1,))
  %2: f64[11,4] = broadcast(%s, shape=(11, 4), new_axes=(0, 1))
  %3: f64[11,4] = mul(%x, %0)
  %4: f64[11,4] = add(%3, %1)
  %5: f64[11,4] = div(%4, %2)
  %6: f64[4,11] = permute(%5, axes=(1, 0))
  %7: f64[4,11] = sin(%6)
  %8: f64[4] = reduce_sum(%7, axes=(1,))
  %9: f64[11] = reduce_max(%7, axes=(0,))
  %10: f64[] = reduce_max(%7, axes=(0, 1))
  %11: f64[] = reduce_min(%7, axes=(0, 1))
  %12: f64[4] = reduce_prod(%5, axes=(0,))
  %13: f64[4,11] = reverse(%7, axes=(1,))
  %14: f64[4,11] = mul(%13, %7)
  return %7, %8, %9, %10, %11, %12, %14, %6
}"""


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 11])
def test_broadcast_operands_reductions_and_values_needed_afterwards(rows):
    graph = parse(ELEMENTWISE)
    rng = np.random.default_rng(0)
    feeds = [rng.normal(size=v.shape) for v in graph.inputs]
    kernel = compile_graph(graph, limits=replace(SMALL, rows=rows))
    assert kernel.plan.regions
    verify(kernel.plan)
    for found, known in zip(kernel(*feeds), interpret(graph, *feeds), strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-12)
    feeds[0][3, 1] = np.nan
    for found, known in zip(kernel(*feeds), interpret(graph, *feeds), strict=True):
        np.testing.assert_array_equal(np.isnan(found), np.isnan(known))


def test_products_of_floats_are_multiplied_in_one_order():
    """Another one may have an infinity where this one has the NaN of zero times infinity."""
    graph = parse("""graph f(%x: f64[4,2], %n: i64[4,2]) {
      %0: f64[4,2] = neg(%x)
      %1: f64[2] = reduce_prod(%0, axes=(0,))
      %2: i64[4,2] = neg(%n)
      %3: i64[2] = reduce_prod(%2, axes=(0,))
      return %1, %3
    }""")
    kernel = compile_graph(graph, limits=SMALL)
    feeds = [np.array([[1e-200, 2.0], [1.0, 3.0], [1e-200, 4.0], [np.inf, 5.0]]), np.arange(8)]
    feeds[1] = feeds[1].reshape(4, 2) + 2**60
    for found, known in zip(kernel(*feeds), interpret(graph, *feeds), strict=True):
        np.testing.assert_array_equal(found, known)
    assert np.isnan(kernel(*feeds)[0][0])


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_square_blocks_have_their_rows_along_either_axis(rows):
    graph = parse("""graph f(%x: f64[11,3], %y: f64[3,11]) {
      %0: f64[11,3] = sin(%x)
      %1: f64[3,11] = permute(%0, axes=(1, 0))
      %2: f64[3,11] = exp(%1)
      %3: f64[3,11] = tanh(%1)
      %4: f64[3,11] = mul(%2, %3)
      %5: f64[3,11] = cos(%y)
      %6: f64[3,11] = mul(%4, %5)
      return %6
    }""")
    kernel = compile_graph(graph, limits=replace(SMALL, rows=rows))
    feeds = [np.random.default_rng(0).normal(size=v.shape) for v in graph.inputs]
    np.testing.assert_allclose(kernel(*feeds)[0], interpret(graph, *feeds)[0], rtol=1e-14)


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_sums_over_rows_along_the_last_of_three_axes(rows):
    graph = parse("""graph f(%x: f64[2,3,5]) {
      %0: f64[2,3,5] = sin(%x)
      %1: f64[2,3,5] = mul(%0, %0)
      %2: f64[2,3] = reduce_sum(%1, axes=(2,))
      return %2
    }""")
    kernel = compile_graph(graph, limits=replace(SMALL, rows=rows))
    assert {r.extent for r in kernel.plan.regions} == {5}
    x = np.random.default_rng(0).normal(size=(2, 3, 5))
    np.testing.assert_allclose(kernel(x)[0], interpret(graph, x)[0], rtol=1e-14)


def test_rows_without_elements_are_reshaped():
    graph = parse("""graph f(%x: f64[4,5,1]) {
      %0: f64[4,5,1] = sin(%x)
      %1: f64[4,0,5,1] = broadcast(%0, new_axes=(1,), shape=(4, 0, 5, 1))
      %2: f64[0,5,1] = reshape(%1, shape=(0, 5, 1))
      %3: f64[0,5,1] = neg(%2)
      return %3, %0
    }""")
    kernel = compile_graph(graph, limits=SMALL)
    assert {r.stop - r.start for r in kernel.plan.regions} == {4}
    assert kernel(np.ones((4, 5, 1)))[0].shape == (0, 5, 1)


def test_sums_are_added_up_from_the_first_block_to_the_last():
    graph = parse("""graph f(%x: f64[9]) {
      %0: f64[9] = neg(%x)
      %1: f64[9] = neg(%0)
      %2: f64[] = reduce_sum(%1, axes=(0,))
      %3: f64[9] = sinh(%1)
      return %2, %3
    }""")
    x = np.random.default_rng(0).normal(size=9) * 10.0 ** np.arange(9)
    kernel = compile_graph(graph, limits=replace(SMALL, rows=2))
    total = -0.0
    for i in range(0, 9, 3):
        total += x[i : i + 3].sum()
    assert kernel(x)[0] == total
    zeros = np.full(9, -0.0)
    assert kernel(zeros)[0].tobytes() == interpret(graph, zeros)[0].tobytes()


def test_what_does_not_fit_into_the_cache_runs_in_blocks_that_do():
    text = """graph f(%x: f64[1000000]) {
      %0: f64[1000000] = tanh(%x)
      %1: f64[1000000] = mul(%0, %0)
      %2: f64[1000000] = mul(%1, %0)
      %3: f64[1000000] = add(%2, %1)
      %4: f64[1000000] = mul(%3, %3)
      return %4
    }"""
    kernel = compile_graph(parse(text))
    (region,) = kernel.plan.regions
    assert region.stop - region.start == 5
    assert 1 << 17 <= 8 * region.rows <= max(cache_bytes(), 1 << 17)
    assert kernel.plan.arena == 0
    assert kernel.plan.space <= 4 * 8 * region.rows
    small = compile_graph(parse(text.replace("1000000", "1000")))
    assert not small.plan.regions


def test_constants_and_views_of_feeds_do_not_end_a_region():
    graph = parse("""graph f(%x: f64[8,3], %w: f64[3,3]) {
      %0: f64[8,3] = tanh(%x)
      %1: f64[8,3] = full(value=2.0, shape=(8, 3), dtype=f64)
      %2: f64[8,3] = mul(%0, %1)
      %3: f64[3,3] = permute(%w, axes=(1, 0))
      %4: f64[8,3] = matmul(%2, %3)
      %5: f64[3,8] = permute(%x, axes=(1, 0))
      %6: f64[3,3] = matmul(%5, %4)
      return %6
    }""")
    steps, regions = arrange_regions(schedule(graph), SMALL, CARDS)
    (region,) = regions
    assert [s.op.name for s in steps.steps[region.start : region.stop]] == [
        "tanh", "mul", "matmul", "matmul"
    ]  # fmt: skip


def test_many_constants_do_not_end_a_region_either():
    constants = [f"%{i}: f64[3] = full(value={i}.5, shape=(3,), dtype=f64)" for i in range(1, 201)]
    results = ", ".join(f"%{i}" for i in range(1, 201))
    graph = parse(f"""graph f(%x: f64[8,3]) {{
      %0: f64[8,3] = tanh(%x)
      {chr(10).join(constants)}
      %201: f64[3,8] = permute(%0, axes=(1, 0))
      %202: f64[3,3] = matmul(%201, %x)
      return %202, {results}
    }}""")
    (region,) = arrange_regions(schedule(graph), SMALL, CARDS)[1]
    assert list(region.totals.values()) == ["add"]
    assert not region.kept


FAILING = """graph lookup(%x: f64[9], %rows: i64[9], %table: f64[4]) {
  %0: f64[9] = sin(%x)
  %1: f64[9] = gather(%table, %rows, axis=0)
  %2: f64[9] = mul(%0, %1)
  return %2
}"""


def test_an_error_inside_a_block_names_the_equation_and_the_line():
    kernel = compile_graph(parse(FAILING), limits=SMALL)
    assert kernel.plan.regions
    table, rows = np.arange(4.0), np.arange(9) % 4
    rows[7] = 4
    with pytest.raises(RunError, match=r"gather failed in kernel lookup") as caught:
        kernel(np.ones(9), rows, table)
    assert "%1: f64[9] = gather(%table: f64[4], %rows: i64[9], axis=0)" in str(caught.value)
    assert "graph text:2" in str(caught.value)
    rows[7] = 3
    np.testing.assert_allclose(kernel(np.ones(9), rows, table)[0], np.sin(1) * table[rows])


def test_donated_arrays_are_updated_row_by_row():
    graph = parse("""graph f(%w: f64[9], %m: f64[9], %g: f64[9]) {
      %0: f64[9] = mul(%m, %m)
      %1: f64[9] = add(%0, %g)
      %2: f64[9] = sub(%w, %1)
      return %2, %1
    }""")
    kernel = compile_graph(graph, donated={0: 0, 1: 1}, limits=SMALL)
    assert "empty" not in kernel.planned_source
    w, m, g = (np.arange(9.0) + i for i in range(3))
    known = interpret(graph, w, m, g)
    found = kernel(w, m, g)
    assert found[0] is w
    assert found[1] is m
    for one, other in zip(found, known, strict=True):
        np.testing.assert_array_equal(one, other)


def test_threads_share_a_kernel_with_loops():
    graph, _ = network(23)
    kernel = compile_graph(graph, limits=SMALL)
    wrong, together = [], threading.Barrier(16)

    def work(seed):
        rng = np.random.default_rng(seed)
        feeds = [rng.normal(size=v.shape) for v in graph.inputs]
        expected = [r.tobytes() for r in kernel(*feeds)]
        together.wait(timeout=60)
        for _ in range(20):
            if [r.tobytes() for r in kernel(*feeds)] != expected:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_region_does_not_keep_many_arrays_for_later():
    lines, total = [], "x"
    for i in range(0, 300, 3):
        lines += [
            f"%{i}: f64[1000] = sin(%x)",
            f"%{i + 1}: f64[1000] = cumsum(%{i}, axis=0, reverse=False)",
            f"%{i + 2}: f64[1000] = add(%{i + 1}, %{total})",
        ]
        total = str(i + 2)
    graph = parse("graph f(%x: f64[1000]) {\n" + "\n".join(lines) + f"\nreturn %{total}\n}}")
    plain = compile_graph(graph, limits=NEVER).plan
    assert compile_graph(graph, limits=SMALL).plan.least < plain.least + 12 * 8000


SUMS = [((7,), (0,)), ((5, 3), (0,)), ((5, 3), (1,)), ((5, 3), (0, 1)), ((4, 5, 3), (0,)),
        ((4, 5, 3), (2,)), ((4, 5, 3), (1, 2)), ((4, 5, 3), (0, 1)), ((4, 5, 3), (1,)),
        ((4, 5, 3), (0, 2)), ((1, 1), (0,)), ((0, 3), (0,)), ((3, 0), (1,)), ((2, 9000), (1,)),
        ((9000,), (0,)), ((9000, 2), (0,))]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "i64"])
@pytest.mark.parametrize("limits", [NEVER, SMALL], ids=["whole", "blocks"])
@pytest.mark.parametrize(("shape", "axes"), SUMS)
def test_sums_over_any_axes_are_right_for_special_values_too(shape, axes, limits, dtype):
    kept = [n for a, n in enumerate(shape) if a not in axes]
    text = f"{dtype}[{','.join(map(str, shape))}]"
    total = f"{dtype}[{','.join(map(str, kept))}]"
    graph = parse(f"""graph f(%x: {text}) {{
      %0: {text} = neg(%x)
      %1: {total} = reduce_sum(%0, axes=({"".join(f"{a}, " for a in axes)}))
      %2: {total} = reduce_sum(%x, axes=({"".join(f"{a}, " for a in axes)}))
      return %1, %2
    }}""")
    kernel = compile_graph(graph, limits=limits)
    x = np.random.default_rng(0).normal(size=shape).astype(graph.inputs[0].dtype)
    special = x.copy()
    if x.dtype.kind == "f" and x.size > 2:
        special.flat[0], special.flat[-1] = np.inf, np.nan
    rtol = {"f64": 1e-12, "f32": 1e-4, "f16": 2e-2, "i64": 0}[dtype]
    for feed in (x, special):
        with np.errstate(all="ignore"):
            known = interpret(graph, feed)
        for one, other in zip(kernel(feed), known, strict=True):
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def test_many_regions_are_found_in_linear_time():
    lines, last = [], "x"
    for i in range(0, 3000, 3):
        lines.append(f"%{i}: f64[40] = sin(%{last})")
        lines.append(f"%{i + 1}: f64[40] = mul(%{i}, %{i})")
        lines.append(f"%{i + 2}: f64[40] = reverse(%{i + 1}, axes=(0,))")
        last = str(i + 2)
    graph = parse("graph f(%x: f64[40]) {\n" + "\n".join(lines) + f"\nreturn %{last}\n}}")
    kernel = compile_graph(graph, limits=SMALL)
    assert len(kernel.plan.regions) == 1000
    x = np.linspace(-1, 1, 40)
    np.testing.assert_array_equal(kernel(x)[0], interpret(graph, x)[0])


def rows_of_blocks(rows, inner, columns):
    """Of two products by one matrix, in one region or in none."""
    x, w = f"f64[{rows},{inner}]", f"f64[{inner},{columns}]"
    graph = parse(f"""graph f(%x: {x}, %y: {x}, %w: {w}) {{
  %1: f64[{rows},{columns}] = matmul(%x, %w)
  %2: f64[{rows},{columns}] = matmul(%y, %w)
  return %1, %2
}}""")
    _, regions = arrange_regions(schedule(graph), replace(NEVER, cache=1 << 20), CARDS)
    return [region.rows for region in regions]


def test_blocks_do_not_read_a_large_matrix_again_and_again():
    """As much as a block reads whole it has in rows of its own, but for what the cache keeps."""
    assert rows_of_blocks(64, 200_000, 256) == []
    (rows,) = rows_of_blocks(200_000, 256, 256)
    assert rows < 5000
    (rows,) = rows_of_blocks(100_000, 1024, 1024)
    assert 1024 * 1024 <= rows * 2 * 1024 < 2 * 1024 * 1024
