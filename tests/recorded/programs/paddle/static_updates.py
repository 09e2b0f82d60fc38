"""Static programs: append_backward, gradients of cond and while_loop, and hand-written updates."""

import numpy as np
import paddle
import paddle.static as static

paddle.enable_static()


def gated(x, w):
    score = paddle.sum(paddle.matmul(x, w))
    return static.nn.cond(score > 0, lambda: paddle.tanh(score) * 2.0, lambda: score * score * 0.1)


def unrolled(x, w, steps):
    i = paddle.zeros([1], dtype="int64")
    n = paddle.full([1], steps, "int64")
    h = paddle.matmul(x, w)

    def cond(i, n, h):
        return paddle.less_than(i, n)

    def body(i, n, h):
        h = paddle.tanh(h * 0.5 + paddle.matmul(x, w))
        i = paddle.increment(i)
        return [i, n, h]

    i, n, h = static.nn.while_loop(cond, body, [i, n, h])
    return h


def main():
    paddle.enable_static()
    rng = np.random.default_rng(1)
    w0 = rng.normal(0, 0.5, (3, 2)).astype("float32")
    main_prog, startup = static.Program(), static.Program()
    with static.program_guard(main_prog, startup):
        x = static.data(name="x", shape=[None, 3], dtype="float32")
        w = static.create_parameter(
            [3, 2],
            "float32",
            name="w",
            attr=paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Assign(w0)),
        )
        step = static.create_parameter(
            [1],
            "float32",
            attr=paddle.ParamAttr(
                name="step", trainable=False, initializer=paddle.nn.initializer.Constant(0.0)
            ),
        )
        loss = paddle.mean(gated(x, w))
        pairs = static.append_backward(loss, parameter_list=[w])
        for param, grad in pairs:
            paddle.assign(param - 0.1 * grad, output=param)
        paddle.assign(step + 1.0, step)
        pairs_names = [p.name for p, _ in pairs]
    exe = static.Executor(paddle.CPUPlace())
    exe.run(startup)
    batches = [rng.normal(size=(n, 3)).astype("float32") for n in (4, 2, 4, 5)]
    rows = []
    for b in batches:
        out = exe.run(main_prog, feed={"x": b}, fetch_list=[loss, pairs[0][1], step])
        rows.append([out[0].item(), out[1], out[2]])
    final = np.array(static.global_scope().find_var("w").get_tensor())
    second, startup2 = static.Program(), static.Program()
    with static.program_guard(second, startup2):
        x = static.data("x", [2, 3], "float32")
        x.stop_gradient = False
        w = static.data("w", [3, 2], "float32")
        w.stop_gradient = False
        h = unrolled(x, w, 3)
        y = paddle.sum(h * h)
        gx, gw = static.gradients([y], [x, w])
        seeds = static.data("seeds", [2, 2], "float32")
        (gs,) = static.gradients([paddle.matmul(x, w)], [w], target_gradients=[seeds])
    feed = {"x": batches[1], "w": w0, "seeds": np.ones((2, 2), "float32")}
    found = exe.run(second, feed=feed, fetch_list=[h, y, gx, gw, gs])
    third = static.Program()
    with static.program_guard(third):
        z = static.data("z", [3], "float64")
        z.stop_gradient = False
        f = paddle.sum(paddle.sin(z) * z * z)
        (g,) = static.gradients(f, z)
        (h2,) = static.gradients(paddle.sum(g), z)
        (h3,) = static.gradients(h2, z, no_grad_set=None)
    higher = exe.run(third, feed={"z": np.array([0.3, -1.0, 2.0])}, fetch_list=[f, g, h2, h3])
    print(x.shape, x.dtype, w.name)
    paddle.disable_static()
    return {"rows": rows, "final": final, "names": pairs_names, "found": found, "higher": higher}
