"""Families of operators that are imported on first use, and the functions in each."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from primgraph.ir.primitive import homes

# The public functions by name, registered by their modules; methods of handles call them.
functions: dict[str, Callable[..., Any]] = {}

_FAMILIES = {
    "networks.activations": """
        gelu log_softmax relu silu softmax softplus
        """,
    "networks.losses": """
        binary_cross_entropy binary_cross_entropy_with_logits cross_entropy huber_loss l1_loss
        mse_loss
        """,
    "networks.normalization": """
        batch_norm group_norm instance_norm layer_norm rms_norm
        """,
    "sampling.random_arrays": """
        bernoulli dropout normal uniform
        """,
    "networks.attention": """
        embedding scaled_dot_product_attention
        """,
    "reduce.averages": """
        average corrcoef cov nanargmax nanargmin nanmax nanmean nanmin nanstd nanvar ptp
        """,
    "shape.matrix_building": """
        diag diagflat indices kron meshgrid tri tril_indices tril_indices_from triu_indices
        triu_indices_from vander
        """,
    "elementwise.selection": """
        choose compress extract isin select
        """,
    "elementwise.complex_numbers": """
        angle complex conj conjugate imag iscomplex isreal real
        """,
    "signal.convolutions": """
        conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
        """,
    "reduce.differences": """
        convolve correlate ediff1d gradient interp nancumsum nanprod nansum
        trapezoid unwrap
        """,
    "elementwise.floats": """
        frexp nextafter spacing
        """,
    "elementwise.integers": """
        bitwise_count gcd lcm ravel_multi_index unravel_index
        """,
    "reduce.nan_quantiles": """
        nancumprod nanmedian nanpercentile nanquantile
        """,
    "index.sets": """
        argwhere flatnonzero intersect1d ix_ nonzero setdiff1d setxor1d trim_zeros union1d unique
        unique_all unique_counts unique_inverse unique_values
        """,
    "index.histograms": """
        bincount histogram histogram2d histogram_bin_edges histogramdd
        """,
    "shape.manipulation": """
        append array_split atleast_1d atleast_2d atleast_3d block broadcast_arrays column_stack
        delete dsplit dstack fliplr flipud hsplit hstack insert resize rollaxis
        rot90 unstack vsplit vstack
        """,
    "linear_algebra.matrices": """
        assume cross matrix_transpose matvec vecdot vecmat
        """,
    "linear_algebra.polynomials": """
        polyadd polyder polydiv polyfit polyint polymul polysub polyval roots
        """,
    "signal.pools": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
        adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d max_pool1d
        max_pool2d max_pool3d
        """,
    "elementwise.rounding": """
        allclose array_equal array_equiv cbrt copysign deg2rad divmod fabs fix float_power fmax
        fmin fmod heaviside hypot isclose isneginf isposinf ldexp logaddexp2 modf nan_to_num
        rad2deg signbit sinc trunc
        """,
    "reduce.cumulative": """
        cummax cummin cumprod cumulative_prod cumulative_sum logcumsumexp
        """,
    "index.sorting": """
        argpartition argsort digitize lexsort median partition percentile quantile searchsorted
        sort top_k
        """,
}
# Families whose names in `primgraph` are also tools, which dispatch on their argument.
_SHARED = {"reduce.differences": "diff", "shape.matrix_building": "trace"}

NAMES = tuple(sorted(name for names in _FAMILIES.values() for name in names.split()))


@cache
def _homes() -> Mapping[str, str]:
    """Return the module of each lazily loaded function, shared names included."""
    listed = [*_FAMILIES.items(), *_SHARED.items()]
    return {name: family for family, names in listed for name in names.split()}


# Graphs name operators in text and in files, before anyone has called the function.
homes.update({name: f"primgraph.operators.{family}" for name, family in _homes().items()})


def function_named(name: str) -> Callable[..., Any] | None:
    """Return the public function of that name, and import its family if necessary; None if unknown.

    A name such as "linear_algebra.systems.solve" is that of a function in a module of operators.
    """
    family, point, short = name.rpartition(".")
    if point:
        inner: Callable[..., Any] | None
        inner = getattr(importlib.import_module(f"primgraph.operators.{family}"), short, None)
        return inner
    found = functions.get(name)
    if found is None and name in _homes():
        importlib.import_module(f"primgraph.operators.{_homes()[name]}")
        found = functions[name]
    return found


def named_function(name: str) -> Callable[..., Any]:
    """Return the public function of that name, which must exist."""
    found = function_named(name)
    assert found is not None, name
    return found


def all_functions() -> Mapping[str, Callable[..., Any]]:
    """Return all public functions by name, after importing every family."""
    for name in _homes():
        function_named(name)
    return functions
