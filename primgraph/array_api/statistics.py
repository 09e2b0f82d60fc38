"""Sums and other functions of all elements over axes, by the names of the standard."""

from __future__ import annotations

from primgraph.operators.names import define

_ROWS = """
all(x, /, *, axis=None, keepdims=False)
Return whether all elements differ from zero.
>>> xp.all(xp.asarray([True, False]))
tensor(False, dtype=bool)

any(x, /, *, axis=None, keepdims=False)
Return whether one of the elements differs from zero.
>>> xp.any(xp.asarray([True, False]))
tensor(True, dtype=bool)

cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
Compute cumulative products along an axis, which may be left out for a vector.
>>> xp.cumulative_prod(xp.asarray([1.0, 2.0, 3.0]))
tensor([1., 2., 6.])

cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
Compute cumulative sums along an axis, which may be left out for a vector.
>>> xp.cumulative_sum(xp.asarray([1.0, 2.0, 3.0]), include_initial=True)
tensor([0., 1., 3., 6.])

max(x, /, *, axis=None, keepdims=False)
Return the largest element, of all or along axes.
>>> xp.max(xp.asarray([[1.0, 5.0], [3.0, 4.0]]), axis=1)
tensor([5., 4.])

mean(x, /, *, axis=None, keepdims=False)
Compute the mean, of all elements or along axes.
>>> xp.mean(xp.asarray([[1.0, 5.0], [3.0, 4.0]]), axis=0)
tensor([2. , 4.5])

min(x, /, *, axis=None, keepdims=False)
Return the smallest element, of all or along axes.
>>> xp.min(xp.asarray([[1.0, 5.0], [3.0, 4.0]]), axis=1)
tensor([1., 3.])

prod(x, /, *, axis=None, dtype=None, keepdims=False)
Compute the product; for integers in the widest dtype of their kind, unless `dtype` is given.
>>> xp.prod(xp.asarray([2.0, 3.0]))
tensor(6.)

std(x, /, *, axis=None, correction: float = 0.0, keepdims=False): std(ddof=correction)
Compute the standard deviation, with divisor `n - correction`.
>>> xp.std(xp.asarray([1.0, 3.0]))
tensor(1.)

sum(x, /, *, axis=None, dtype=None, keepdims=False)
Compute the sum; for integers in the widest dtype of their kind, unless `dtype` is given.
>>> xp.sum(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=1, keepdims=True)
tensor([[3.],
        [7.]])

var(x, /, *, axis=None, correction: float = 0.0, keepdims=False): var(ddof=correction)
Compute the variance, with divisor `n - correction`.
>>> xp.var(xp.asarray([1.0, 3.0]), correction=1)
tensor(2.)

diff(x, /, *, axis: int = -1, n: int = 1, prepend=None, append=None): handles.diff
Compute the differences of neighbours along an axis, `n` times.
>>> xp.diff(xp.asarray([1.0, 4.0, 9.0]))
tensor([3., 5.])
"""

__all__ = define("array_api", globals(), _ROWS)
