"""Training by `paddle.Model`, and `paddle.summary`."""

from __future__ import annotations

from primgraph.compat.paddle.hapi.model import Model
from primgraph.compat.paddle.hapi.summary import summary

__all__ = ["Model", "summary"]
