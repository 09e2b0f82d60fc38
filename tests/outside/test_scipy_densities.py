"""SciPy's own `_logpdf`, traced unchanged, with its slopes, for the rows of its own tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primgraph as pg

scipy = pytest.importorskip("scipy")
stats = pytest.importorskip("scipy.stats")
params = pytest.importorskip("scipy.stats._distr_params")

# Rows that cannot be traced, and why.
EXCEPTIONS = {
    "genhyperbolic": "calls C for each number",
    "geninvgauss": "calls C for each number",
    "irwinhall": "decides by an array of whole parameters",
    "kstwo": "iterates over arrays with np.nditer",
    "levy_stable": "groups rows by the values of parameters",
    "studentized_range": "integrates by quad for each number",
}
ROWS = [(n, shapes) for n, shapes in params.distcont if n not in EXCEPTIONS]
# Parameters that count something.
WHOLE = {"ksone", "erlang"}
SAMPLE = {"landau", "truncpareto", "vonmises"}


def density(law: Any) -> Callable[..., Any]:
    return lambda x, *given: np.sum(law._logpdf(x, *given))


def rows(is_sample: bool) -> list[Any]:
    return [pytest.param(name, shapes, id=f"{name}-{i}")
            for i, (name, shapes) in enumerate(ROWS) if (name in SAMPLE) == is_sample]  # fmt: skip


@np.errstate(all="ignore")
def check_row(name: str, shapes: tuple[float, ...]) -> None:
    law = getattr(stats, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        at = law.ppf([0.3, 0.52, 0.81], *shapes)
    given = [np.full(3, float(s)) for s in shapes]
    # Whole parameters have no derivative; kappa4 has formulas of its own where one is 0.
    fixed = [name in WHOLE or (name == "kappa4" and v == 0.0) for v in shapes]
    places = [0, *[i for i, is_fixed in enumerate(fixed, 1) if not is_fixed]]
    traced = pg.jit(pg.value_and_grad(density(law), tuple(places)), through=[scipy])
    value, slopes = traced(at, *given)
    # SciPy's density of kstwobign is exact to 1e-8 only.
    rtol = 1e-7 if name == "kstwobign" else 1e-11
    np.testing.assert_allclose(value, np.sum(law._logpdf(at, *given)), rtol, 1e-11)
    operands = [at, *given]
    for place, slope in zip(places, slopes, strict=True):
        step = 1e-4 * np.maximum(np.abs(operands[place]), 1e-2)
        near = [w * (law._logpdf(*moved(operands, place, k * step))
                     - law._logpdf(*moved(operands, place, -k * step)))
                for k, w in ((1, 45.0), (2, -9.0), (3, 1.0))]  # fmt: skip
        wanted = sum(near) / (60.0 * step)
        np.testing.assert_allclose(slope, wanted, 1e-5, 1e-6, err_msg=f"{name} by {place}")


def moved(operands: list[Any], place: int, step: Any) -> list[Any]:
    return [v + step if i == place else v for i, v in enumerate(operands)]


@pytest.mark.parametrize(("name", "shapes"), rows(is_sample=True))
def test_some_of_scipys_densities_are_traced(name: str, shapes: tuple[float, ...]) -> None:
    check_row(name, shapes)


@pytest.mark.dense
@pytest.mark.parametrize(("name", "shapes"), rows(is_sample=False))
def test_scipys_densities_are_traced(name: str, shapes: tuple[float, ...]) -> None:
    check_row(name, shapes)


def test_113_of_119_rows_are_checked() -> None:
    assert len(params.distcont) - len(ROWS) == len(EXCEPTIONS)
    assert len(ROWS) >= 113


def test_ufuncs_of_distributions_take_tensors() -> None:
    special = scipy.special
    x = np.array([0.4, 1.7])
    for name, given in (("stdtr", (3.0, x)), ("fdtr", (3.0, 5.0, x)), ("kolmogorov", (x,)),
                        ("chdtrc", (3.0, x)), ("nctdtr", (3.0, 0.5, x)), ("chndtr", (x, 3.0, 0.5)),
                        ("ncfdtr", (3.0, 5.0, 0.5, x)), ("tklmbda", (x / 4.0, 1.5))):  # fmt: skip
        found = getattr(special, name)(*[pg.tensor(g) if g is x else g for g in given[:-1]],
                                       pg.tensor(given[-1])).numpy()  # fmt: skip
        np.testing.assert_allclose(found, getattr(special, name)(*given), 1e-10)
