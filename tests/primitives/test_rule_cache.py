"""Derivatives record copies of what a rule recorded for other operands of the same types."""

import numpy as np
import pytest
from derive import float_inputs
from test_primitives import FLOAT_CASES, Case

import primgraph as pg
from primgraph.extend import Builder
from primgraph.ir.graph import Graph
from primgraph.ir.rebuild import RuleCache
from primgraph.primitives.constants import constant_op, filled_constant
from primgraph.transforms import linearize, transpose


def constant_of(array):
    op, params = constant_op(np.ascontiguousarray(array).reshape(array.shape))
    return op(**params)


def repeated(case: Case) -> Graph:
    """Graph that applies the primitive to inputs, to sums, and to constants of several values."""
    dtype = case.row.dtypes[0]
    types = case.types(dtype)
    builder = Builder("f")
    inputs = [builder.input(t) for t in types]
    others = [builder.input(t) for t in types]
    outputs = []
    with builder:
        sums = [x * y if x.type.is_inexact else y for x, y in zip(inputs, others, strict=True)]
        given = [inputs, others, sums]
        for place in range(len(types)):
            for seed in range(2):
                array = case.arrays(dtype, seed)[place]
                given.append([*inputs[:place], constant_of(array), *inputs[place + 1 :]])
            if types[place].is_inexact:
                given += [
                    [*inputs[:place], filled_constant(c, types[place]), *inputs[place + 1 :]]
                    for c in (0, 1, 0.5)
                ]
        for operands in given:
            found = case.op(*operands, **case.call.params)
            outputs += found if case.op.multiple else [found]
    return builder.graph(outputs)


def derivatives(graph: Graph) -> list[Graph]:
    wrt = float_inputs(graph)
    jvp = linearize(graph, wrt)
    first, floats = len(graph.outputs), [v for v in graph.outputs if v.type.is_inexact]
    tangents = jvp.with_outputs(jvp.outputs[first:])
    assert len(tangents.outputs) == len(floats)
    return [jvp, transpose(tangents, range(len(graph.inputs), len(jvp.inputs)))]


@pytest.fixture
def uncached(monkeypatch):
    def switch():
        monkeypatch.setattr(RuleCache, "apply", lambda self, key, values, rule: rule(self._builder))

    return switch


@pytest.mark.parametrize("case", [c for c in FLOAT_CASES if not c.values[0].op.has_bodies])
def test_derivatives_are_those_of_rules_applied_each_time(case, uncached):
    graph = repeated(case)
    cached = derivatives(graph)
    uncached()
    for found, wanted in zip(cached, derivatives(graph), strict=True):
        assert str(found) == str(wanted)
        assert [e.source for e in found.body] == [e.source for e in wanted.body]


@pytest.mark.parametrize("step", [pg.tanh, lambda y: pg.roll(y, 1), lambda y: y * y + 0.5])
def test_rules_run_once_for_equal_types(step, monkeypatch):
    runs = []
    apply = RuleCache.apply

    def counted(self, key, values, rule):
        return apply(self, key, values, lambda builder: runs.append(key) or rule(builder))

    monkeypatch.setattr(RuleCache, "apply", counted)

    def count(length):
        runs.clear()
        with pg.Program():
            x = y = pg.data("x", (3,))
            for _ in range(length):
                y = step(y) * x
            pg.grad(pg.sum(y), x)
        return len([key for key in runs if key[0] != "mul"])

    assert count(40) == count(10) > 0


def test_a_rule_that_asks_how_operands_are_computed_is_applied_each_time():
    builder = Builder("f")
    x = builder.input(pg.TensorType((3,), np.dtype("float64")))
    with builder:
        one, two = filled_constant(1, x.type), filled_constant(2, x.type)
    cache, asked = RuleCache(builder), []

    def apply(operand):
        def rule(to):
            asked.append(operand)
            eqn = to.definition(operand)
            return [x * operand if eqn.number == 1 else None]

        return cache.apply("rule", [operand], rule)

    with builder:
        assert [apply(v)[0] is None for v in (one, two, one)] == [False, True, False]
    assert asked == [one, two, one]
    assert "emit" not in vars(builder)
