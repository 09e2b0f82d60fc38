"""Writes through views of arrays in functions that were written for NumPy."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from program_draft import Choices
from program_numpy_rows import FOREIGN, PRELUDE
from program_views import views_of

import primgraph as pg
from primgraph.numpy.rebound import rebound

X = np.arange(1.0, 13.0).reshape(3, 4)

# Expressions that give a view of `y`, or the copy that NumPy makes instead.
VIEWS = """
y.T
y.T.T
y.mT
y.transpose()
y.transpose(1, 0)
np.transpose(y)
np.swapaxes(y, 0, 1)
y.swapaxes(0, 1)
np.moveaxis(y, 0, 1)
np.rollaxis(y, 1)
np.matrix_transpose(y)
np.permute_dims(y, (1, 0))
np.linalg.matrix_transpose(y)
np.squeeze(y)
np.squeeze(y[None])
np.squeeze(y[None], axis=0)
y[None].squeeze()
np.expand_dims(y, 0)
y.reshape(4, 3)
np.reshape(y, (2, 6))
y.reshape(-1)
y.reshape(-1, order="F")
y.T.reshape(-1, order="F")
y.ravel()
np.ravel(y)
y.ravel("K")
y.T.ravel("K")
y.T.ravel("A")
y.T.reshape(-1)
y.T.ravel()
y[:, ::2].ravel()
y[:, ::2].reshape(-1)
y[1:].reshape(-1)
y[:, :2].reshape(-1)
y.flatten()
np.atleast_1d(y)
np.atleast_2d(y[0])
np.atleast_3d(y)
np.atleast_2d(1.0, y)[1]
np.split(y, 2, axis=1)[1]
np.split(y[0], [1, 3])[1]
np.array_split(y, 2)[0]
np.hsplit(y, 2)[1]
np.vsplit(y, 3)[1]
np.dsplit(y[None], 2)[1]
np.unstack(y)[1]
np.unstack(y, axis=1)[1]
y.real
np.real(y)
y.conj()
np.conj(y)
np.flip(y)
np.flip(y, 0)
np.fliplr(y)
np.flipud(y)
np.rot90(y)
np.rot90(y, 2)
np.rot90(y, -1)
np.rot90(y, 0)
y[1:, 1:3]
y[:, -1]
y[None]
y[...]
y[()]
y[:]
y[::-1, ::2]
y[1]
y[1][None]
y[0, 1, ...]
y[0, 1, None]
y[np.argmax(y[0])-1]
y[np.argmax(y[0])-2:np.argmax(y[0])]
y[np.array([0, 1])]
y[[0, 1]]
y[True]
next(iter(y))
list(y)[1]
np.asarray(y)
np.asarray(y, order="F")
np.asarray(y, dtype=np.float32)
np.asanyarray(y)
np.asarray_chkfinite(y)
np.ascontiguousarray(y)
np.ascontiguousarray(y.T)
np.asfortranarray(y)
np.asfortranarray(y.T)
np.array(y)
np.array(y, copy=False)
np.array(y, copy=None)
y.view()
y.copy()
np.copy(y)
+y
y.astype(float)
y.astype(float, copy=False)
np.astype(y, float, copy=False)
np.nan_to_num(y, copy=False)
np.nan_to_num(y)
np.broadcast_arrays(y, 1.0)[0]
np.einsum("ij->ji", y)
np.einsum("ij->i", y)
np.einsum("ii->i", y[:, :3])
np.meshgrid(y[0], y[1])[0]
np.full((2, 4), y[0])
np.tile(y, (1, 1))
np.repeat(y, 1)
np.concatenate([y])
np.stack([y])
np.take(y, [0], 0)
np.roll(y, 1)
np.where(True, y, y)
np.clip(y, None, None)
np.delete(y, 0, 0)
""".strip().split("\n")

READ_ONLY = """
np.broadcast_to(y, (2, 3, 4))
np.broadcast_to(y, (3, 4))
np.broadcast_to(y, (2, 3, 4))[0]
np.diagonal(y)
y.diagonal()
np.diag(y)
np.linalg.diagonal(y)
y.imag
np.imag(y)
np.lib.stride_tricks.sliding_window_view(y, 2, axis=0)
""".strip().split("\n")

# Views that NumPy lets one write to, and that no assignment goes through here.
REFUSED = """
np.broadcast_arrays(y, np.ones((2, 3, 4)))[0]
np.meshgrid(y[0], y[1], copy=False)[0]
""".strip().split("\n")


def written(name: str, *lines: str) -> Callable[..., Any]:
    """Define a function of `x` in NumPy's terms."""
    text = "\n    ".join(("def f(x):", *lines)) + "\n"
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space: dict[str, Any] = {"np": np, "__name__": "written_for_numpy"}
    exec(compile(text, file, "exec"), space)
    found: Callable[..., Any] = space["f"]
    return found


def through(view: str) -> Callable[..., Any]:
    """Write to a view, and look at its base and at another view."""
    return written(
        view, "y = x.copy()", "row = y[0]", f"z = {view}", "z[...] = z * 2.0 + 5.0", "z += 1.0",
        "y[1] *= 3.0", "return y, row, z",
    )  # fmt: skip


def by_trace(f: Callable[..., Any], x: np.ndarray) -> Any:
    return pg.compile(pg.trace(f, pg.spec(x.shape, x.dtype)))(x)


def by_jit(f: Callable[..., Any], x: np.ndarray) -> Any:
    return pg.jit(f)(x)


def on_tensors(f: Callable[..., Any], x: np.ndarray) -> Any:
    return tuple(found.numpy() for found in rebound(f)(pg.tensor(x)))


@pytest.mark.parametrize("world", [by_trace, by_jit, on_tensors])
@pytest.mark.parametrize("view", VIEWS)
def test_writes_through_views_are_numpys(view: str, world: Any) -> None:
    f = through(view)
    if world is on_tensors and view.endswith(('("K")', '("A")')):
        # The memory of tensors has no order.
        return
    if world is on_tensors and view == "y.view()":
        with pytest.raises(pg.UnknownNameError, match="view"):
            world(f, X)
        return
    for mine, wanted in zip(world(f, X), f(X), strict=True):
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("view", VIEWS)
def test_gradients_go_through_writes_to_views(view: str) -> None:
    def loss(x: Any) -> Any:
        y, row, z = f(x)
        return np.sum(y**2) + np.sum(row**3) + np.sum(np.sin(z))

    f = through(view)
    if "float32" in view:
        # A step of differences is less than its rounding.
        return
    numbers = np.linspace(0.3, 0.9, 12).reshape(3, 4)
    step = np.zeros_like(numbers)
    step[1, 2] = step[0, 0] = 1e-5
    wanted = (loss(numbers + step) - loss(numbers - step)) / 2e-5
    for grad in (pg.jit(pg.grad(loss)), pg.grad(loss)):
        is_of_traces = view == "y.view()" or view.endswith(('("K")', '("A")'))
        if is_of_traces and not hasattr(grad, "clear_cache"):
            continue
        slopes = grad(numbers)
        np.testing.assert_allclose(slopes[1, 2] + slopes[0, 0], wanted, rtol=1e-6)


@pytest.mark.parametrize("world", [by_trace, by_jit, on_tensors])
@pytest.mark.parametrize("view", READ_ONLY)
def test_views_that_numpy_makes_read_only_are_refused(view: str, world: Any) -> None:
    f = through(view)
    with pytest.raises(ValueError, match="read-only"):
        f(X)
    with pytest.raises(pg.ArgumentError, match="assignment destination is read-only"):
        world(f, X)
    seen = written(f"{view} seen", "y = x.copy()", f"z = {view}", "y *= 2.0", "return z,")
    np.testing.assert_array_equal(world(seen, X)[0], seen(X)[0])


@pytest.mark.parametrize("view", REFUSED)
def test_views_that_no_assignment_goes_through_are_refused(view: str) -> None:
    with pytest.raises(pg.ArgumentError, match="may not reach the array it shows"):
        by_jit(through(view), X)
    with pytest.raises(pg.ArgumentError, match=r"more than one element|computed from"):
        on_tensors(through(view), X)


@pytest.mark.parametrize("part", ["z.real", "z.imag", "np.real(z)", "np.imag(z[1:])"])
def test_parts_of_complex_numbers_write_through(part: str) -> None:
    f = written(part, "z = x.copy()", f"w = {part}", "w[0] = 7.0", "w *= 2.0", "return z, w")
    numbers = X * (1.0 + 2.0j)
    for mine, wanted in zip(by_jit(f, numbers), f(numbers), strict=True):
        np.testing.assert_array_equal(mine, wanted)
    for mine, wanted in zip(f(pg.tensor(numbers)), f(numbers), strict=True):
        np.testing.assert_array_equal(mine, wanted)
        assert mine.dtype == wanted.dtype


@pytest.mark.parametrize(
    ("write", "use"),
    [("z[0] = 5.0", "y + 0.0"), ("y[0] = 5.0", "z + 0.0"), ("w[0] = 5.0", "y + 0.0")],
)
def test_unknown_layouts_are_an_error_where_they_matter(write: str, use: str) -> None:
    lines = ("y = np.linalg.inv(x)", "z = y.reshape(-1)", "w = z[1:]")
    with pytest.raises(pg.ArgumentError, match="memory layout that is not known") as caught:
        pg.trace(written(write, *lines, write, f"return {use}"), pg.spec((2, 2)))
    assert write in str(caught.value)
    turned = ("y = np.zeros((2, 2), order='F') + x", "z = y.reshape(-1)", "w = z[1:]")
    with pytest.raises(pg.ArgumentError, match="memory layout that is not known"):
        pg.trace(written(f"{write} turned", *turned, write, f"return {use}"), pg.spec((2, 2)))
    alone = written(f"{write} alone", *lines, "z[0] = 5.0", "return z * 1.0, w * 1.0")
    x = np.array([[2.0, 1.0], [0.5, 3.0]])
    for mine, wanted in zip(by_jit(alone, x), alone(x), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-14)


@pytest.mark.parametrize(
    "new",
    [
        "np.add(x, 1.0)", "np.where(x > 0, x, 1)", "np.stack([x, x])", "np.copy(x)", "np.array(x)",
        "np.zeros_like(x)", "np.ones((3, 4)) * x", "np.abs(x) / 2", "np.zeros((2, 3))",
        "np.array([x[0], x[1]])", "np.full_like(x, 2.0)", "np.cumsum(x, axis=0)",
    ],
)  # fmt: skip
def test_layouts_of_new_arrays_are_known(new: str) -> None:
    f = written(new, f"y = {new}", "z = y.reshape(-1)", "z[1] = 9.0", "return y, z")
    for mine, wanted in zip(by_jit(f, X), f(X), strict=True):
        np.testing.assert_array_equal(mine, wanted)


def test_views_of_arrays_of_any_size_write_through() -> None:
    f = written(
        "sizes", "y = x.copy()", "z = y.T[::-1]", "z[1:] = 3.0", "w = y[1:]", "w[:, 0] += 1.0",
        "v = y.reshape(-1)", "v[0] = 2.0", "return y, z, w",
    )  # fmt: skip
    n = pg.dim("n")
    kernel = pg.compile(pg.trace(f, pg.spec((n, 4))))
    for count in (2, 3, 5):
        x = np.arange(4.0 * count).reshape(count, 4)
        for mine, wanted in zip(kernel(x), f(x), strict=True):
            np.testing.assert_array_equal(mine, wanted)


def test_a_copy_that_is_changed_in_place_is_numpys_without_any_mention_of_numpy() -> None:
    f = written("augmented", "y = x.copy()", "z = y[0]", "y *= 2.0", "return y, z")
    for mine, wanted in zip(by_jit(f, X), f(X), strict=True):
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("number", ["np.sum(x)", "x[0, 1]", "np.exp(x[0, 1])", "x[0].max()"])
def test_numbers_are_no_arrays_that_change(number: str) -> None:
    f = written(number, f"s = {number}", "t = s", "s += 1.0", "s *= x[0]", "return s, np.copy(t)")
    for mine, wanted in zip(by_jit(f, X), f(X), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-15)


def test_fill_leaves_numbers_as_they_are() -> None:
    f = written(
        "filled number", "s = np.sum(x)", "t = s.copy()", "t.fill(0.5)", "u = np.copy(s)",
        "u.fill(0.5)", "t += s", "return t, u",
    )  # fmt: skip
    for mine, wanted in zip(by_jit(f, X), f(X), strict=True):
        np.testing.assert_array_equal(mine, wanted)


def test_fill_changes_copies_and_new_arrays() -> None:
    f = written(
        "fill", "y = x.copy()", "y.fill(0.5)", "z = np.empty(3)", "z.fill(2.0)",
        "y[:, 1].fill(7.0)", "return y, z",
    )  # fmt: skip
    for world in (by_trace, by_jit):
        for mine, wanted in zip(world(f, X), f(X), strict=True):
            np.testing.assert_array_equal(mine, wanted)


def test_arguments_of_functions_that_are_traced_may_be_filled() -> None:
    def filled(x: Any) -> Any:
        y = x * 1.0
        x.fill(2.0)
        return pg.sum(x * y)

    given = X.copy()
    for run in (pg.jit(filled), pg.compile(pg.trace(filled, pg.spec(X.shape)))):
        np.testing.assert_allclose(run(given), 2.0 * np.sum(X))
    np.testing.assert_array_equal(given, X)


def test_bodies_of_loops_do_not_assign_to_arrays_around_them() -> None:
    def in_a_loop(x: Any) -> Any:
        y = np.copy(x)

        def body(i: Any, total: Any) -> Any:
            row = y[0]
            row[1] = 50.0
            return total + np.sum(row)

        return pg.fori_loop(0, 3, body, 0.0), y

    def in_a_branch(x: Any) -> Any:
        row = np.copy(x)[0]

        def changed() -> Any:
            row[0] = 9.0
            return row * 1.0

        return pg.cond(x[0, 0] > 0, changed, lambda: row * 2.0), row

    for f in (in_a_loop, in_a_branch):
        with pytest.raises(pg.ArgumentError, match="cannot assign to an array of the program"):
            by_jit(f, X)


def test_bodies_of_loops_see_what_views_show() -> None:
    def looped(x: Any) -> Any:
        y = np.copy(x)
        turned = y.T
        y[0] = 7.0

        def body(i: Any, total: Any) -> Any:
            own = np.copy(total)
            np.squeeze(own[None])[0] += turned[0, 0]
            return own

        return pg.fori_loop(0, 3, body, np.zeros(2)), turned

    total, turned = by_jit(looped, X)
    np.testing.assert_array_equal(total, [21.0, 0.0])
    np.testing.assert_array_equal(turned[:, 0], [7.0, 7.0, 7.0, 7.0])


def test_parts_of_complex_numbers_are_assigned_to() -> None:
    def written_parts(z: Any) -> Any:
        y = 1.0 * z
        y.real = y.imag**2
        y.imag += 1.0
        y.imag[1:] = 7.0
        return y

    z = np.array([1.0 + 2.0j, 3.0, -1.0j])
    wanted = written_parts(z)
    np.testing.assert_array_equal(written_parts(pg.tensor(z)), wanted)
    np.testing.assert_array_equal(pg.jit(written_parts)(z), wanted)
    slope = pg.grad(lambda x: np.sum(np.abs(written_parts(x)) ** 2))(z)
    # The first element is y**4 + (y + 1)**2 of its imaginary part y, the others y**4.
    np.testing.assert_allclose(np.abs(slope.imag), [38.0, 0.0, 4.0])
    np.testing.assert_array_equal(slope.real, 0.0)
    number = pg.tensor(1.0 + 2.0j)
    number.real = 5.0
    assert number.item() == 5.0 + 2.0j
    x = pg.tensor(X)
    x.real = 0.0
    assert not x.numpy().any()
    with pytest.raises(pg.ArgumentError, match="read-only"):
        x.imag = 1.0


def test_chains_of_views_of_a_copy() -> None:
    names = {name: pair[0] for name, pair in FOREIGN.items()}
    exec(PRELUDE, names)
    for seed in range(60):
        rng = np.random.default_rng((seed, 17))
        shapes = [(3,), (4,), (2, 3), (3, 3), (2, 2, 2), (1, 3), (2, 3, 4), ()]
        x = rng.normal(size=shapes[rng.integers(len(shapes))])
        lines = views_of(Choices(rng), "x", x, "v", names)
        f = written(f"chain {seed}", "distinct = lambda x: x", *lines, "return v,")
        (wanted,) = f(x)
        np.testing.assert_allclose(by_trace(f, x)[0], wanted, atol=1e-12, err_msg="\n".join(lines))
        if not any(word in "".join(lines) for word in (".put(", ".view(")):
            (found,) = on_tensors(f, x)
            np.testing.assert_allclose(found, wanted, atol=1e-12, err_msg="\n".join(lines))
