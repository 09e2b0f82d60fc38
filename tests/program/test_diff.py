"""Differences of graphs: what is equal, what is said about what is not, and how long it takes."""

import time

import numpy as np
import pytest
from random_programs import random_program

import primgraph as pg
from primgraph.errors import ArgumentError
from primgraph.ir.primitive import registered
from primgraph.ir.text import parse
from primgraph.ir.types import TensorType
from primgraph.program.compile import optimize_graph

BEFORE = """graph f(%x: f64[3], %y: f64[3]) {
  %0: f64[3] = full(dtype=f64, shape=(3,), value=1.0)
  %1: f64[3] = mul(%x, %0)
  %2: f64[3] = sin(%1)
  %3: f64[3] = cos(%2)
  %4: f64[] = reduce_sum(%3, axes=(0,))
  return %4
}"""


def test_equal_graphs_say_so():
    graph = parse(BEFORE)
    difference = pg.diff(graph, graph)
    assert not difference
    assert str(difference) == "the graphs are equal: 5 equations"
    renamed = BEFORE.replace("%x", "%a").replace("%4", "%total")
    assert not pg.diff(graph, parse(renamed))


def test_order_and_numbers_do_not_count():
    one = parse("""graph f(%x: f64[3]) {
      %0: f64[3] = sin(%x)
      %1: f64[3] = cos(%x)
      %2: f64[3] = add(%0, %1)
      return %2
    }""")
    other = parse("""graph f(%x: f64[3]) {
      %0: f64[3] = cos(%x)
      %1: f64[3] = sin(%x)
      %2: f64[3] = add(%0, %1)
      return %2
    }""")
    assert one != other
    assert not pg.diff(one, other)


def test_what_reads_a_changed_value_is_kept():
    after = """graph f(%x: f64[3], %y: f64[3]) {
      %0: f64[3] = sin(%x)
      %1: f64[3] = cos(%0)
      %2: f64[] = reduce_sum(%1, axes=(0,))
      return %2
    }"""
    difference = pg.diff(parse(BEFORE), parse(after))
    assert difference.kept == 2
    assert difference.counts() == {"full": (1, 0), "mul": (1, 0)}
    text = str(difference).splitlines()
    assert text[1:3] == ["  full 1 -> 0", "  mul 1 -> 0"]
    assert [line.partition("(")[0].partition(" = ")[::2] for line in text[3:]] == [
        ("- %0: f64[3]", "full"),
        ("- %1: f64[3]", "mul"),
        ("- %2: f64[3]", "sin"),
        ("+ %0: f64[3]", "sin"),
    ]


def test_changed_parameters_operands_inputs_and_results_are_shown():
    one = parse("""graph f(%x: f64[4,4], %y: f64[4,4]) {
      %0: f64[4] = reduce_sum(%x, axes=(0,))
      %1: f64[4,4] = mul(%x, %y)
      return %0, %1
    }""")
    other = parse("""graph f(%x: f64[4,4], %y: f64[4,4]) {
      %0: f64[4] = reduce_sum(%x, axes=(1,))
      %1: f64[4,4] = mul(%x, %x)
      return %1, %0
    }""")
    text = str(pg.diff(one, other)).splitlines()
    assert text[0] == "2 equations -> 2: 2 changed, 0 kept"
    assert text[1:] == [
        "- %0: f64[4] = reduce_sum(%x, axes=(0,))  # graph text:1",
        "+ %0: f64[4] = reduce_sum(%x, axes=(1,))  # graph text:1",
        "- %1: f64[4,4] = mul(%x, %y)  # graph text:2",
        "+ %1: f64[4,4] = mul(%x, %x)  # graph text:2",
        "- return %0, %1",
        "+ return %1, %0",
    ]
    wide = parse("graph f(%x: f64[4,4]) {\n  return %x\n}")
    text = str(pg.diff(one, wide)).splitlines()
    assert "- graph f(%x: f64[4,4], %y: f64[4,4])" in text
    assert "+ graph f(%x: f64[4,4])" in text
    assert "2 removed" in text[0]


def test_constants_are_told_apart_bit_by_bit():
    text = "graph f() {\n  %0: f64[] = full(dtype=f64, shape=(), value=0.0)\n  return %0\n}"
    difference = pg.diff(parse(text), parse(text.replace("0.0", "-0.0")))
    assert (len(difference.removed), len(difference.added)) == (1, 1)


def test_the_line_of_the_user_stands_beside_it():
    def f(x):
        return pg.sum(pg.sin(x) * 1.0)

    graph = pg.transforms.lower(pg.trace(f, pg.spec(3)))
    text = str(pg.diff(graph, optimize_graph(graph)))
    assert "mul 1 -> 0" in text
    assert "# test_diff.py:" in text


@pytest.mark.parametrize("start", range(0, 100, 20))
def test_differences_account_for_every_equation(start):
    for seed in range(start, start + 20):
        graph = pg.transforms.lower(random_program(seed).graph)
        assert not pg.diff(graph, parse(str(graph), graph.constants))
        after = optimize_graph(graph)
        difference = pg.diff(graph, after)
        matched = difference.kept + len(difference.changed)
        assert matched + len(difference.removed) == len(graph)
        assert matched + len(difference.added) == len(after)
        befores, afters = zip(*difference.partners, strict=True) if matched else ((), ())
        assert len(set(befores)) == len(set(afters)) == matched
        assert set(afters).isdisjoint(difference.added)
        lines = str(difference).splitlines()
        minus = sum(line.startswith("- %") for line in lines)
        assert minus == len(difference.removed) + len(difference.changed)
        counts = difference.counts().values()
        assert sum(b - a for a, b in counts) == len(after) - len(graph)
        if not difference:
            assert len(graph) == len(after)


def chain(count, odd=-1):
    builder = pg.Builder()
    value = builder.input(TensorType((3,), np.dtype(np.float64)), "x")
    with builder:
        for i in range(count):
            value = registered()["cos" if i == odd else "sin"](value)
    return builder.graph([value])


@pytest.mark.long
def test_long_graphs_take_linear_time():
    found = []
    # Both fit a cache that other processes share.
    for count in (1_000, 8_000):
        one, other = chain(count), chain(count, odd=count // 2)
        times = []
        for _ in range(3):
            begun = time.process_time()
            text = str(pg.diff(one, other))
            times.append(time.process_time() - begun)
        found.append(min(times))
        assert text.splitlines()[0] == f"{count} equations -> {count}: " + (
            f"1 removed, 1 added, 1 changed, {count - 2} kept"
        )
        assert str(pg.diff(one, one)).startswith("the graphs are equal")
    assert found[1] < 24 * found[0]


def test_other_things_are_refused():
    with pytest.raises(ArgumentError, match="two graphs, not str"):
        pg.diff(parse(BEFORE), BEFORE)
