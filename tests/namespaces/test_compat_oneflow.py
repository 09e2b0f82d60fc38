"""What OneFlow has beside torch's names: placements, distributions, and some functions."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import primgraph.compat.oneflow as flow
import primgraph.compat.oneflow.nn as nn
from primgraph.errors import ArgumentError, OptionError, UnknownNameError

CPU = flow.placement("cpu", ranks=[0])


def test_a_global_tensor_is_the_tensor_with_a_placement() -> None:
    x = flow.ones(2, 3, placement=CPU, sbp=flow.sbp.split(0))
    assert x.is_global
    assert (x.placement, x.sbp) == (CPU, (flow.sbp.split(0),))
    y = flow.tensor([1.0, 2.0], requires_grad=True)
    assert y.is_local
    assert y.to_global(placement=CPU, sbp=[flow.sbp.broadcast]) is y
    assert y.to_global(sbp=flow.sbp.partial_sum).sbp == (flow.sbp.partial_sum,)
    assert y.to_local() is y
    (y * y).sum().backward()
    assert y.grad.tolist() == [2.0, 4.0]
    del x, y
    gc.collect()
    assert not flow.ones(2).is_global


def test_modules_are_placed_as_a_whole() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert model.to_global(placement=CPU, sbp=flow.sbp.broadcast) is model
    assert all(p.is_global for p in model.parameters())
    assert model(flow.ones(4, 2, placement=CPU, sbp=flow.sbp.split(0))).shape == (4, 3)


def test_there_is_one_rank_of_the_cpu() -> None:
    assert repr(CPU) == 'oneflow.placement(type="cpu", ranks=[0])'
    assert flow.placement.all("cpu") == CPU
    assert repr(flow.sbp.split(1)) == "oneflow.sbp.split(dim=1)"
    assert repr(flow.sbp.broadcast) == "oneflow.sbp.broadcast"
    assert (flow.env.get_rank(), flow.env.get_world_size()) == (0, 1)
    with pytest.raises(OptionError, match="cuda"):
        flow.placement("cuda", [0])
    with pytest.raises(OptionError, match="one process"):
        flow.placement("cpu", [0, 1])
    with pytest.raises(ArgumentError, match="split"):
        flow.ones(2).to_global(placement=CPU, sbp="broadcast")
    with pytest.raises(ArgumentError, match="placement"):
        flow.ones(2, placement="cpu")


def test_functions_of_networks_are_at_the_top_too() -> None:
    x = flow.tensor([-1.0, 2.0])
    assert_allclose(flow.silu(x).numpy(), nn.functional.silu(x).numpy())
    assert flow.cast(x, flow.int32).dtype == flow.int32
    assert_allclose(flow.gelu(x).numpy(), [-0.158655, 1.954500], rtol=1e-5)
    assert np.all(flow.softplus(x).numpy() > 0)


@pytest.mark.parametrize("name", ["one_embedding", "comm", "boxing"])
def test_what_there_is_not_says_why(name: str) -> None:
    with pytest.raises(UnknownNameError, match="one process"):
        getattr(flow, name)
