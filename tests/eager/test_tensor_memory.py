"""Arrays of results are written to once more, and never while anybody can see them."""

import threading

import numpy as np
import pytest

import primgraph as pg
from primgraph.eager.buffer_pool import BufferPool
from primgraph.ir.types import FLOAT64, TensorType

# Large enough to be lent by the shelf.
SIDE = 96
BIG = TensorType((SIDE, SIDE), FLOAT64)


class Training:
    """Steps of a layer whose parameter and gradients are large."""

    def __init__(self, seed=0, method=pg.optimizer.Adam):
        rng = np.random.default_rng(seed)
        self.w = pg.tensor(rng.normal(size=(SIDE, SIDE)) / SIDE, requires_grad=True)
        self.x = pg.tensor(rng.normal(size=(SIDE, SIDE)))
        self.optimizer = method(0.01, parameters=[self.w])

    def loss(self):
        return pg.mean(pg.tanh(self.x @ self.w) ** 2)

    def step(self):
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def addresses(training):
    return {t._array().ctypes.data for t in (training.w, training.w.grad)}


def test_what_is_lent_belongs_to_one_at_a_time():
    shelf = BufferPool()
    first, second = shelf.take([BIG, BIG])
    third, *_ = shelf.take([BIG])
    assert len({id(first), id(second), id(third)}) == 3


def test_what_nobody_has_is_lent_again():
    shelf = BufferPool()
    known = {id(a) for a in shelf.take([BIG, BIG])}
    assert {id(a) for a in shelf.take([BIG, BIG])} == known


@pytest.mark.parametrize(
    "held",
    [
        lambda a: a[1:],
        lambda a: a.T,
        memoryview,
        lambda a: a.view().view().flat,
        lambda a: [a],
    ],
)
def test_what_a_view_shows_is_not_lent(held):
    shelf = BufferPool()
    (array,) = shelf.take([BIG])
    address = array.ctypes.data
    kept = held(array)
    del array
    assert shelf.take([BIG])[0].ctypes.data != address
    del kept


def test_a_shelf_keeps_no_more_than_it_may():
    shelf = BufferPool(most=3 * BIG.nbytes)
    shelf.take([BIG] * 3)
    assert shelf.held == 3 * BIG.nbytes
    shelf.take([BIG] * 4)
    assert shelf.held <= 3 * BIG.nbytes


def test_what_is_held_for_long_is_let_go():
    shelf = BufferPool()
    kept = [shelf.take([BIG])[0] for _ in range(100)]
    assert len({id(a) for a in kept}) == 100
    assert shelf.held <= 10 * BIG.nbytes


def test_types_that_nobody_asks_for_are_let_go():
    shelf = BufferPool()
    shelf.take([BIG])
    for _ in range(200):
        shelf.take([TensorType((SIDE,), FLOAT64)])
    assert shelf.held == SIDE * 8


def test_a_training_step_uses_the_same_memory_in_turn():
    training = Training()
    seen = []
    for _ in range(20):
        training.step()
        seen.append(addresses(training))
    assert set.union(*seen[10:]) <= set.union(*seen[:10])


def held_by_the_user(training):
    """All ways to what a training has computed, each with the elements that it shows now."""
    w, gradient = training.w, training.w.grad
    found = [
        w.numpy(),
        np.asarray(w),
        np.asarray(gradient)[3:, ::2],
        w.detach(),
        w.detach()[2:5],
        w.T.copy(),
        gradient,
        pg.tanh(w),
        gradient.detach() * 2,
        *training.optimizer.state_dict().values(),
        memoryview(np.asarray(w)),
    ]
    return [(kept, np.array(kept)) for kept in found]


def test_what_the_user_holds_is_never_overwritten():
    training, held = Training(), []
    for _ in range(12):
        training.step()
        held += held_by_the_user(training)
    for kept, before in held:
        np.testing.assert_array_equal(np.asarray(kept), before)


def test_what_waits_to_be_computed_finds_what_it_was_made_from():
    training = Training()
    for _ in range(5):
        training.step()
    before, waiting = training.w.numpy(), training.w.detach() + 1.0
    for _ in range(5):
        training.step()
    np.testing.assert_array_equal(waiting.numpy(), before + 1.0)


def test_two_tensors_on_one_array_part():
    training = Training()
    for _ in range(5):
        training.step()
    other = training.w.detach()
    third = other.detach()
    before = other.numpy()
    with pytest.warns(pg.TensorWarning):
        third += 1.0
    for _ in range(5):
        training.step()
    np.testing.assert_array_equal(other.numpy(), before)
    np.testing.assert_array_equal(third.numpy(), before + 1.0)


@pytest.mark.parametrize(
    ("method", "atol"), [(pg.optimizer.Momentum, 0.0), (pg.optimizer.Adam, 1e-15)]
)
def test_steps_are_those_of_new_arrays(method, atol):
    """To use arrays again loses nothing: a second optimizer goes on from copies at each step.

    Adam's powers of one number are C's in code of Python's floats and NumPy's elsewhere, which may
    differ in the last bit.
    """
    training, other = Training(method=method), Training(method=method)
    for _ in range(8):
        training.step()
        states = other.optimizer.state_dict()
        other.w = pg.tensor(other.w.numpy(), requires_grad=True)
        other.optimizer = method(0.01, parameters=[other.w])
        other.optimizer.set_state_dict(states)
        other.step()
        np.testing.assert_allclose(training.w.numpy(), other.w.numpy(), rtol=0.0, atol=atol)


def test_gradients_that_add_up_are_not_overwritten():
    training = Training()
    for _ in range(4):
        training.step()
    training.optimizer.zero_grad()
    parts = []
    for _ in range(4):
        training.loss().backward()
        parts.append(np.asarray(training.w.grad))
    for i, part in enumerate(parts):
        np.testing.assert_allclose(part, (i + 1) * parts[0], rtol=1e-12)


def test_a_step_that_fails_changes_nothing():
    rng = np.random.default_rng(0)
    w = pg.tensor(rng.normal(size=(SIDE, SIDE)), requires_grad=True)
    optimizer = pg.optimizer.SGD(0.1, parameters=[w])

    def step(place):
        optimizer.zero_grad()
        pg.mean(pg.take(w, pg.tensor([0, place]), axis=0) ** 2).backward()
        optimizer.step()

    for _ in range(4):
        step(1)
    before = w.numpy()
    shown = np.asarray(w)
    with pytest.raises(pg.BoundsError):
        step(SIDE)
    np.testing.assert_array_equal(w.numpy(), before)
    optimizer.zero_grad()
    step(1)
    np.testing.assert_array_equal(shown, before)
    assert not np.array_equal(w.numpy(), before)


def test_threads_do_not_write_to_each_others_arrays():
    expected = [Training(seed) for seed in range(2)]
    for training in expected:
        for _ in range(40):
            training.step()
    found = [Training(seed) for seed in range(2)]
    kept = [[], []]

    def run(i):
        for _ in range(40):
            found[i].step()
            kept[i] += held_by_the_user(found[i])[:4]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one.w.numpy(), other.w.numpy())
    for shown, before in kept[0] + kept[1]:
        np.testing.assert_array_equal(np.asarray(shown), before)


def test_what_a_program_shares_is_not_overwritten():
    layer = pg.nn.Linear(SIDE, SIDE)
    optimizer = pg.optimizer.Adam(0.01, parameters=layer.parameters())
    x = np.random.default_rng(0).normal(size=(SIDE, SIDE))

    def step():
        optimizer.zero_grad()
        pg.mean(layer(pg.tensor(x)) ** 2).backward()
        optimizer.step()

    with pg.Program() as program:
        y = layer(pg.data("x", x.shape, x.dtype))
    for _ in range(5):
        step()
        (found,) = pg.Executor().run(program, {"x": x}, [y])
        np.testing.assert_allclose(found, layer(pg.tensor(x)).numpy(), rtol=1e-12)
    kept = program.state_dict()
    copies = {name: array.copy() for name, array in kept.items()}
    for _ in range(5):
        step()
    for name, array in kept.items():
        np.testing.assert_array_equal(array, copies[name])
