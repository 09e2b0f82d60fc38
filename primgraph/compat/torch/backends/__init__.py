"""Libraries below torch: there are none here, and their switches have no effect."""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.torch.backends import cuda, cudnn, mkl, mps, openmp

mkldnn = mkl

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
