"""Functions and layers of `paddle.jit`: compiled, saved and loaded."""

from __future__ import annotations

from numpy.testing import assert_allclose

import primgraph.compat.paddle as paddle


def test_a_compiled_layer_is_saved_and_loaded(tmp_path) -> None:
    model = paddle.nn.Sequential(paddle.nn.Linear(2, 3), paddle.nn.BatchNorm1D(3))
    x = paddle.to_tensor([[1.0, 2.0], [3.0, -1.0]])
    compiled = paddle.jit.to_static(model)
    compiled(x).sum().backward()
    assert model[0].weight.grad is not None
    model.eval()
    expected = model(x).numpy()
    spec = [paddle.static.InputSpec([None, 2], "float32", "x")]
    paddle.jit.save(model, str(tmp_path / "model"), spec)
    assert_allclose(paddle.jit.load(str(tmp_path / "model"))(x).numpy(), expected, rtol=1e-6)


def test_a_branch_on_elements_is_computed_eagerly() -> None:
    @paddle.jit.to_static
    def f(x):
        return x * 2.0 if x.sum() > 0.0 else x - 1.0

    assert f(paddle.ones([2])).tolist() == [2.0, 2.0]
    assert f(-paddle.ones([2])).tolist() == [-2.0, -2.0]
