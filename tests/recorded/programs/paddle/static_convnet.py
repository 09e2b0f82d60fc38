"""Static training of a convolutional network, with checkpoints and inference."""

import numpy as np
import paddle
import paddle.static as static


def attr(rng, *shape, name=None, l2=None):
    value = rng.normal(0, 0.4, shape).astype("float32")
    return paddle.ParamAttr(
        name=name,
        initializer=paddle.nn.initializer.Assign(value),
        regularizer=paddle.regularizer.L2Decay(l2) if l2 else None,
    )


def convnet(image, rng):
    conv = paddle.nn.Conv2D(
        1,
        3,
        3,
        padding=1,
        bias_attr=False,
        weight_attr=attr(rng, 3, 1, 3, 3, name="conv.w", l2=1e-2),
    )(image)
    bn = paddle.nn.functional.relu(paddle.nn.BatchNorm2D(3, momentum=0.7)(conv))
    pool = paddle.nn.functional.max_pool2d(bn, kernel_size=2, stride=2)
    hidden = static.nn.fc(pool, 6, weight_attr=attr(rng, 12, 6), activation="relu")
    hidden = paddle.nn.functional.dropout(hidden, p=0.0)
    return static.nn.fc(hidden, 3, weight_attr=attr(rng, 6, 3, name="out.w"))


def build(rng):
    main_prog, startup = static.Program(), static.Program()
    with static.program_guard(main_prog, startup):
        with static.name_scope("input"):
            image = static.data("image", [None, 1, 4, 4], "float32")
            label = static.data("label", [None, 1], "int64")
        logits = convnet(image, rng)
        cost = paddle.nn.functional.softmax_with_cross_entropy(logits, label)
        avg_cost = paddle.mean(cost)
        acc = static.accuracy(input=paddle.nn.functional.softmax(logits), label=label, k=1)
        scheduler = paddle.optimizer.lr.PiecewiseDecay([2, 4], [0.1, 0.05, 0.01])
        opt = paddle.optimizer.Adam(
            learning_rate=scheduler, epsilon=1e-6, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.5)
        )
        _, params_grads = opt.minimize(avg_cost)
    return main_prog, startup, (image, label, logits, avg_cost, acc), scheduler, params_grads


def main():
    paddle.enable_static()
    rng = np.random.default_rng(77)
    data = rng.normal(size=(12, 1, 4, 4)).astype("float32")
    labels = rng.integers(0, 3, (12, 1))
    main_prog, startup, fetch, scheduler, pg = build(rng)
    image, _label, logits, avg_cost, acc = fetch
    place = paddle.CPUPlace()
    exe = static.Executor(place)
    static.Scope() if hasattr(static, "Scope") else static.global_scope()
    exe.run(startup)
    rows, evals = [], []
    for _epoch in range(3):
        for start in range(0, 12, 6):
            feed = {"image": data[start : start + 6], "label": labels[start : start + 6]}
            loss, a = exe.run(main_prog, feed=feed, fetch_list=[avg_cost, acc])
            rows.append([loss.item(), a.item(), scheduler.get_lr()])
            scheduler.step()
        evals.append(np.array(static.global_scope().find_var("out.w").get_tensor()))
    static.save(main_prog, "./ckpt/model")
    before = np.array(static.global_scope().find_var("out.w").get_tensor())
    exe.run(startup)
    reset = np.array(static.global_scope().find_var("out.w").get_tensor())
    static.load(main_prog, "./ckpt/model", exe)
    after = np.array(static.global_scope().find_var("out.w").get_tensor())
    state = static.load_program_state("./ckpt/model")
    static.set_program_state(main_prog, state)
    path = "./infer/model"
    static.save_inference_model(path, [image], [logits], exe, program=main_prog)
    prog, names, targets = static.load_inference_model(path, exe)
    served = exe.run(prog, feed={names[0]: data[:2]}, fetch_list=targets)[0]
    print([p.name for p, g in pg if p.name in ("conv.w", "out.w")])
    paddle.disable_static()
    return {
        "rows": rows,
        "evals": evals,
        "before": before,
        "restored": np.allclose(before, after),
        "changed": not np.allclose(before, reset),
        "served": served,
        "mean": sorted(k for k in state if "out" in k),
        "names": names,
        "out.w": "out.w" in state,
    }
