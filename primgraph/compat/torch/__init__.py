"""torch's API for tensors and their derivatives.

    import primgraph.compat.torch as torch

Use it in place of `import torch`; the rest of the program stays as it is. Functions and methods
have torch's names and arguments. Tensors are a subclass of `pg.Tensor` with torch's methods, and so
are results. Differences from torch:

- Tensors are in the processor's memory. `device` is checked and has no effect.
- An in-place operation changes a tensor and its views. Earlier results keep the old elements, so
  gradients are right where torch raises.
- `numpy()` returns a read-only array; `from_numpy` copies.
- Derivatives follow primgraph's conventions: ties are split evenly, and `where` guards gradients.
  Gradients by complex tensors are torch's, `df/dx + i df/dy`, in `.grad`, hooks, custom functions,
  `autograd` and `func`.

The default dtype of this package is float32, whatever primgraph's default is.
"""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.torch import (
    amp,
    autograd,
    backends,
    cuda,
    distributions,
    func,
    functions,
    nn,
    optim,
    random,
    utils,
    version,
)
from primgraph.compat.torch.amp import autocast
from primgraph.compat.torch.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from primgraph.compat.torch.backends import mps
from primgraph.compat.torch.backends.settings import (
    are_deterministic_algorithms_enabled,
    get_default_device,
    get_float32_matmul_precision,
    get_num_interop_threads,
    get_num_threads,
    is_autocast_enabled,
    set_default_device,
    set_float32_matmul_precision,
    set_num_interop_threads,
    set_num_threads,
    use_deterministic_algorithms,
)
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
    get_default_dtype,
    half,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    set_default_dtype,
    short,
    uint8,
)
from primgraph.compat.torch.func import vmap
from primgraph.compat.torch.functions import *  # noqa: F403
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
from primgraph.compat.torch.tensor import Sizes as Size
from primgraph.compat.torch.tensor import Tensor

__version__ = version.__version__
accelerator = xpu = mps
arange = create.arange
as_tensor = create.as_tensor
empty = create.empty
empty_like = create.empty_like
eye = create.eye
from_numpy = create.from_numpy
full = create.full
full_like = create.full_like
linspace = create.linspace
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
tensor = create.tensor
zeros = create.zeros
zeros_like = create.zeros_like

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)

    __all__ = [
        *functions.__all__,
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
        "are_deterministic_algorithms_enabled",
        "get_default_device",
        "get_float32_matmul_precision",
        "get_num_interop_threads",
        "get_num_threads",
        "is_autocast_enabled",
        "set_default_device",
        "set_float32_matmul_precision",
        "set_num_interop_threads",
        "set_num_threads",
        "use_deterministic_algorithms",
        "accelerator",
        "amp",
        "autocast",
        "backends",
        "cuda",
        "mps",
        "version",
        "xpu",
        "zeros_like",
    ]

    def __dir__() -> list[str]:
        return sorted(__all__)
