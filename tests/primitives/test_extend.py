"""Primitives from outside the package: every rule, both kernels, saved files, and their checks."""

import importlib
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from plan_checks import SMALL
from test_primitives import CASES, Case

import primgraph as pg
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.lower.arrays.fusion_groups import arrange_regions
from primgraph.codegen.ops.card import Marks
from primgraph.codegen.ops.cost_model import per_element
from primgraph.codegen.ops.spelling.complex_step import PARTIAL
from primgraph.codegen.ops.table import CARDS
from primgraph.extend import (
    Primitive,
    TensorType,
    Value,
    check_primitive,
    elementwise,
    emit,
    give_card,
    lift,
    primitive,
    spell,
    spelled,
    with_batch_axis,
)
from primgraph.inspect.complex_step import is_known
from primgraph.ir.facts import ops as registry
from primgraph.primitives.linear_algebra.products import matmul, swap_last
from primgraph.primitives.parts import conj

RNG = np.random.default_rng(0)
A = RNG.standard_normal((3, 3)) + 3 * np.eye(3)
B = RNG.standard_normal((3, 2))


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Forgets what a test has declared."""
    ops, rows = dict(registry._registry), dict(CARDS)
    yield
    for table, before in ((registry._registry, ops), (CARDS, rows)):
        table.clear()
        table.update(before)


def declared(
    slope: Callable[..., Any] | None = None,
    adjoint: Callable[..., Any] | None = None,
    batched: Callable[..., Any] | None = None,
    result: Callable[[TensorType], TensorType] = lambda b: b,
) -> Primitive:
    """The solution of linear equations as a primitive; the rules are right unless given."""

    @primitive(name="their_solve", impl=np.linalg.solve, linear=(1,), singular=True)
    def solve(a: TensorType, b: TensorType) -> TensorType:
        return result(b)

    def jvp(x: Value, a: Value, b: Value, da: Value) -> Value:
        found: Value = -solve(a, matmul(da, x))
        return found

    solve.jvp(0)(slope or jvp)
    solve.transpose(adjoint or (lambda ct, a, b: (None, solve(swap_last(a), ct))))
    solve.batch(batched or (lambda flags, a, b: solve(*with_batch_axis(flags, (a, b)))))
    return solve


@pytest.mark.parametrize("spelled", [False, True])
def test_a_primitive_from_outside_passes_all_checks(spelled: bool) -> None:
    solve = declared()
    if spelled:
        spell(solve, "np.linalg.solve({0}, {1})")
    check_primitive(solve, A, B)
    check_primitive(solve, np.stack([A, A.T]), np.stack([B, 2 * B]))


# One sample of each primitive of primgraph itself, but for those with a slope of their own: it is
# not that of what they compute.
SAMPLES = {
    op.name: case.values[0] for case in reversed(CASES) if not (op := case.values[0].op).own_slope
}


@pytest.mark.parametrize("case", SAMPLES.values(), ids=SAMPLES)
def test_primitives_of_primgraph_pass_the_same_checks(case: Case) -> None:
    arrays = case.arrays(case.row.dtypes[0])
    if case.op.name == "logm_slope":
        # Of each root that it takes on the way to the identity it loses a digit.
        arrays[0] = 0.9 * np.eye(arrays[0].shape[-1]) + 0.1 * arrays[0]
    check_primitive(case.op, *arrays, **case.call.params)


COMPLEX = [
    "mul",
    "div",
    "exp",
    "power",
    "conj",
    "modulus",
    "real",
    "complex",
    "irfft",
    "matmul",
    "solve",
    "slogdet",
    "pinv",
    "svdvals",
]


@pytest.mark.parametrize("name", COMPLEX)
def test_primitives_of_complex_numbers_pass_them_too(name: str) -> None:
    (case, *_) = (c for (c,) in (p.values for p in CASES) if c.op.name == name and c.has_complex)
    check_primitive(case.op, *case.arrays("f64"), **case.call.params)


Z = RNG.standard_normal(3) + 1j * RNG.standard_normal(3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, ""),
        # As if the pairing conjugated, and as if the map were holomorphic.
        ({"adjoint": lambda ct, z: (1j * conj(ct),)}, "in reverse mode"),
        ({"adjoint": lambda ct, z: (1j * ct,)}, "in reverse mode"),
        ({"slope": lambda w, z, d: w * d}, "by input 0 'x0.real'"),
        # Right by real parts.
        ({"slope": lambda w, z, d: (z * z + 2 * conj(z) * z) * d}, "by input 1 'x0.imag'"),
        ({"result": lambda z: z.with_dtype(np.dtype("c8"))}, "its impl gives"),
    ],
)
def test_rules_of_a_primitive_of_complex_numbers_are_checked_by_both_parts(
    wrong: dict[str, Any], message: str
) -> None:
    @primitive(name="their_turn", impl=lambda z: 1j * np.conj(z), linear=True, flops=0)
    def turn(z: TensorType) -> TensorType:
        return wrong.get("result", lambda z: z)(z)

    turn.transpose(wrong.get("adjoint", lambda ct, z: (conj(1j * ct),)))

    @primitive(name="their_sizes", impl=lambda z: np.abs(z) ** 2 * z, flops=0)
    def sizes(z: TensorType) -> TensorType:
        return z

    def slope(w: Value, z: Value, d: Value) -> Value:
        found: Value = 2 * conj(z) * z * d + z * z * conj(d)
        return found

    sizes.jvp()(wrong.get("slope", slope))
    for op in (turn, sizes):
        op.batch(lambda flags, z, op=op: op(z))
    if not wrong:
        check_primitive(turn, Z)
        check_primitive(sizes, Z.astype(np.complex64))
        return
    with pytest.raises(pg.CheckError, match=message):
        check_primitive(sizes if "slope" in wrong else turn, Z)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"slope": lambda x, a, b, da: -matmul(da, x)},
            r"order 1: the derivative of output 0 at \(0, 0\) by input 0",
        ),
        ({"adjoint": lambda ct, a, b: (None, ct)}, "in reverse mode"),
        ({"batched": lambda flags, a, b: with_batch_axis(flags, (a, b))[1]}, "0 and operand 1 bat"),
        ({"result": lambda b: b.with_shape((6,))}, "the type rule of their_solve declares"),
        ({"result": lambda b: b.with_dtype(np.dtype("f4"))}, "its impl gives"),
    ],
)
def test_a_wrong_rule_is_noticed(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(pg.CheckError, match=message):
        check_primitive(declared(**wrong), A, B)


def test_a_wrong_row_is_noticed() -> None:
    solve = declared()
    spell(solve, "np.linalg.solve({0}.T, {1})")
    with pytest.raises(pg.CheckError, match="the planned kernel of their_solve: at "):
        check_primitive(solve, A, B)


def test_a_card_says_more_than_an_expression() -> None:
    """Blocks, the model of time, NaNs and the complex step go by it."""
    op = half_log(singular=True)
    card = replace(
        spelled(op, "np.log({0}) / 2"),
        fallible=False,
        nanoseconds=per_element(5.0, 3.0),
        complex_step=PARTIAL,
        marks=Marks.EACH,
        advice="keep it above 0",
    )
    give_card(op, card)
    assert is_known(op)
    check_primitive(op, np.array([0.5, 2.0]))
    with pytest.raises(pg.NumericalError) as caught:
        pg.check_finite(pg.trace(lambda x: emit(op, lift(x)), pg.spec(2)), np.array([1.0, -1.0]))
    assert caught.value.hint == "keep it above 0"
    graph = pg.trace(lambda x: emit(op, lift(x)) + x, pg.spec((64, 8)))
    steps, (region,) = arrange_regions(schedule(graph), SMALL, CARDS)
    assert region.stop - region.start == len(steps.steps) == 2
    with pytest.raises(pg.BuildError, match="is written in NumPy already"):
        give_card(op, card)


def test_a_missing_rule_is_named() -> None:
    @primitive(impl=np.sin, elementwise=True)
    def bare(x: TensorType) -> TensorType:
        return x

    with pytest.raises(pg.MissingRuleError, match=r"primitive bare has no batching rule"):
        check_primitive(bare, B)


def test_a_kernel_with_a_row_can_be_saved_and_one_without_cannot(tmp_path: Any) -> None:
    solve = declared()
    graph = pg.trace(lambda a, b: pg.grad(pg.sum(emit(solve, a, b) ** 2), a), A, B)
    path = tmp_path / "slope.py"
    with pytest.raises(pg.CompileError, match="called through its own Python function"):
        pg.compile(graph).save(path)
    expected = pg.compile(graph)(A, B)
    spell(solve, "np.linalg.solve({0}, {1})")
    pg.compile(graph).save(path)
    np.savez(tmp_path / "feeds.npz", a=A, b=B)
    code = (
        "import sys, numpy as np, slope\n"
        "function = [f for n, f in vars(slope).items() if callable(f)][-1]\n"
        "feeds = np.load('feeds.npz')\n"
        "np.save('found.npy', function(feeds['a'], feeds['b']))\n"
        "assert 'primgraph' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env={})
    assert np.array_equal(np.load(tmp_path / "found.npy"), expected)


def test_parameters_reach_the_expression() -> None:
    @primitive(impl=lambda x, *, order, axes, kind: np.moveaxis(x, axes[0], axes[1]) * order)
    def moved(x: TensorType, *, order: float, axes: tuple[int, int], kind: Any) -> TensorType:
        return TensorType((x.shape[1], x.shape[0]), x.dtype)

    spell(moved, "np.moveaxis({0}, *{axes}) * {kind}({order})")
    params = {"order": np.inf, "axes": (0, 1), "kind": np.float64}
    graph = pg.trace(lambda x: emit(moved, x, **params) + 1.0, B)
    kernel = pg.compile(graph)
    assert "np.moveaxis(x, *(0, 1)) * np.float64(np.inf)" in kernel.source
    for style in ("planned", "readable"):
        assert np.array_equal(pg.compile(graph, style=style)(B), B.T * np.inf + 1.0)


def test_a_row_is_given_once() -> None:
    solve = declared()
    spell(solve, "np.linalg.solve({0}, {1})")
    for op in (solve, registry.lookup("add")):
        with pytest.raises(pg.BuildError, match="is written in NumPy already"):
            spell(op, "np.add({0}, {1})")  # type: ignore[arg-type]
    with pytest.raises(pg.BuildError, match="several results"):
        spell(registry.lookup("split"), "np.split({0})")  # type: ignore[arg-type]


@pytest.mark.parametrize("spelled", [False, True])
def test_what_fails_on_constants_fails_in_the_run_with_the_line(spelled: bool) -> None:
    solve = declared()
    if spelled:
        spell(solve, "np.linalg.solve({0}, {1})")
    zeros = np.zeros((3, 3))
    kernel = pg.compile(pg.trace(lambda b: emit(solve, lift(zeros), lift(B)) + b, B))
    with pytest.raises(pg.RunError, match=r"solve failed.*Singular matrix[^$]*test_extend.py"):
        kernel(B)


@pytest.mark.parametrize("spelled", [False, True])
def test_a_run_that_fails_leaves_the_state_as_it_was(spelled: bool) -> None:
    solve = declared()
    if spelled:
        spell(solve, "np.linalg.solve({0}, {1})")
    with pg.Program() as program:
        a = pg.data("a", (3, 3))
        w = pg.create_parameter((3, 2), initializer=pg.initializers.Assign(B), name="w")
        program.update(w, w * 2.0)
        x = emit(solve, a, w)
    executor = pg.Executor()
    executor.run(program, {"a": A}, [x])
    with pytest.raises(pg.RunError):
        executor.run(program, {"a": 0 * A}, [x])
    assert np.array_equal(program.scope.get("w"), 2 * B)


def test_lines_are_those_of_the_callers_of_an_extension(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "doubling.py").write_text(
        "from primgraph.extend import lift, public\n"
        "__primgraph_extension__ = True\n"
        "@public\n"
        "def doubled(x):\n"
        "    return lift(x) @ lift(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    doubled = importlib.import_module("doubling").doubled
    graph = pg.trace(lambda x: doubled(x), pg.spec((2, 2)))
    assert graph.body[0].source is not None
    assert graph.body[0].source.file == __file__
    with pytest.raises(pg.ShapeError, match=r"written here:  test_extend\.py"):
        pg.trace(lambda x: doubled(x), pg.spec((2, 3)))


def half_log(singular: bool) -> Primitive:
    return elementwise(
        "half_log", lambda x: np.log(x) / 2, jvp=lambda z, x, dx: dx * (0.5 / x), singular=singular
    )


def test_a_guard_holds_a_singular_primitive_from_outside() -> None:
    op = half_log(singular=True)
    check_primitive(op, np.array([0.5, 2.0]))

    def slopes(x: Any) -> Any:
        guarded = pg.where(x > 0, emit(op, x), 0.0)
        first = pg.grad(guarded, x)
        return first, pg.forward_grad(first, x), pg.forward_grad(guarded, x)

    first, second, forward = pg.compile(pg.trace(slopes, pg.spec(3)))([0.0, 1.0, 2.0])
    assert first.tolist() == forward.tolist() == [0.0, 0.5, 0.25]
    assert second.tolist() == [0.0, -0.5, -0.125]


def test_programs_with_primitives_from_outside_are_saved_loaded_and_pickled(tmp_path: Any) -> None:
    solve = declared()
    with pg.Program() as program:
        a, b = pg.data("a", (3, 3)), pg.data("b", (3, 2))
        x = emit(solve, a, b)
        x.name = "x"
    pg.save(program, tmp_path / "solve.pgz")
    again = pg.load(tmp_path / "solve.pgz")
    with again:
        total = pg.sum(again.variable("x") ** 2)
        slope = pg.grad(total, again.inputs["a"])
    feed = {"a": A, "b": B}
    found = pg.Executor().run(again, feed, ["x", slope])
    assert np.array_equal(found[0], np.linalg.solve(A, B))
    kernel = pickle.loads(pickle.dumps(pg.Executor().kernel(again, [slope])))
    assert np.array_equal(kernel(A, B)[0], found[1])


def test_jacobians_are_taken_through_primitives_from_outside() -> None:
    solve = declared()

    def rows(a: Any, b: Any) -> Any:
        return pg.Jacobian(lambda b: emit(solve, a, b)[:, 0], b)[:]

    found = pg.compile(pg.trace(rows, A, B[:, :1]))(A, B[:, :1])
    assert np.allclose(found, np.linalg.inv(A), rtol=1e-12, atol=1e-12)
