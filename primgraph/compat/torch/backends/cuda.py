"""CUDA, which there is none of."""

from types import SimpleNamespace

matmul = SimpleNamespace(allow_tf32=False)


def is_built() -> bool:
    """Return False."""
    return False
