"""Functions imported from other libraries, and what the importers share."""

import pickle
import sys
import warnings

import numpy as np
import pytest

import primgraph as pg
from primgraph.interop import lacking


def _scaled(x, options):
    return {"y": x * options["scale"], "sum": pg.sum(x)}


def imported(size="N", dtype=None):
    """A function of an array and a dict."""
    return pg.interop.Imported(pg.trace(_scaled, pg.spec((size,), dtype), {"scale": pg.spec(())}))


def test_an_imported_function_takes_arrays_tensors_and_variables():
    scaled, x = imported(), np.arange(3.0)
    assert scaled(x, {"scale": 2.0})["y"].tolist() == [0.0, 2.0, 4.0]
    assert scaled(pg.tensor(x), {"scale": 2.0})["y"].numpy().tolist() == [0.0, 2.0, 4.0]
    graph = pg.trace(lambda x: scaled(x, {"scale": 2.0})["y"], pg.spec(5))
    assert graph.output_types == (pg.spec(5),)
    assert scaled(options={"scale": 1.0}, x=x)["sum"] == 3.0


def test_an_imported_function_is_differentiated_compiled_and_batched():
    scaled, x = imported(), np.arange(3.0)

    def loss(x):
        return pg.sum(scaled(x, {"scale": x[1]})["y"] ** 2)

    expected = pg.grad(lambda x: pg.sum((x * x[1]) ** 2))(x)
    assert pg.grad(loss)(x).tolist() == expected.tolist()
    assert pg.jit(pg.grad(loss))(x).tolist() == expected.tolist()
    assert pg.hessian(loss)(x).shape == (3, 3)
    rows = pg.vmap(lambda row: scaled(row, {"scale": 3.0})["y"])(np.ones((2, 4)))
    assert rows.tolist() == (3.0 * np.ones((2, 4))).tolist()


def test_symbolic_sizes_fit_symbolic_sizes():
    scaled = imported()
    graph = pg.trace(lambda x: scaled(x, {"scale": 2.0})["y"], pg.spec(("M",)))
    assert str(graph.output_types[0]) == "f64[M]"


def test_tensors_take_part_in_gradients():
    x = pg.tensor([1.0, 2.0], requires_grad=True)
    imported()(x, {"scale": 2.0})["sum"].backward()
    assert x.grad.numpy().tolist() == [1.0, 1.0]


def test_other_arguments_are_refused():
    scaled = imported(3)
    with pytest.raises(pg.FeedError, match=r"input 'x' is f64\[3\].*shape \(4,\)"):
        scaled(np.ones(4), {"scale": 1.0})
    with pytest.raises(pg.DTypeError, match=r"input 'x' is f64\[3\].*complex128"):
        scaled(np.ones(3, complex), {"scale": 1.0})
    with pytest.raises(pg.FeedError):
        scaled(np.ones(3), {"factor": 1.0})
    assert imported(3, "float32")(np.ones(3), {"scale": 1})["y"].dtype == np.float64


def test_an_imported_function_is_pickled():
    again = pickle.loads(pickle.dumps(imported()))
    assert again(np.ones(2), {"scale": 2.0})["sum"] == 2.0


def test_all_operators_that_are_lacking_are_listed():
    found = lacking.Lacking("from_jax", "JAX")
    found.require_none()
    found.add("all_to_all", "model.py:12")
    found.add("psum")
    found.add("all_to_all", "model.py:13")
    with pytest.raises(pg.UnsupportedError) as raised:
        found.require_none()
    assert "all_to_all (2 times, first at model.py:12); psum (once)" in str(raised.value)


def test_a_newer_version_warns_once(monkeypatch):
    monkeypatch.setattr(lacking, "_told", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lacking.check_version("jax", "0.10.9")
    with pytest.warns(pg.interop.VersionWarning, match="jax 99.1.0 is newer"):
        lacking.check_version("jax", "99.1.0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lacking.check_version("jax", "99.1.0")


@pytest.mark.parametrize("suffix, library", [("onnx", "onnx"), ("mlir", "jax")])
def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch, tmp_path, suffix, library):
    monkeypatch.setitem(sys.modules, library, None)
    kernel = pg.compile(pg.trace(lambda x: 2.0 * x, pg.spec(3)))
    message = rf"kernel.save needs {library}, .* pip install 'primgraph\[{library}\]'"
    with pytest.raises(ModuleNotFoundError, match=message):
        kernel.save(tmp_path / f"model.{suffix}")
    importer = pg.interop.from_onnx if library == "onnx" else pg.interop.from_jax
    with pytest.raises(ModuleNotFoundError, match=f"{importer.__name__} needs {library}"):
        importer(np.sin)
