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


class Regularized(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.dropout = paddle.nn.BatchNorm1D(3, momentum=0.5), paddle.nn.Dropout(0.5)
        self.fc = paddle.nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(self.dropout(self.norm(x)))


def test_a_loaded_layer_trains_as_the_saved_one_does(tmp_path) -> None:
    model, path = Regularized(), str(tmp_path / "model")
    paddle.jit.save(model, path, [paddle.static.InputSpec([None, 3], "float32")])
    assert model.training
    loaded = paddle.jit.load(path)
    x = paddle.to_tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 0.0]])
    model.eval()
    assert_allclose(loaded(x).numpy(), model(x).numpy(), rtol=1e-6)
    loaded.train()
    first, second = loaded(x), loaded(x)
    assert first.tolist() != second.tolist()
    (first.sum() + second.sum()).backward()
    assert len(loaded.parameters()) == 4
    assert all(p.grad is not None for p in loaded.parameters())
    model.train()
    model(x), model(x)
    model.eval(), loaded.eval()
    # The running statistics are those of two batches.
    assert_allclose(loaded(x).numpy(), model(x).numpy(), rtol=1e-6)
    assert len(loaded.state_dict()) == len(model.state_dict())


def test_a_state_dict_of_a_loaded_layer_is_stored(tmp_path) -> None:
    model, path = paddle.nn.Linear(2, 1), str(tmp_path / "model")
    paddle.jit.save(model, path, [paddle.ones([1, 2])])
    loaded, x = paddle.jit.load(path), paddle.ones([1, 2])
    zeros = {name: paddle.zeros_like(value) for name, value in loaded.state_dict().items()}
    assert loaded.set_state_dict(zeros) == ([], [])
    assert loaded(x).tolist() == [[0.0]]
