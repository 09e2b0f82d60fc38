"""What is computed from states is of before the updates of a run, views of states included."""

import numpy as np
import pytest

import primgraph as pg
from primgraph import initializers
from primgraph.operators.lazy_loading import all_functions, functions

START = {(): 2.0, (3,): [1.0, 2.0, 3.0], (2, 3): [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}

# Functions of one array, in forms that leave its elements as they are for some shape.
VIEWS = {
    "assign": pg.assign,
    "reshape": lambda w: pg.reshape(w, w.shape),
    "reshape to a vector": lambda w: pg.reshape(w, (-1,)),
    "ravel": pg.ravel,
    "transpose": pg.transpose,
    "T": lambda w: w.T,
    "permuted not at all": lambda w: pg.transpose(w, tuple(range(w.ndim))),
    "astype": lambda w: w.astype("float64"),
    "broadcast": lambda w: pg.broadcast_to(w, w.shape),
    "broadcast arrays": lambda w: pg.broadcast_arrays(w, w)[0],
    "squeeze": pg.squeeze,
    "ellipsis": lambda w: w[...],
    "all": lambda w: w[:] if w.ndim else w[()],
    "positive": lambda w: +w,
    "stop gradient": pg.stop_gradient,
    "detach": lambda w: w.detach(),
    "sum over nothing": lambda w: pg.sum(w, axis=()),
    "clip": lambda w: pg.clip(w, None, 1e9),
    "flip": lambda w: pg.flip(w, ()),
    "concatenate": lambda w: pg.concatenate([w]) if w.ndim else w * 1.0,
    "roll": lambda w: pg.roll(w, 0),
    "tile": lambda w: pg.tile(w, 1),
    "split": lambda w: pg.split(w, 1)[0] if w.ndim else w * 1.0,
    "moveaxis": lambda w: pg.moveaxis(w, 0, 0) if w.ndim else w * 1.0,
    "power": lambda w: w**1,
    "pad": lambda w: pg.pad(w, 0),
    "where": lambda w: pg.where(True, w, w),
    "maximum": lambda w: pg.maximum(w, w),
    "times one": lambda w: w * 1.0,
    "copy": lambda w: w.copy() if "copy" in functions else pg.assign(w),
}


@pytest.mark.parametrize("shape", START)
def test_views_of_states_are_of_before_the_updates(shape):
    with pg.Program() as program:
        start = np.asarray(START[shape])
        w = pg.create_parameter(shape, name="w", initializer=initializers.Assign(start))
        program.update(w, w * 10.0)
        views, refused = {}, set()
        for name, view in VIEWS.items():
            try:
                views[name] = view(w)
            except pg.PrimgraphError:
                refused.add(name)
    assert len(refused) < 4, refused
    executor = pg.Executor()
    for update in (True, True, False):
        before = program.state_dict()["w"]
        fetched = executor.run(program, {}, [w, "w", *views.values()], update=update)
        after = program.state_dict()["w"]
        assert np.array_equal(after, before * 10.0 if update else before)
        assert np.array_equal(fetched[0], after)
        assert np.array_equal(fetched[1], after)
        for name, array in zip(views, fetched[2:], strict=True):
            assert np.array_equal(np.sort(array.ravel()), np.sort(before.ravel())), name
            assert not np.shares_memory(array, fetched[0])


def test_functions_that_give_their_operand_back_give_another_value_for_a_state():
    """Whatever function it is: the handle of the state itself is what stands for its new value."""
    with pg.Program() as program:
        w = pg.create_parameter((2, 3), name="w")
        x = pg.data("x", (2, 3))
        given = []
        for name, function in dict(all_functions()).items():
            try:
                found = function(x)
            except Exception:
                continue
            if isinstance(found, pg.Variable):
                given.append(name)
                assert found.value is not x.value
                assert function(w).value is not w.value
    assert {"assign", "positive", "asarray"} <= set(given)
    # A handle from elsewhere is one of the state.
    assert program.variable("w").value is program.parameters()[0].value is w.value


def test_views_of_states_take_names_and_derivatives():
    with pg.Program() as program:
        w = pg.create_parameter((3,), name="w", initializer=initializers.Assign([1.0, 2.0, 3.0]))
        same = pg.reshape(w, (3,))
        same.name = "same"
        loss = pg.sum(same**2)
        by_view, by_state = pg.grad(loss, same), pg.grad(loss, w)
        pg.optimizer.SGD(0.5).minimize(loss)
    found = pg.Executor().run(program, {}, ["same", by_view, by_state, "w"])
    np.testing.assert_array_equal(found, [[1, 2, 3], [2, 4, 6], [2, 4, 6], [0, 0, 0]])
    assert "reshape" not in pg.Executor().kernel(program, [loss]).source
