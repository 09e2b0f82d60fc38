"""Random programs: all checks of `program_checks`, on a few hundred of them.

Of the special kinds there are a few dozen; guards, training and sizes have files of their own.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from density import starts
from program_batched import BatchedProgram
from program_batched_checks import check_batched
from program_calls import CallsProgram, check_calls
from program_checks import check
from program_edges import EdgeProgram, check_edges
from program_identity import IdentityProgram, check_identity
from program_jets import check_jets
from program_named import check_named, named_program
from program_singular import SingularProgram
from program_singular_checks import check_singular
from program_tolerance import roughly_differs, same_bits
from program_torch import TorchProgram, check_torch
from random_programs import Program, random_program

import primgraph as pg
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.transforms import simplify

_PROGRAMS = 300
_USUAL = 40
_CHUNK = 10
_QUICK = 40

_SPECIAL: dict[str, tuple[Any, Any]] = {
    "singular": (SingularProgram, check_singular),
    "batched": (BatchedProgram, check_batched),
    "edge": (EdgeProgram, check_edges),
    "identity": (IdentityProgram, check_identity),
    "torch": (TorchProgram, check_torch),
    "calls": (CallsProgram, check_calls),
}
_SPECIAL_PROGRAMS = 30

_NAMED_PROGRAMS = 48
_NAMED_CHUNK = 4

_JET_PROGRAMS = 60
_JET_CHUNK = 6


@pytest.mark.parametrize("start", starts(0, _PROGRAMS, _CHUNK, dense=_USUAL, long=_QUICK))
def test_promises_hold_for_random_programs(start: int) -> None:
    for seed in range(start, start + _CHUNK):
        program = random_program(seed)
        try:
            check(program)
        except Exception as error:
            raise AssertionError(f"{program}\n{error}") from error


@pytest.mark.parametrize("start", starts(0, _SPECIAL_PROGRAMS, _CHUNK, dense=_CHUNK, long=_CHUNK))
@pytest.mark.parametrize("kind", _SPECIAL)
def test_promises_hold_for_random_programs_of_special_kinds(kind: str, start: int) -> None:
    """Infinite slopes stay where they are, samples apart, and NaN has the slopes that it should."""
    made, checked = _SPECIAL[kind]
    seen: Counter[str] = Counter()
    for seed in range(start, start + _CHUNK):
        program = made(seed)
        try:
            checked(program, seen)
        except Exception as error:
            raise AssertionError(f"{program}\n{error}") from error
    telling = {
        "singular": "singular: some slopes infinite, some finite",
        "batched": "batched: samples that meet are refused",
        "edge": "edges: slopes that are NaN",
        "identity": "derivatives by intermediate variables, tensors",
        "torch": "programs of torch, vmap",
        "calls": "calls from a cache",
    }
    assert seen[telling[kind]]


@pytest.mark.parametrize(
    "start", starts(0, _NAMED_PROGRAMS, _NAMED_CHUNK, dense=2 * _NAMED_CHUNK, long=_NAMED_CHUNK)
)
def test_promises_hold_for_random_programs_of_sizes_that_have_names(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + _NAMED_CHUNK):
        program = named_program(seed)
        try:
            check_named(program, seen)
        except Exception as error:
            raise AssertionError(f"{program}\n{error}") from error
    assert seen["named"]


@pytest.mark.parametrize(
    "start", starts(100, _JET_PROGRAMS, _JET_CHUNK, dense=2 * _JET_CHUNK, long=_JET_CHUNK)
)
def test_derivatives_of_high_orders_are_those_of_nested_modes(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + _JET_CHUNK):
        program = random_program(seed)
        try:
            check_jets(program, seen)
        except Exception as error:
            raise AssertionError(f"{program}\n{error}") from error
    assert {"jets: taylor", "jets: jet", "jets: gradients of order 2"} <= seen.keys()


@pytest.mark.parametrize("kind", _SPECIAL)
def test_special_programs_are_the_same_for_the_same_seed_and_smaller_without_steps(
    kind: str,
) -> None:
    made, _ = _SPECIAL[kind]
    program = made(4)
    assert str(program) == str(made(4)) != str(made(5))
    assert str(replace(program, left_out=frozenset(range(program.count)))) != str(program)


@pytest.mark.parametrize("start", starts(8000, 100, _CHUNK, dense=40))
def test_flags_that_are_set_after_use_are_those_of_an_equation(start: int) -> None:
    for seed in range(start, start + _CHUNK):
        program = random_program(seed)
        values = [e.outputs[0] for e in program.graph.body if e.inputs]
        values = [v for v in values if v.type.is_float]
        if not values or not program.smooth:
            continue
        flagged = values[seed % len(values)]
        expected = [_slopes(program, flagged, how) for how in ("equation", "none")]
        found = [_slopes(program, flagged, how) for how in ("flag", "twin")]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=str(program))


def _slopes(program: Program, flagged: Value, how: str) -> np.ndarray:
    """Gradients of all outputs, joined: with an equation or a flag that holds a value constant.

    With "none" there is neither, and with "twin" all is written again after the flag was set.
    """
    with pg.Program() as built:
        moved = {
            v: built.builder.input(v.type, f"x{i}") for i, v in enumerate(program.graph.inputs)
        }
        for round_ in range(2 if how == "twin" else 1):
            for eqn in program.graph.body:
                operands = [moved[v] for v in eqn.inputs]
                results = built.builder.emit(eqn.op, operands, eqn.kwargs)
                moved.update(zip(eqn.outputs, results, strict=True))
                if how == "equation" and flagged in eqn.outputs:
                    variable = pg.Variable(built.builder, moved[flagged])
                    moved[flagged] = pg.stop_gradient(variable).value
            if how in ("flag", "twin") and round_ == 0:
                built.builder.hold(moved[flagged], True)
        handles = [pg.Variable(built.builder, v) for v in moved.values()]
        outputs = [pg.Variable(built.builder, moved[v]) for v in program.graph.outputs]
        outputs = [pg.sum(v) for v in outputs if v.type.is_float]
        wrt = [v for v in handles[: len(program.graph.inputs)] if v.type.is_float]
        slopes = pg.grad(outputs, wrt, materialize_grads=True) if outputs and wrt else []
    feed = {f"x{i}": array for i, array in enumerate(program.feeds)}
    used = {n: feed[n] for n in built.inputs}
    found = pg.Executor().run(built, used, slopes)
    return np.concatenate([np.zeros(0), *(np.ravel(a).astype(float) for a in found)])


def test_the_same_seed_gives_the_same_program() -> None:
    one, other = random_program(7), random_program(7)
    assert one.graph == other.graph
    assert str(one) == str(other)
    assert str(one) != str(random_program(8))


def _shares() -> dict[str, float]:
    graphs = [random_program(seed).graph for seed in range(_PROGRAMS)]
    several = [e for g in graphs for e in g.body if len(e.inputs) > 1]
    moving = {"reshape", "permute", "broadcast", "reverse", "slice", "split", "concat", "pad",
              "gather", "slice_assign", "scatter_add"}  # fmt: skip
    equations = [e for g in graphs for e in g.body if e.inputs]
    return {
        "repeated": _mean(_repeats(g) for g in graphs),
        "moving": _mean(e.op.name in moving for e in equations),
        "casts": _mean(any(e.op.name == "cast" for e in g.body) for g in graphs),
        "several": len(several),
        "looped": _mean(g.has_bodies for g in graphs),
        "nested": _mean(any(b.has_bodies for e in g.body for b in e.bodies) for g in graphs),
    }


def _repeats(graph: Graph) -> bool:
    """Whether some equation has the same operand twice."""
    return any(len(set(e.inputs)) < len(e.inputs) for e in graph.body)


def _mean(flags: object) -> float:
    return float(np.mean(list(flags)))  # type: ignore[call-overload]


def test_programs_are_of_the_kinds_that_break_compilers() -> None:
    shares = _shares()
    assert shares["repeated"] >= 0.3
    assert shares["moving"] >= 0.2
    assert shares["casts"] == 1
    assert shares["looped"] >= 0.15
    assert shares["nested"] >= 0.05


def test_bits_tell_zeros_apart_and_nans_not() -> None:
    x = np.array([0.0, np.nan, 1.0])
    assert np.array_equal(same_bits(x, np.array([-0.0, -np.nan, 1.0])), [False, True, True])


def test_rounding_decides_whether_results_are_equal() -> None:
    """At level `fast` arctanh(tanh(y)) is y, which is not what NumPy computes for it."""
    graph = pg.parse("""
        graph f(%x: f64[], %y: f64[]) {
          %0: f64[] = tanh(%y)
          %1: f64[] = arctanh(%0)
          %2: bool[] = not_equal(%x, %1)
          return %2
        }""")
    y = np.array(-1.0)
    for x, decided in ((y, False), (np.array(-1.0 + 1e-10), True)):
        feeds = [x, y]
        expected = interpret(graph, *feeds)
        other = [~expected[0]]
        assert bool(roughly_differs(graph, feeds, expected, other, 8.0)) == decided
    (found,) = interpret(simplify(graph, "fast"), y, y)
    assert not found
