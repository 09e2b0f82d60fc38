"""What `pg.distributed` does without dask, and that it is not loaded before it is used."""

import subprocess
import sys

import numpy as np
import pytest

import primgraph as pg
from primgraph.distributed import parcels

ALONE = """
import sys
sys.modules["dask"] = sys.modules["distributed"] = None
import numpy as np
import primgraph as pg

assert "primgraph.distributed" not in sys.modules
assert pg.distributed.value_and_grad
calls = [
    lambda: pg.distributed.value_and_grad(lambda w, x: pg.sum(x @ w))(np.ones(3), np.ones((4, 3))),
    lambda: pg.distributed.map(lambda x: x, np.ones((4, 3))),
]
for call in calls:
    try:
        call()
    except pg.OptionError as error:
        assert "pg.distributed needs dask" in str(error), error
        assert "pip install 'primgraph[dask]'" in str(error), error
    else:
        raise AssertionError("it ran")
"""


def test_without_dask_the_error_names_the_extra():
    command = [sys.executable, "-W", "error", "-c", ALONE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def kernel_parts(function, *specs):
    kernel = pg.compile(pg.trace(function, *specs))
    return kernel.graph, "planned", {}, None, (), ()


def test_a_kernel_travels_as_a_graph_and_is_compiled_once():
    parts = kernel_parts(lambda x: pg.tanh(x) * 2.0, pg.spec(3))
    (parcel, large), (again, _) = parcels.pack(parts), parcels.pack(parts)
    assert large == []
    assert parcel == again
    assert parcel.nbytes < 4_000
    kernel = parcels.open_parcel(parcel)
    assert parcels.open_parcel(again) is kernel
    np.testing.assert_array_equal(kernel(np.ones(3)), np.tanh(np.ones(3)) * 2.0)


def test_large_constants_travel_beside_the_graph():
    table = np.random.default_rng(0).standard_normal((300, 200))
    parcel, large = parcels.pack(kernel_parts(lambda x: x @ table, pg.spec(300)))
    assert [a.nbytes for a in large] == [table.nbytes]
    assert parcel.nbytes < 8_000
    found = parcels.open_parcel(parcel, large)(np.ones(300))
    np.testing.assert_allclose(found, np.ones(300) @ table)
    (other, _) = parcels.pack(kernel_parts(lambda x: x @ (table + 1.0), pg.spec(300)))
    assert other.digest != parcel.digest


def test_a_kernel_of_another_version_is_refused_by_name(monkeypatch):
    parcel, _ = parcels.pack(kernel_parts(lambda x: x + 1.0, pg.spec(3)))
    assert parcel.version == pg.__version__
    monkeypatch.setattr(pg, "__version__", "99.0")
    with pytest.raises(pg.LoadError, match=rf"made by primgraph {parcel.version}, and here is 99"):
        parcels.open_parcel(parcel)


def test_a_graph_of_many_equations_is_packed_small():
    def chain(x):
        for i in range(3_000):
            x = pg.sin(x) + float(i)
        return x

    parcel, _ = parcels.pack(kernel_parts(chain, pg.spec(2)))
    assert parcel.nbytes < 60 * 3_000


def test_value_and_grad_is_called_as_that_of_a_function_on_one_machine():
    for call in (
        lambda f: pg.distributed.value_and_grad(f, np.ones(3), np.ones((4, 3))),
        lambda f: pg.distributed.value_and_grad(f)(np.ones(3)),
    ):
        with pytest.raises(pg.ArgumentError, match=r"value_and_grad\(f.*\)\(params, data\)"):
            call(lambda w, x: pg.sum(x @ w))
