"""The complete text of plans: it reads back to the plan, whose code is the same."""

import numpy as np
import pytest
from plan_checks import NEVER, SHARED, SMALL
from program_pairs import pair_program
from test_primitives import CASES

import primgraph as pg
from primgraph.codegen.ir.limits import Options
from primgraph.codegen.ir.reading import read_data, read_nests, read_plan
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.text import data_text, to_text
from primgraph.codegen.ir.verify import verify
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.planned import plan_with_bodies
from primgraph.codegen.targets.c.size_arguments import SizeArguments
from primgraph.codegen.targets.c.source import source
from primgraph.codegen.targets.inplace.function import print_plan
from primgraph.codegen.targets.text.render import render
from primgraph.errors import LoadError
from primgraph.transforms import clean_up, lower


def reads_back(graph, limits, options=None):
    """Read back the texts of both plans of a graph, and compare texts and code."""
    told = SizeArguments(graph) if graph.sizes else None
    items = nests(schedule(graph), limits)
    read = read_nests(text := to_text(items), graph.constants)
    assert to_text(read) == text
    assert source(read, "f", told).text == source(items, "f", told).text
    if told is not None:
        return
    plan = plan_with_bodies(graph, options or Options(), limits)
    again = verify(read_plan(text := to_text(plan), CARDS, graph.constants))
    assert to_text(again) == text
    # The user's lines are not in the text.
    assert str(again).splitlines() == [x for x in str(plan).splitlines() if "  # " not in x]
    assert render(print_plan(again)) == render(print_plan(plan))


def loops(x, a):
    """A loop that grows stacks in its gradient, one with rows, and a branch."""
    y, _ = pg.scan(lambda c, r: (pg.tanh(c @ a + r), c), x[0], x)
    z = pg.while_loop(lambda c: pg.sum(c) < 3.0, lambda c: pg.exp(c * 0.1), y)
    w = pg.cond(pg.sum(x) > 0.0, lambda v: v * 2.0, lambda v: v - 1.0, y)
    return pg.sum(z) + pg.sum(w) + pg.sum(pg.scan(lambda c, r: (c + r, None), y, x)[0])


@pytest.mark.parametrize("k", range(len(CASES)), ids=lambda k: CASES[k].id)
def test_plans_of_each_primitive_read_back(k):
    case = CASES[k].values[0]
    if case.row.dtypes and not case.op.formal and case.op.name != "solution":
        graph = case.graph(case.row.dtypes[k % len(case.row.dtypes)])
        reads_back(graph, NEVER)


@pytest.mark.parametrize("limits", [NEVER, SMALL, SHARED], ids=["whole", "blocks", "threads"])
def test_plans_of_random_programs_read_back(limits):
    for seed in range(25):
        reads_back(clean_up(lower(pair_program(seed)[0])), limits)


def test_plans_with_loops_branches_sizes_and_donated_arrays_read_back():
    loss = pg.trace(lambda x, a: pg.grad(loops(x, a), [x, a]), pg.spec((4, 3)), pg.spec((3, 3)))
    for limits in (NEVER, SMALL):
        reads_back(clean_up(lower(loss)), limits)
    sized = pg.trace(
        lambda x, w: [pg.sum(pg.tanh(x @ w), axis=0), x[1:] - x[:-1]],
        pg.spec(("N", 3)), pg.spec((3, 5)),
    )  # fmt: skip
    for limits in (NEVER, SMALL):
        reads_back(clean_up(lower(sized)), limits)
    step = pg.trace(lambda w, g: (w - 0.1 * g, w[::-1] * 2.0), pg.spec(40), pg.spec(40))
    reads_back(clean_up(lower(step)), SMALL, Options(donated=((0, 0), (1, 1)), loose=True))


def test_large_constants_are_beside_the_text():
    table = np.arange(400.0)
    graph = clean_up(
        lower(pg.trace(lambda x: pg.sum(x * table) + pg.fft.fft(x).real, pg.spec(400)))
    )
    reads_back(graph, NEVER)
    with pytest.raises(LoadError, match="no constant is given"):
        read_nests(to_text(nests(schedule(graph))))


@pytest.mark.parametrize(
    "value",
    [1, -0.0, float("inf"), True, None, "add", complex(-0.0, -0.0), (1, (2.5,)), {0: "add"},
     Options(donated=((0, 1),))],
)  # fmt: skip
def test_data_reads_back(value):
    assert data_text(read_data(data_text(value))) == data_text(value)


@pytest.mark.parametrize(
    ("good", "bad", "fault"),
    [
        ("Compute(0, sin[0], (x0,), b0)", "Compute(0, sin[0], (y,), b0)", "this is no statement"),
        ("  arrays", "  array", "there is no arrays"),
        ("options Options()", "options Options([])", "is no data of plans"),
        ("= sin(%0)", "= sine(%0)", "sine"),
        ('plan "f"', 'nests "f"', "not that of one plan"),
        ("values (6, 1,", "values (six, 1,", "the numbers of values"),
    ],
)
def test_malformed_text_is_refused(good, bad, fault):
    chain = """graph f(%x: f64[9]) {
      %0: f64[9] = sin(%x)
      %1: f64[9] = reverse(%0, axes=(0,))
      %2: f64[9] = mul(%0, %1)
      %3: f64[9] = exp(%2)
      %4: f64[] = reduce_sum(%3, axes=(0,))
      return %4, %2
    }"""
    text = to_text(plan_with_bodies(pg.parse(chain), Options(), SMALL))
    assert good in text
    with pytest.raises(LoadError, match=fault):
        read_plan(text.replace(good, bad), CARDS)
