"""Layers of tables of vectors, and of attention with several heads."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from primgraph import operators
from primgraph.errors import ArgumentError
from primgraph.initializers import Initializer, Normal
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.types import BOOL
from primgraph.nn.basic import Linear, key_for
from primgraph.nn.layer import Layer
from primgraph.operators.handle import ArrayLike
from primgraph.operators.networks.attention import parts_of_mask, shares_of


@final
@checked_methods()
class Embedding(Layer):
    """`pg.embedding`: a vector of `embedding_dim` elements for each of `num_embeddings` integers.

    `weight` is normal, of variance 1, unless `initializer` says otherwise; its row `padding_idx`
    starts at zero and has no slope.

    >>> layer = pg.nn.Embedding(10, 4)
    >>> layer([1, 2, 3]).shape
    (3, 4)
    """

    weight: Any

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        initializer: Initializer | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.padding_idx = padding_idx
        rule: Initializer = Normal(0.0, 1.0) if initializer is None else initializer
        if padding_idx is not None:
            rule = _ZeroRow(rule, padding_idx)
        self.weight = self.create_parameter((num_embeddings, embedding_dim), dtype, rule)

    def forward(self, x: ArrayLike) -> Any:
        """`x` of integers of any shape becomes that shape and embedding_dim."""
        return operators.embedding(x, self.weight, self.padding_idx)


@final
class _ZeroRow:
    """Initializer that applies another one and sets a row to zero."""

    def __init__(self, rule: Initializer, row: int) -> None:
        self.rule, self.row = rule, row

    def __call__(self, shape: Any, dtype: Any, rng: np.random.Generator) -> Any:
        found = np.array(self.rule(shape, dtype, rng))
        found[self.row] = 0
        return found


@final
@checked_methods()
class MultiheadAttention(Layer):
    """Attention of `num_heads` heads, each on its own part of `embed_dim` (Vaswani et al., 2017).

    Queries, keys and values are projected by the layers `q_proj`, `k_proj` and `v_proj`, keys from
    vectors of `kdim` and values from vectors of `vdim`, and what the heads give by `out_proj`.
    Arguments of the call, masks and the result are those of torch: a boolean mask is true where
    nothing is looked at, a float one is added. Axes are (places, samples, embed_dim) or, with
    `batch_first`, (samples, places, embed_dim); samples may be left out.

    >>> layer = pg.nn.MultiheadAttention(8, 2)
    >>> x = np.ones((5, 3, 8))
    >>> result, weights = layer(x, x, x)
    >>> result.shape
    (5, 3, 8)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise ArgumentError(f"{num_heads} heads do not divide {embed_dim} elements")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.batch_first = batch_first
        self.q_proj = Linear(embed_dim, embed_dim, bias, dtype=dtype)
        self.k_proj = Linear(embed_dim if kdim is None else kdim, embed_dim, bias, dtype=dtype)
        self.v_proj = Linear(embed_dim if vdim is None else vdim, embed_dim, bias, dtype=dtype)
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype=dtype)

    def forward(
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        key_padding_mask: ArrayLike | None = None,
        need_weights: bool = True,
        attn_mask: ArrayLike | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """The result in the shape of `query`, and the shares of all keys, or None.

        The shares are of shape (samples, L, S), the mean over the heads, or those of each head,
        (samples, heads, L, S). `key_padding_mask` is of shape (samples, S); `attn_mask` of (L, S)
        or (samples * heads, L, S). With `is_causal` no key behind a query is looked at.
        """
        given = [operators.asarray(x) for x in (query, key, value)]
        single = given[0].ndim == 2
        if single:
            given = [operators.expand_dims(x, 0) for x in given]
        elif not self.batch_first:
            given = [operators.swapaxes(x, 0, 1) for x in given]
        layers = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (self._heads(f(x)) for f, x in zip(layers, given, strict=True))
        allowed, added = self._masks(q, k, key_padding_mask, attn_mask, is_causal)
        shares = shares_of(q, k, (self.embed_dim // self.num_heads) ** -0.5, allowed, added)
        used = shares
        if self.training and self.dropout:
            used = operators.dropout(shares, key_for(shares), self.dropout)
        joined = operators.swapaxes(operators.matmul(used, v), 1, 2)
        shape = (*joined.shape[:2], self.embed_dim)
        found = self.out_proj(operators.reshape(joined, shape))
        if need_weights and average_attn_weights:
            shares = operators.mean(shares, 1)
        if single:
            found, shares = operators.squeeze(found, 0), operators.squeeze(shares, 0)
        elif not self.batch_first:
            found = operators.swapaxes(found, 0, 1)
        return found, shares if need_weights else None

    def _heads(self, x: Any) -> Any:
        """A matrix for each sample and head."""
        shape = (*x.shape[:2], self.num_heads, self.embed_dim // self.num_heads)
        return operators.swapaxes(operators.reshape(x, shape), 1, 2)

    def _masks(self, q: Any, k: Any, padding: Any, mask: Any, is_causal: bool) -> tuple[Any, Any]:
        """Which scores take part, and what is added to them."""
        parts = []
        if padding is not None:
            value = operators.asarray(padding)
            lead = value.shape[:-1] or (1,)
            parts.append(operators.reshape(value, (*lead, 1, 1, value.shape[-1])))
        if mask is not None:
            value = operators.asarray(mask)
            if value.ndim == 3:
                shape = (value.shape[0] // self.num_heads, self.num_heads, *value.shape[1:])
                value = operators.reshape(value, shape)
            parts.append(value)
        if is_causal:
            shape = (q.shape[-2], k.shape[-2])
            parts.append(operators.iota(shape, 0) < operators.iota(shape, 1))
        allowed = added = None
        for part in parts:
            turned = operators.logical_not(part) if part.dtype == BOOL else part
            seen, more = parts_of_mask(turned)
            allowed = seen if allowed is None else operators.logical_and(allowed, seen)
            if more is not None:
                added = more if added is None else operators.add(added, more)
        return allowed, added
