"""Sequences of several lengths: padded with equal elements, or packed one time after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.torch.creation import create
from primgraph.errors import ArgumentError

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any = None
    unsorted_indices: Any = None


class PackedSequence(_Packed):
    """Rows of several sequences, longest first: those of the first time, of the second, and so on.

    >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1.0, 2.0]), torch.tensor([3.0])])
    >>> packed.data, packed.batch_sizes
    (tensor([1., 3., 2.]), tensor([2, 1]))
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Any = None,
        sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> Self:
        if unsorted_indices is None and sorted_indices is not None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert the rows, as `Tensor.to` does."""
        return self._with(self.data.to(*args, **kwargs))

    def float(self) -> PackedSequence:
        """Convert the rows to float32."""
        return self._with(self.data.float())

    def double(self) -> PackedSequence:
        """Convert the rows to float64."""
        return self._with(self.data.double())

    def cpu(self) -> PackedSequence:
        """Return the sequences: all tensors are in the memory of the CPU."""
        return self

    @property
    def is_cuda(self) -> bool:
        """False: all tensors are in the memory of the CPU."""
        return False

    def _with(self, data: Any) -> PackedSequence:
        return PackedSequence(data, *self[1:])


def invert_permutation(permutation: Any) -> Any:
    """Return the permutation that undoes another one; None for None.

    >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else create.tensor(np.argsort(np.asarray(permutation)))


def _is_taken(batch_sizes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a mask (times, samples) of the rows that there are."""
    samples = int(batch_sizes[0]) if batch_sizes.size else 0
    found: np.ndarray[Any, Any] = np.arange(samples) < batch_sizes[:, None]
    return found


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack sequences that are padded, of given lengths.

    >>> rnn = torch.nn.utils.rnn
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    >>> rnn.pack_padded_sequence(x, [2, 1], batch_first=True).data
    tensor([1., 3., 2.])
    """
    counts = np.asarray(lengths).astype(np.int64).reshape(-1)
    value = pg.swapaxes(input, 0, 1) if batch_first else input
    if counts.size != value.shape[1]:
        raise ArgumentError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {counts.size} "
            f"(batch_size={value.shape[1]})"
        )
    if counts.size and counts.min() <= 0:
        raise ArgumentError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    order = None
    if not enforce_sorted:
        order = np.argsort(-counts, kind="stable")
        counts, value = counts[order], pg.take(value, order, 1)
    elif (np.diff(counts) > 0).any():
        raise ArgumentError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    times = int(counts.max(initial=0))
    sizes = (counts > np.arange(times)[:, None]).sum(1)
    places = np.flatnonzero(_is_taken(sizes))
    flat = pg.reshape(value[:times], (-1, *value.shape[2:]))
    known = None if order is None else create.tensor(order)
    return PackedSequence(pg.take(flat, places, 0), create.tensor(sizes), known)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:
    """Return packed sequences padded, and their lengths.

    >>> rnn = torch.nn.utils.rnn
    >>> packed = rnn.pack_sequence([torch.tensor([1.0, 2.0]), torch.tensor([3.0])])
    >>> rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1., 2.],
            [3., 0.]]), tensor([2, 1]))
    """
    sizes = np.asarray(sequence.batch_sizes)
    taken = _is_taken(sizes)
    times = len(sizes) if total_length is None else total_length
    if times < len(sizes):
        raise ArgumentError(
            f"Expected total_length to be at least the length of the longest sequence in input, "
            f"but got total_length={total_length} and max sequence length being {len(sizes)}"
        )
    taken = np.concatenate([taken, np.zeros((times - len(sizes), taken.shape[1]), bool)])
    lengths = taken.sum(0)
    places = np.zeros(taken.shape, np.int64)
    places[taken] = np.arange(int(taken.sum()))
    found = pg.take(sequence.data, places, 0)
    mask = taken.reshape(*taken.shape, *(1,) * (found.ndim - 2))
    found = pg.where(mask, found, padding_value)
    if sequence.unsorted_indices is not None:
        back = np.asarray(sequence.unsorted_indices)
        found, lengths = pg.take(found, back, 1), lengths[back]
    return (pg.swapaxes(found, 0, 1) if batch_first else found), create.tensor(lengths)


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Stack sequences of several lengths, padded.

    >>> torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(1)], batch_first=True)
    tensor([[1., 1.],
            [1., 0.]])
    """
    if padding_side not in ("left", "right"):
        raise ArgumentError(f"padding_side is 'left' or 'right', not {padding_side!r:.60}")
    rows = list(sequences)
    longest = max(row.shape[0] for row in rows)
    padded = []
    for row in rows:
        more = longest - row.shape[0]
        pair = (0, more) if padding_side == "right" else (more, 0)
        pairs = [pair, *[(0, 0)] * (row.ndim - 1)]
        padded.append(
            pg.pad(row, pairs, "constant", constant_values=padding_value) if more else row
        )
    return pg.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Return the sequences of padded ones, of given lengths.

    >>> padded = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    >>> torch.nn.utils.rnn.unpad_sequence(padded, torch.tensor([2, 1]), batch_first=True)
    [tensor([1., 2.]), tensor([3.])]
    """
    value = padded_sequences if batch_first else pg.swapaxes(padded_sequences, 0, 1)
    return [value[i][: int(n)] for i, n in enumerate(np.asarray(lengths))]


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of several lengths.

    >>> torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.zeros(1)]).data
    tensor([1., 0., 1.])
    """
    lengths = [row.shape[0] for row in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """Return the sequences of packed ones.

    >>> rnn = torch.nn.utils.rnn
    >>> rnn.unpack_sequence(rnn.pack_sequence([torch.ones(2), torch.zeros(1)]))
    [tensor([1., 1.]), tensor([0.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
