"""Derivatives by objects of the user's classes, with vector spaces as HIPS autograd has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import primgraph as pg
import primgraph.compat.autograd.numpy as anp
from primgraph.compat.autograd import grad, jacobian, make_jvp, make_vjp, value_and_grad
from primgraph.compat.autograd.extend import Box, VSpace, defvjp, primitive, vspace
from primgraph.compat.autograd.tracer import getval, isbox


@dataclass(eq=False)
class Polynomial:
    """Coefficients by power."""

    terms: Any

    @primitive
    def __call__(self, x):
        assert not isinstance(self, Box)
        return sum([c * x**k for k, c in self.terms.items()], 0.0)

    @primitive
    def reversed(self, degree):
        return Polynomial({degree - k: c for k, c in self.terms.items()})

    def slope(self, x):
        return sum([k * c * x ** (k - 1) for k, c in self.terms.items()], 0.0)


class PolynomialBox(Box, Polynomial):
    pass


class Polynomials(VSpace):
    def zeros(self):
        return Polynomial({})

    def _add(self, p, q):
        keys = {**p.terms, **q.terms}
        return Polynomial({k: p.terms.get(k, 0.0) + q.terms.get(k, 0.0) for k in keys})


PolynomialBox.register(Polynomial)
Polynomials.register(Polynomial)
defvjp(
    Polynomial.__call__,
    lambda ans, p, x: lambda g: Polynomial({k: g * x**k for k in p.terms}),
    lambda ans, p, x: lambda g: g * p.slope(x),
)
defvjp(Polynomial.reversed, lambda ans, p, n: lambda g: g.reversed(n), None)

P = Polynomial({0: 0.5, 1: -1.0, 2: 2.0})


def by_terms(function: Any) -> Any:
    """The gradient by the coefficients, as a dict of arrays."""
    return pg.grad(lambda terms: function(lambda x: sum(c * x**k for k, c in terms.items())))(
        P.terms
    )


def test_gradients_by_an_object_are_objects_of_its_class() -> None:
    def value(p: Any) -> Any:
        return anp.sin(p(0.3)) * p(1.2) + p(p(0.7))

    found = grad(value)(P)
    assert type(found) is Polynomial
    expected = by_terms(value)
    for k, c in found.terms.items():
        assert type(c) is np.float64
        np.testing.assert_allclose(c, expected[k], rtol=1e-14)


def test_objects_computed_of_objects_and_containers_of_both() -> None:
    def value(both: Any) -> Any:
        turned = both["p"].reversed(2)
        assert isbox(turned)
        assert getval(turned).terms == {2: 0.5, 1: -1.0, 0: 2.0}
        return turned(both["x"]) ** 2 + turned(0.5) + both["p"](both["x"])

    at, (y, found) = 0.7, value_and_grad(value)({"p": P, "x": 0.7})
    turned = Polynomial({2: 0.5, 1: -1.0, 0: 2.0})
    np.testing.assert_allclose(y, turned(at) ** 2 + turned(0.5) + P(at), rtol=1e-14)
    slope = 2 * turned(at) * turned.slope(at) + P.slope(at)
    np.testing.assert_allclose(found["x"], slope, rtol=1e-14)
    for k in P.terms:
        wanted = 2 * turned(at) * at ** (2 - k) + 0.5 ** (2 - k) + at**k
        np.testing.assert_allclose(found["p"].terms[k], wanted, rtol=1e-14)


def test_a_product_with_the_jacobian_begins_at_zero_each_time() -> None:
    product, _ = make_vjp(lambda p: p(2.0))(P)
    for seed in (1.0, 3.0, 1.0):
        assert product(seed).terms == {0: seed, 1: 2 * seed, 2: 4 * seed}


def test_an_object_that_is_not_used_has_the_zero_of_its_space() -> None:
    assert grad(lambda both: both[1] ** 2)((P, 3.0))[0].terms == {}
    assert vspace(P).add(P, P).terms[2] == 4.0


def test_forward_mode_and_higher_orders_by_objects_are_refused() -> None:
    for transformed in (jacobian, lambda f: lambda p: make_jvp(f)(p)(P)):
        with pytest.raises(NotImplementedError, match="reverse mode alone"):
            transformed(lambda p: p(0.3))(P)
    with pytest.raises(TypeError, match="of higher order"):
        grad(lambda p: grad(lambda q: q(0.3))(p)(2.0))(P)


def test_a_class_without_boxes_is_named() -> None:
    class Lone:
        pass

    class Lones(VSpace):
        pass

    Lones.register(Lone)
    with pytest.raises(TypeError, match=r"LoneBox\.register\(Lone\)"):
        grad(lambda x: 1.0)(Lone())
    with pytest.raises(NotImplementedError, match="does not define zeros"):
        vspace(Lone()).zeros()
    del VSpace.mappings[Lone]
