"""Containers of arrays, taken apart and put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import primgraph as pg


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Layer:
    weight: Any
    bias: Any


class Ring:
    """A container that only its own registration knows."""

    def __init__(self, name: str, parts: list[Any]) -> None:
        self.name, self.parts = name, parts


pg.register_container(
    Ring,
    lambda ring: ({f"at{i}": part for i, part in enumerate(ring.parts)}, ring.name),
    lambda name, parts: Ring(name, parts),
)

VALUE = {"b": [1, (2,)], 3: Pair(4, None), ("t", 1): Layer(5, Ring("r", [6, 7]))}


def test_containers_are_taken_apart_and_put_together() -> None:
    leaves, structure = pg.tree.flatten(VALUE)
    assert leaves == [1, 2, 4, 5, 6, 7] == pg.tree.leaves(VALUE)
    again = pg.tree.unflatten(structure, [10 * leaf for leaf in leaves])
    assert again["b"] == [10, (20,)]
    assert again[3] == Pair(40, None)
    ring = again["t", 1].bias
    assert type(ring) is Ring
    assert ring.name == "r"
    assert ring.parts == [60, 70]
    assert pg.tree.structure(again) == structure
    assert hash(pg.tree.structure(again)) == hash(structure)
    assert str(structure) == (
        "{'b': [*, (*,)], 3: Pair(left=*, right=None), "
        "('t', 1): Layer(weight=*, bias=Ring(at0=*, at1=*))}"
    )


def test_paths_are_as_python_writes_them() -> None:
    assert pg.tree.paths(VALUE, "p") == [
        "p['b'][0]",
        "p['b'][1][0]",
        "p[3].left",
        "p[('t', 1)].weight",
        "p[('t', 1)].bias.at0",
        "p[('t', 1)].bias.at1",
    ]


def test_functions_are_mapped_over_containers_that_are_alike() -> None:
    found = pg.tree.map(lambda a, b: a + b, {"x": [1, 2]}, {"x": [10, 20]})
    assert found == {"x": [11, 22]}
    with pytest.raises(pg.ArgumentError, match=r"the containers differ: \[\*\] and \(\*,\)"):
        pg.tree.map(lambda a, b: a, [1], (1,))
    assert pg.tree.map(str, None) is None


def test_a_structure_takes_as_many_leaves_as_it_has() -> None:
    with pytest.raises(pg.ArgumentError, match=r"\[\*, \*\] has 2 leaves, and 1 are given"):
        pg.tree.unflatten(pg.tree.structure([1, 2]), [1])


def test_a_predicate_says_what_else_is_a_leaf() -> None:
    leaves, structure = pg.tree.flatten([None, (1, 2)], lambda v: v is None)
    assert leaves == [None, 1, 2]
    assert str(structure) == "[*, (*, *)]"


def test_containers_in_themselves_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(pg.ArgumentError, match="nested deeper than 100, or in themselves"):
        pg.tree.flatten(endless)


def test_a_class_is_registered_once() -> None:
    for kind in (Ring, dict, Pair):
        with pytest.raises(pg.ArgumentError, match=f"{kind.__name__} is a container already"):
            pg.register_container(kind, lambda v: (v, None), lambda rest, parts: parts)
    with pytest.raises(pg.ArgumentError, match="kind"):
        pg.register_container("Ring", lambda v: (v, None), lambda rest, parts: parts)


def test_registered_containers_are_arguments_and_results() -> None:
    ring = Ring("r", [np.ones(2), 3.0])

    def total(r: Any) -> Any:
        return pg.sum(r.parts[0]) * r.parts[1] ** 2

    slope = pg.grad(total)(ring)
    assert type(slope) is Ring
    assert slope.name == "r"
    np.testing.assert_array_equal(slope.parts[0], [9.0, 9.0])
    assert slope.parts[1] == 12.0
    f = pg.jit(lambda r: Ring(r.name, [p * 2.0 for p in r.parts]))
    assert f(ring).parts[1] == 6.0
    f(Ring("other", [np.ones(2), 3.0]))
    assert len(f.compilations) == 2
    with pytest.raises(pg.NotDifferentiable, match=r"r\.at0 is of int64"):
        pg.grad(total)(Ring("r", [np.arange(2), 3.0]))


@pytest.mark.parametrize("style", ["planned", "readable"])
def test_registered_containers_are_traced_and_compiled(style: str) -> None:
    ring = Ring("r", [np.ones(2), 3.0])
    graph = pg.trace(lambda r, k: {"ring": Ring(r.name, [p * k for p in r.parts])}, ring, 2.0)
    assert [v.hint for v in graph.inputs] == ["r.at0", "r.at1", "k"]
    kernel = pg.compile(graph, style=style)
    found = kernel(ring, 4.0)["ring"]
    assert (type(found), found.name, found.parts[1]) == (Ring, "r", 12.0)
    np.testing.assert_array_equal(found.parts[0], [4.0, 4.0])
    assert 'r["at0"]' in kernel.source
    with pytest.raises(pg.FeedError, match=r"built with 'other'; it was traced with .* and 'r'"):
        kernel(Ring("other", ring.parts), 4.0)
    with pytest.raises(pg.FeedError, match="'r' is a Ring: dict"):
        kernel({"at0": np.ones(2), "at1": 3.0}, 4.0)
