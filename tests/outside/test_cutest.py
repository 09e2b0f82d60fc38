"""Problems of CUTEst, from sif2jax, with `primgraph.numpy` in the place of `jax.numpy`.

A sample is compared with JAX and NumPy; `python tests/tools/cutest_suite.py` compares all.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

for package in ("sif2jax", "jax", "scipy"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

TOOLS = Path(__file__).resolve().parents[1] / "tools"

# Of all kinds: scans, vectorized functions, Python loops, segment sums, sparse constants.
SAMPLE = (
    "_unconstrained_minimisation.arglina.ARGLINA",
    "_unconstrained_minimisation.coating.COATING",
    "_unconstrained_minimisation.cragglvy.CRAGGLVY",
    "_unconstrained_minimisation.dixmaana1.DIXMAANA1",
    "_unconstrained_minimisation.rosenbr.ROSENBR",
    "_unconstrained_minimisation.genrose.GENROSE",
    "_bounded_minimisation.exp2b.EXP2B",
    "_bounded_minimisation.hatflda.HATFLDA",
    "_bounded_minimisation.palmer1.PALMER1",
    "_constrained_minimisation.hs67.HS67",
    "_constrained_minimisation.hs76.HS76",
    "_constrained_minimisation.lukvli8.LUKVLI8",
    "_constrained_minimisation.polak2.POLAK2",
    "_constrained_minimisation.tenbars1.TENBARS1",
    "_nonlinear_equations.bdvalues.BDVALUES",
    "_nonlinear_equations.booth.BOOTH",
    "_nonlinear_equations.gottfr.GOTTFR",
    "_quadratic_problems.cmpc4.CMPC4",
    "_quadratic_problems.ncvxqp1.NCVXQP1",
    "_quadratic_problems.table1.TABLE1",
)


@pytest.fixture(scope="module")
def suite(monkeypatch_module):
    return importlib.import_module("cutest_suite")


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        yield patch


@pytest.mark.parametrize("name", SAMPLE)
def test_values_and_derivatives_are_those_of_jax_and_numpy(name, suite):
    found = suite.compare(name)
    assert found["difference"] <= suite.TOLERANCE, found["worst"]
    assert found["numpy"][1] <= suite.TOLERANCE, found["numpy"][0]
    assert found["finite"]


@pytest.mark.dense
def test_all_problems_run_within_25_seconds(suite):
    failed, known = [], suite.exceptions()
    for name in suite.listed():
        found = suite.compare(name)
        is_equal = max(found["difference"], found["numpy"][1]) <= suite.TOLERANCE
        failed += [] if is_equal or name in known else [(name, found)]
        failed += [] if found["seconds"] <= 25 else [(name, found)]
    assert not failed


def test_exceptions_have_reasons(suite):
    kinds = {kind for kind, _ in suite.exceptions().values()}
    assert kinds <= {"jax", "rounding"}
    assert all(len(reason) > 10 for _, reason in suite.exceptions().values())


def test_a_wrong_derivative_is_found(suite):
    right = {"gradient": np.array([1.0, 2.0]), "objective": np.array(3.0)}
    wrong = {"gradient": np.array([1.0, 2.0 + 1e-6]), "objective": np.array(3.0)}
    what, far = suite.difference(wrong, right)
    assert what == "gradient"
    assert far > suite.TOLERANCE
