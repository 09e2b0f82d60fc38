"""Embeddings as layers."""

from __future__ import annotations

from typing import Any, Self

from primgraph.compat.torch.creation import create
from primgraph.compat.torch.nn import functional
from primgraph.compat.torch.nn.init import normal_
from primgraph.compat.torch.nn.layer_tables import show
from primgraph.compat.torch.nn.modules.module import Module
from primgraph.compat.torch.tensor import Parameter
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import ArgumentError, BoundsError, CheckError, OptionError, ShapeError

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """Rows of a table, of which some position may be padding."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None

    def _fill(
        self, count: int, width: int, padding_idx: int | None, sparse: bool, given: Any, kind: Any
    ) -> None:
        """Set the attributes and the weight."""
        self.num_embeddings, self.embedding_dim, self.sparse = count, width, sparse
        if sparse:
            raise OptionError(f"{type(self).__name__} does not have sparse=True")
        if padding_idx is not None:
            if not -count <= padding_idx < count:
                raise CheckError("Padding_idx must be within num_embeddings")
            padding_idx %= count
        self.padding_idx = padding_idx
        if given is not None:
            if tuple(given.shape) != (count, width):
                raise ArgumentError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.weight = Parameter(given)
        else:
            self.weight = Parameter(create.empty((count, width), **kind))
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rows anew; the row of padding is zero."""
        normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0.0

    def _require_rows(self, input: Any) -> None:
        """Raise for positions that the table does not have, where they are known."""
        array: Any = getattr(getattr(input, "node", None), "array", None)
        known = array is not None and array.size
        if known and (array.min() < 0 or array.max() >= self.num_embeddings):
            raise BoundsError("index out of range in self")

    @classmethod
    def _from(cls, embeddings: Any, freeze: bool, options: dict[str, Any]) -> Self:
        if embeddings.ndim != 2:
            raise ShapeError("Embeddings parameter is expected to be 2-dimensional")
        make: Any = cls
        found: Self = make(*embeddings.shape, _weight=embeddings, **options)
        found.weight.requires_grad_(not freeze)
        return found

    def extra_repr(self) -> str:
        """Return the sizes and options that are set."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        options = ("padding_idx", "max_norm")
        given = " ".join(n for n in options if getattr(self, n) is not None)
        return ", ".join(filter(None, (text, show(self, given))))


class Embedding(_Table):
    """Rows of a table at given positions.

    >>> table = torch.nn.Embedding(5, 3)
    >>> table(torch.tensor([[0, 2], [2, 4]])).shape
    torch.Size([2, 2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        kind = {"device": device, "dtype": dtype}
        self._fill(num_embeddings, embedding_dim, padding_idx, sparse, _weight, kind)
        if _freeze:
            self.weight.requires_grad_(False)

    def forward(self, input: Any) -> Any:
        """Return the rows at positions `input`."""
        self._require_rows(input)
        return functional.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """Return a layer with these rows, which are not trained if `freeze`.

        >>> table = torch.nn.Embedding.from_pretrained(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> table(torch.tensor(1))
        tensor([3., 4.])
        """
        options = {
            "padding_idx": padding_idx,
            "max_norm": max_norm,
            "norm_type": norm_type,
            "scale_grad_by_freq": scale_grad_by_freq,
            "sparse": sparse,
        }
        return cls._from(embeddings, freeze, options)


class EmbeddingBag(_Table):
    """Sums, means or maxima of the rows of a table, by bags of positions.

    >>> bags = torch.nn.EmbeddingBag(5, 3, mode="sum")
    >>> bags(torch.tensor([0, 1, 2]), torch.tensor([0, 2])).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type, self.mode = max_norm, norm_type, mode
        self.scale_grad_by_freq = scale_grad_by_freq
        self.include_last_offset = include_last_offset
        kind = {"device": device, "dtype": dtype}
        self._fill(num_embeddings, embedding_dim, padding_idx, sparse, _weight, kind)

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """Return a row for each bag: rows of `input`, or parts that begin at `offsets`."""
        self._require_rows(input)
        return functional.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Self:
        """Return a layer with these rows, which are not trained if `freeze`.

        >>> torch.nn.EmbeddingBag.from_pretrained(torch.ones(3, 2)).weight.requires_grad
        False
        """
        return cls._from(embeddings, freeze, options)

    def extra_repr(self) -> str:
        """Return the sizes and options that are set."""
        return f"{super().extra_repr()}, mode={self.mode!r}"
