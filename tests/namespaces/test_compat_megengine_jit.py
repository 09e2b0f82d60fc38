"""`megengine.jit.trace`, files of traced functions, devices, loggers and what there is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import primgraph as pg
import primgraph.compat.megengine as mge
import primgraph.compat.megengine.functional as F
import primgraph.compat.megengine.module as M
from primgraph.compat.megengine.autodiff import GradManager
from primgraph.compat.megengine.jit import exclude_from_trace, is_tracing, trace
from primgraph.errors import OptionError, UnknownNameError

X = np.random.default_rng(5).normal(size=(4, 2)).astype("float32")


@pytest.mark.parametrize("symbolic", [False, True])
def test_a_traced_training_step_trains(symbolic: bool) -> None:
    w = mge.Parameter(np.ones((2, 1)))
    gm = GradManager().attach([w], callbacks=None)

    @trace(symbolic=symbolic)
    def step(x: Any) -> Any:
        assert is_tracing()
        with gm:
            loss = F.mean(F.matmul(x, w) ** 2)
            gm.backward(loss)
        w.__isub__(0.1 * w.grad)
        w.grad = None
        with exclude_from_trace():
            assert not is_tracing()
        return loss

    expected = np.ones((2, 1))
    for _ in range(3):
        loss = step(mge.tensor(X))
        y = X @ expected
        assert_allclose(loss.item(), (y**2).mean(), rtol=1e-5)
        expected = expected - 0.1 * 2 * X.T @ y / 4
    assert step.__name__ == "step"
    assert not is_tracing()


def test_a_traced_function_is_dumped_as_a_program(tmp_path: Path) -> None:
    net = M.Sequential(M.Linear(2, 3), M.BatchNorm1d(3), M.ReLU()).eval()
    weights = mge.tensor([1.0, 2.0, 3.0])

    @trace(symbolic=True, capture_as_const=True)
    def infer(x: Any, others: Any, *, factor: float) -> Any:
        h = net(x) * weights * factor
        return {"flat": h.flatten(0), "sum": F.sum(h + others["bias"], axis=1)}

    with pytest.raises(ValueError, match="at least once"):
        infer.dump(tmp_path / "net")
    found = infer(mge.tensor(X), {"bias": mge.tensor([1.0])}, factor=2.0)
    infer.dump(tmp_path / "net", arg_names=["x", "bias"], output_names=["flat", "sum"])
    feeds = {"x": X, "bias": np.ones(1, "float32")}
    flat, total = pg.Executor().run(pg.load(tmp_path / "net"), feeds, ["flat", "sum"])
    assert_allclose(flat, found["flat"].numpy(), rtol=1e-6)
    assert_allclose(total, found["sum"].numpy(), rtol=1e-6)
    infer.dump(tmp_path / "other")
    program = pg.load(tmp_path / "other")
    feeds = {"arg_0": X, "arg_1": np.ones(1, "float32")}
    assert_allclose(pg.Executor().run(program, feeds, ["output_1"])[0], total)


def test_dump_requires_constants_and_names_that_fit(tmp_path: Path) -> None:
    plain = trace(lambda x: x * 2)
    plain(mge.tensor([1.0]))
    with pytest.raises(ValueError, match="capture_as_const"):
        plain.dump(tmp_path / "f")
    captured = trace(lambda x: x * 2, capture_as_const=True)
    captured(mge.tensor([1.0]))
    with pytest.raises(ValueError, match="arg_names"):
        captured.dump(tmp_path / "f", arg_names=["a", "b"])
    with pytest.raises(OptionError, match="profiling"):
        trace(lambda x: x, profiling=True)


def test_methods_are_traced() -> None:
    class Model:
        @trace(symbolic=True)
        def double(self, x: Any) -> Any:
            return 2 * x

    assert Model().double(mge.tensor([2.0])).tolist() == [4.0]


def test_functions_of_tensors_are_compiled_with_megengines_methods() -> None:
    compiled = pg.jit(lambda x: x.transpose(1, "x", 0).flatten(1))
    assert compiled(mge.tensor(X)).shape == (2, 4)


def test_there_is_one_device_and_one_process() -> None:
    mge.set_default_device("cpux")
    assert mge.get_default_device() == "cpux"
    mge.set_default_device()
    with pytest.raises(OptionError, match="gpu0"):
        mge.set_default_device("gpu0")
    assert not mge.is_cuda_available()
    assert (mge.get_device_count("gpu"), mge.get_device_count("cpu")) == (0, 1)
    assert (mge.distributed.get_rank(), mge.distributed.get_world_size()) == (0, 1)


@pytest.mark.parametrize(
    ("module", "name", "reason"),
    [
        (mge, "amp", "dtypes of their operands"),
        (mge, "quantization", "NumPy's dtypes"),
        (mge.distributed, "all_reduce_sum", "one process"),
        (F.vision, "roi_align", "no such operator"),
        (mge.jit, "xla_trace", "pg.jit"),
    ],
)
def test_what_there_is_not_says_why(module: Any, name: str, reason: str) -> None:
    with pytest.raises(UnknownNameError, match=reason):
        getattr(module, name)


def test_loggers_are_pythons(tmp_path: Path) -> None:
    logger = mge.get_logger("primgraph.test")
    assert mge.get_logger("primgraph.test") is logger
    assert len(logger.handlers) == 1
    mge.set_log_file(str(tmp_path / "log"))
    mge.get_logger().info("written")
    assert "written" in (tmp_path / "log").read_text(encoding="utf-8")
    handler = mge.get_logger().handlers[-1]
    handler.close()
    mge.get_logger().removeHandler(handler)
