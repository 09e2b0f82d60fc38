"""Layers as functions that create parameters, and control flow, of `paddle.static.nn`."""

from __future__ import annotations

from primgraph.compat.paddle.static.control import case, cond, switch_case, while_loop

__all__ = ["case", "cond", "switch_case", "while_loop"]
