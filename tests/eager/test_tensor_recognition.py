"""What is computed again is recognised by going along it: nothing else is taken for the same."""

import itertools

import numpy as np
import pytest

import primgraph as pg
from primgraph.eager import run
from primgraph.eager.structure_cache import Pattern

A, B = np.array([0.5, -1.5, 2.0]), np.array([1.5, 0.25, -0.5])


def leaves(b_tracked=True, one=False):
    a = pg.tensor(A, requires_grad=True)
    return a, (a if one else pg.tensor(B, requires_grad=b_tracked))


def product(a, b, looked, held):
    """The sum of `(a * b) * b`, whose factors may be looked at or held on the way."""
    inner = a * b
    if looked:
        inner.numpy()
    kept = [inner] if held else []
    loss = (inner * b).sum()
    del inner
    return loss, kept


VARIANTS = list(itertools.product([False, True], repeat=4))


def check(b_tracked, one, looked, held):
    a, b = leaves(b_tracked, one)
    loss, kept = product(a, b, looked, held)
    loss.backward()
    second = A if one else B
    if one:
        np.testing.assert_allclose(a.grad.numpy(), 3 * A * A)
    else:
        np.testing.assert_allclose(a.grad.numpy(), B * B)
        if b_tracked:
            np.testing.assert_allclose(b.grad.numpy(), 2 * A * B)
        else:
            assert b.grad is None
    np.testing.assert_allclose(loss.item(), (A * second * second).sum())
    for inner in kept:
        np.testing.assert_allclose(inner.numpy(), A * second)


@pytest.mark.parametrize("seed", range(4))
def test_structures_that_end_alike_are_told_apart(seed):
    order = np.random.default_rng(seed).integers(len(VARIANTS), size=60)
    for i in order:
        check(*VARIANTS[i])


def test_structures_that_take_turns_are_compiled_once_each():
    pg.eager.log.clear()
    for _ in range(5):
        for variant in ((True, False, False, False), (True, True, False, False)):
            check(*variant)
    before = pg.eager.log.total
    for _ in range(5):
        for variant in ((True, False, False, False), (True, True, False, False)):
            check(*variant)
    assert pg.eager.log.total == before


def test_hooks_retained_and_second_gradients_are_no_part_of_a_plain_step():
    def plain():
        a, b = leaves()
        loss, _ = product(a, b, looked=False, held=False)
        loss.backward()
        np.testing.assert_allclose(a.grad.numpy(), B * B)

    def hooked():
        a, b = leaves()
        a.register_hook(lambda g: g * 2.0)
        loss, _ = product(a, b, looked=False, held=False)
        loss.backward()
        np.testing.assert_allclose(a.grad.numpy(), 2 * B * B)

    def retained():
        a, b = leaves()
        inner = a * b
        inner.retain_grad()
        (inner * b).sum().backward()
        np.testing.assert_allclose(inner.grad.numpy(), B)
        np.testing.assert_allclose(a.grad.numpy(), B * B)

    def second():
        a, b = leaves()
        (first,) = pg.grad(((a * b) * b).sum(), [b], create_graph=True)
        (found,) = pg.grad(first.sum(), [b])
        np.testing.assert_allclose(found.numpy(), 2 * A)

    def without():
        a, b = leaves()
        with pg.no_grad():
            loss, _ = product(a, b, looked=False, held=False)
        assert not loss.requires_grad
        np.testing.assert_allclose(loss.item(), (A * B * B).sum())

    for _ in range(4):
        for step in (plain, hooked, plain, retained, second, without, plain, second):
            step()


def test_numbers_and_arrays_that_change_are_read_anew():
    for i in range(6):
        x = pg.tensor(A * i, requires_grad=True)
        y = (x * float(i) + pg.tensor(B)).sum()
        y.backward()
        np.testing.assert_allclose(y.item(), (A * i * i + B).sum())
        np.testing.assert_allclose(x.grad.numpy(), np.full(3, float(i)))


def nodes_of(*, same=False, tracked=True):
    a, b = leaves(tracked, same)
    inner = a * b
    root = inner + b
    return [root.node], [inner.node, root.node], [a.node, b.node], inner


def test_a_pattern_finds_leaves_and_what_is_wanted():
    roots, nodes, given, inner = nodes_of()
    pattern = Pattern(roots, nodes, given, [nodes[1]])
    del inner
    others, _, known = nodes_of()[:3]
    assert pattern.match_roots(others) == (known, others)


def test_a_pattern_does_not_fit_what_differs():
    roots, nodes, given, _inner = nodes_of()
    pattern = Pattern(roots, nodes, given, nodes)
    assert pattern.match_roots(roots) is not None
    same, _, _, kept = nodes_of(same=True)
    assert pattern.match_roots(same) is None
    untracked, _, _, kept = nodes_of(tracked=False)
    assert pattern.match_roots(untracked) is None
    unheld, _, _, kept = nodes_of()
    del kept
    assert pattern.match_roots(unheld) is None
    looked, _, _, kept = nodes_of()
    kept.numpy()
    assert pattern.match_roots(looked) is None
    assert pattern.match_roots([*roots, *roots]) is None


def test_a_structure_of_derivatives_is_recorded_once(monkeypatch):
    recorded = []
    graph_of = run.graph_of

    def counted(nodes, leaves, wanted):
        recorded.append(len(nodes))
        return graph_of(nodes, leaves, wanted)

    monkeypatch.setattr(run, "graph_of", counted)
    for number in range(4):
        a = pg.tensor(A + number, requires_grad=True)
        pg.sum(pg.tanh(a) * a * 0.625).backward()
        slope = 1 - np.tanh(A + number) ** 2
        np.testing.assert_allclose(
            a.grad.numpy(), 0.625 * (slope * (A + number) + np.tanh(A + number)), rtol=1e-14
        )
    assert len(recorded) == 1
    assert len(run._graphs) <= run._MOST_GRAPHS
