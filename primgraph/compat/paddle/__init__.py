"""Paddle's API: tensors, static programs, derivatives of any order.

    import primgraph.compat.paddle as paddle

Use it in place of `import paddle`; the rest of the program stays as it is. Functions have Paddle's
parameters, order and defaults. `name` has no effect; options that are not supported are refused.
Differences from Paddle:

- Static programs are always lowered and compiled. `enable_prim`, `prim2orig` and `orig2prim` change
  nothing. In dynamic mode, the default, tensors compute eagerly.
- Each program has its own scope and random seed. A startup program resets the initial values;
  without it they are made at first use.
- The default dtype of this package is float32, whatever primgraph's default is.
- Errors are primgraph's, and of the classes that Paddle raises as well: an output that depends on
  no input raises `GradientError`, a RuntimeError; a bad feed raises `FeedError`, a ValueError.
- Earlier results keep the elements that a tensor had before a change in place, so that gradients
  are right where Paddle raises.
"""

import math
from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.paddle import (
    amp,
    autograd,
    callbacks,
    device,
    distributed,
    distribution,
    environment,
    fft,
    functions,
    incubate,
    io,
    jit,
    linalg,
    metric,
    nn,
    optimizer,
    randomness,
    regularizer,
    static,
    tensor,
    utils,
    version,
)
from primgraph.compat.paddle.autograd.gradient import grad
from primgraph.compat.paddle.core.defaults import get_default_dtype, set_default_dtype
from primgraph.compat.paddle.core.methods import DTYPES
from primgraph.compat.paddle.core.methods import Size as Size
from primgraph.compat.paddle.core.parameter_attributes import ParamAttr
from primgraph.compat.paddle.core.parameters import create_parameter
from primgraph.compat.paddle.creation import (
    arange,
    as_tensor,
    assign,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    logspace,
    ones,
    ones_like,
    rand,
    randn,
    tril_indices,
    triu_indices,
    uniform,
    zeros,
    zeros_like,
)
from primgraph.compat.paddle.device import (
    CUDAPinnedPlace,
    CUDAPlace,
    get_cudnn_version,
    get_device,
    is_compiled_with_cinn,
    is_compiled_with_cuda,
    is_compiled_with_distribute,
    is_compiled_with_ipu,
    is_compiled_with_rocm,
    is_compiled_with_xpu,
    set_device,
)
from primgraph.compat.paddle.distributed import DataParallel
from primgraph.compat.paddle.dynamic import Tensor, to_tensor
from primgraph.compat.paddle.environment import *  # noqa: F403
from primgraph.compat.paddle.files import load, save
from primgraph.compat.paddle.framework import (
    CPUPlace,
    GradientError,
    disable_static,
    enable_static,
    in_dynamic_mode,
    seed,
)
from primgraph.compat.paddle.functions import *  # noqa: F403
from primgraph.compat.paddle.functions import inplace
from primgraph.compat.paddle.functions.inplace import *  # noqa: F403
from primgraph.compat.paddle.functions.printing import set_printoptions
from primgraph.compat.paddle.hapi import Model, summary
from primgraph.compat.paddle.linalg import inverse
from primgraph.compat.paddle.nn.functional import (
    adaptive_avg_pool1d,
    conv1d,
    conv2d,
    conv3d,
    group_norm,
    layer_norm,
)
from primgraph.compat.paddle.randomness import *  # noqa: F403
from primgraph.eager.derivatives.recording import (
    enable_grad,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

__version__ = "3.3.1"
e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi
globals().update(DTYPES)
dtype = type(DTYPES["float32"])
half, float, double = (DTYPES[n] for n in ("float16", "float32", "float64"))
cfloat, cdouble = DTYPES["complex64"], DTYPES["complex128"]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)

    def __dir__() -> list[str]:
        return sorted(__all__)


__all__ = [
    *DTYPES,
    *environment.__all__,
    *functions.__all__,
    *inplace.__all__,
    *randomness.__all__,
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "DataParallel",
    "GradientError",
    "Model",
    "ParamAttr",
    "Size",
    "Tensor",
    "adaptive_avg_pool1d",
    "amp",
    "arange",
    "as_tensor",
    "assign",
    "autograd",
    "callbacks",
    "cdouble",
    "cfloat",
    "conv1d",
    "conv2d",
    "conv3d",
    "create_parameter",
    "device",
    "disable_static",
    "distributed",
    "distribution",
    "double",
    "e",
    "empty",
    "empty_like",
    "enable_grad",
    "enable_static",
    "eye",
    "fft",
    "float",
    "from_numpy",
    "full",
    "full_like",
    "get_default_dtype",
    "get_cudnn_version",
    "get_device",
    "grad",
    "group_norm",
    "half",
    "in_dynamic_mode",
    "incubate",
    "io",
    "inf",
    "is_compiled_with_cinn",
    "is_compiled_with_cuda",
    "is_compiled_with_distribute",
    "is_compiled_with_ipu",
    "is_compiled_with_rocm",
    "is_compiled_with_xpu",
    "is_grad_enabled",
    "inverse",
    "jit",
    "layer_norm",
    "linalg",
    "linspace",
    "load",
    "metric",
    "logspace",
    "nan",
    "newaxis",
    "nn",
    "no_grad",
    "ones",
    "ones_like",
    "optimizer",
    "pi",
    "regularizer",
    "rand",
    "randn",
    "save",
    "seed",
    "set_default_dtype",
    "set_device",
    "set_grad_enabled",
    "set_printoptions",
    "static",
    "summary",
    "tensor",
    "to_tensor",
    "tril_indices",
    "triu_indices",
    "uniform",
    "utils",
    "version",
    "zeros",
    "zeros_like",
]
