"""Names of other systems: what is said in their place runs, and means what they mean there."""

from __future__ import annotations

import inspect
import re
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
from numpy.testing import assert_allclose

import primgraph as pg
from primgraph.base.array_functions import ARGUMENTS, EXPRESSIONS, METHODS, REMARKS

RNG = np.random.default_rng(7)
ARRAYS: dict[str, Any] = {
    "x": RNG.uniform(0.1, 0.9, (3, 4)),
    "y": RNG.uniform(0.1, 0.9, (3, 4)),
    "u": RNG.uniform(0.1, 0.9, 4),
    "v": RNG.uniform(0.1, 0.9, 4),
    "m": RNG.uniform(0.1, 0.9, (4, 4)),
    "n": RNG.uniform(0.1, 0.9, (4, 4)),
    "loss": np.array(0.5),
}
INDEX = np.array([2, 0, 1])

# What the names mean where they come from, called on the same operands.
NUMPY = {
    "x": (
        "absolute rint around radians degrees amax amin asanyarray "
        "ascontiguousarray asin acos atan asinh atanh"
    ),
    "x y": "true_divide pow atan2",
    "u v": "vdot",
}
SPECIAL = {
    "expit": scipy.special.expit,
    "logit": scipy.special.logit,
    "norm.cdf": scipy.stats.norm.cdf,
    "norm.pdf": scipy.stats.norm.pdf,
    "norm.logpdf": scipy.stats.norm.logpdf,
}


def evaluated(expression: str) -> Any:
    """What an expression of the table gives, run if it gives variables."""
    with pg.Program() as program:
        handles = {name: pg.data(name, a.shape) for name, a in ARRAYS.items()}
        names: dict[str, Any] = {
            **handles,
            "loss": pg.sum(handles["x"] * handles["loss"]),
            "w": handles["x"],
            "np": np,
            "pg": pg,
            "i": pg.array(INDEX),
            "key": 3,
            "program": program,
            "feed": ARRAYS,
            "f": lambda a: pg.sum(pg.sin(a) * a),
            "x0": np.ones(3),
        }
        if " = " in expression:
            exec(expression, names)
            return None
        result = eval(expression, names)
        fetches = list(result) if isinstance(result, list | tuple) else [result]
        if not all(isinstance(v, pg.Variable) for v in fetches):
            return result
        found = pg.Executor().run(program, fed(program), fetches)
    return found if isinstance(result, list | tuple) else found[0]


def fed(program: pg.Program) -> dict[str, Any]:
    """An array for each input, those of expressions that declare one included."""
    return {n: ARRAYS.get(n, np.ones(v.shape)) for n, v in program.inputs.items()}


@pytest.mark.parametrize("name", [*EXPRESSIONS, *(f"x.{n}" for n in METHODS)])
def test_every_expression_runs(name: str) -> None:
    table = METHODS if name.startswith("x.") else EXPRESSIONS
    evaluated(table[name.removeprefix("x.")])


CASES = [(n, args) for args, names in NUMPY.items() for n in names.split()]


@pytest.mark.parametrize(("name", "args"), CASES)
def test_expressions_for_names_of_numpy_mean_the_same(name: str, args: str) -> None:
    function = getattr(np, name, None)
    if function is None:
        pytest.skip("this NumPy does not have it")
    given = [ARRAYS[a] for a in args.split()]
    with warnings.catch_warnings():
        # Newer versions of NumPy deprecate some of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        expected = function(*given)
    found = evaluated(EXPRESSIONS[name])
    for one, other in zip(
        expected if isinstance(expected, tuple) else [expected],
        found if isinstance(expected, tuple) else [found],
        strict=True,
    ):
        assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("name", SPECIAL)
def test_expressions_for_names_of_scipy_mean_the_same(name: str) -> None:
    assert_allclose(evaluated(EXPRESSIONS[name]), SPECIAL[name](ARRAYS["x"]), rtol=1e-12)


def test_no_name_of_the_tables_is_a_name_here() -> None:
    assert not EXPRESSIONS.keys() & REMARKS.keys()
    for name in (*EXPRESSIONS, *REMARKS):
        assert name not in pg.__all__ or name in ("diff", "trace", "view"), name
    for name in METHODS:
        assert not hasattr(pg.Variable, name), name


def test_every_name_in_a_sentence_is_public() -> None:
    texts = [*EXPRESSIONS.values(), *METHODS.values(), *REMARKS.values()]
    named = {found for text in texts for found in re.findall(r"\bpg((?:\.\w+)+)", text)}
    for path in named:
        thing: Any = pg
        for part in path[1:].split("."):
            assert part in getattr(thing, "__all__", dir(thing)), path
            thing = getattr(thing, part)
    assert len(named) > 60


def test_arguments_by_meaning_are_arguments_of_something() -> None:
    taken = {p for n in pg.operators.__all__ for p in inspect.signature(getattr(pg, n)).parameters}
    taken |= {p for c in CALLED for p in inspect.signature(c).parameters}
    assert set(ARGUMENTS.values()) <= taken
    with pytest.raises(pg.ArgumentError, match=r"no argument 'dim'\s.*\s.*did you mean 'axis'"):
        pg.sum(np.ones(3), dim=0)  # type: ignore[call-arg]


CALLED = (pg.optimizer.Adam, pg.Executor.run, pg.root, pg.vmap, pg.grad, pg.jacrev)
CALLED = (*CALLED, pg.dropout, pg.create_parameter, pg.scipy_objective)
