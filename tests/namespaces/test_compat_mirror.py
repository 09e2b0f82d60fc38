"""`primgraph.compat.oneflow` has the code of each of torch's modules, with classes of its own."""

import importlib
import inspect
import pickle
import pkgutil
from types import ModuleType

import pytest

import primgraph.compat.oneflow as flow
import primgraph.compat.oneflow.nn.functional as F
import primgraph.compat.torch as torch
from primgraph.compat.oneflow import nn
from primgraph.compat.oneflow.nn import Linear

TORCH = "primgraph.compat.torch"
ONEFLOW = "primgraph.compat.oneflow"
# OneFlow has no averages of weights.
LACKING = f"{TORCH}.optim.swa_utils"
MODULES = [m.name for m in pkgutil.walk_packages(torch.__path__, f"{TORCH}.") if m.name != LACKING]


def copy_of(name: str) -> ModuleType:
    return importlib.import_module(name.replace(TORCH, ONEFLOW))


@pytest.mark.parametrize("name", MODULES)
def test_each_module_of_torch_exists_in_oneflow_with_classes_of_its_own(name):
    for short, value in vars(copy_of(name)).items():
        is_torchs = getattr(value, "__module__", "").startswith(TORCH)
        assert not (is_torchs and (inspect.isclass(value) or inspect.isfunction(value))), short
        assert not (inspect.ismodule(value) and value.__name__.startswith(TORCH)), short


@pytest.mark.parametrize("line", ["import {}.optim.swa_utils", "from {}.optim import swa_utils"])
def test_modules_that_oneflow_lacks_are_named(line: str) -> None:
    with pytest.raises(ImportError, match="swa_utils"):
        exec(line.format(ONEFLOW))


def test_schedules_and_optimizers_are_of_one_library() -> None:
    rates = flow.optim.lr_scheduler
    weight = flow.ones(1, requires_grad=True)
    optimizer = flow.optim.SGD([weight], lr=1.0)
    assert isinstance(optimizer, flow.optim.Optimizer)
    assert not isinstance(optimizer, torch.optim.Optimizer)
    assert rates.LRScheduler is not torch.optim.lr_scheduler.LRScheduler
    plateau = rates.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    for loss in (1.0, 2.0):
        plateau.step(loss)
    assert optimizer.param_groups[0]["lr"] == 0.5
    with pytest.raises(TypeError, match="not an Optimizer"):
        rates.StepLR(torch.optim.SGD([torch.ones(1, requires_grad=True)]), 1)


def test_names_of_torch_are_those_of_oneflow():
    assert set(torch.__all__) - set(flow.__all__) == {"func", "vmap"}
    assert all(hasattr(flow, name) for name in flow.__all__)


def test_parameters_and_results_are_tensors_of_oneflow():
    layer = Linear(2, 3)
    assert isinstance(layer.weight, flow.Tensor)
    assert not isinstance(layer.weight, torch.Tensor)
    assert type(F.relu(layer(flow.ones(1, 2)))) is flow.Tensor
    assert "oneflow.float32" in repr(flow.ones(2))


def test_default_dtypes_are_independent():
    flow.set_default_dtype(flow.float64)
    try:
        assert flow.ones(2).dtype == flow.float64
        assert torch.ones(2).dtype == torch.float32
    finally:
        flow.set_default_dtype(flow.float32)


def test_modules_are_like_those_that_have_files():
    assert nn.functional is F
    assert nn.__name__ == f"{ONEFLOW}.nn"
    assert inspect.getsource(F) == inspect.getsource(torch.nn.functional)
    assert inspect.getsource(Linear).startswith("class Linear")
    assert pickle.loads(pickle.dumps(Linear)) is Linear
    with pytest.raises(ModuleNotFoundError, match=r"oneflow\.nothing"):
        importlib.import_module(f"{ONEFLOW}.nothing")


def test_texts_name_oneflow() -> None:
    assert "oneflow.ones" in (flow.ones.__doc__ or "")
    assert repr(flow.ones(2, 3).shape) == "oneflow.Size([2, 3])"
    assert repr(torch.ones(2, 3).shape) == "torch.Size([2, 3])"
    with pytest.raises(AttributeError, match=r"oneflow\.nn\.Nothing is not part"):
        nn.Nothing  # noqa: B018
