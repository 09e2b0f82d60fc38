"""Random programs: all checks of `program_checks`, on a few hundred of them."""

import numpy as np
import pytest
from program_checks import check
from program_tolerance import same_bits
from random_programs import random_program

from primgraph.ir.graph import Graph

_PROGRAMS = 300
_CHUNK = 10
_QUICK = 40


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(i, marks=[pytest.mark.long] * (i >= _QUICK))
        for i in range(0, _PROGRAMS, _CHUNK)
    ],
)
def test_promises_hold_for_random_programs(start: int) -> None:
    for seed in range(start, start + _CHUNK):
        program = random_program(seed)
        try:
            check(program)
        except Exception as error:
            raise AssertionError(f"{program}\n{error}") from error


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


def test_bits_tell_zeros_apart_and_nans_not() -> None:
    x = np.array([0.0, np.nan, 1.0])
    assert np.array_equal(same_bits(x, np.array([-0.0, -np.nan, 1.0])), [False, True, True])
