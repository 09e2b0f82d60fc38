"""Families of operators that are imported on first use, and the functions of each."""

from primgraph.base.providers import providers
from primgraph.ir.primitive import homes

_FAMILIES = {
    "primgraph.operators.networks.activations": """
        gelu log_softmax relu silu softmax softplus
        """,
    "primgraph.operators.networks.losses": """
        binary_cross_entropy binary_cross_entropy_with_logits cross_entropy huber_loss l1_loss
        mse_loss
        """,
    "primgraph.operators.networks.normalization": """
        batch_norm group_norm instance_norm layer_norm rms_norm
        """,
    "primgraph.operators.sampling.random_arrays": """
        bernoulli dropout normal uniform
        """,
    "primgraph.operators.networks.attention": """
        embedding scaled_dot_product_attention
        """,
    "primgraph.operators.reduce.averages": """
        average corrcoef cov nanargmax nanargmin nanmax nanmean nanmin nanstd nanvar ptp
        """,
    "primgraph.operators.shape.matrix_building": """
        diag diagflat indices kron meshgrid tri tril_indices tril_indices_from triu_indices
        triu_indices_from vander
        """,
    "primgraph.operators.elementwise.selection": """
        choose compress extract isin select
        """,
    "primgraph.operators.elementwise.complex_numbers": """
        angle complex conj conjugate imag iscomplex isreal real
        """,
    "primgraph.operators.signal.convolutions": """
        conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
        """,
    "primgraph.operators.reduce.differences": """
        convolve correlate ediff1d gradient interp nancumsum nanprod nansum
        trapezoid unwrap
        """,
    "primgraph.operators.elementwise.floats": """
        frexp nextafter spacing
        """,
    "primgraph.operators.elementwise.integers": """
        bitwise_count gcd lcm ravel_multi_index unravel_index
        """,
    "primgraph.operators.reduce.nan_quantiles": """
        nancumprod nanmedian nanpercentile nanquantile
        """,
    "primgraph.operators.index.positions": """
        argwhere flatnonzero ix_ nonzero trim_zeros
        """,
    "primgraph.operators.index.sets": """
        intersect1d setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse
        unique_values
        """,
    "primgraph.operators.index.histograms": """
        bincount histogram histogram2d histogram_bin_edges histogramdd
        """,
    "primgraph.operators.shape.manipulation": """
        append array_split atleast_1d atleast_2d atleast_3d block broadcast_arrays column_stack
        delete dsplit dstack fliplr flipud hsplit hstack insert resize rollaxis
        rot90 unstack vsplit vstack
        """,
    "primgraph.operators.linear_algebra.matrices": """
        assume cross matrix_transpose matvec vecdot vecmat
        """,
    "primgraph.operators.linear_algebra.polynomials": """
        polyadd polyder polydiv polyfit polyint polymul polysub polyval roots
        """,
    "primgraph.operators.signal.pools": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
        adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d max_pool1d
        max_pool2d max_pool3d
        """,
    "primgraph.operators.elementwise.rounding": """
        allclose array_equal array_equiv cbrt copysign deg2rad divmod fabs fix float_power fmax
        fmin fmod heaviside hypot isclose isneginf isposinf ldexp logaddexp2 modf nan_to_num
        rad2deg signbit sinc trunc
        """,
    "primgraph.operators.reduce.cumulative": """
        cummax cummin cumprod cumulative_prod cumulative_sum logcumsumexp
        """,
    "primgraph.operators.index.sorting": """
        argpartition argsort digitize lexsort median partition percentile quantile searchsorted
        sort top_k
        """,
}
# Those whose names in `primgraph` mean tools as well: they choose by what they are given.
_SHARED = {
    "primgraph.operators.reduce.differences": "diff",
    "primgraph.operators.shape.matrix_building": "trace",
}

NAMES = tuple(sorted(name for names in _FAMILIES.values() for name in names.split()))

# Files of namespaces, whose functions are asked for by the name of the file as well.
_NAMESPACES = (
    "primgraph.operators.elementwise.scipy_calls",
    "primgraph.operators.elementwise.special_compositions",
    "primgraph.operators.elementwise.special_functions",
    "primgraph.operators.linear_algebra.factorizations",
    "primgraph.operators.linear_algebra.spectra",
    "primgraph.operators.linear_algebra.systems",
    "primgraph.operators.reduce.norms",
    "primgraph.operators.signal.fourier",
)

# Functions and the operators of graphs in text and in files are found by the same names.
for _family, _names in [*_FAMILIES.items(), *_SHARED.items()]:
    homes.update(dict.fromkeys(_names.split(), _family))
# Files are asked for by their name in the room of operators.
for _family in (*_FAMILIES, *_NAMESPACES):
    providers[_family.removeprefix("primgraph.")] = _family
