"""Regression by a static program: executor, evaluation by a clone, and an inference model."""

import numpy as np
import paddle
from paddle import static


def initializer(rng, *shape):
    value = rng.normal(0.0, 0.5, shape).astype("float32")
    return paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(value))


def network(x, rng):
    hidden = static.nn.fc(
        x,
        size=5,
        activation="tanh",
        weight_attr=initializer(rng, 3, 5),
        bias_attr=initializer(rng, 5),
    )
    return static.nn.fc(
        hidden, size=1, weight_attr=initializer(rng, 5, 1), bias_attr=initializer(rng, 1)
    )


def build(rng):
    main_program, startup = static.Program(), static.Program()
    with static.program_guard(main_program, startup):
        x = static.data("x", [None, 3], "float32")
        y = static.data("y", [None, 1], "float32")
        prediction = network(x, rng)
        cost = paddle.nn.functional.square_error_cost(prediction, y)
        loss = paddle.mean(cost)
        rate = paddle.optimizer.lr.PolynomialDecay(0.1, decay_steps=4, end_lr=0.02)
        optimizer = paddle.optimizer.SGD(
            learning_rate=rate, grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0)
        )
        optimizer.minimize(loss)
    return main_program, startup, x, prediction, loss, rate


def batches(x, y, size):
    for start in range(0, len(x), size):
        yield {"x": x[start : start + size], "y": y[start : start + size]}


def main():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(12, 3)).astype("float32")
    y = (x[:, :1] - 2 * x[:, 1:2] + 0.5).astype("float32")
    paddle.enable_static()
    main_program, startup, feed, prediction, loss, rate = build(rng)
    executor = static.Executor(paddle.CPUPlace())
    executor.run(startup)
    losses = []
    for _ in range(4):
        for batch in batches(x, y, 6):
            (value,) = executor.run(main_program, feed=batch, fetch_list=[loss])
            losses.append(float(value))
        rate.step()
    static.save_inference_model(
        "./regression", [feed], [prediction], executor, program=main_program
    )
    program, names, targets = static.load_inference_model("./regression", executor)
    (predicted,) = executor.run(program, feed={names[0]: x[:5]}, fetch_list=targets)
    (one,) = executor.run(program, feed={names[0]: x[:1]}, fetch_list=targets)
    paddle.disable_static()
    return {
        "losses": np.array(losses, "float32"),
        "predicted": predicted,
        "one": one,
        "names": names,
        "rate": rate.get_lr(),
    }
