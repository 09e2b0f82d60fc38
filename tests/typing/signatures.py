"""The types that a user's program meets: checkers read this file, and it runs as well."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import primgraph as pg

Floats = NDArray[np.float64]


def energy(x: Floats, k: float = 1.0) -> float:
    return 0.5 * k * np.sum(x**2)


def wave(x: Floats, k: Floats) -> Floats:
    return np.sin(x) * k


@pg.jit(static_argnames="count")
def power(x: Floats, count: int) -> Floats:
    return x**count


class Spring:
    @pg.jit(static_argnums=0)
    def force(self, x: Floats, scale: float) -> Floats:
        return -scale * x


def square(x: float) -> float:
    return x * x


def fitted(x: Floats, k: Floats) -> tuple[float, dict[str, Floats]]:
    return np.sum(x * k), {"x": x}


def doubled(x: pg.Tensor) -> pg.Tensor:
    return (x * 2).sum()


x: Floats = np.array([1.0, 2.0])
k: Floats = np.array([0.5, 0.25])
assert_type(pg.jit(wave)(x, k=k), Floats)
assert_type(pg.jit(energy)(x), float)
assert_type(power(x, count=2), Floats)
assert_type(Spring().force(x, 2.0), Floats)
assert_type(pg.grad(energy)(x, k=2.0), Floats)
assert_type(pg.grad(energy, argnums=1)(x, 2.0), float)
assert_type(pg.grad(energy, argnums=(0, 1))(x, 2.0), tuple[Floats, float])
assert_type(pg.grad(fitted, has_aux=True)(x, k), tuple[Floats, dict[str, Floats]])
assert_type(pg.value_and_grad(energy)(x), tuple[float, Floats])
assert_type(pg.value_and_grad(energy, argnums=(0, 1))(x, 1.0), tuple[float, tuple[Floats, float]])
assert_type(pg.jit(pg.value_and_grad(energy))(x), tuple[float, Floats])
# A wrong element of a pair is found.
assert_type(pg.value_and_grad(energy)(x), tuple[Floats, Floats])  # type: ignore[assert-type]
assert_type(pg.jit(pg.grad(pg.grad(square)))(2.0), float)
assert_type(pg.vmap(wave)(x, k), Floats)
assert_type(pg.vmap(square)(x), Floats)
assert_type(pg.vmap(pg.grad(energy), in_axes=(0, None))(np.ones((3, 2)), 1.0), Floats)
assert_type(pg.vmap(in_axes=0)(wave)(x, k), Floats)
assert_type(pg.hessian(energy)(x), Floats)
assert_type(pg.jacobian(wave)(x, k), Floats)
assert_type(pg.jit(pg.jacfwd(wave))(x, k), Floats)
assert_type(pg.checkpoint(wave)(x, k), Floats)

t = pg.tensor(x)
assert_type(t * 2, pg.Tensor)
assert_type(2.0 - t / 3.0 + t @ x, pg.Tensor)
assert_type(pg.jit(doubled)(t), pg.Tensor)
assert_type(pg.grad(doubled)(t), pg.Tensor)
with pg.Program():
    v = pg.data("v", shape=(3,))
    assert_type(v * 2, pg.Variable)
    assert_type(1.0 + v**2 - np.ones(3), pg.Variable)
    assert_type(pg.grad(pg.tanh(v), v), pg.Variable)


def mistakes() -> None:
    """Read by checkers only, which find each of these calls wrong."""
    pg.jit(wave)(x, "k")  # type: ignore[arg-type]
    pg.grad(energy)(x, wrong=1.0)  # type: ignore[call-arg]
    power(x)  # type: ignore[call-arg]
    Spring().force(x, "2")  # type: ignore[arg-type]
