"""Loops and branches in a static program: Newton's root, a power iteration, and a cost by parts."""

import numpy as np
import paddle
from paddle import static


def build_root():
    """The square root by Newton's iteration in a while_loop."""
    program = static.Program()
    with static.program_guard(program):
        a = static.data("a", [1], "float64")
        x = paddle.full([1], 1.0, "float64")
        count = paddle.full([1], 0, "int64")

        def unfinished(x, count):
            error = paddle.abs(x * x - a)
            return paddle.logical_and(error > 1e-12, count < 50)

        def step(x, count):
            return [0.5 * (x + a / x), count + 1]

        x, count = static.nn.while_loop(unfinished, step, [x, count])
    return program, [x, count]


def build_power_iteration(size, steps):
    program = static.Program()
    with static.program_guard(program):
        matrix = static.data("matrix", [size, size], "float64")
        v = paddle.ones([size, 1], "float64")
        i = paddle.full([1], 0, "int64")

        def body(i, v):
            w = paddle.matmul(matrix, v)
            return [i + 1, w / paddle.sqrt(paddle.sum(w * w))]

        i, v = static.nn.while_loop(lambda i, v: i < steps, body, [i, v])
        value = paddle.sum(v * paddle.matmul(matrix, v))
    return program, [value, v]


def build_huber():
    """A loss by parts with a gradient through cond, and its choice by switch_case."""
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [1], "float64")
        x.stop_gradient = False
        kind = static.data("kind", [1], "int32")
        huber = static.nn.cond(
            paddle.abs(x) < 1.0, lambda: 0.5 * x * x, lambda: paddle.abs(x) - 0.5
        )
        (slope,) = static.gradients(huber, x)
        chosen = static.nn.switch_case(
            kind,
            branch_fns={0: lambda: x * 2.0, 1: lambda: x * x},
            default=lambda: x * 0.0 - 1.0,
        )
        label = static.nn.case(
            [(x < -1.0, lambda: paddle.full([1], 0.0)), (x < 1.0, lambda: paddle.full([1], 1.0))],
            default=lambda: paddle.full([1], 2.0),
        )
    return program, [huber, slope, chosen, label]


def main():
    paddle.enable_static()
    executor = static.Executor(paddle.CPUPlace())
    program, fetch = build_root()
    roots = [executor.run(program, feed={"a": np.array([a])}, fetch_list=fetch) for a in (2.0, 9.0)]
    matrix = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]])
    program, fetch = build_power_iteration(3, steps=60)
    value, vector = executor.run(program, feed={"matrix": matrix}, fetch_list=fetch)
    program, fetch = build_huber()
    rows = []
    for x, kind in ((-2.0, 0), (0.5, 1), (3.0, 7)):
        feed = {"x": np.array([x]), "kind": np.array([kind], "int32")}
        rows.append([r[0] for r in executor.run(program, feed=feed, fetch_list=fetch)])
    paddle.disable_static()
    return {
        "roots": np.array([r[0][0] for r in roots]),
        "counts": [int(r[1][0]) for r in roots],
        "value": float(value),
        "vector": vector[:, 0],
        "rows": np.array(rows, dtype="float64"),
    }
