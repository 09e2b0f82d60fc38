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
    "ksone": "no counterpart of the derivative of Smirnov's distribution",
    "kstwo": "iterates over arrays with np.nditer",
    "levy_stable": "groups rows by the values of parameters",
    "studentized_range": "integrates by quad for each number",
}
ROWS = [(n, shapes) for n, shapes in params.distcont if n not in EXCEPTIONS]
SAMPLE = {"landau", "truncpareto", "vonmises"}


def density(law: Any, given: Any) -> Callable[[Any], Any]:
    return lambda x: np.sum(law._logpdf(x, *given))


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
    value, slope = pg.jit(pg.value_and_grad(density(law, given)), through=[scipy])(at)
    # SciPy's density of kstwobign is exact to 1e-8 only.
    rtol = 1e-7 if name == "kstwobign" else 1e-11
    np.testing.assert_allclose(value, np.sum(law._logpdf(at, *given)), rtol, 1e-11)
    step = 1e-5 * np.maximum(np.abs(at), 1e-2)
    near = [w * (law._logpdf(at + k * step, *given) - law._logpdf(at - k * step, *given))
            for k, w in ((1, 8.0), (2, -1.0))]  # fmt: skip
    np.testing.assert_allclose(slope, sum(near) / (12.0 * step), 1e-5, 1e-6)


@pytest.mark.parametrize(("name", "shapes"), rows(is_sample=True))
def test_some_of_scipys_densities_are_traced(name: str, shapes: tuple[float, ...]) -> None:
    check_row(name, shapes)


@pytest.mark.dense
@pytest.mark.parametrize(("name", "shapes"), rows(is_sample=False))
def test_scipys_densities_are_traced(name: str, shapes: tuple[float, ...]) -> None:
    check_row(name, shapes)


def test_112_of_119_rows_are_checked() -> None:
    assert len(params.distcont) - len(ROWS) == len(EXCEPTIONS)
    assert len(ROWS) >= 112


def test_ufuncs_of_distributions_take_tensors() -> None:
    special = scipy.special
    x = np.array([0.4, 1.7])
    for name, given in (("stdtr", (3.0, x)), ("fdtr", (3.0, 5.0, x)), ("kolmogorov", (x,)),
                        ("chdtrc", (3.0, x)), ("nctdtr", (3.0, 0.5, x)), ("chndtr", (x, 3.0, 0.5)),
                        ("ncfdtr", (3.0, 5.0, 0.5, x)), ("tklmbda", (x / 4.0, 1.5))):  # fmt: skip
        found = getattr(special, name)(*[pg.tensor(g) if g is x else g for g in given[:-1]],
                                       pg.tensor(given[-1])).numpy()  # fmt: skip
        np.testing.assert_allclose(found, getattr(special, name)(*given), 1e-10)
