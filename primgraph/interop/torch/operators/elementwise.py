"""Functions of elementwise operators: arithmetic, comparisons, activations, conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.interop.torch.table import F, Site, means, means_each, names
from primgraph.operators import stop_gradient
from primgraph.operators.promotion import lift
from primgraph.operators.variable import Variable

# Operators of the same name and the same arguments as functions of torch.
means_each({
    f"aten.{name}": getattr(names, name)
    for name in (
        "abs", "acos", "acosh", "addcdiv", "addcmul", "angle", "asin", "asinh", "atan", "atan2",
        "atanh", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or",
        "bitwise_right_shift", "bitwise_xor", "ceil", "clamp", "clamp_max", "clamp_min", "conj",
        "copysign", "cos", "cosh", "deg2rad", "digamma", "div", "eq", "erf", "erfc", "erfinv",
        "exp", "exp2", "expm1", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac", "ge", "gt",
        "heaviside", "hypot", "imag", "isfinite", "isinf", "isnan", "le", "lerp", "lgamma", "log",
        "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not",
        "logical_or", "logical_xor", "logit", "lt", "masked_fill", "maximum", "minimum", "mul",
        "nan_to_num", "ne", "neg", "nextafter", "polygamma", "pow", "rad2deg", "real", "reciprocal",
        "remainder", "round", "rsqrt", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh",
        "sqrt", "square", "tan", "tanh", "trunc", "where", "xlogy",
    )
})  # fmt: skip

means_each({
    f"aten.{name}": getattr(F, name)
    for name in (
        "celu", "gelu", "glu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
        "mish", "prelu", "relu", "relu6", "selu", "silu", "softplus",
    )
})  # fmt: skip

means_each({
    f"aten.special_{name}": getattr(names.special, name)
    for name in (
        "entr", "erfcx", "gammainc", "gammaincc", "i0e", "i1", "i1e", "log_ndtr", "ndtr", "ndtri",
        "xlog1py", "zeta",
    )
})  # fmt: skip

means_each(
    {
        "aten.__lshift__": names.bitwise_left_shift,
        "aten.__rshift__": names.bitwise_right_shift,
        "aten.alias": lambda x: x,
        "aten.clone": lambda x: x,
        "aten.contiguous": lambda x: x,
        "aten.lift_fresh_copy": lambda x: x,
        "aten._conj": names.conj,
        "aten.conj_physical": names.conj,
        "aten.resolve_conj": lambda x: x,
        "aten.i0": names.special.i0,
        "aten.igamma": names.special.gammainc,
        "aten.igammac": names.special.gammaincc,
        "aten.mvlgamma": names.mvlgamma,
        "aten.log_sigmoid_forward": lambda x: (F.logsigmoid(x), x),
        "aten.threshold": F.threshold,
    }
)


@means("aten.detach", "primgraph.stop_gradient")
def _detach(site: Site, x: Variable) -> Variable:
    return stop_gradient(x)


@means("aten._to_copy", "aten.to")
def _to_copy(site: Site, x: Variable, *args: Any, **kwargs: Any) -> Variable:
    return x.astype(site.dtype)


@means("prims.convert_element_type")
def _convert(site: Site, x: Variable, dtype: Any) -> Variable:
    return x.astype(site.dtype)


@means("aten.copy")
def _copy(site: Site, x: Variable, source: Variable) -> Any:
    return names.broadcast_to(source.astype(site.dtype), x.shape)


@means("aten.fill")
def _fill(site: Site, x: Variable, value: Any) -> Any:
    number = value if isinstance(value, Variable) else lift(np.asarray(value, site.dtype))
    return names.broadcast_to(number.astype(site.dtype), x.shape)


@means("aten.complex")
def _complex(site: Site, x: Variable, y: Variable) -> Any:
    return names.complex(x, y)


@means("aten.add", "aten.sub", "aten.rsub")
def _sum(site: Site, x: Any, y: Any, alpha: Any = 1) -> Any:
    return getattr(names, site.name.split(".")[1])(x, y, alpha=alpha)


@means("aten.elu")
def _elu(
    site: Site, x: Variable, alpha: Any = 1.0, scale: Any = 1.0, input_scale: Any = 1.0
) -> Any:
    below = names.expm1(names.clamp(x, max=0.0) * input_scale) * (alpha * scale)
    return names.where(x > 0, x * scale, below)
