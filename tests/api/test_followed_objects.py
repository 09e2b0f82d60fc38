"""Methods of objects are followed into as functions are, and the objects stay what they are."""

from __future__ import annotations

import dataclasses
import math
import weakref
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import primgraph as pg

X = np.array([0.3, 0.6, 0.9])


class Layer:
    """Called, and assigns to arrays that it makes."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, x: Any) -> Any:
        y = np.zeros(3)
        y[0] = self.weight * x[0]
        y[1:] = math.cos(self.weight) * x[1:]
        return y


class Model:
    """Has layers, counts its calls, and computes attributes."""

    def __init__(self) -> None:
        self.layers = [Layer(2.0), Layer(3.0)]
        self.first = Layer(0.5)
        self.calls = 0

    def run(self, x: Any) -> Any:
        self.calls += 1
        assert isinstance(self, Model)
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.scaled(x) * self.offset + self.made[0] * self.bent(x[1])

    def scaled(self, x: Any) -> Any:
        y = np.empty(3)
        y[:] = x
        y[2] = math.sqrt(x[2] + 1.0)
        return y

    @property
    def offset(self) -> Any:
        found = np.ones(3)
        found[1] = math.cos(1.0)
        return found

    @cached_property
    def made(self) -> Any:
        found = np.ones(2)
        found[0] = 4.0
        return found

    @staticmethod
    def bent(x: Any) -> Any:
        y = np.zeros(1)
        y[0] = math.exp(x)
        return y[0]


class Twice(Model):
    """Calls the methods that it overrides."""

    def scaled(self, x: Any) -> Any:
        return 2.0 * super().scaled(x)


def plain(model: Any, x: Any) -> Any:
    return np.asarray(model.run(x))


@pytest.mark.quick
@pytest.mark.parametrize("kind", [Model, Twice])
def test_methods_are_followed(kind: type[Model]) -> None:
    model = kind()
    wanted = model.run(X)
    slopes = [(model.run(X + d) - model.run(X - d)) / 2e-6 for d in 1e-6 * np.eye(3)]
    assert model.calls == 7
    for traced in (model.run, lambda x: model.run(x), lambda x: plain(model, x)):
        np.testing.assert_allclose(pg.jit(traced)(X), wanted, 1e-15)
        np.testing.assert_allclose(pg.jacobian(traced)(X).T, slopes, 1e-6)
    assert type(model) is kind
    assert type(model.layers[0]) is Layer


def test_attributes_that_a_method_assigns_are_those_of_the_object() -> None:
    model = Model()
    pg.trace(model.run, X)
    assert model.calls == 1
    assert model.made[0] == 4.0
    model.layers[0].weight = 7.0
    np.testing.assert_allclose(pg.jit(model.run)(X), model.run(X), 1e-15)


class Vector:
    """Has operators and other special methods."""

    def __init__(self, part: Any) -> None:
        self.part = part

    def __matmul__(self, x: Any) -> Any:
        y = np.zeros(1)
        y[0] = np.sum(self.part * x)
        return y[0]

    def __getitem__(self, i: int) -> Any:
        return self.part[i]

    def __len__(self) -> int:
        return len(self.part)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and bool(np.all(self.part == other.part))

    def __hash__(self) -> int:
        return 5


def test_special_methods_are_those_of_the_class() -> None:
    v, same = Vector(np.array([1.0, 2.0, 4.0])), Vector(np.array([1.0, 2.0, 4.0]))

    def f(x: Any) -> Any:
        assert v == same
        assert len({v, same}) == 1
        return (v @ x) * v[1] + len(v)

    np.testing.assert_allclose(pg.jit(f)(X), f(X), 1e-15)


class Base:
    """Is ordered, refers to others, and is found by identity."""

    def __init__(self, number: float) -> None:
        self.number = number
        self.other: Any = None

    def __lt__(self, other: Any) -> bool:
        return bool(self.number < other.number)

    def __add__(self, other: Any) -> Any:
        return np.sin(self.number)

    def __radd__(self, other: Any) -> Any:
        return 7.0

    def filled(self, x: Any) -> Any:
        y = np.zeros(3)
        y[:] = self.number * x
        return y

    def refer(self, other: Any) -> bool:
        self.other, other.other = other, self
        return self.other.other is self

    @classmethod
    def create(cls) -> Any:
        return cls(4.0)


class Derived(Base):
    """Asked first in sums with objects of its base class."""

    def __radd__(self, other: Any) -> Any:
        return np.exp(self.number)

    def again(self) -> Any:
        class Kind(type):
            pass

        class Other(metaclass=Kind):
            pass

        assert type(Other) is Kind
        assert isinstance(Other, type)
        assert type(self.number) is float
        return type(self).create()


def test_views_have_class_order_and_identity_of_their_objects() -> None:
    one, two = Base(1.0), Derived(2.0)
    weights = weakref.WeakKeyDictionary({one: 3.0, two: 5.0})
    listed = [one, two]

    def f(x: Any) -> Any:
        assert type(two) is Derived
        assert issubclass(Derived, Base)
        assert type(two.again()) is Derived
        assert min(two, one) is one
        assert listed.index(two) == 1
        assert one in {one}
        assert "Base" in repr(one)
        assert one.refer(two)
        return weights[one] * one.filled(x) + (one + two) * two.filled(x)

    np.testing.assert_allclose(pg.jit(f)(X), f(X), 1e-15)
    assert two.other is one
    assert one.other is two


@dataclasses.dataclass
class Point:
    """A container of arguments, which stays one."""

    x: Any
    y: Any

    def length(self) -> Any:
        return math.sqrt(2.0) * np.hypot(self.x, self.y)


POINT = Point(np.array([3.0]), np.array([4.0]))


def test_containers_stay_containers() -> None:
    def f(x: Any) -> Any:
        assert type(POINT) is Point
        moved = pg.tree.map(lambda v: v * x[0], POINT)
        return moved.length(), dataclasses.replace(POINT, x=x)

    length, other = pg.jit(f)(X)
    np.testing.assert_allclose(length, 0.3 * 5.0 * math.sqrt(2.0), 1e-15)
    assert type(other) is Point


def logarithm_of_density(law: Any, given: Any) -> Any:
    return lambda x: np.sum(law._logpdf(x, *given))


def test_scipy_distributions_are_followed_where_they_are_named() -> None:
    scipy = pytest.importorskip("scipy")
    stats = pytest.importorskip("scipy.stats")
    x = np.array([0.4, 1.3, 2.2])
    for name, shapes in (("burr", (10.5, 4.3)), ("t", (2.74,)), ("triang", (0.158,)),
                         ("vonmises", (3.99,)), ("skewnorm", (4.0,))):  # fmt: skip
        law = getattr(stats, name)
        at = x * 0.3 if name == "triang" else x
        given = [np.full(3, s) for s in shapes]
        density = logarithm_of_density(law, given)
        value, slope = pg.jit(pg.value_and_grad(density), through=[scipy])(at)
        np.testing.assert_allclose(value, np.sum(law._logpdf(at, *given)), 1e-13)
        ends = [law._logpdf(at + d, *given) for d in (1e-6, -1e-6)]
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, 1e-6)
