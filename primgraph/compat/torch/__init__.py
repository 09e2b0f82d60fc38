"""torch's API for tensors and their derivatives.

    import primgraph.compat.torch as torch

Use it in place of `import torch`; the rest of the program stays as it is. Functions and methods
have torch's names and arguments. Tensors are a subclass of `pg.Tensor` with torch's methods, and so
are results. Differences from torch:

- Tensors are in the processor's memory. `device` is checked and has no effect.
- An in-place operation changes a tensor and its views. Earlier results keep the old elements, so
  gradients are right where torch raises.
- Functions that are traced, as by `vmap`, change tensors that they make, and functions under
  `pg.jit` others, too. A change of an argument stays within the function.
- `numpy()` returns a read-only array; `from_numpy` copies.
- Gradients of embeddings are dense: `sparse=True` is an error.
- Derivatives follow primgraph's conventions: ties are split evenly, and `where` guards gradients.
  Gradients by complex tensors are torch's, `df/dx + i df/dy`, in `.grad`, hooks, custom functions,
  `autograd` and `func`.

The default dtype of this package is float32, whatever primgraph's default is.
"""

import math
from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.dtypes import LibraryDType as dtype
from primgraph.compat.torch import (
    amp,
    autograd,
    backends,
    cuda,
    distributions,
    fft,
    func,
    functions,
    linalg,
    nn,
    optim,
    random,
    return_types,
    special,
    utils,
    version,
)
from primgraph.compat.torch.amp import GradScaler, autocast, is_autocast_enabled
from primgraph.compat.torch.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from primgraph.compat.torch.core import configuration, signals
from primgraph.compat.torch.core.anomaly import is_anomaly_enabled
from primgraph.compat.torch.core.configuration import *  # noqa: F403
from primgraph.compat.torch.core.methods import Sizes as Size
from primgraph.compat.torch.core.printing import get_printoptions, printoptions, set_printoptions
from primgraph.compat.torch.core.signals import *  # noqa: F403
from primgraph.compat.torch.creation import create
from primgraph.compat.torch.framework import (
    bool,
    cdouble,
    cfloat,
    complex64,
    complex128,
    device,
    double,
    float,
    float16,
    float32,
    float64,
    get_default_device,
    get_default_dtype,
    half,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    set_default_device,
    set_default_dtype,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)
from primgraph.compat.torch.func import cond, vmap
from primgraph.compat.torch.functions import *  # noqa: F403
from primgraph.compat.torch.functions.properties import finfo, iinfo
from primgraph.compat.torch.nn.functional import (
    adaptive_avg_pool1d,
    avg_pool1d,
    bilinear,
    celu_,
    channel_shuffle,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    cosine_similarity,
    hardshrink,
    pairwise_distance,
    pixel_shuffle,
    pixel_unshuffle,
    prelu,
    relu_,
    rrelu_,
    selu_,
    threshold_,
)
from primgraph.compat.torch.randomness import (
    Generator,
    default_generator,
    draw,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from primgraph.compat.torch.serialization import load, save
from primgraph.compat.torch.tensor import Tensor

__version__ = version.__version__
accelerator = mps = xpu = backends.mps
e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None

arange = create.arange
asarray = create.asarray
as_tensor = create.as_tensor
empty = create.empty
empty_like = create.empty_like
empty_strided = create.empty_strided
eye = create.eye
from_numpy = create.from_numpy
frombuffer = create.frombuffer
full = create.full
full_like = create.full_like
linspace = create.linspace
logspace = create.logspace
ones = create.ones
ones_like = create.ones_like
bernoulli = draw.bernoulli
binomial = draw.binomial
multinomial = draw.multinomial
normal = draw.normal
poisson = draw.poisson
rand = draw.rand
rand_like = draw.rand_like
randint = draw.randint
randint_like = draw.randint_like
randn = draw.randn
randn_like = draw.randn_like
randperm = draw.randperm
range = create.range
scalar_tensor = create.scalar_tensor
tensor = create.tensor
tril_indices = create.tril_indices
triu_indices = create.triu_indices
zeros = create.zeros
zeros_like = create.zeros_like

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
    globals().update(configuration.TYPES)

    __all__ = [
        "adaptive_avg_pool1d",
        "avg_pool1d",
        "bilinear",
        "celu_",
        "channel_shuffle",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "cosine_similarity",
        "hardshrink",
        "pairwise_distance",
        "pixel_shuffle",
        "pixel_unshuffle",
        "prelu",
        "relu_",
        "rrelu_",
        "selu_",
        "threshold_",
        "cond",
        "frombuffer",
        *configuration.TYPES,
        *configuration.__all__,
        *functions.__all__,
        *signals.__all__,
        "asarray",
        "GradScaler",
        "accelerator",
        "amp",
        "autocast",
        "backends",
        "is_autocast_enabled",
        "mps",
        "version",
        "xpu",
        "cuda",
        "dtype",
        "e",
        "empty_strided",
        "inf",
        "is_anomaly_enabled",
        "logspace",
        "nan",
        "newaxis",
        "pi",
        "range",
        "scalar_tensor",
        "tril_indices",
        "triu_indices",
        "fft",
        "finfo",
        "get_default_device",
        "get_printoptions",
        "iinfo",
        "printoptions",
        "set_default_device",
        "return_types",
        "set_printoptions",
        "special",
        "uint16",
        "uint32",
        "uint64",
        "Size",
        "Tensor",
        "arange",
        "as_tensor",
        "autograd",
        "bool",
        "cdouble",
        "cfloat",
        "complex128",
        "complex64",
        "device",
        "double",
        "empty",
        "empty_like",
        "enable_grad",
        "eye",
        "float",
        "float16",
        "float32",
        "float64",
        "from_numpy",
        "full",
        "func",
        "full_like",
        "get_default_dtype",
        "half",
        "inference_mode",
        "int",
        "int16",
        "int32",
        "int64",
        "int8",
        "is_grad_enabled",
        "linalg",
        "linspace",
        "long",
        "manual_seed",
        "nn",
        "no_grad",
        "ones",
        "optim",
        "ones_like",
        "rand",
        "rand_like",
        "randint",
        "randn",
        "randn_like",
        "randperm",
        "set_default_dtype",
        "set_grad_enabled",
        "short",
        "tensor",
        "uint8",
        "vmap",
        "zeros",
        "Generator",
        "default_generator",
        "bernoulli",
        "binomial",
        "get_rng_state",
        "initial_seed",
        "multinomial",
        "normal",
        "poisson",
        "randint_like",
        "random",
        "seed",
        "set_rng_state",
        "utils",
        "load",
        "save",
        "distributions",
        "zeros_like",
    ]

    def __dir__() -> list[str]:
        return sorted(__all__)
