"""OneFlow's API for tensors and their derivatives.

    import primgraph.compat.oneflow as flow

Use it in place of `import oneflow as flow`; the rest of the program stays as it is. OneFlow's
functions and methods are torch's: see `primgraph.compat.torch` for them and for the differences.
"""

# All that is imported is public: what torch has in its `__all__`.
# ruff: noqa: F401

from typing import TYPE_CHECKING

from primgraph.compat import torch
from primgraph.compat.absent import absent
from primgraph.compat.oneflow import autograd, optim, utils
from primgraph.compat.oneflow.serialization import load, save
from primgraph.compat.oneflow.tensor import Generator, Tensor, create, draw
from primgraph.compat.torch import amp, backends, cuda, distributions, nn, random
from primgraph.compat.torch.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
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
from primgraph.compat.torch.functions import *  # noqa: F403
from primgraph.compat.torch.randomness import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from primgraph.compat.torch.tensor import Sizes as Size

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

    # OneFlow has no transforms of functions.
    __all__ = [name for name in torch.__all__ if name not in ("func", "vmap")]

    def __dir__() -> list[str]:
        return sorted(__all__)
