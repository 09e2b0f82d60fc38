"""Mixed precision on CUDA, which there is none of: it is off."""

from __future__ import annotations

from typing import Any

from primgraph.compat.torch import amp

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """Context that changes nothing, as in torch without CUDA."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """Scaler of losses that is off, as in torch without CUDA."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cuda", *args, **kwargs)
