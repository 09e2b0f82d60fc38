"""Table of NumPy's functions and their names here, and reasons for missing ones.

Names are those after `numpy.`: `sin`, `linalg.norm`. A function with NumPy's arguments, in another
order or by other names, is called by NumPy's signature; others are in `numpy_meanings`.
"""

from __future__ import annotations

# Functions with the same name here.
SAME = """
    abs add all allclose angle any append arccos arccosh arcsin arcsinh arctan arctan2 arctanh
    argmax argmin argpartition argsort argwhere array_equal array_equiv array_split astype
    atleast_1d atleast_2d atleast_3d average bincount bitwise_and bitwise_count bitwise_or
    bitwise_xor block broadcast_arrays broadcast_to cbrt ceil choose column_stack compress
    concatenate conj conjugate convolve copysign corrcoef correlate cos cosh count_nonzero cov
    cross cumprod cumsum cumulative_prod cumulative_sum deg2rad delete diag diagflat diagonal diff
    digitize divide divmod dot dsplit dstack ediff1d equal exp exp2 expand_dims expm1 extract fabs
    fix flatnonzero flip fliplr flipud float_power floor floor_divide fmax fmin fmod frexp gcd
    gradient greater greater_equal heaviside histogram histogram2d histogram_bin_edges histogramdd
    hsplit hstack hypot imag inner insert interp intersect1d invert isclose iscomplex isfinite
    isin isinf isnan isneginf isposinf isreal ix_ kron lcm ldexp left_shift less less_equal
    lexsort log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
    logical_xor matmul matrix_transpose matvec max maximum mean median meshgrid min minimum modf
    moveaxis multiply nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian
    nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar negative nextafter nonzero
    not_equal outer partition percentile polyadd polyder polydiv polyfit polyint polymul polysub
    polyval positive power prod ptp quantile rad2deg real reciprocal remainder repeat resize
    right_shift roll rollaxis roots rot90 round searchsorted select setdiff1d setxor1d sign
    signbit sin sinc sinh sort spacing split sqrt square squeeze stack std subtract sum swapaxes
    take_along_axis tan tanh tensordot tile trace transpose trapezoid tril tril_indices_from
    trim_zeros triu triu_indices_from trunc union1d unique unique_all unique_counts unique_inverse
    unique_values unstack unwrap vander var vecdot vecmat vsplit vstack
    """

OTHER = {
    "absolute": "abs",
    "acos": "arccos",
    "acosh": "arccosh",
    "amax": "max",
    "amin": "min",
    "around": "round",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_not": "invert",
    "bitwise_right_shift": "right_shift",
    "concat": "concatenate",
    "i0": "elementwise.scipy_calls.i0",
    "degrees": "rad2deg",
    "linalg.cross": "cross",
    "linalg.matmul": "matmul",
    "linalg.matrix_transpose": "matrix_transpose",
    "linalg.outer": "outer",
    "linalg.tensordot": "tensordot",
    "mod": "remainder",
    "permute_dims": "transpose",
    "pow": "power",
    "radians": "deg2rad",
    "rint": "elementwise.rounding.rint",
    "row_stack": "vstack",
    "true_divide": "divide",
}

# Functions of numpy.linalg with the same name in a module of operators.
IN_FILES = {
    "linear_algebra.factorizations": "eig eigvals",
    "linear_algebra.matrices": "matrix_power multi_dot vecdot",
    "reduce.norms": "cond matrix_norm norm vector_norm",
    "linear_algebra.spectra": "eigh eigvalsh lstsq matrix_rank pinv qr svd svdvals",
    "linear_algebra.systems": "cholesky det inv slogdet solve tensorinv tensorsolve",
}

# Functions of numpy.fft, with the same names in their module of operators.
FOURIER = """
    fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2
    rfftn
    """

# Ufuncs of scipy.special, by their names there.
_SPECIAL = """
    beta betainc betaincc betaln entr erfcinv erfcx erfinv expit gamma gammainc gammaincc gammaln
    kl_div log_expit log_ndtr logit ndtr ndtri rel_entr xlog1py xlogy
    """
_BORROWED = """
    dawsn ellipe ellipk erfi exp1 expi expn hyp2f1 i0 i0e i1 i1e iv ive j0 j1 jv k0 k0e k1 k1e kv
    kve sici spence y0 y1 yv
    """
_COMBINED = "binom boxcox boxcox1p exprel gammasgn huber poch pseudo_huber"
SPECIAL = {
    "erf": "erf",
    "erfc": "erfc",
    "exp2": "exp2",
    "expm1": "expm1",
    "log1p": "log1p",
    "psi": "elementwise.special_functions.digamma",
    **{name: f"elementwise.special_functions.{name}" for name in _SPECIAL.split()},
    **{name: f"elementwise.scipy_calls.{name}" for name in _BORROWED.split()},
    **{name: f"elementwise.special_compositions.{name}" for name in _COMBINED.split()},
}

# Functions of scipy.special that are not ufuncs.
SPECIAL_FUNCTIONS = {
    "comb": "elementwise.special_compositions.comb",
    "digamma": "elementwise.special_functions.digamma",
    "factorial": "elementwise.special_compositions.factorial",
    "lambertw": "elementwise.scipy_calls.lambertw",
    "log_softmax": "log_softmax",
    "logsumexp": "logsumexp",
    "multigammaln": "elementwise.special_functions.multigammaln",
    "polygamma": "elementwise.special_functions.polygamma",
    "softmax": "softmax",
    "zeta": "elementwise.scipy_calls.zeta",
}

_BITS = "there are shifts: np.right_shift(x[:, None], np.arange(7, -1, -1)) & 1 unpacks bits"
_CONSTANT = "it takes numbers: static_argnames of pg.jit passes an argument as a number"
_TEXT = "it reads or writes text, files or memory, and variables have no elements yet"
_CALENDAR = "there are no dates here"
_CONFIGURES = "it is about NumPy itself"
_PLAIN = (
    "it makes an ndarray, which a variable cannot become: primgraph.numpy has array and asarray"
)

_REASONS = {
    _BITS: "packbits unpackbits",
    _CONSTANT: """
        arange bartlett blackman broadcast_shapes diag_indices diag_indices_from eye
        fft.fftfreq fft.rfftfreq fromfunction hamming hanning identity indices isscalar
        kaiser mask_indices mintypecode ones tri tril_indices triu_indices zeros empty
        isdtype issubdtype promote_types typename
        """,
    _TEXT: """
        array2string array_repr array_str base_repr binary_repr format_float_positional
        format_float_scientific from_dlpack frombuffer fromfile fromregex fromstring genfromtxt load
        loadtxt save savetxt savez savez_compressed may_share_memory shares_memory
        """,
    _CALENDAR: "busday_count busday_offset datetime_as_string datetime_data is_busday isnat",
    _CONFIGURES: """
        einsum_path get_include get_printoptions getbufsize geterr geterrcall info
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


def table() -> dict[str, str]:
    """Return the name here of each NumPy function that is called by NumPy's signature.

    Dotted names refer to functions of a submodule, not to methods.
    """
    named = [(file, name) for file, names in IN_FILES.items() for name in names.split()]
    found = {f"linalg.{name}": f"{file}.{name}" for file, name in named}
    transforms = {f"fft.{name}": f"signal.fourier.{name}" for name in FOURIER.split()}
    return {name: name for name in SAME.split()} | OTHER | found | transforms
