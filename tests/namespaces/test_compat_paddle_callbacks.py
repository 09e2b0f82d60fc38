"""Callbacks of `paddle.Model.fit` where they stop, save, and change the learning rate."""

from __future__ import annotations

import numpy as np
import pytest

import primgraph.compat.paddle as paddle

DATA = [(np.full(1, x, "float32"), np.full(1, 2 * x, "float32")) for x in (1.0, 2.0, 3.0, 4.0)]


def make_model(rate=0.01, metrics=None):
    net = paddle.nn.Linear(1, 1)
    net.weight.set_value(np.zeros((1, 1), "float32"))
    net.bias.set_value(np.zeros(1, "float32"))
    model = paddle.Model(net)
    optimizer = paddle.optimizer.SGD(rate, parameters=net.parameters())
    model.prepare(optimizer, paddle.nn.MSELoss(), metrics)
    return model


def test_the_schedule_is_stepped_after_each_batch_by_default() -> None:
    model = make_model(paddle.optimizer.lr.StepDecay(0.01, step_size=2))
    model.fit(DATA, batch_size=2, epochs=3, verbose=0)
    assert model._optimizer._learning_rate.last_epoch == 6
    by_epoch = make_model(paddle.optimizer.lr.StepDecay(0.01, step_size=2))
    scheduler = paddle.callbacks.LRScheduler(by_step=False, by_epoch=True)
    by_epoch.fit(DATA, batch_size=2, epochs=3, verbose=0, callbacks=scheduler)
    assert by_epoch._optimizer._learning_rate.last_epoch == 3
    with pytest.raises(ValueError, match="mutually exclusive"):
        paddle.callbacks.LRScheduler(True, True)


def test_shuffled_epochs_are_those_of_paddle() -> None:
    seen: list[int] = []

    class Noted(list):
        def __getitem__(self, index):
            seen.append(index)
            return super().__getitem__(index)

    make_model().fit(Noted(DATA), batch_size=2, epochs=2, verbose=0)
    orders = [np.random.RandomState(epoch).permutation(4).tolist() for epoch in range(2)]
    assert seen == orders[0] + orders[1]


def test_training_stops_where_a_value_does_not_improve(tmp_path, capsys) -> None:
    model = make_model(rate=0.0)
    early = paddle.callbacks.EarlyStopping("loss", patience=2)
    model.fit(
        DATA, DATA, batch_size=2, epochs=9, verbose=0, callbacks=[early], save_dir=str(tmp_path)
    )
    assert early.stopped_epoch == 3
    printed = capsys.readouterr().out
    assert "Epoch 3: Early stopping." in printed
    assert "save checkpoint at" in printed
    assert (tmp_path / "best_model.pdparams").exists()
    assert (tmp_path / "final.pdparams").exists()
    with pytest.warns(UserWarning, match="Monitor of EarlyStopping"):
        model.fit(DATA, DATA, verbose=0, callbacks=paddle.callbacks.EarlyStopping("acc", verbose=0))


def test_the_rate_is_reduced_on_a_plateau() -> None:
    model = make_model(rate=0.01)
    reduce = paddle.callbacks.ReduceLROnPlateau(factor=0.5, patience=1, min_delta=100.0, verbose=0)
    model.fit(DATA, DATA, epochs=4, verbose=0, callbacks=reduce)
    assert model._optimizer.get_lr() == pytest.approx(0.01 * 0.5**3)
    with pytest.raises(ValueError, match="factor"):
        paddle.callbacks.ReduceLROnPlateau(factor=1.0)


def test_lines_have_losses_and_metrics(capsys) -> None:
    model = make_model(metrics=None)
    model.fit(DATA, DATA, batch_size=2, log_freq=1, verbose=2, num_iters=1, shuffle=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Epoch 1/1"
    assert lines[2].startswith("step 1/1 - loss: 10.0000 - ")
    assert lines[3] == "Eval begin..."
    assert lines[-1] == "Eval samples: 4"
    model.evaluate(DATA, batch_size=4, verbose=1)
    assert "step 1/1 [==============================] - loss: " in capsys.readouterr().out
    model.predict(DATA, batch_size=4)
    assert "Predict samples: 4" in capsys.readouterr().out


def test_gradients_accumulate_over_batches() -> None:
    together, apart = make_model(), make_model()
    together.fit(DATA, batch_size=2, verbose=0, shuffle=False, accumulate_grad_batches=2)
    for x, y in DATA:
        apart.network(paddle.to_tensor(x[None])).subtract(paddle.to_tensor(y[None])).square().mul(
            paddle.to_tensor(0.5)
        ).sum().backward()
    apart._optimizer.step()
    weights = [float(m.network.weight) for m in (together, apart)]
    assert weights[0] == pytest.approx(weights[1])
