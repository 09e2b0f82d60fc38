"""Assignments in place, in functions that are traced and differentiated, are NumPy's."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph.numpy.assignment_syntax import rewritten

TEMPLATE = np.array([1.0, 2.0, 3.0, 4.0])
FORTRAN = np.arange(8.0).reshape(2, 4).T
INTEGERS = np.array([1, 2, 3, 4])
X = np.array([0.1, 0.2, 0.3, 0.4])
CALLS = 0
STATE: dict[str, Any] = {}


class Holder:
    """An object with an array, which outlives each call."""

    def __init__(self) -> None:
        self.buf = np.zeros(4)

    def written(self, p: Any) -> Any:
        self.buf[0] = p[0]
        return np.sum(self.buf * p)

    def copied(self, p: Any) -> Any:
        r = np.copy(self.buf)
        r[0] = p[0]
        return np.sum(r * p)


# What NumPy makes of numbers, by its functions, by methods and by operators.
MADE: list[Callable[[], Any]] = [
    lambda: np.array([1.0, 2.0, 3.0, 4.0]),
    lambda: np.array(TEMPLATE),
    lambda: TEMPLATE.copy(),
    lambda: TEMPLATE + 0.0,
    lambda: 2 * TEMPLATE,
    lambda: np.arange(4.0),
    lambda: np.arange(4) * 1.0,
    lambda: np.tile(TEMPLATE[:2], 2),
    lambda: np.sin(TEMPLATE),
    lambda: np.random.default_rng(3).normal(size=4),
    lambda: np.zeros(4),
    lambda: np.empty(4) * 0.0,
    lambda: np.arange(8.0).reshape(4, 2)[:, 0] * 3.0,
    lambda: np.linspace(0.0, 1.0, 4),
    lambda: np.copy(TEMPLATE),
    lambda: np.concatenate([TEMPLATE[:1], TEMPLATE[1:]]),
    lambda: np.asarray([4.0, 3.0, 2.0, 1.0], order="F"),
    lambda: TEMPLATE.astype(float),
]


def _compare(f: Callable[[Any], Any], x: Any = X) -> None:
    """Compare values with NumPy's, and gradients with and without `jit`, and by differences."""
    wanted = f(x.copy())
    np.testing.assert_allclose(pg.jit(f)(x), wanted, rtol=1e-14)
    np.testing.assert_allclose(pg.compile(pg.trace(f, x))(x), wanted, rtol=1e-14)
    found = pg.grad(f)(x)
    np.testing.assert_allclose(pg.jit(pg.grad(f))(x), found, rtol=1e-14, atol=1e-14)
    step = 1e-6 * np.eye(x.size).reshape(x.size, *x.shape)
    slopes = [(f(x + h) - f(x - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(np.ravel(found), slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("number", range(len(MADE)))
def test_arrays_of_numbers_may_be_written_to(number: int) -> None:
    make = MADE[number]

    def by_element(p: Any) -> Any:
        r = make()
        r[0] = p[0]
        r[1:3] += p[1] * p[2]
        return np.sum(r * p)

    def whole(p: Any) -> Any:
        r = make()
        r *= p
        r -= p**2
        return np.sum(r * p)

    _compare(by_element)
    _compare(whole)


def test_parts_chains_and_several_targets_are_written_in_order() -> None:
    def swapped(p: Any) -> Any:
        r = np.arange(4.0)
        i = 0
        r[i], i, *rest = p[1], 2, p[3]
        (r[i], [r[3]]) = p[0], rest
        return np.sum(r * r)

    def chained(p: Any) -> Any:
        r = np.arange(8.0).reshape(2, 4)
        r[0][1] = p[0]
        r[1][:2] *= p[2:]
        r[1:, 2:][0, 1] = p[1]
        s = t = p[3]
        r[0, 0] = u = s * t
        return np.sum(r * r) + u

    def nested(p: Any) -> Any:
        r = np.array([1.0, 2.0, 3.0])

        def put(i: int) -> None:
            r[i] = p[i] * r[i]

        put(1)
        put(2)
        return np.sum(r * r)

    def branched(p: Any) -> Any:
        r = np.ones(4) * 2.0
        for i in range(4):
            if i % 2:
                r[i] = p[i]
            else:
                try:
                    r[i] -= p[i] ** 2
                finally:
                    r[i] += 1.0
        with np.errstate(all="ignore"):
            r[-1] = r[0] * p[0]
        return np.sum(r * p)

    def viewed(p: Any) -> Any:
        r = TEMPLATE.reshape(2, 2) * 1.0
        r[0, 0] = p[0]
        row = r[1]
        row[:] = p[2:]
        return np.sum(r * r)

    for f in (swapped, chained, nested, branched, viewed):
        _compare(f)


def test_names_of_comprehensions_are_no_names_of_the_function() -> None:
    def kept(p: Any) -> Any:
        global CALLS
        CALLS = sum([2 * CALLS for CALLS in range(3)])
        STATE["t"] = [t + 1 for t in range(2)]
        r = np.array([1.0, 2.0, 3.0, 4.0])

        def put(i: int) -> None:
            """Write to the array of the function around."""
            r[i] = p[i] + sum(r[j] for j in range(i))

        for i in range(4):
            put(i)
        STATE["doc"] = put.__doc__
        return np.sum(r * p)

    def refused(p: Any) -> Any:
        total = sum(np.sum(TEMPLATE) for TEMPLATE in ([1.0], [2.0]))
        TEMPLATE[0] = p[0]
        return total * np.sum(p)

    _compare_plain(kept)
    assert STATE == {"t": [1, 2], "doc": "Write to the array of the function around."}
    with pytest.raises(pg.ArgumentError, match="TEMPLATE was computed by NumPy"):
        pg.jit(refused)(X)


def _compare_plain(f: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(pg.jit(f)(X), f(X), rtol=1e-14)


def test_sizes_may_be_written() -> None:
    def sized(x: Any) -> Any:
        r = np.array([1.0, 2.0])
        r[0] = x.shape[0]
        return r * np.sum(x)

    fast = pg.jit(sized, sizes={"x": ("N",)})
    for n in (2, 5):
        np.testing.assert_allclose(fast(np.ones(n)), [n * n, 2.0 * n])


def test_integers_and_masks_may_be_written_to() -> None:
    def labelled(p: Any) -> Any:
        label = np.zeros(4, dtype=int)
        label[p > 0.25] = 1
        return np.sum(label * p)

    def counted(p: Any) -> Any:
        mask = p > 0.25
        n, m, k = np.zeros(3, int), np.full(4, 0), np.array([0, 0, 0, 0])
        n[0] = np.sum(mask)
        m[1:] = np.sum(mask)
        k[:] += np.sum(mask)
        return np.sum((m + k) * p) + np.sum(n * p[:3])

    def chosen(p: Any) -> Any:
        is_large = np.array([True, False, True, False])
        is_large[1] = p[1] > 0.15
        is_large &= p < 0.35
        return np.sum(np.where(is_large, p, 2.0 * p))

    for f in (labelled, counted, chosen):
        _compare(f)

    def lost(p: Any) -> Any:
        label = np.zeros(4, dtype=int)
        label[1] = p[0]
        return np.sum(label * p)

    with pytest.raises(pg.DTypeError, match="cannot put") as caught:
        pg.jit(lost)(X)
    assert ".astype(int)" in caught.value.hint


def test_integers_without_traced_values_stay_numbers() -> None:
    def ordered(p: Any) -> Any:
        counts = np.zeros(4, int)
        places = np.array([2, 0, 1])
        for i in range(3):
            counts[places[i]] += i + 1
        places[0] = 1
        total = [p[0], p[1], p[2]][places[0]]
        return total * sum(range(counts[2])) + p[int(counts[0])] + np.sum(p)

    _compare(ordered)


def test_functions_without_numpy_may_write_too() -> None:
    def product(p: Any) -> Any:
        q = p * p
        q[0] = 3.0
        return q.sum()

    def own(p: Any) -> Any:
        q = pg.sin(p)
        q[0] = 3.0
        q[1:] *= p[1:]
        return pg.sum(q)

    def template(p: Any) -> Any:
        r = TEMPLATE.copy()
        r[0] = p[0]
        return (r * p).sum()

    _compare(product)
    _compare(template)
    found = pg.grad(own)(X)
    np.testing.assert_allclose(pg.jit(pg.grad(own))(X), found, rtol=1e-14)
    assert pg.jit(own)(X) == 3.0 + np.sum(np.sin(X[1:]) * X[1:])


def test_functions_that_assign_to_globals_may_write() -> None:
    def counting(p: Any) -> Any:
        global CALLS
        CALLS += 1
        r = TEMPLATE.copy()
        r[0] = p[0] * CALLS / CALLS
        return np.sum(r * p)

    before = CALLS
    np.testing.assert_allclose(pg.jit(counting)(X), counting(X))
    assert before + 2 == CALLS
    pg.grad(counting)(X)
    assert before + 3 == CALLS


SHARED: dict[str, Callable[[Any], Any]] = {}


def shared(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    SHARED[f.__name__] = f
    return f


@shared
def of_a_global(p: Any) -> Any:
    TEMPLATE[0] = p[0]
    return np.sum(TEMPLATE * p)


@shared
def of_a_name_for_a_global(p: Any) -> Any:
    r = TEMPLATE
    r[0] = p[0]
    return np.sum(r * p)


@shared
def of_two_names(p: Any) -> Any:
    r = s = np.array([1.0, 2.0, 3.0, 4.0])
    r[0] = p[0]
    return np.sum(s * p)


@shared
def of_an_array_with_a_view(p: Any) -> Any:
    r = np.array([1.0, 2.0, 3.0, 4.0])
    s = r[1:]
    r[1] = p[0]
    return np.sum(s * p[1:])


@shared
def of_a_view(p: Any) -> Any:
    r = np.array([1.0, 2.0, 3.0, 4.0])
    s = r[1:]
    s[1] = p[0]
    return np.sum(r * p)


@shared
def of_a_list(p: Any) -> Any:
    rows = [np.ones(2), np.array([1.0, 2.0])]
    rows[1][0] = p[0]
    return np.sum(rows[1] * p[:2])


@shared
def of_an_operator(p: Any) -> Any:
    r = TEMPLATE
    r *= p
    return np.sum(r)


@shared
def of_elements_of_a_global(p: Any) -> Any:
    TEMPLATE[1:] += p[0]
    return np.sum(TEMPLATE * p)


def test_arrays_that_others_hold_are_refused() -> None:
    before = TEMPLATE.copy()
    for f in (*SHARED.values(), Holder().written):
        for transform in (pg.jit, pg.grad):
            with pytest.raises(pg.ArgumentError, match="computed by NumPy before tracing") as error:
                transform(f)(X)
            assert "np.copy(" in error.value.hint
    np.testing.assert_array_equal(TEMPLATE, before)
    _compare(Holder().copied)


def test_advice_names_the_array() -> None:
    with pytest.raises(pg.ArgumentError, match=r"^self\.buf was") as error:
        pg.jit(Holder().written)(X)
    assert error.value.hint.startswith("write r = np.copy(self.buf)")
    assert "self.buf[0] = p[0]" in str(error.value)


def test_code_without_source_is_refused_with_advice() -> None:
    names: dict[str, Any] = {"np": np}
    exec(
        "def f(p):\n    r = np.arange(4.0)\n    r[0] = p[0]\n    return np.sum(r * p)\n"
        "def g(p):\n    r = np.copy(np.arange(4.0))\n    r[0] = p[0]\n    return np.sum(r * p)\n",
        names,
    )
    assert rewritten(names["f"].__code__) is None
    for transform in (pg.jit, pg.grad):
        with pytest.raises(pg.ArgumentError, match="computed by NumPy before tracing") as error:
            transform(names["f"])(X)
        assert "np.copy(" in error.value.hint
        transform(names["g"])(X)


def test_code_that_inherits_flags_of_a_module_is_read() -> None:
    # `exec` passes on the flags of this module, which begins with an import from `__future__`.
    text = "def f(p):\n    r = [1.0] * N\n    r[0] = 2 * N\n    r[1] = p[0]\n    return r\n"
    linecache.cache["<flagged>"] = (len(text), None, text.splitlines(True), "<flagged>")
    names: dict[str, Any] = {"N": 3}
    exec(compile(text, "<flagged>", "exec"), names)
    assert rewritten(names["f"].__code__) is not None
    np.testing.assert_array_equal(pg.jit(names["f"])(X), [6.0, 0.1, 1.0])


def test_parts_of_a_file_that_are_run_alone_are_read(tmp_path: Path) -> None:
    head = "import numpy as np\n"
    body = "def f(p):\n    r = np.arange(4.0)\n    r[0] = p[0]\n    return np.sum(r * p)\n"
    file = tmp_path / "parts.py"
    file.write_text(head + body)
    names: dict[str, Any] = {}
    for part in (head, "\n" + body):
        exec(compile(part, str(file), "exec"), names)
    np.testing.assert_allclose(pg.jit(names["f"])(X), names["f"](X))


def test_a_file_that_has_changed_is_not_read() -> None:
    def first(p: Any) -> Any:
        r = np.arange(4.0)
        r[0] = p[0]
        return r

    code = first.__code__
    assert rewritten(code) is not None
    assert rewritten(code.replace(co_name="second")) is None
    assert rewritten(code.replace(co_firstlineno=code.co_firstlineno + 1)) is None
    assert rewritten(code.replace(co_consts=(None, 5.0, 0))) is None


def test_a_part_is_read_before_its_new_value_is_computed() -> None:
    def counted(p: Any) -> Any:
        n = [0.0]

        def step() -> Any:
            n[0] += 1.0
            return p[0]

        n[0] += step()
        return n[0] * p[1]

    def written(p: Any) -> Any:
        r = 2 * TEMPLATE

        def step(value: Any) -> Any:
            r[0] = value
            return p[0]

        r[0] += step(5.0)
        r[1:] = p[1:]
        r[1:3] *= step(6.0)
        return np.sum(r * p)

    _compare(counted)
    _compare(written)


def test_an_index_may_give_the_name_to_another_array() -> None:
    def named(p: Any) -> Any:
        r, z = 2 * TEMPLATE, np.zeros(4)
        old = r
        r[(r := z).size - 4] = 7.0
        return np.sum(r * p) + np.sum(old * p)

    def enclosed(p: Any) -> Any:
        r = 2 * TEMPLATE

        def index() -> int:
            nonlocal r
            r = 3 * TEMPLATE
            return 0

        r[index()] = 9.0
        r[index()] += 9.0
        return np.sum(r * p)

    def f(p: Any) -> Any:
        r = 2 * TEMPLATE
        r[(r := 3 * TEMPLATE).size - 4] = p[0]
        return np.sum(r * p)

    _compare(named)
    _compare(enclosed)
    with pytest.raises(pg.ArgumentError, match="computed by NumPy before tracing"):
        pg.jit(f)(X)


def test_arrays_in_containers_are_not_replaced_by_their_sums() -> None:
    def entry(p: Any) -> Any:
        a = 2 * TEMPLATE
        d = {"a": a}
        d["a"] += p
        return np.sum(a * p)

    def item(p: Any) -> Any:
        a = 2 * TEMPLATE
        held = [a]
        held[0] *= p[0]
        return np.sum(a * p)

    for f in (entry, item):
        for run in (pg.jit(f), pg.grad(f), pg.jit(pg.grad(f))):
            with pytest.raises(pg.ArgumentError, match=r"(d|held) holds an array") as info:
                run(X)
            assert "np.copy" in str(info.value)


def test_parts_of_arrays_take_what_they_can_hold() -> None:
    def integers(p: Any) -> Any:
        n = np.array([1, 2, 3, 4])
        n[0:2] += p[0:2]
        return np.sum(n * p)

    for run in (pg.jit(integers), pg.grad(integers)):
        with pytest.raises(pg.DTypeError):
            run(X)


def test_names_that_functions_within_bind_are_their_own() -> None:
    def matched(p: Any) -> Any:
        r, z = 1.0 * TEMPLATE, np.zeros(4)

        def inner(v: Any) -> None:
            match v:
                case [r, _]:
                    r[0] = 9.0

        inner([z, 2])
        r[1] = p[0]
        return np.sum(r * p) + np.sum(z * p)

    def walrus(p: Any) -> Any:
        r, z = 1.0 * TEMPLATE, np.zeros(4)

        def inner(v: Any) -> None:
            [(r := x) for x in v]
            r[0] = 9.0

        inner([z])
        return np.sum(r * p) + np.sum(z * p)

    def packed(p: Any) -> Any:
        kw, args = {"a": 1.0 * TEMPLATE}, [p[1]]

        def inner(*args: Any, **kw: Any) -> Any:
            kw["a"] = p[0]
            args[0]["b"] = p[1]
            return kw["a"] * args[0]["b"]

        return inner({}, a=2.0) * np.sum(kw["a"] * p) + args[0]

    for f in (matched, walrus, packed):
        _compare(f)


def test_orders_in_memory_are_kept() -> None:
    def raveled(p: Any) -> Any:
        r = TEMPLATE.reshape(2, 2).T.copy(order="K")
        r[0, 0] = p[0]
        return np.sum(r.ravel("K") * p)

    def viewed(p: Any) -> Any:
        r = TEMPLATE.reshape(2, 2).T + 0.0
        r[0, 0] = p[0]
        v = r.reshape(-1)
        v[1] = 20.0
        return np.sum(r.ravel() * p)

    np.testing.assert_allclose(pg.jit(raveled)(X), raveled(X))
    _compare(viewed)


def test_arrays_with_other_steps_in_memory_are_refused() -> None:
    def reversed_(p: Any) -> Any:
        y = np.arange(4.0).reshape(2, 2)[::-1]
        y = y.copy()[::-1]
        y[0, 0] = p[0]
        w = y.ravel()
        w[1] = p[1]
        return np.sum(y * p[:2])

    def stepped(p: Any) -> Any:
        y = (2 * TEMPLATE)[::2]
        y[0] = p[0]
        w = y.ravel()
        w[0] = 5.0
        return np.sum(y * p[:2])

    def turned(p: Any) -> Any:
        y = p.reshape(4, 1) * FORTRAN
        y[0, 1] = 3.0
        w = y.reshape(-1)
        w[2] = p[1]
        return np.sum(y * y)

    for f in (reversed_, stepped, turned):
        with pytest.raises(pg.ArgumentError):
            pg.jit(f)(X)
    for f in (reversed_, stepped):
        with pytest.raises(pg.ArgumentError):
            pg.grad(f)(X)


def test_sums_in_place_of_numbers_are_new_numbers() -> None:
    def several(p: Any) -> Any:
        s = t = np.sum(p)
        s += 1
        u = s
        s *= p[0]
        held = [p[1], p[1]]
        first = held[0]
        held[0] *= 2
        k = j = np.argmax(p)
        k += 1
        return t * s * u * first * held[0] * held[1] * p[j] * k

    def given(x: Any) -> Any:
        y = x
        x += 1.0
        z = x
        x *= 2.0
        return x * y * z

    _compare(several)
    assert pg.jit(given)(2.0) == given(2.0) == 36.0
    assert pg.grad(given)(2.0) == pg.jit(pg.grad(given))(2.0) == 42.0
