"""Functions and layers that OneFlow has beside those of torch, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph.compat.oneflow as flow
from primgraph.compat.oneflow import nn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4))


def test_gathers_and_scatters_by_coordinates() -> None:
    index = np.array([[0, 2], [1, 0]])
    assert_array_equal(
        flow.gather_nd(flow.tensor(X), flow.tensor(index)).numpy(), X[[0, 1], [2, 0]]
    )
    updated = X.copy()
    updated[[0, 1], [2, 0]] = 5.0
    update = flow.full((2, 4), 5.0, dtype=flow.float64)
    found = flow.tensor_scatter_nd_update(flow.tensor(X), flow.tensor(index), update)
    assert_array_equal(found.numpy(), updated)
    summed = flow.scatter_nd(flow.tensor([[0, 1], [0, 1]]), flow.tensor([1.0, 2.0]), (2, 2))
    assert summed.tolist() == [[0.0, 3.0], [0.0, 0.0]]
    places = RNG.integers(0, 3, (2, 5))
    assert_array_equal(
        flow.batch_gather(flow.tensor(X), flow.tensor(places)).numpy(),
        np.stack([x[k] for x, k in zip(X, places, strict=True)]),
    )
    with pytest.raises(ValueError, match="do not fit"):
        flow.batch_gather(flow.tensor(X), flow.tensor(np.zeros((3, 1), int)))


def test_gradients_go_through_gathers() -> None:
    x = flow.tensor(X, requires_grad=True)
    flow.gather_nd(x, flow.tensor([[1, 2], [1, 2]])).sum().backward()
    expected = np.zeros_like(X)
    expected[1, 2] = 2.0
    assert_array_equal(x.grad.numpy(), expected)


def test_slices_are_parts_and_are_updated() -> None:
    x = flow.tensor(X)
    parts = [(0, 1, 1), (None, None, 2), (1, 4, 1)]
    assert_array_equal(flow.slice(x, parts).numpy(), X[0:1, ::2, 1:4])
    flow.slice_update(x, flow.zeros(1, 2, 3, dtype=flow.float64), parts)
    changed = X.copy()
    changed[0:1, ::2, 1:4] = 0.0
    assert_array_equal(x.numpy(), changed)


def test_broadcasts_in_place_functions_and_ranks() -> None:
    x = flow.tensor([1.5, -2.5])
    assert flow.broadcast_like(x, flow.zeros(2, 3), (1,)).tolist() == [[1.5] * 3, [-2.5] * 3]
    assert flow.ceil_(x) is x
    assert x.tolist() == [2.0, -2.0]
    scores = flow.tensor(RNG.normal(size=(6, 5)))
    targets = flow.tensor(RNG.integers(0, 5, 6))
    order = np.argsort(-scores.numpy(), axis=1)[:, :2]
    expected = (order == targets.numpy()[:, None]).any(1)
    assert_array_equal(flow.in_top_k(targets, scores, 2).numpy(), expected)


def test_layers_compute_their_formulas() -> None:
    x = flow.tensor(X)
    root = np.sqrt((X**2).mean(-1, keepdims=True) + 1e-6)
    assert_allclose(nn.RMSLayerNorm(4).double()(x).detach().numpy(), X / root)
    images = flow.tensor(RNG.normal(size=(2, 3, 4, 4)))
    fused, plain = nn.FusedBatchNorm2d(3).double(), nn.BatchNorm2d(3).double()
    added = flow.relu(plain(images) + images)
    assert_allclose(fused(images, images).detach().numpy(), added.detach().numpy())
    assert_allclose(nn.functional.quick_gelu(x).numpy(), X / (1 + np.exp(-1.702 * X)))
    cosines = flow.tensor([[0.3, 0.8], [-0.2, 0.5]])
    margins = nn.CombinedMarginLoss(1.0, 0.5, 0.1)(cosines, flow.tensor([1, 0]))
    expected = np.cos(np.arccos([0.8, -0.2]) + 0.5) - 0.1
    assert_allclose(margins.numpy(), [[0.3, expected[0]], [expected[1], 0.5]], rtol=1e-6)


def test_functions_of_utils_are_in_nn() -> None:
    layer = nn.weight_norm(nn.Linear(2, 3))
    assert sorted(name for name, _ in layer.named_parameters()) == ["bias", "weight_g", "weight_v"]
    assert nn.clip_grad_norm_ is nn.utils.clip_grad_norm_
