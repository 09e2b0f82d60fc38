"""Rows of operators, and of functions of NumPy, SciPy and `math`: see `names`.

NumPy's functions without a row are listed with reasons.
"""

from __future__ import annotations

from primgraph.operators.names import declare

declare({
    "operators numpy": {
        "primgraph.operators.elementwise.arithmetic": """
            abs=numpy.absolute add arctan2=numpy.atan2=math.atan2 clip divide=numpy.true_divide
            floor_divide logaddexp maximum minimum multiply negative positive
            power=numpy.pow=math.pow reciprocal remainder=numpy.mod round=numpy.around sign square
            subtract
            """,
        "primgraph.operators.elementwise.complex_numbers": """
            angle conj conjugate imag iscomplex isreal real
            """,
        "primgraph.operators.elementwise.elementary": """
            arccos=numpy.acos=math.acos arccosh=numpy.acosh=math.acosh arcsin=numpy.asin=math.asin
            arcsinh=numpy.asinh=math.asinh arctan=numpy.atan=math.atan
            arctanh=numpy.atanh=math.atanh
            """,
        "primgraph.operators.elementwise.floats": "frexp nextafter spacing",
        "primgraph.operators.elementwise.integers": """
            bitwise_count gcd lcm packbits ravel_multi_index unpackbits
            unravel_index=numpy.unravel_index(x=indices)
            """,
        "primgraph.operators.elementwise.logic": """
            bitwise_and bitwise_or bitwise_xor equal greater greater_equal
            invert=numpy.bitwise_invert=numpy.bitwise_not left_shift=numpy.bitwise_left_shift less
            less_equal logical_and logical_not logical_or logical_xor not_equal
            right_shift=numpy.bitwise_right_shift
            """,
        "primgraph.operators.elementwise.rounding": """
            allclose array_equal array_equiv deg2rad=numpy.radians=math.radians divmod fix
            float_power fmax fmin heaviside isneginf isposinf logaddexp2
            rad2deg=numpy.degrees=math.degrees signbit sinc
            """,
        "primgraph.operators.elementwise.selection": "choose isin select",
        "primgraph.operators.index.histograms": """
            histogram histogram2d histogram_bin_edges histogramdd
            """,
        "primgraph.operators.index.indexing": "take_along_axis",
        "primgraph.operators.index.positions": "ix_ trim_zeros",
        "primgraph.operators.index.quantiles": "median percentile quantile",
        "primgraph.operators.index.sorting": """
            argpartition argsort digitize lexsort partition searchsorted sort
            """,
        "primgraph.operators.linear_algebra.matrices": "matvec vecmat",
        "primgraph.operators.linear_algebra.polynomials": """
            polyadd polyder polydiv polyfit polyint polymul polysub polyval roots
            """,
        "primgraph.operators.linear_algebra.products": "dot inner",
        "primgraph.operators.reduce.averages": """
            average corrcoef cov nanargmax nanargmin nanmax nanmean nanmin
            nanstd=numpy.nanstd(ddof=correction) nanvar=numpy.nanvar(ddof=correction) ptp
            """,
        "primgraph.operators.reduce.cumulative": "cumprod cumulative_prod cumulative_sum",
        "primgraph.operators.reduce.differences": """
            convolve correlate ediff1d gradient interp nancumsum nanprod nansum trapezoid unwrap
            """,
        "primgraph.operators.reduce.nan_quantiles": """
            nancumprod nanmedian nanpercentile nanquantile
            """,
        "primgraph.operators.reduce.reductions": """
            all any argmax argmin count_nonzero cumsum max=numpy.amax min=numpy.amin prod sum
            """,
        "primgraph.operators.reduce.statistics": "mean std var",
        "primgraph.operators.shape.creation": "astype",
        "primgraph.operators.shape.joining": """
            concatenate=numpy.concat diagonal flip repeat roll split stack tile
            """,
        "primgraph.operators.shape.manipulation": """
            append array_split atleast_1d atleast_2d atleast_3d block broadcast_arrays column_stack
            delete dsplit dstack fliplr flipud hsplit hstack insert resize rollaxis rot90 unstack
            vsplit vstack=numpy.row_stack
            """,
        "primgraph.operators.shape.matrix_building": """
            diag diag_indices_from diagflat kron meshgrid tril_indices_from triu_indices_from vander
            """,
        "primgraph.operators.shape.shaping": """
            broadcast_to expand_dims moveaxis ravel reshape squeeze swapaxes
            transpose=numpy.permute_dims tril triu
            """,
    },
    "operators numpy math": {
        "primgraph.operators.elementwise.arithmetic": "ceil floor",
        "primgraph.operators.elementwise.elementary": """
            cos cosh exp log log10 log2 sin sinh sqrt tan tanh
            """,
        "primgraph.operators.elementwise.logic": "isfinite isinf isnan",
        "primgraph.operators.elementwise.rounding": """
            cbrt copysign fabs fmod hypot isclose ldexp modf trunc
            """,
    },
    "operators numpy sized": {
        "primgraph.operators.elementwise.selection": "compress extract",
        "primgraph.operators.index.histograms": "bincount",
        "primgraph.operators.index.positions": "argwhere flatnonzero nonzero",
        "primgraph.operators.index.sets": """
            intersect1d setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse
            unique_values
            """,
    },
    "operators sizes": {
        "primgraph.operators.shape.creation": """
            arange eye=sizes.identity full linspace ones zeros=sizes.empty
            """,
        "primgraph.operators.shape.matrix_building": "indices tri",
    },
    "operators": {
        "primgraph.operators.elementwise.arithmetic": "add_n mod scale",
        "primgraph.operators.elementwise.complex_numbers": "complex",
        "primgraph.operators.elementwise.elementary": "rsqrt sigmoid",
        "primgraph.operators.elementwise.logic": "where",
        "primgraph.operators.elementwise.rounding": "nan_to_num",
        "primgraph.operators.index.indexing": """
            gather getitem strided_slice take
            """,
        "primgraph.operators.index.scatter": "scatter_add scatter_max scatter_min set_slice",
        "primgraph.operators.index.sorting": "top_k",
        "primgraph.operators.linear_algebra.contraction": "einsum",
        "primgraph.operators.linear_algebra.matrices": "assume",
        "primgraph.operators.linear_algebra.products": "linear",
        "primgraph.operators.networks.activations": "gelu relu silu softplus",
        "primgraph.operators.networks.attention": "embedding scaled_dot_product_attention",
        "primgraph.operators.networks.losses": """
            binary_cross_entropy binary_cross_entropy_with_logits cross_entropy huber_loss l1_loss
            mse_loss
            """,
        "primgraph.operators.networks.normalization": """
            batch_norm group_norm instance_norm layer_norm rms_norm
            """,
        "primgraph.operators.reduce.cumulative": "cummax cummin logcumsumexp",
        "primgraph.operators.reduce.statistics": "norm",
        "primgraph.operators.sampling.random_arrays": "dropout",
        "primgraph.operators.shape.creation": """
            assign cast full_like iota one_hot ones_like size stop_gradient zeros_like
            """,
        "primgraph.operators.shape.joining": "array asarray concat",
        "primgraph.operators.shape.padding": "pad",
        "primgraph.operators.shape.matrix_building": "tril_indices triu_indices",
        "primgraph.operators.shape.shaping": "flatten permute unsqueeze",
        "primgraph.operators.signal.convolutions": """
            conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
            """,
        "primgraph.operators.signal.pools": """
            adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
            adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d max_pool1d
            max_pool2d max_pool3d
            """,
    },
    "handles numpy": {
        "primgraph.operators.reduce.differences": "diff",
        "primgraph.operators.shape.matrix_building": """
            trace=numpy.linalg.trace(axis1=-2,axis2=-1)
            """,
    },
    "operators linalg numpy numpy.linalg scipy.linalg": {
        "primgraph.operators.linear_algebra.matrices": "cross matrix_transpose vecdot",
        "primgraph.operators.linear_algebra.products": "matmul outer tensordot",
    },
    "linalg numpy.linalg scipy.linalg": {
        "primgraph.operators.linear_algebra.factorizations": "eig eigvals",
        "primgraph.operators.linear_algebra.matrices": "diagonal matrix_power multi_dot",
        "primgraph.operators.linear_algebra.spectra": """
            eigh eigvalsh lstsq matrix_rank pinv qr svd svdvals
            """,
        "primgraph.operators.linear_algebra.systems": """
            cholesky det inv slogdet solve tensorinv tensorsolve
            """,
        "primgraph.operators.reduce.norms": "cond matrix_norm norm vector_norm",
    },
    "linalg scipy.linalg": {
        "primgraph.operators.linear_algebra.factorizations": """
            EigResult block_diag cho_factor cho_solve expm logm lu lu_factor lu_solve solve_banded
            solve_sylvester solve_toeplitz sqrtm toeplitz
            """,
        "primgraph.operators.linear_algebra.matrices": "trace",
        "primgraph.operators.linear_algebra.spectra": "EighResult LstsqResult QRResult SVDResult",
        "primgraph.operators.linear_algebra.systems": "SlogdetResult solve_triangular",
    },
    "linalg": {
        "primgraph.errors": "LinAlgError",
    },
    "fft numpy.fft": {
        "primgraph.operators.signal.fourier": """
            fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft
            rfft2 rfftn
            """,
    },
    "fft": {
        "primgraph.operators.signal.fourier": "fftfreq rfftfreq",
    },
    "operators numpy scipy.special math": {
        "primgraph.operators.elementwise.elementary": "exp2 expm1 log1p",
    },
    "operators special scipy.special math": {
        "primgraph.operators.elementwise.elementary": "erf erfc",
    },
    "operators special scipy.special": {
        "primgraph.operators.networks.activations": "log_softmax softmax",
        "primgraph.operators.reduce.statistics": "logsumexp",
    },
    "special numpy scipy.special": {
        "primgraph.operators.elementwise.scipy_calls": "i0",
    },
    "special scipy.special math": {
        "primgraph.operators.elementwise.special_compositions": "comb",
        "primgraph.operators.elementwise.special_functions": "gamma",
    },
    "special scipy.special": {
        "primgraph.operators.elementwise.scipy_calls": """
            dawsn ellipe ellipk erfi exp1 expi expn hyp1f1 hyp2f1 i0e i1 i1e iv ive j0 j1 jv k0 k0e
            k1 k1e kv kve lambertw sici spence wofz y0 y1 yv zeta
            """,
        "primgraph.operators.elementwise.special_compositions": """
            binom boxcox boxcox1p cosm1 exprel factorial gammasgn huber poch pseudo_huber
            """,
        "primgraph.operators.elementwise.special_functions": """
            beta betainc betaincc betaln digamma=scipy.special.psi entr erfcinv erfcx erfinv expit
            gammainc gammaincc gammaln=math.lgamma kl_div log_expit log_ndtr logit multigammaln ndtr
            ndtri polygamma rel_entr xlog1py xlogy
            """,
    },
    "special": {
        "primgraph.operators.elementwise.scipy_calls": "SiciResult",
    },
    "operators random": {
        "primgraph.operators.sampling.random_arrays": "bernoulli normal uniform",
    },
    "random": {
        "primgraph.operators.sampling.distributions": """
            categorical choice multivariate_normal permutation truncated_normal
            """,
        "primgraph.operators.sampling.rejection": """
            beta binomial cauchy chisquare dirichlet exponential gamma gumbel laplace loggamma
            logistic lognormal poisson rademacher randint split t
            """,
    },
    "numpy": {
        "primgraph.operators.elementwise.rounding": "rint",
        "primgraph.operators.numpy_meanings": """
            apply_along_axis apply_over_axes can_cast common_type copy einsum einsum_path empty_like
            full full_like geomspace iscomplexobj isrealobj iterable linspace logspace
            min_scalar_type nan_to_num ndim ones_like pad piecewise poly real_if_close result_type
            shape size sort_complex take vdot where zeros_like
            """,
        "primgraph.operators.index.assignments": """
            copyto fill_diagonal place put put_along_axis putmask
            """,
    },
    "numpy.lib.stride_tricks": {
        "primgraph.operators.numpy_meanings": "sliding_window_view",
    },
})  # fmt: skip

_CONSTANT = "it takes numbers: static_argnames of pg.jit passes an argument as a number"
_TEXT = "it reads or writes text, files or memory, and variables have no elements yet"
_MEMORY = "it is about memory, which variables do not have"
_CALENDAR = "there are no dates here"
_CONFIGURES = "it is about NumPy itself"
_PLAIN = (
    "it makes an ndarray, which a variable cannot become: primgraph.numpy has array and asarray"
)

_REASONS = {
    _CONSTANT: """
        arange bartlett blackman broadcast_shapes diag_indices eye
        fft.fftfreq fft.rfftfreq fromfunction hamming hanning identity indices isscalar
        kaiser mask_indices mintypecode ones tri tril_indices triu_indices zeros empty
        isdtype issubdtype promote_types typename
        """,
    _TEXT: """
        array2string array_repr array_str base_repr binary_repr format_float_positional
        format_float_scientific from_dlpack frombuffer fromfile fromregex fromstring genfromtxt load
        loadtxt save savetxt savez savez_compressed
        """,
    _MEMORY: "may_share_memory shares_memory",
    _CALENDAR: "busday_count busday_offset datetime_as_string datetime_data is_busday isnat",
    _CONFIGURES: """
        get_include get_printoptions getbufsize geterr geterrcall info
        nested_iters printoptions set_printoptions setbufsize seterr seterrcall show_config
        show_runtime test linalg.test fft.test
        """,
    _PLAIN: """
        array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray asmatrix
        bmat fromiter frompyfunc isfortran require
        """,
}

NOT_BECAUSE = {name: why for why, names in _REASONS.items() for name in names.split()}
"""Public functions of NumPy that the table lacks, and why."""

OF_ELEMENTS = frozenset(f"{_REASONS[_CONSTANT]} {_REASONS[_TEXT]}".split())
"""Those that NumPy calculates of the elements of tensors: the results have no derivative."""
