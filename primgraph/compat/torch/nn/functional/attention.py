"""Embeddings, attention and linear maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.torch.nn.functional.norms import dropout
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.seeds import next_key
from primgraph.errors import (
    ArgumentError,
    BoundsError,
    BuildError,
    CheckError,
    DTypeError,
    OptionError,
    ShapeError,
)
from primgraph.operators.handle import Handle

__all__ = [
    "bilinear", "embedding", "embedding_bag", "linear", "multi_head_attention_forward", "one_hot",
    "scaled_dot_product_attention",
]  # fmt: skip


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Compute `input @ weight.T + bias`: the weight has shape (out_features, in_features).

    >>> torch.nn.functional.linear(torch.ones(1, 2), torch.ones(3, 2), torch.ones(3))
    tensor([[3., 3., 3.]])
    """
    if not isinstance(input, Handle):
        kind = type(input).__name__
        raise ArgumentError(
            f"linear(): argument 'input' (position 1) must be Tensor, not {kind}",
            hint="torch.as_tensor(x) makes a tensor",
        )
    if input.dtype != weight.dtype:
        raise DTypeError(
            f"mat1 and mat2 must have the same dtype, but got {input.dtype} and {weight.dtype}"
        )
    if weight.ndim == 1:
        found = pg.matmul(input, weight)
        return found if bias is None else found + bias
    return pg.linear(input, weight, bias, transposed=True)


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """Compute `input1 @ weight[k] @ input2 + bias[k]` for each output `k`.

    >>> torch.nn.functional.bilinear(torch.ones(1, 2), torch.ones(1, 3), torch.ones(1, 2, 3))
    tensor([[6.]])
    """
    found = pg.einsum("...i,kij,...j->...k", input1, weight, input2)
    return found if bias is None else found + bias


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """Encode integers as rows with a one at their position, of `num_classes` or maximum + 1.

    >>> torch.nn.functional.one_hot(torch.tensor([2, 0]))
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    if num_classes == -1:
        num_classes = int(np.max(np.asarray(tensor))) + 1
    array = getattr(getattr(tensor, "node", None), "array", None)
    if array is not None and array.size and (array.min() < 0 or array.max() >= num_classes):
        text = "non-negative" if array.min() < 0 else "smaller than num_classes"
        raise BoundsError(f"Class values must be {text}.")
    return pg.one_hot(tensor, num_classes, "int64")


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Return the rows of `weight` at positions `input`.

    With `max_norm` rows that are longer are shortened first, in place.

    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    if sparse:
        raise OptionError("embedding does not have sparse=True: gradients are dense")
    if scale_grad_by_freq:
        raise OptionError("embedding does not have scale_grad_by_freq=True")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise CheckError("Padding_idx must be within num_embeddings")
    if max_norm is not None:
        _shorten(input, weight, max_norm, norm_type)
    return pg.embedding(input, weight, padding_idx)


def _shorten(input: Any, weight: Any, max_norm: float, norm_type: float) -> None:
    """Shorten the rows of `weight` at positions `input` to a norm, in place."""
    with no_grad():
        array = weight.detach().numpy()
        rows = np.unique(np.asarray(input))
        norms = np.linalg.norm(array[rows], norm_type, axis=1)
        scales = np.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
        changed = array.copy()
        changed[rows] *= scales[:, None].astype(array.dtype)
        weight.copy_(changed)


def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Return the sum, mean or maximum of rows of `weight` for each bag of positions.

    Bags are the rows of `input`, or parts of it that begin at `offsets`.

    >>> bags = torch.tensor([[0, 1]])
    >>> torch.nn.functional.embedding_bag(bags, torch.tensor([[1.0], [3.0]]))
    tensor([[2.]])
    """
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError("mode has to be one of sum or mean")
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    numbers = np.asarray(input)
    lengths = _bag_lengths(numbers, offsets, include_last_offset)
    rows = embedding(
        pg.reshape(input, (-1,)),
        weight,
        padding_idx,
        max_norm,
        norm_type,
        scale_grad_by_freq,
        sparse,
    )
    if per_sample_weights is not None:
        rows = rows * pg.reshape(per_sample_weights, (-1, 1))
    return _bags(rows, numbers.reshape(-1), lengths, mode, padding_idx, weight)


def _bag_lengths(numbers: Any, offsets: Any, include_last_offset: bool) -> Any:
    """Return the number of positions in each bag."""
    if numbers.ndim == 2:
        if offsets is not None:
            raise ArgumentError(
                "if input is 2D, then offsets has to be None, as input is treated is a "
                "mini-batch of fixed length sequences."
            )
        return np.full(numbers.shape[0], numbers.shape[1])
    if offsets is None:
        raise ArgumentError("offsets has to be a 1D Tensor but got None")
    begins = np.asarray(offsets)
    return np.diff(begins if include_last_offset else np.append(begins, numbers.size))


def _bags(
    rows: Any, numbers: Any, lengths: Any, mode: str, padding_idx: int | None, weight: Any
) -> Any:
    """Reduce the rows of each bag."""
    bag = np.repeat(np.arange(len(lengths)), lengths)
    taken = np.ones(len(numbers), bool)
    if padding_idx is not None:
        taken = numbers != padding_idx % weight.shape[0]
    counts = np.bincount(bag[taken], minlength=len(lengths))
    if mode == "max":
        width = int(counts.max(initial=0))
        places = np.zeros((len(lengths), max(width, 1)), int)
        known = np.arange(max(width, 1)) < counts[:, None]
        places[known] = np.flatnonzero(taken)
        found = pg.max(pg.where(known[..., None], pg.take(rows, places, 0), -np.inf), 1)
        return pg.where((counts > 0)[:, None], found, 0)
    kept = pg.take(rows, np.flatnonzero(taken), 0)
    sums = pg.scatter_add(pg.zeros((len(lengths), weight.shape[1]), rows.dtype), bag[taken], kept)
    if mode == "sum":
        return sums
    return pg.divide(sums, np.maximum(counts, 1)[:, None].astype(rows.type.dtype))


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Compute means of the values, weighted by the similarity of their keys to the query.

    >>> F = torch.nn.functional
    >>> F.scaled_dot_product_attention(torch.ones(1, 2), torch.ones(3, 2), torch.ones(3, 4)).shape
    torch.Size([1, 4])
    """
    return pg.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask,
        dropout_p,
        is_causal,
        scale,
        enable_gqa,
        next_key() if dropout_p else None,
    )


def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """Compute attention with several heads of arrays (length, samples, features), and weights.

    >>> x, eye = torch.ones(2, 1, 4), torch.eye(4)
    >>> result, weights = torch.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 4, 2, torch.cat([eye] * 3), None, None, None, False, 0.0, eye, None)
    >>> weights.shape
    torch.Size([1, 2, 2])
    """
    width = query.shape[-1]
    _check_options(width, embed_dim_to_check, is_causal and attn_mask is None, static_k, static_v)
    arrays, padding = _with_samples([query, key, value], key_padding_mask)
    own = (q_proj_weight, k_proj_weight, v_proj_weight)
    weights = own if use_separate_proj_weight else _thirds(in_proj_weight, width)
    given = zip(arrays, weights, _thirds(in_proj_bias, width), strict=True)
    q, k, v = (linear(x, w, b) for x, w, b in given)
    k, v = (_extend(x, b, add_zero_attn) for x, b in ((k, bias_k), (v, bias_v)))
    mask = _merge_masks(attn_mask, padding, q, num_heads, k.shape[0] - arrays[1].shape[0])
    mixed, shares = _attend(q, k, v, num_heads, mask, dropout_p if training else 0.0)
    found: Any = linear(mixed, out_proj_weight, out_proj_bias)
    known = pg.mean(shares, 1) if average_attn_weights else shares
    if query.ndim != 3:
        found, known = pg.squeeze(found, 1), pg.squeeze(known, 0)
    return found, known if need_weights else None


def _check_options(
    width: int, expected: int, lacks_mask: bool, static_k: Any, static_v: Any
) -> None:
    """Raise for arguments that do not fit."""
    if width != expected:
        raise CheckError(f"was expecting embedding dimension of {expected}, but got {width}")
    if lacks_mask:
        raise BuildError("Need attn_mask if specifying the is_causal hint.")
    if static_k is not None or static_v is not None:
        raise OptionError("multi_head_attention_forward does not have static_k and static_v")


def _thirds(x: Any, width: int) -> tuple[Any, Any, Any]:
    """Return the parts of queries, keys and values; three times None for None."""
    if x is None:
        return None, None, None
    return x[:width], x[width : 2 * width], x[2 * width :]


def _extend(x: Any, bias: Any, zeros: bool) -> Any:
    """Add a row that is learned, and a row of zeros, behind all keys or values."""
    if bias is not None:
        x = pg.concatenate([x, pg.broadcast_to(bias, (1, *x.shape[1:]))], 0)
    return pg.concatenate([x, pg.zeros((1, *x.shape[1:]), x.dtype)], 0) if zeros else x


def _attend(q: Any, k: Any, v: Any, heads: int, mask: Any, dropout_p: float) -> tuple[Any, Any]:
    """Return the mixed values (length, samples, width), and weights (samples, heads, L, S)."""
    length, samples, width = q.shape
    sizes = (-1, samples * heads, width // heads)
    q, k, v = (pg.swapaxes(pg.reshape(x, sizes), 0, 1) for x in (q, k, v))
    scores = pg.matmul(q, pg.swapaxes(k, 1, 2)) * (width // heads) ** -0.5
    shares = dropout(pg.softmax(scores if mask is None else scores + mask, -1), dropout_p)
    mixed = pg.reshape(pg.swapaxes(pg.matmul(shares, v), 0, 1), (length, samples, width))
    return mixed, pg.reshape(shares, (samples, heads, length, -1))


def _with_samples(arrays: list[Any], padding: Any) -> tuple[list[Any], Any]:
    """Return queries, keys and values, and a mask of keys, with an axis of samples."""
    if arrays[0].ndim == 3:
        return arrays, padding
    masks = None if padding is None else pg.expand_dims(padding, 0)
    return [pg.expand_dims(x, 1) for x in arrays], masks


def _merge_masks(attn_mask: Any, padding: Any, q: Any, heads: int, added: int) -> Any:
    """Return what is added to scores of shape (samples * heads, L, S); None for nothing."""
    total, samples, dtype = None, q.shape[1], q.dtype
    if attn_mask is not None:
        if attn_mask.ndim not in (2, 3):
            raise ShapeError(f"attn_mask's dimension {attn_mask.ndim} is not supported")
        total = _as_float_mask(attn_mask, dtype)
    if padding is not None:
        rows = pg.expand_dims(_as_float_mask(padding, dtype), (1, 2))
        rows = pg.broadcast_to(rows, (samples, heads, 1, padding.shape[1]))
        rows = pg.reshape(rows, (samples * heads, 1, padding.shape[1]))
        total = rows if total is None else total + rows
    if total is None or not added:
        return total
    return pg.pad(total, [*[(0, 0)] * (total.ndim - 1), (0, added)])


def _as_float_mask(mask: Any, dtype: Any) -> Any:
    """Return 0 where a mask is False, minus infinity where it is True; floats stay."""
    if mask.dtype.kind != "b":
        return mask
    return pg.astype(pg.where(mask, -np.inf, 0.0), dtype)
