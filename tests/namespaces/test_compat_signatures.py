"""Paddle's functions have Paddle's parameters: names, order and defaults, from its public API."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import primgraph as pg
import primgraph.compat.paddle as paddle
from primgraph.errors import PrimgraphError

SIGNATURES = {
    "paddle.incubate.autograd": """
        Hessian(func, xs, is_batched=False)
        Jacobian(func, xs, is_batched=False)
        disable_prim()
        enable_prim()
        forward_grad(outputs, inputs, grad_inputs=None)
        grad(outputs, inputs, grad_outputs=None)
        jvp(func, xs, v=None)
        orig2prim(block=None)
        prim2orig(block=None, blacklist=None)
        prim_enabled()
        to_prim(blocks, blacklist=frozenset(), whitelist=frozenset(), start_idx=-1,
            backward_length=-1)
        vjp(func, xs, v=None)
    """,
    "paddle.optimizer": """
        ASGD(learning_rate=0.001, batch_num=1, parameters=None, weight_decay=None,
            grad_clip=None, multi_precision=False, name=None)
        Adadelta(learning_rate=0.001, epsilon=1e-06, rho=0.95, parameters=None,
            weight_decay=None, grad_clip=None, name=None)
        Adagrad(learning_rate, epsilon=1e-06, parameters=None, weight_decay=None,
            grad_clip=None, name=None, initial_accumulator_value=0.0)
        Adam(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameters=None,
            weight_decay=None, grad_clip=None, lazy_mode=False, multi_precision=False,
            use_multi_tensor=False, amsgrad=False, name=None)
        AdamW(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameters=None,
            weight_decay=0.01, use_lowprecision_moment=False, lr_ratio=None,
            apply_decay_param_fun=None, grad_clip=None, lazy_mode=False, multi_precision=False,
            amsgrad=False, name=None)
        Adamax(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameters=None,
            weight_decay=None, grad_clip=None, name=None)
        LBFGS(learning_rate=1.0, max_iter=20, max_eval=None, tolerance_grad=1e-07,
            tolerance_change=1e-09, history_size=100, line_search_fn=None, parameters=None,
            weight_decay=None, grad_clip=None, name=None)
        Lamb(learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-06,
            parameters=None, grad_clip=None, exclude_from_weight_decay_fn=None,
            multi_precision=False, always_adapt=False, name=None)
        Momentum(learning_rate=0.001, momentum=0.9, parameters=None, use_nesterov=False,
            weight_decay=None, grad_clip=None, multi_precision=False, rescale_grad=1.0,
            use_multi_tensor=False, name=None)
        NAdam(learning_rate=0.002, beta1=0.9, beta2=0.999, epsilon=1e-08, momentum_decay=0.004,
            parameters=None, weight_decay=None, grad_clip=None, name=None)
        Optimizer(learning_rate, parameters=None, weight_decay=None, grad_clip=None, name=None)
        RAdam(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameters=None,
            weight_decay=None, grad_clip=None, name=None)
        RMSProp(learning_rate, rho=0.95, epsilon=1e-06, momentum=0.0, centered=False,
            parameters=None, weight_decay=None, grad_clip=None, name=None)
        Rprop(learning_rate=0.001, learning_rate_range=(1e-05, 50), parameters=None,
            etas=(0.5, 1.2), grad_clip=None, multi_precision=False, name=None)
        SGD(learning_rate=0.001, parameters=None, weight_decay=None, grad_clip=None,
            multi_precision=False, name=None)
        Adam.minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None)
        Adam.step(self)
        Adam.clear_grad(self, set_to_zero=True)
        Adam.get_lr(self)
        Adam.set_lr(self, value)
        Adam.set_lr_scheduler(self, scheduler)
        Adam.state_dict(self)
        Adam.set_state_dict(self, state_dict)
        Adam.zero_grad(self, set_to_none=True)
    """,
    "paddle.optimizer.lr": """
        CosineAnnealingDecay(learning_rate, T_max, eta_min=0, last_epoch=-1, verbose=False)
        CosineAnnealingWarmRestarts(learning_rate, T_0, T_mult=1, eta_min=0, last_epoch=-1,
            verbose=False)
        CyclicLR(base_learning_rate, max_learning_rate, step_size_up, step_size_down=None,
            mode='triangular', exp_gamma=1.0, scale_fn=None, scale_mode='cycle', last_epoch=-1,
            verbose=False)
        ExponentialDecay(learning_rate, gamma, last_epoch=-1, verbose=False)
        InverseTimeDecay(learning_rate, gamma, last_epoch=-1, verbose=False)
        LRScheduler(learning_rate=0.1, last_epoch=-1, verbose=False)
        LambdaDecay(learning_rate, lr_lambda, last_epoch=-1, verbose=False)
        LinearLR(learning_rate, total_steps, start_factor=0.3333333333333333, end_factor=1.0,
            last_epoch=-1, verbose=False)
        LinearWarmup(learning_rate, warmup_steps, start_lr, end_lr, last_epoch=-1,
            verbose=False)
        MultiStepDecay(learning_rate, milestones, gamma=0.1, last_epoch=-1, verbose=False)
        MultiplicativeDecay(learning_rate, lr_lambda, last_epoch=-1, verbose=False)
        NaturalExpDecay(learning_rate, gamma, last_epoch=-1, verbose=False)
        NoamDecay(d_model, warmup_steps, learning_rate=1.0, last_epoch=-1, verbose=False)
        OneCycleLR(max_learning_rate, total_steps, divide_factor=25.0, end_learning_rate=0.0001,
            phase_pct=0.3, anneal_strategy='cos', three_phase=False, last_epoch=-1, verbose=False)
        PiecewiseDecay(boundaries, values, last_epoch=-1, verbose=False)
        PolynomialDecay(learning_rate, decay_steps, end_lr=0.0001, power=1.0, cycle=False,
            last_epoch=-1, verbose=False)
        ReduceOnPlateau(learning_rate, mode='min', factor=0.1, patience=10, threshold=0.0001,
            threshold_mode='rel', cooldown=0, min_lr=0, epsilon=1e-08, verbose=False)
        StepDecay(learning_rate, step_size, gamma=0.1, last_epoch=-1, verbose=False)
    """,
}  # fmt: skip
LINES = [
    (module, line.strip().partition("(")[0], "(" + line.strip().partition("(")[2])
    for module, lines in SIGNATURES.items()
    for line in lines.strip().replace("\n            ", " ").splitlines()
]


def found(path: str) -> Any:
    thing: Any = paddle
    for part in path.split(".")[1:]:
        thing = getattr(thing, part)
    return thing


def bare(function: Any) -> str:
    """The signature without annotations."""
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


@pytest.mark.parametrize(
    ("module", "name", "signature"), LINES, ids=[f"{m}.{n}" for m, n, _ in LINES]
)
def test_a_signature_is_paddles(module: str, name: str, signature: str) -> None:
    assert bare(found(f"{module}.{name}")) == signature


# What the package has beside functions and classes of Paddle's signatures.
OTHERS = {
    "paddle.incubate.autograd": {"PrimDisabledError"},
}


# Signatures of Paddle's own functions, by path.
RECORDED = dict(
    line.partition("(")[::2]
    for line in (Path(__file__).parent / "paddle_signatures.txt").read_text().splitlines()[1:]
)
# Where names and defaults differ: options that are not there, and a tuple in place of a list.
DIFFERENT = {
    "paddle.arange": "`name` by position, too",
    "paddle.as_tensor": "no `requires_grad` and `pin_memory`",
    "paddle.cumprod": "`name` by position, too",
    "paddle.gather": "no `out`",
    "paddle.grad": "no `dump_backward_graph_path`",
    "paddle.load": "no `configs`",
    "paddle.linalg.matrix_norm": "a tuple of axes",
    "paddle.linalg.norm": "no `out` and `dtype`",
    "paddle.linalg.vector_norm": "no `dtype`",
    "paddle.jit.TranslatedLayer": "made by `load` alone",
    "paddle.jit.to_static": "one back end",
    "paddle.nn.Conv1D": "arguments of earlier versions by position, too",
    "paddle.nn.Conv1d": "arguments of earlier versions by position, too",
    "paddle.nn.Conv2D": "arguments of earlier versions by position, too",
    "paddle.nn.Conv2DTranspose": "a layout by the number of axes",
    "paddle.nn.Conv2d": "arguments of earlier versions by position, too",
    "paddle.nn.Conv3D": "arguments of earlier versions by position, too",
    "paddle.nn.Conv3DTranspose": "a layout by the number of axes",
    "paddle.nn.Conv3d": "arguments of earlier versions by position, too",
    "paddle.nn.Embedding": "arguments of earlier versions by position, too",
    "paddle.nn.GroupNorm": "arguments of earlier versions by position, too",
    "paddle.nn.InstanceNorm1D": "a layout by the number of axes",
    "paddle.nn.InstanceNorm2D": "a layout by the number of axes",
    "paddle.nn.InstanceNorm3D": "a layout by the number of axes",
    "paddle.nn.Layer.state_dict": "arguments by name",
    "paddle.nn.LayerNorm": "arguments of earlier versions by position, too",
    "paddle.nn.Parameter": "a name and attributes, too",
    "paddle.nn.SyncBatchNorm": "`use_global_stats`, too",
    "paddle.static.Print": "options by keyword",
    "paddle.static.Variable": "made by functions alone",
    "paddle.static.save_inference_model": "options by keyword",
    "paddle.asarray": "`device` and `requires_grad`, too",
    "paddle.from_dlpack": "`device`, too",
    "paddle.prod": "no `out`",
    "paddle.rot90": "a tuple of axes",
    "paddle.scatter": "no `out`",
    "paddle.swapaxes": "Paddle's function takes two axes, whatever its signature says",
    "paddle.swapdims": "Paddle's function takes two axes, whatever its signature says",
    "paddle.randint": "the default of `shape` is a tuple",
    "paddle.uniform": "`min` is a float",
}


def test_recorded_signatures_are_those_of_the_functions() -> None:
    different = set()
    for path, signature in RECORDED.items():
        try:
            function = found(path)
        except AttributeError:
            continue
        if not path.endswith("_") and bare(function) != f"({signature}":
            different.add(path)
    assert different == DIFFERENT.keys()


@pytest.mark.parametrize("module", SIGNATURES)
def test_the_table_has_every_function_that_is_offered(module: str) -> None:
    room = found(module)
    names = getattr(room, "__all__", ["SGD", "Adam"])
    offered = {n for n in names if callable(getattr(room, n))}
    assert offered - OTHERS.get(module, set()) == {n for m, n, _ in LINES if m == module} - {
        n for m, n, _ in LINES if "." in n
    }


@pytest.fixture(autouse=True)
def fresh_defaults() -> Any:
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        yield


def run(fetches: Any, **feed: Any) -> list[np.ndarray[Any, Any]]:
    return paddle.static.Executor().run(feed=feed, fetch_list=fetches)


NAMED = [(m, n) for m, n, s in LINES if "name=None)" in s and n[0].islower()]
NAMED = [(m, n) for m, n in NAMED if "create_parameter" not in n]


@pytest.mark.parametrize(("module", "name"), NAMED)
def test_another_argument_in_the_place_of_name_is_refused(module: str, name: str) -> None:
    function = found(f"{module}.{name}")
    parameters = inspect.signature(function).parameters
    x = paddle.static.data("x", (2, 2))
    with pytest.raises(TypeError, match=r"name is a string or None, not 2\.0") as caught:
        function(*(x if p != "name" else 2.0 for p in parameters))
    assert isinstance(caught.value, PrimgraphError)
    assert "test_compat_signatures.py" in str(caught.value)
    assert f"it takes {', '.join(parameters)}" in str(caught.value)
    with pytest.raises(TypeError, match="there is no argument 'colour'"):
        function(*(x for p in parameters.values() if p.default is p.empty), colour=3)


def test_positional_arguments_go_where_paddle_has_them() -> None:
    x = paddle.static.data("x", (2,), "float64")
    scaled = paddle.scale(x, 2.0, 0.0, True, "tanh")
    drawn = [paddle.uniform((3,), "float32", -1.0, 1.0, seed) for seed in (1, 1, 2)]
    total = paddle.sum(x, 0, "float32", True, "total")
    soft = paddle.nn.functional.softplus(x, 2, 3)
    size = paddle.norm(x, 2, 0, True)
    values = run([scaled, *drawn, total, soft, size], x=np.array([1.0, 2.0]))
    assert_allclose(values[0], np.tanh([2.0, 4.0]))
    assert_allclose(values[0][0], 0.964, atol=1e-3)
    assert_array_equal(values[1], values[2])
    assert np.all(values[1] != values[3])
    assert_array_equal(run([drawn[0]])[0], values[1])
    assert (values[4].shape, values[4].dtype) == ((1,), np.float32)
    assert_allclose(values[5], [np.log1p(np.exp(2.0)) / 2, 2.0])
    assert_allclose(values[6], [5**0.5])
    with pytest.raises(TypeError, match="scale has no act 'tahn'"):
        paddle.scale(x, act="tahn")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: paddle.static.data("y", (2,), "float32", 1),
        lambda x: paddle.static.append_backward(x, callbacks=[print]),
        lambda x: paddle.optimizer.AdamW(use_lowprecision_moment=True),
        lambda x: paddle.incubate.autograd.to_prim(paddle.static.Program(), start_idx=2),
    ],
)
def test_options_that_there_is_nothing_for_are_refused(call: Any) -> None:
    with pytest.raises(ValueError, match="is not supported, leave it out"):
        call(paddle.static.data("x", (2,)))


def test_grad_has_all_arguments_of_paddles() -> None:
    x, z = (paddle.static.data(n, (2,), "float64") for n in "xz")
    y = x * x * x
    (first,) = paddle.grad(y, x, None, True, True, True)
    (second,) = paddle.grad([first], [x], create_graph=True, retain_graph=False)
    unused = paddle.grad(y, [x, z], allow_unused=True)
    assert unused[1] is None
    (held,) = paddle.grad(x * y, x, no_grad_vars=[y])
    for array, wanted in zip(
        run([first, second, held], x=np.array([1.0, 2.0])),
        ([3, 12], [6, 12], [1, 8]),
        strict=True,
    ):
        assert_array_equal(array, wanted)
    with pytest.raises(ValueError, match="'z'") as caught:
        paddle.grad(y, [x, z])
    assert isinstance(caught.value, paddle.GradientError)
    autograd = paddle.incubate.autograd
    matrix = autograd.Jacobian(func=lambda v: v * v, xs=x, is_batched=False)
    values = [autograd.vjp(func=lambda v: v * v, xs=x)[1], matrix[:]]
    found = run(values, x=np.array([1.0, 2.0]))
    assert_array_equal(found[0], [2, 4])
    assert_array_equal(found[1], np.diag([2, 4]))


def test_anything_can_be_fetched_by_its_name() -> None:
    x = paddle.static.data("x", (2, 3), "float64")
    loss = paddle.mean(paddle.tanh(x) * x)
    again = paddle.mean(x)
    names = [loss.name, again.name, x.name]
    assert len(set(names)) == 3
    array = np.arange(6.0).reshape(2, 3)
    by_name = run(names, x=array)
    by_handle = run([loss, again, x], x=array)
    for one, other in zip(by_name, by_handle, strict=True):
        assert_array_equal(one, other)
    main = paddle.static.default_main_program()
    assert [v.value for v in map(main.variable, names)] == [loss.value, again.value, x.value]
    for wrong in ("tanh_99.tmp_0", "sin_0.tmp_0", "tanh_0.tmp_7", f"{loss.name}0"):
        assert main.variable(wrong) is None
    with pytest.raises(pg.BuildError, match="taken"):
        again.name = loss.name
    clone = main.clone(for_test=True)
    (cloned,) = paddle.static.Executor().run(clone, {"x": array}, [loss.name])
    assert_array_equal(cloned, by_name[0])


def test_programs_have_what_paddles_code_asks_for() -> None:
    main = paddle.static.default_main_program()
    x = paddle.static.data("x", (2, 3))
    w = paddle.create_parameter((3, 2), "float32", "w")
    y = paddle.tanh(paddle.matmul(x, w))
    block = main.global_block()
    assert main.num_blocks == len(main.blocks) == 1
    assert main.block(0) == main.current_block() == block
    with pytest.raises(IndexError, match="none at 1"):
        main.block(1)
    assert [op.type for op in block.ops] == ["matmul", "tanh"]
    assert block.ops[0].input_arg_names == ["x", "w"]
    assert block.ops[1].output_arg_names == [y.name]
    assert block.ops[0].attr("colour") is None
    assert [v.name for v in main.list_vars()] == list(block.vars) != []
    assert [p.name for p in main.all_parameters()] == ["w"]
    assert [p.name for p in block.all_parameters()] == ["w"]
    assert block.var(y.name).value is y.value
    assert block.has_var("w")
    assert not block.has_var("v")
    with pytest.raises(ValueError, match="no variable named 'W'") as caught:
        block.var("W")
    assert "did you mean 'w'?" in str(caught.value)


def test_variables_have_methods_by_paddles_names() -> None:
    x = paddle.static.data("x", (2, 3), "float64")
    array = np.arange(1.0, 7.0).reshape(2, 3)
    built = {
        "sum": (x.sum(axis=1, keepdim=True), array.sum(1, keepdims=True)),
        "mean": (x.mean(0, keepdim=True), array.mean(0, keepdims=True)),
        "max": (x.max(keepdim=True), array.max(keepdims=True)),
        "argmax": (x.argmax(1, keepdim=True), array.argmax(1, keepdims=True)),
        "std": (x.std(0, keepdim=True), array.std(0, keepdims=True, ddof=1)),
        "var": (x.var(unbiased=False), array.var()),
        "all": (x.all(1, keepdim=True), array.all(1, keepdims=True)),
        "tanh": (x.tanh(), np.tanh(array)),
        "exp": (x.exp(), np.exp(array)),
        "pow": (x.pow(2), array**2),
        "add": (x.add(x), 2 * array),
        "matmul": (x.matmul(x.T), array @ array.T),
        "unsqueeze": (x.unsqueeze(0), array[None]),
        "cast": (x.cast("float32"), array.astype("float32")),
        "norm": (x.norm(), np.linalg.norm(array)),
        "less_than": (x.less_than(x * 0.0 + 2.0), array < 2),
        "reshape": (x.reshape([3, 2]), array.reshape(3, 2)),
        "astype": (x.astype("int64"), array.astype("int64")),
    }
    values = run([v for v, _ in built.values()], x=array)
    for name, value in zip(built, values, strict=True):
        wanted = np.asarray(built[name][1])
        assert (value.shape, value.dtype) == (wanted.shape, wanted.dtype), name
        assert_allclose(value, wanted, rtol=1e-12)


def test_attributes_and_rules_of_parameters() -> None:
    rules = paddle.nn.initializer
    held = paddle.create_parameter((2,), "float32", attr=paddle.ParamAttr("held", trainable=False))
    assert held.stop_gradient
    found = {}
    for kind in (
        rules.XavierUniform(fan_in=30.0, fan_out=70.0),
        rules.XavierUniform(None, None, 2.0),
        rules.KaimingUniform(fan_in=50.0),
        rules.KaimingUniform(None, 1.0, "leaky_relu"),
    ):
        w = paddle.create_parameter((300, 100), "float64", default_initializer=kind)
        found[w.name] = paddle.static.default_main_program().state_dict()[w.name]
    limits = [(6 / 100) ** 0.5, 2 * (6 / 400) ** 0.5, (6 / 50) ** 0.5, (3 / 300) ** 0.5]
    for array, limit in zip(found.values(), limits, strict=True):
        assert limit * 0.999 < np.abs(array).max() <= limit
    with pytest.raises(ValueError, match="no gain for 'swish'"):
        rules.KaimingNormal(nonlinearity="swish")


def test_the_learning_rate_of_an_optimizer_can_be_read_and_set() -> None:
    one = paddle.nn.initializer.Constant(1.0)
    w = paddle.create_parameter((2,), "float64", default_initializer=one)
    optimizer = paddle.optimizer.SGD(0.5)
    optimizer.minimize(paddle.sum(w))
    assert optimizer.get_lr() == 0.5
    run([])
    optimizer.set_lr(0.25)
    assert optimizer.get_lr() == 0.25
    run([])
    assert_array_equal(paddle.static.default_main_program().state_dict()[w.name], [0.25, 0.25])
