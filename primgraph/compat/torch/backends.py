"""`torch.backends`: libraries that do not compute here, with their switches."""

from __future__ import annotations

from typing import Any, final


@final
class _Backend:
    """Library of another device: not available, with attributes that have no effect."""

    enabled = False
    benchmark = False
    deterministic = False
    allow_tf32 = False

    def is_available(self) -> bool:
        """Return False."""
        return False

    def is_built(self) -> bool:
        """Return False."""
        return False

    def version(self) -> Any:
        """Return None."""


cudnn = _Backend()
cuda = _Backend()
mps = _Backend()
mkldnn = _Backend()
openmp = _Backend()
cuda.matmul = _Backend()  # type: ignore[attr-defined]
