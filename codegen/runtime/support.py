"""Support functions that generated code calls where NumPy has no single function.

Their text is copied into standalone files. So every function here uses only `np`, other functions
of this file or of the modules that it collects, and their constants. Of Python's builtins they use
only those listed here, which are all that generated code has.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import isfunction
from types import CodeType
from typing import Any

import numpy as np

# The Python builtins that generated code, including copied support functions, may use.
BUILTINS = {
    f.__name__: f
    for f in (
        __import__, ArithmeticError, ImportError, ValueError, complex, dict, divmod, enumerate,
        float, getattr, isinstance, len, list, max, min, range, reversed, slice, tuple, zip,
    )
}  # fmt: skip


def as_array(x: Any, dtype: Any, shape: Any, name: str) -> Any:
    """Return `x` as an array; raise ValueError if it has another shape."""
    array = np.asarray(x, dtype)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, not {array.shape}")
    return array


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow on either side."""
    x = np.asarray(x)
    # Where this is 1, the exponential is still far from overflow.
    e = np.exp(np.minimum(x, x.dtype.type(11 if x.dtype == np.float16 else 64)))
    return e / (e + x.dtype.type(1))


def power_of_each(x: Any, y: Any) -> Any:
    """x**y by powers alone: for a single exponent of 0.5, NumPy takes the square root."""
    x, y = np.broadcast_arrays(x, y)
    return np.power(x.reshape(-1), y.flatten()).reshape(x.shape)


def complex_of(x: Any, y: Any) -> Any:
    """Return x + iy by assigning the parts: a sum would turn infinities into NaN, and lose -0."""
    shape = np.broadcast_shapes(np.shape(x), np.shape(y))
    made = np.empty(shape, np.result_type(x, y, np.complex64))
    made.real, made.imag = x, y
    return made


def root_of_squares(
    x: Any, squares: Any, axis: Any = None, divisor: float = 1.0, out: Any = None
) -> Any:
    """Return the root of the sum of squares of `x`, divided by `divisor`.

    Where `squares` has over- or underflowed, the sum is recomputed with `x` scaled by a power of
    two.
    """
    squares = np.asarray(squares)
    info = np.finfo(squares.dtype)
    safe = (squares >= info.tiny / info.eps) & (squares <= info.max)
    root = np.sqrt(squares / squares.dtype.type(divisor))
    if not np.all(safe):
        largest = np.max(np.abs(x), axis=axis, keepdims=True, initial=0.0)
        exponent = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
        scaled = np.ldexp(x, -exponent)
        wide = np.dtype(np.float32) if squares.dtype == np.float16 else squares.dtype
        total = np.sum(np.square(scaled, dtype=wide), axis=axis) / wide.type(divisor)
        found = np.ldexp(np.sqrt(total), exponent.reshape(root.shape))
        root = np.where(safe, root, found).astype(squares.dtype)
    if out is None:
        return root
    out[...] = root
    return out


def each_key(key: Any, shape: Any, dtype: Any, draw: Any) -> Any:
    """Call `draw` with a generator seeded by each element of `key`; return the stacked results."""
    keys = np.asarray(key)
    result = np.empty((keys.size, *shape), dtype)
    for i, k in enumerate(keys.reshape(-1)):
        result[i] = draw(np.random.Generator(np.random.Philox(key=k.item() % 2**64)))
    return result.reshape((*keys.shape, *shape))


def scaled(numbers: Any, low: float, high: float) -> Any:
    """Scale numbers between 0 and 1 in place to lie between `low` and `high`."""
    np.multiply(numbers, high - low, out=numbers)
    return np.add(numbers, low, out=numbers)


def random_uniform(key: Any, shape: Any, dtype: Any, low: float, high: float) -> Any:
    """Return uniform numbers in [low, high), which depend on `key` alone."""
    draws = each_key(
        key, shape, dtype, lambda rng: scaled(np.asarray(rng.random(shape)), low, high)
    )
    # Rounding to a smaller dtype must not reach the end of the interval.
    below = np.nextafter(np.asarray(high, draws.dtype), np.asarray(low, draws.dtype))
    return np.minimum(draws, below, out=draws)


def random_bernoulli(key: Any, shape: Any, p: float) -> Any:
    """Return True with probability `p`, depending on `key` alone."""
    return each_key(key, shape, np.bool_, lambda rng: rng.random(shape) < p)


def random_variate(key: Any, name: str, *params: Any) -> Any:
    """Draw from a distribution of NumPy's generators, depending on `key` and parameters alone."""
    keys = np.asarray(key)
    gamma = name == "standard_gamma"
    result = np.empty_like(params[0], params[0].dtype if gamma else np.int64)
    for place in np.ndindex(keys.shape):
        rng = np.random.Generator(np.random.Philox(key=keys[place].item() % 2**64))
        given = [np.asarray(p[place]) for p in params]
        if gamma:
            good = (given[0] >= 0) & (given[0] < np.inf)
            drawn = rng.standard_gamma(np.where(good, given[0], 1).astype(np.float64))
            result[place] = np.where(good, drawn, np.nan)
        else:
            result[place] = getattr(rng, name)(*given)
    return result


def taken(x: Any, out: Any) -> Any:
    """Return a copy of `x` to be modified: in `out`, which may be `x`, or in a new array."""
    if out is None:
        return np.array(x)
    if out is not x:
        out[...] = x
    return out


def triangular_solve(
    a: Any, b: Any, lower: Any, transposed: Any, unit: Any, out: Any = None
) -> Any:
    """Solve with a triangle of `a`, block of rows by block; `out` may be `b`.

    Each block of rows takes a product with the known rows, and an elimination in its own triangle.
    With many right-hand sides it takes products with its inverse, and one step of refinement.
    """
    x, n = taken(b, out), a.shape[-1]
    t = np.swapaxes(a, -1, -2) if transposed else a
    down, many = lower != transposed, b.shape[-1] > 32
    size = 32 if many else 64
    for k in range(0, n, size):
        i, j = (k, min(k + size, n)) if down else (n - min(k + size, n), n - k)
        known = slice(0, i) if down else slice(j, n)
        block = np.tril(t[..., i:j, i:j]) if down else np.triu(t[..., i:j, i:j])
        if unit:
            np.einsum("...ii->...i", block)[...] = 1
        rows = x[..., i:j, :]
        if k:
            rows -= t[..., i:j, known] @ x[..., known, :]
        if many:
            inverse = np.linalg.inv(block)
            first = inverse @ rows
            rows[...] = first + inverse @ (rows - block @ first)
        else:
            rows[...] = np.linalg.solve(block, rows)
    return x


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of each matrix."""
    turned = np.swapaxes(x, -1, -2)
    return np.conj(turned) if x.dtype.kind == "c" else turned


def cholesky_in_blocks(a: Any, out: Any) -> Any:
    """Compute the Cholesky factor in `out`, which may be `a`, block of columns by block.

    Rows below a block are a product with its inverse, and one step of refinement. This avoids the
    new array that NumPy allocates, which takes longer than the factor of a few hundred rows.
    """
    found, n, size = taken(a, out), a.shape[-1], 48 if a.shape[-1] < 1024 else 64
    for i in range(0, n, size):
        j = min(i + size, n)
        before, square = found[..., i:j, :i], found[..., i:j, i:j]
        if i:
            square -= before @ adjoint(before)
        square[...] = np.linalg.cholesky(square)
        if j < n:
            below = found[..., j:, i:j]
            if i:
                below -= found[..., j:, :i] @ adjoint(before)
            inverse = adjoint(np.linalg.inv(square))
            first = below @ inverse
            below[...] = first + (below - first @ adjoint(square)) @ inverse
            found[..., i:j, j:] = 0.0
    return found


def cholesky_tangent(factor: Any, d: Any) -> Any:
    """Return the tangent of a Cholesky factor: `l @ low(inv(l) @ d @ inv(l).T)`, `d` symmetric.

    `low` is the lower triangle with half of its diagonal.
    """
    known = (factor, True, False, False)
    part = (d + adjoint(d)) * 0.5
    for _ in range(2):
        part = adjoint(triangular_solve(known[0], part, *known[1:]))
    half = np.tril(part)
    np.einsum("...ii->...i", half)[...] *= 0.5
    return np.tril(factor) @ half


def cholesky_slope(factor: Any, ct: Any, out: Any = None) -> Any:
    """Return the gradient by a symmetric matrix from that by its Cholesky factor (lower triangles).

    Reverse mode of the blocked factorisation, last block of rows first: I. Murray, Differentiation
    of the Cholesky decomposition, arXiv:1602.07527, section 4.2.
    """
    found, n, size = taken(ct, out), ct.shape[-1], 64 if ct.shape[-1] < 1024 else 128
    for i in reversed(range(0, n, size)):
        j = min(i + size, n)
        block, beside = factor[..., i:j, i:j], factor[..., i:j, :i]
        inverse = np.tril(np.linalg.inv(block))
        square, below = found[..., i:j, i:j], found[..., j:, i:j]
        if j < n:
            below[...] = below @ inverse
            square -= adjoint(below) @ factor[..., j:, i:j]
        half = np.tril(adjoint(block) @ np.tril(square))
        np.einsum("...ii->...i", half)[...] *= 0.5
        turned = adjoint(inverse) @ half @ inverse
        square[...] = turned + adjoint(turned)
        if i:
            found[..., i:j, :i] -= square @ beside
            if j < n:
                found[..., j:, :i] -= below @ beside
                found[..., i:j, :i] -= adjoint(below) @ factor[..., j:, :i]
    for i in range(0, n, size):
        j = min(i + size, n)
        found[..., i:j, :j] *= 0.5
        found[..., :i, i:j] = adjoint(found[..., i:j, :i])
    return found


def assumed(x: Any, facts: Any) -> Any:
    """Return a copy of `x`; raise if its matrices are not as declared, up to rounding."""
    turned, size = np.swapaxes(x, -1, -2), np.max(np.abs(x), initial=0.0)
    bound = size * np.finfo(x.dtype).eps * 64
    for fact in facts:
        wrong = []
        if fact in ("lower_triangular", "diagonal"):
            wrong.append(np.any(np.triu(x, 1)))
        if fact in ("upper_triangular", "diagonal"):
            wrong.append(np.any(np.tril(x, -1)))
        if fact in ("symmetric", "positive_definite"):
            wrong.append(np.any(np.abs(x - turned) > bound))
        if np.any(wrong):
            raise ValueError(f"a matrix is not {fact}, as it was assumed to be")
        if fact == "positive_definite":
            np.linalg.cholesky(x)
    return np.array(x)


def unless_any(x: Any, bad: Any, message: Any) -> Any:
    """Return a copy of `x`; raise if `bad` is true anywhere."""
    if np.any(bad):
        raise np.linalg.LinAlgError(message)
    return np.array(x)


def cofactors(a: Any) -> Any:
    """Return the derivative of the determinant by each element, `det(a) * inv(a).T`.

    For singular matrices it is computed from singular values, omitting one at a time from their
    product.
    """
    try:
        return np.linalg.det(a)[..., None, None] * np.swapaxes(np.linalg.inv(a), -1, -2)
    except np.linalg.LinAlgError:
        u, s, vt = np.linalg.svd(a)
        others = [np.prod(np.delete(s, i, -1), -1) for i in range(s.shape[-1])]
        sign = np.linalg.det(u) * np.linalg.det(vt)
        product = (u * np.stack(others, -1)[..., None, :]) @ vt
        return np.conj(product) * sign[..., None, None]


def stable_argsort(x: Any, axis: int, out: Any) -> Any:
    """Write the stable argsort of real numbers to `out`.

    NumPy's stable sort takes several times as long as its fastest one, of which the order is the
    same unless elements are equal or NaN.
    """
    out[...] = np.argsort(x, axis)
    found = np.moveaxis(np.take_along_axis(x, out, axis), axis, -1)
    if not np.all(found[..., :-1] < found[..., 1:]):
        out[...] = np.argsort(x, axis, kind="stable")
    return out


def sort_by(x: Any, order: Any, axis: int, out: Any) -> Any:
    """Write the elements in ascending order to `out`, given their stable argsort."""
    out[...] = np.take_along_axis(x, order, axis)
    found = np.moveaxis(out, axis, -1)
    if not np.all(found[..., :-1] < found[..., 1:]):
        # NumPy decides which one of equal elements comes first, such as 0 and -0.
        out[...] = x
        out.sort(axis)
    return out


def placed(parts: Any, shape: Any, lead: Any, starts: Any, strides: Any) -> Any:
    """Return zeros with the elements of parts at strided positions, in row-major order."""
    whole = np.zeros(shape, parts[0].dtype)
    size = 1
    for extent in shape[lead:]:
        size *= extent
    flat = whole.reshape((*shape[:lead], size))
    for part, start, steps in zip(parts, starts, strides, strict=True):
        places = np.array(start)
        for extent, step in zip(part.shape[lead:], steps, strict=True):
            places = places[..., None] + np.arange(extent) * step
        flat[..., places] = part
    return whole


def sliding_windows(x: Any, axis: Any, sizes: Any, steps: Any, dilations: Any) -> Any:
    """Return elements of windows over axes from `axis` on, followed by axes of the windows."""
    number, rank = len(sizes), x.ndim
    spans = tuple([d * (n - 1) + 1 for n, d in zip(sizes, dilations, strict=True)])
    axes = tuple(range(axis, axis + number))
    seen = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    apart = (1,) * axis + steps + (1,) * (rank - axis - number) + dilations
    seen = seen[tuple([slice(None, None, s) for s in apart])]
    elements = tuple(range(rank, rank + number))
    order = tuple(range(axis)) + elements + tuple(range(axis, rank))
    return seen.transpose(order).copy()


def overlap_add(x: Any, axis: Any, extents: Any, steps: Any, dilations: Any) -> Any:
    """Return sums of the elements of windows over axes of `extents`, from `axis` on."""
    first, last = axis + len(extents), axis + 2 * len(extents)
    sizes, counts = x.shape[axis:first], x.shape[first:last]
    shape = (*x.shape[:axis], *extents, *x.shape[last:])
    total = np.zeros(shape, np.float32 if x.dtype == np.float16 else x.dtype)
    before = (slice(None),) * axis
    for offset in np.ndindex(sizes):
        places = zip(offset, counts, steps, dilations, strict=True)
        ends = [(k * d, k * d + (n - 1) * s + 1, s) for k, n, s, d in places]
        target = tuple([slice(*end) for end in ends])
        total[before + target] += x[before + offset]
    return total.astype(x.dtype, copy=False)


def aligned(size: int) -> Any:
    """Return `size` bytes, aligned to a cache line."""
    whole = np.empty(size + 64, np.uint8)
    start = -whole.__array_interface__["data"][0] % 64
    return whole[start : start + size]


def blocks(extent: int, rows: int, full: Any, rest: Any) -> Any:
    """Return a slice for each block of an axis, with its objects: `rest` for a shorter last one."""
    return [
        (slice(i, min(i + rows, extent)), full if i + rows <= extent else rest)
        for i in range(0, extent, rows)
    ]


def poison(array: Any) -> None:
    """Fill dead memory with ones, which are NaNs as floats."""
    array.reshape(-1).view(np.uint8).fill(255)


def _global_names(code: CodeType) -> Iterator[str]:
    """Yield the global names that a function reads, in the order of its text."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _global_names(inner)


# Functions and constants of other modules, which are imported when one is asked for.
_COLLECTED = {
    "primgraph.approximations.gamma": """
        CHUNK polynomial in_chunks by_pieces unchanged stirling parity distance_to_two
        gammaln_near_two gammaln_far gammaln_above_zero gammaln_reflected gammaln_chunk
        gamma_near_two gamma_factors gamma_far gamma_above_zero gamma_quotient gamma_reflected_near
        gamma_reflected_far gamma_below_zero gamma_chunk digamma_near digamma_far digamma_above_zero
        digamma_reflected digamma_chunk zeta_above_zero polygamma_chunk less_logarithm
        relative_entropy gammaln gamma_function digamma polygamma poles_cancel gammaln_drop
        betaln_chunk beta_chunk gamma_sign is_pole poch_chunk betaln beta poch
        """,
    "primgraph.approximations.quadrature": """
        NODES WEIGHTS less_line stretched tail_of_exponential gamma_scale gamma_tail gamma_front
        gamma_series gamma_fraction gamma_rest in_parts gamma_part gamma_moment gammainc_chunk
        beta_front beta_fraction beta_part beta_tail beta_moment betainc_chunk gammainc betainc
        """,
    "primgraph.approximations.error": """
        PLACES SLOPES ERF_VALUES ERFC_VALUES erf_near_zero erf_near_one split_square erfc_tail
        erfc_ratio_left erfc_ratio_right rational_erf rational_erfc beside_places
        beside_places_in_single erf_chunk erfc_chunk erfcx_above_zero erfcx_reflected erfcx_value
        erfcx_chunk erfcx_derivative erfinv_near_zero erfcinv_tail erfinv_far erfinv_chunk
        erfcinv_near_one erfcinv_far erfcinv_chunk log_ndtr_left log_ndtr_right log_ndtr_chunk
        erfcx erfinv erfcinv log_ndtr xlogy xlog1py logit_near_half logit_far logit_chunk logit
        erf erfc
        """,
    "primgraph.approximations.bessel": """
        FINER_NODES FINER_WEIGHTS EQUAL_NODES EQUAL_WEIGHTS phase_of_order turned_derivative
        end_of_fall sum_of_powers second_modified first_modified_near first_modified loss_along_axis
        integral_along_axis less_sine steepest_path path_above path_below path_from_axis loss_along
        hankel_part hankel_beyond hankel_at_turn hankel_before
        hankel_of_small hankel bessel_pair bessel_chunk bessel_by_order
        """,
    "primgraph.approximations.hypergeometric": """
        BERNOULLI times_linear over_linear times_series exponential_series reciprocal_gamma_series
        is_settled gauss_start gauss_step gauss_series factorial_of gauss_chunk kummer_series
        kummer_far kummer_chunk zeta_chunk gauss_by_parameters kummer_by_parameters
        zeta_by_exponent
        """,
    "primgraph.approximations.borrowed": """
        real_result by_scipy sparse_triangular_solve by_scipys_factors substitute
        """,
    "primgraph.codegen.runtime.jax_support": """
        scaled_root_of_squares derivative_of_determinant conjugate_transpose halved_triangle
        tangent_of_cholesky slope_of_cholesky slope_of_exponential lu_in_order eig_or_nan
        placed_at windows_of sums_of_windows solution_by_entries ratio_of_gammas beta_logarithm
        beta_by_logarithm high_product philox_uniform philox_uniform_between polygamma_of_all
        gammainc_of_all
        """,
    "primgraph.codegen.runtime.torch_support": """
        device_of on_the_device_of_arguments as_tensor stack_rows prod_over placed_in windows_over
        add_windows along_exponential real_or_nan rows_of_factors signed_gamma
        rising_factorial solve_row_by_row
        """,
    "primgraph.approximations.matrices": """
        PADE expm turn_off_axis sqrtm newton_root in_double logm expm_slope sqrtm_slope logm_slope
        size_of_elements block_with_slope upper_right_block lu eig
        """,
}
_HOMES = {name: module for module, names in _COLLECTED.items() for name in names.split()}
_OWN = tuple([
    name
    for name, value in globals().items()
    if isfunction(value) and value.__module__ == __name__ and not name.startswith("_")
])  # fmt: skip

# The names of all functions and constants that generated code may use.
NAMES = frozenset((*_OWN, *_HOMES))


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOMES[name]), name))


def used_by(code: CodeType) -> dict[str, Any]:
    """Return the functions and constants that a piece of code mentions, by name."""
    module = sys.modules[__name__]
    return {name: getattr(module, name) for name in _global_names(code) if name in NAMES}


@cache
def required_names(name: str) -> tuple[str, ...]:
    """Return the functions and constants of this kind that `name` uses."""
    if not name.isupper():
        read = list(_global_names(getattr(sys.modules[__name__], name).__code__))
    else:
        read = [n.id for n in ast.walk(ast.parse(text_of(name))) if isinstance(n, ast.Name)]
    return tuple(dict.fromkeys(n for n in read if n in NAMES and n != name))


@cache
def text_of(name: str) -> str:
    """Return the source text of a function or a constant."""
    if not name.isupper():
        return inspect.getsource(getattr(sys.modules[__name__], name))
    source = inspect.getsource(import_module(_HOMES[name]))
    (assignment,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    )
    lines = source.splitlines(keepends=True)
    return "".join(lines[assignment.lineno - 1 : assignment.end_lineno])
