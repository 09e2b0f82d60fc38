"""Functions that code for torch calls where torch has no single function; their text is copied.

Arrays do not change after they are returned. Some are given functions of torch, as the names of
attributes must not be those of other support functions.
"""

from __future__ import annotations

from typing import Any

from primgraph.codegen.runtime.jax_support import ratio_of_gammas

# Generated code imports these.
torch: Any = None
functools: Any = None


def device_of(x: Any) -> Any:
    """Return the device of the first tensor in containers, None without one."""
    if isinstance(x, torch.Tensor):
        return x.device
    if isinstance(x, dict):
        x = tuple(x.values())
    if isinstance(x, (list, tuple)):
        for inner in x:
            device = device_of(inner)
            if device is not None:
                return device
    return None


def on_the_device_of_arguments(function: Any) -> Any:
    """Return the function, which makes tensors on the device of the first tensor it is given."""

    def on_device(*args: Any, **kwargs: Any) -> Any:
        device = device_of((args, kwargs))
        if device is None or device.type == "cpu":
            return function(*args, **kwargs)
        with device:
            return function(*args, **kwargs)

    return functools.wraps(function)(on_device)


def as_tensor(x: Any, dtype: Any, shape: Any, name: str) -> Any:
    """Return `x` as a tensor; raise ValueError if it has another shape."""
    array = torch.as_tensor(x, dtype=dtype)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, not {tuple(array.shape)}")
    return array


def stack_rows(rows: Any, shape: Any, dtype: Any) -> Any:
    """Return rows as one tensor, with zeros where there are fewer than the first axis has."""
    missing = torch.zeros((shape[0] - len(rows), *shape[1:]), dtype=dtype)
    return torch.cat([torch.stack(rows), missing]) if rows else missing


def prod_over(x: Any, axes: Any) -> Any:
    """Return the product over several axes, the last one first."""
    for axis in axes[::-1]:
        x = torch.prod(x, axis, dtype=x.dtype)
    return x


def placed_in(parts: Any, shape: Any, lead: Any, starts: Any, strides: Any) -> Any:
    """Return zeros with the elements of parts at strided positions, in row-major order."""
    size = 1
    for extent in shape[lead:]:
        size *= extent
    flat = torch.zeros((*shape[:lead], size), dtype=parts[0].dtype)
    for part, start, steps in zip(parts, starts, strides, strict=True):
        # A part of one element may be a number.
        part = part.reshape((*part.shape, *(1,) * (lead + len(steps) - part.ndim)))
        places = torch.tensor(start)
        for extent, step in zip(part.shape[lead:], steps, strict=True):
            places = places[..., None] + torch.arange(extent) * step
        flat[..., places] = part
    return flat.reshape(shape)


def windows_over(x: Any, axis: Any, sizes: Any, steps: Any, dilations: Any) -> Any:
    """Return elements of windows over axes from `axis` on, followed by axes of the windows."""
    number, rank = len(sizes), x.ndim
    for k in range(number):
        x = x.unfold(axis + k, dilations[k] * (sizes[k] - 1) + 1, steps[k])
        x = x[..., :: dilations[k]]
    order = [*range(axis), *range(rank, rank + number), *range(axis, rank)]
    return x.permute(order)


def add_windows(x: Any, axis: Any, extents: Any, steps: Any, dilations: Any) -> Any:
    """Return sums of the elements of windows over axes of `extents`, from `axis` on."""
    first, last = axis + len(extents), axis + 2 * len(extents)
    sizes, counts = x.shape[axis:first], x.shape[first:last]
    total = torch.zeros((*x.shape[:axis], *extents, *x.shape[last:]), dtype=x.dtype)
    before, number = (slice(None),) * axis, 1
    for n in sizes:
        number *= n
    for k in range(number):
        rest, target, source = k, before[:0], before[:0]
        for n, most, s, d in reversed(tuple(zip(sizes, counts, steps, dilations, strict=True))):
            rest, at = divmod(rest, n)
            first = at * d
            target = (slice(first, first + (most - 1) * s + 1, s), *target)
            source = (at, *source)
        total[(*before, *target)] += x[(*before, *source)]
    return total


def along_exponential(a: Any, d: Any) -> Any:
    """Return the derivative of the exponential of matrices along `d`."""
    size = torch.amax(torch.abs(d)) if d.numel() else torch.tensor(1.0, dtype=d.real.dtype)
    size = torch.where(size > 0, size, 1)
    zero = torch.zeros_like(a)
    blocks = torch.cat([torch.cat([a, d / size], -1), torch.cat([zero, a], -1)], -2)
    n = a.shape[-1]
    return size * torch.linalg.matrix_exp(blocks)[..., :n, n:]


def real_or_nan(factors: Any, is_real: bool) -> Any:
    """Return eigenvalues and eigenvectors; NaN for real matrices whose eigenvalues are complex."""
    w, v = factors
    if not is_real:
        return w, v
    good = torch.all(w.imag == 0, dim=-1, keepdim=True)
    return torch.where(good, w.real, torch.nan), torch.where(good[..., None], v.real, torch.nan)


def rows_of_factors(factors: Any) -> Any:
    """Return the order of rows, and the unit lower and the upper triangle of each matrix."""
    order, left, right = factors
    return torch.argmax(order.to(torch.uint8), dim=-2), left, right


def solve_row_by_row(data: Any, b: Any, rows: Any, columns: Any, reverse: bool) -> Any:
    """Solve with triangular matrices, in the order of their elements or in reverse order."""
    x, places = list(torch.unbind(b, -2)), range(rows.numel())
    for p in reversed(places) if reverse else places:
        i, j, entry = rows[p].item(), columns[p].item(), data[..., p, None]
        x[i] = x[i] / entry if i == j else x[i] - entry * x[j]
    return torch.stack(x, -2) if x else b


def signed_gamma(x: Any) -> Any:
    """Return the gamma function, by the exponential of its logarithm."""
    size = torch.exp(torch.lgamma(x))
    is_pole = (x <= 0) & (x == torch.floor(x))
    odd = (x < 0) & (torch.floor(x) % 2 == 1)
    return torch.where(is_pole & (x < 0), torch.nan, torch.where(odd, -size, size))


def rising_factorial(z: Any, m: Any) -> Any:
    """Return `gamma(z + m) / gamma(z)`."""
    return ratio_of_gammas(signed_gamma, torch.lgamma, z, m)
