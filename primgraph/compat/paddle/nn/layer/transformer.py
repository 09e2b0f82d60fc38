"""Attention and transformers by the names that they and their arguments have in Paddle."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.creation import full
from primgraph.compat.paddle.dynamic import to_tensor
from primgraph.compat.paddle.nn import functional
from primgraph.compat.paddle.nn.layer.container import LayerList
from primgraph.compat.paddle.nn.layer.layers import Layer
from primgraph.compat.paddle.nn.layer.linear import Linear
from primgraph.compat.paddle.nn.layer.norm import LayerNorm
from primgraph.compat.paddle.nn.layer.tables import Dropout  # type: ignore[attr-defined]
from primgraph.errors import CheckError

# What is added to scores of positions that a mask excludes.
_EXCLUDED = -1e9


class Cache(NamedTuple):
    """Keys and values of earlier positions."""

    k: Any
    v: Any


class StaticCache(NamedTuple):
    """Keys and values that stay as they are."""

    k: Any
    v: Any


class MultiHeadAttention(Layer):
    """Attention of several heads (Vaswani et al., 2017), of (samples, times, embed_dim).

    >>> layer = paddle.nn.MultiHeadAttention(4, 2)
    >>> layer(paddle.ones([1, 3, 4])).shape
    paddle.Size([1, 3, 4])
    """

    Cache = Cache
    StaticCache = StaticCache

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        kdim: int | None = None,
        vdim: int | None = None,
        need_weights: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise CheckError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.need_weights, self.head_dim = need_weights, embed_dim // num_heads
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(self.kdim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(self.vdim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    def _heads(self, x: Any) -> Any:
        shape = (*x.type.shape[:2], self.num_heads, self.head_dim)
        return pg.swapaxes(pg.reshape(x, shape), 1, 2)

    def compute_kv(self, key: Any, value: Any) -> tuple[Any, Any]:
        """Return keys and values of all heads."""
        return self._heads(self.k_proj(key)), self._heads(self.v_proj(value))

    def gen_cache(self, key: Any, value: Any = None, type: Any = Cache) -> Any:
        """Return a cache: of `StaticCache` keys and values, else empty or as given."""
        if type is StaticCache:
            return StaticCache(*self.compute_kv(key, value))
        if value is not None:
            return Cache(key, value)
        shape = [key.type.shape[0], self.num_heads, 0, self.head_dim]
        return Cache(full(shape, 0, key.dtype), full(shape, 0, key.dtype))

    def forward(
        self, query: Any, key: Any = None, value: Any = None, attn_mask: Any = None,
        cache: Any = None,
    ) -> Any:  # fmt: skip
        """Return the result, with weights if `need_weights`, and with a cache if one is given."""
        key = query if key is None else key
        value = query if value is None else value
        q = self._heads(self.q_proj(query))
        if isinstance(cache, StaticCache):
            k, v = cache
        else:
            k, v = self.compute_kv(key, value)
        if isinstance(cache, Cache):
            k, v = pg.concatenate([cache.k, k], 2), pg.concatenate([cache.v, v], 2)
            cache = Cache(k, v)
        scores = pg.matmul(pg.multiply(q, self.head_dim**-0.5), pg.swapaxes(k, -1, -2))
        if attn_mask is not None:
            scores = pg.add(scores, as_added(attn_mask, scores))
        weights = pg.softmax(scores)
        if self.dropout:
            weights = functional.dropout(weights, self.dropout, training=self.training)
        found = pg.swapaxes(pg.matmul(weights, v), 1, 2)
        found = self.out_proj(pg.reshape(found, (*found.type.shape[:2], self.embed_dim)))
        more = [*([weights] if self.need_weights else []), *([] if cache is None else [cache])]
        return (found, *more) if more else found


def as_added(mask: Any, scores: Any) -> Any:
    """Return what is added to scores for a mask of booleans, zeros and ones, or numbers."""
    if mask.type.dtype.kind in "biu":
        excluded = pg.equal(pg.astype(mask, "int64"), 0)
        return pg.multiply(pg.astype(excluded, scores.type.dtype), _EXCLUDED)
    return pg.astype(mask, scores.type.dtype)


def _attributes(given: Any, count: int) -> list[Any]:
    """Return an attribute for each part: a list of them, of which two serve three parts."""
    if isinstance(given, list | tuple):
        if len(given) == 2 and count == 3:
            return [given[0], given[0], given[1]]
        return list(given)
    return [given] * count


class TransformerEncoderLayer(Layer):
    """Attention and a dense network, each added to its input and normalized.

    >>> layer = paddle.nn.TransformerEncoderLayer(4, 2, 8)
    >>> layer(paddle.ones([1, 3, 4])).shape
    paddle.Size([1, 3, 4])
    """

    _config: dict[str, Any]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        layer_norm_eps: float = 1e-5,
    ) -> None:
        config = {n: v for n, v in locals().items() if n not in ("self", "__class__")}
        super().__init__()
        self._config = config
        weights, biases = _attributes(weight_attr, 2), _attributes(bias_attr, 2)
        rate = dropout if attn_dropout is None else attn_dropout
        self.normalize_before = normalize_before
        self.self_attn = MultiHeadAttention(
            d_model, nhead, rate, weight_attr=weights[0], bias_attr=biases[0]
        )
        self.linear1 = Linear(d_model, dim_feedforward, weights[1], biases[1])
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[1], biases[1])
        self.norm1 = LayerNorm(d_model, layer_norm_eps)
        self.norm2 = LayerNorm(d_model, layer_norm_eps)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = getattr(functional, activation)

    def forward(self, src: Any, src_mask: Any = None, cache: Any = None) -> Any:
        """Return the result of the shape of `src`, and a new cache if one is given."""
        kept = src
        src = self.norm1(src) if self.normalize_before else src
        new = None
        if cache is None:
            src = self.self_attn(src, src, src, src_mask)
        else:
            src, new = self.self_attn(src, src, src, src_mask, cache)
        src = kept + self.dropout1(src)
        src = src if self.normalize_before else self.norm1(src)
        kept = src
        src = self.norm2(src) if self.normalize_before else src
        src = self.linear2(self.dropout(self.activation(self.linear1(src))))
        src = kept + self.dropout2(src)
        src = src if self.normalize_before else self.norm2(src)
        return src if cache is None else (src, new)

    def gen_cache(self, src: Any) -> Any:
        """Return an empty cache for as many samples."""
        return self.self_attn.gen_cache(src, type=Cache)


class TransformerEncoder(Layer):
    """As many encoder layers as wanted, made with the arguments of the first.

    >>> layer = paddle.nn.TransformerEncoderLayer(4, 2, 8)
    >>> len(paddle.nn.TransformerEncoder(layer, 2).layers)
    2
    """

    def __init__(self, encoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Any, src_mask: Any = None, cache: Any = None) -> Any:
        """Return the result of the last layer, normalized if `norm` is given."""
        caches = []
        for number, layer in enumerate(self.layers):
            if cache is None:
                src = layer(src, src_mask)
            else:
                src, new = layer(src, src_mask, cache[number])
                caches.append(new)
        src = src if self.norm is None else self.norm(src)
        return src if cache is None else (src, caches)

    def gen_cache(self, src: Any) -> list[Any]:
        """Return empty caches for all layers."""
        return [layer.gen_cache(src) for layer in self.layers]


def _copies(layer: Any, count: int) -> LayerList:
    """Return a list of a layer and of others made with its arguments."""
    return LayerList([layer, *(type(layer)(**layer._config) for _ in range(count - 1))])


class TransformerDecoderLayer(Layer):
    """Attention to itself and to a memory, and a dense network, each added and normalized.

    >>> layer = paddle.nn.TransformerDecoderLayer(4, 2, 8)
    >>> layer(paddle.ones([1, 3, 4]), paddle.ones([1, 5, 4])).shape
    paddle.Size([1, 3, 4])
    """

    _config: dict[str, Any]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        layer_norm_eps: float = 1e-5,
    ) -> None:
        config = {n: v for n, v in locals().items() if n not in ("self", "__class__")}
        super().__init__()
        self._config = config
        weights, biases = _attributes(weight_attr, 3), _attributes(bias_attr, 3)
        rate = dropout if attn_dropout is None else attn_dropout
        self.normalize_before = normalize_before
        self.self_attn, self.cross_attn = [
            MultiHeadAttention(d_model, nhead, rate, weight_attr=w, bias_attr=b)
            for w, b in zip(weights[:2], biases[:2], strict=True)
        ]
        self.linear1 = Linear(d_model, dim_feedforward, weights[2], biases[2])
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[2], biases[2])
        for number in (1, 2, 3):
            setattr(self, f"norm{number}", LayerNorm(d_model, layer_norm_eps))
        for number in (1, 2, 3):
            setattr(self, f"dropout{number}", Dropout(dropout))
        self.activation = getattr(functional, activation)

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        cache: Any = None,
    ) -> Any:  # fmt: skip
        """Return the result of the shape of `tgt`, and new caches if some are given."""
        first = self.normalize_before
        kept, tgt = tgt, self.norm1(tgt) if first else tgt
        own = static = None
        if cache is None:
            tgt = self.self_attn(tgt, tgt, tgt, tgt_mask)
        else:
            tgt, own = self.self_attn(tgt, tgt, tgt, tgt_mask, cache[0])
        tgt = kept + self.dropout1(tgt)
        tgt = tgt if first else self.norm1(tgt)
        kept, tgt = tgt, self.norm2(tgt) if first else tgt
        if cache is None:
            tgt = self.cross_attn(tgt, memory, memory, memory_mask)
        else:
            tgt, static = self.cross_attn(tgt, memory, memory, memory_mask, cache[1])
        tgt = kept + self.dropout2(tgt)
        tgt = tgt if first else self.norm2(tgt)
        kept, tgt = tgt, self.norm3(tgt) if first else tgt
        tgt = self.linear2(self.dropout(self.activation(self.linear1(tgt))))
        tgt = kept + self.dropout3(tgt)
        tgt = tgt if first else self.norm3(tgt)
        return tgt if cache is None else (tgt, (own, static))

    def gen_cache(self, memory: Any) -> tuple[Any, Any]:
        """Return an empty cache, and one of the memory."""
        own = self.self_attn.gen_cache(memory, type=Cache)
        return own, self.cross_attn.gen_cache(memory, memory, type=StaticCache)


class TransformerDecoder(Layer):
    """As many decoder layers as wanted, made with the arguments of the first.

    >>> layer = paddle.nn.TransformerDecoderLayer(4, 2, 8)
    >>> len(paddle.nn.TransformerDecoder(layer, 2).layers)
    2
    """

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
        cache: Any = None,
    ) -> Any:  # fmt: skip
        """Return the result of the last layer, normalized if `norm` is given."""
        caches = []
        for number, layer in enumerate(self.layers):
            if cache is None:
                tgt = layer(tgt, memory, tgt_mask, memory_mask)
            else:
                tgt, new = layer(tgt, memory, tgt_mask, memory_mask, cache[number])
                caches.append(new)
        tgt = tgt if self.norm is None else self.norm(tgt)
        return tgt if cache is None else (tgt, caches)

    def gen_cache(self, memory: Any, do_zip: bool = False) -> list[Any]:
        """Return caches for all layers."""
        found = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*found, strict=True)) if do_zip else found


class Transformer(Layer):
    """An encoder and a decoder (Vaswani et al., Attention is all you need, 2017).

    >>> model = paddle.nn.Transformer(4, 2, 1, 1, 8)
    >>> model(paddle.ones([1, 3, 4]), paddle.ones([1, 5, 4])).shape
    paddle.Size([1, 5, 4])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: Any = None,
        bias_attr: Any = None,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
    ) -> None:
        super().__init__()
        options = (
            d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout,
            normalize_before,
        )  # fmt: skip
        if custom_encoder is None:
            attributes = _attributes(weight_attr, 2)[:2], _attributes(bias_attr, 2)[:2]
            layer: Any = TransformerEncoderLayer(*options, *attributes)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, LayerNorm(d_model))
        self.encoder = custom_encoder
        if custom_decoder is None:
            attributes = _attributes(weight_attr, 3), _attributes(bias_attr, 3)
            layer = TransformerDecoderLayer(*options, *attributes)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, LayerNorm(d_model))
        self.decoder = custom_decoder
        self.d_model, self.nhead = d_model, nhead

    def forward(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None,
        memory_mask: Any = None,
    ) -> Any:  # fmt: skip
        """Return the result of the shape of `tgt`."""
        memory = self.encoder(src, src_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask)

    def generate_square_subsequent_mask(self, length: int) -> Any:
        """Return a mask that excludes later positions: minus infinity above the diagonal."""
        array = np.triu(np.full((length, length), -math.inf, np.float32), 1)
        return to_tensor(array)
