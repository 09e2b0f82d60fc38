"""Einstein summation: products over labelled axes, by matrix products."""

from __future__ import annotations

import math
import string
from collections import Counter
from typing import Any, TypeAlias

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.dims import typical
from primgraph.ir.types import BOOL, INT64, Shape
from primgraph.operators.call import operator, public
from primgraph.operators.elementwise.logic import not_equal
from primgraph.operators.handle import ArrayLike
from primgraph.operators.linear_algebra.products import product
from primgraph.operators.promotion import broadcast_to_shape, convert_dtype, lift, result_dtype
from primgraph.operators.shape.joining import diagonal
from primgraph.operators.shape.shaping import permute_axes, reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import elementwise, reductions
from primgraph.primitives.shapes import concat, slice_

# A term is an operand with one label per axis; labels of an ellipsis are not letters.
Labels: TypeAlias = tuple[str, ...]
Term: TypeAlias = tuple[Variable, Labels]

# NumPy's labels by number, in NumPy's sorting order.
_ALPHABET = string.ascii_uppercase + string.ascii_lowercase

# Up to this many terms all orders are tried; for more, NumPy's greedy search is used.
_FEW = 5


def _from_lists(*given: Any) -> tuple[str, list[Any]]:
    """Return the subscripts, and the operands, of a call with a list of labels behind each
    operand."""
    count = len(given) // 2
    arrays, lists = list(given[: 2 * count : 2]), list(given[1 : 2 * count : 2])
    if not count or not all(isinstance(x, list | tuple) for x in (*lists, *given[2 * count :])):
        raise ArgumentError(
            f"einsum takes its subscripts as a string, not {type(given[0]).__name__}",
            hint="or as a list of integers behind each operand",
        )
    text = ",".join(map(_letters, lists))
    return text + "".join(f"->{_letters(x)}" for x in given[2 * count :]), arrays


def _letters(labels: Any) -> str:
    """Convert integer labels to letters, in the same order."""
    strange = [k for k in labels if k is not Ellipsis and not _is_label(k)]
    if strange:
        raise ArgumentError(f"a label of einsum is an integer from 0 to 51, not {strange[0]!r:.60}")
    return "".join("..." if k is Ellipsis else _ALPHABET[k] for k in labels)


def _is_label(label: Any) -> bool:
    known = isinstance(label, int | np.integer) and not isinstance(label, bool)
    return known and 0 <= label < len(_ALPHABET)


@operator("operands")
def einsum_(subscripts: str, *operands: ArrayLike) -> Variable:
    """Decomposition of `einsum`."""
    dtype = result_dtype(*operands) if operands else BOOL
    values = [lift(x, dtype) for x in operands]
    labels, output = _parse_subscripts(subscripts, values)
    if dtype == BOOL:
        values = [convert_dtype(v, INT64) for v in values]
    sizes = _sizes(subscripts, values, labels)
    if 0 in sizes.values():
        empty = _empty_sum(values, tuple(sizes[k] for k in output))
        return not_equal(empty, 0) if dtype == BOOL else empty
    terms = [_one_axis_a_label(v, t, sizes) for v, t in zip(values, labels, strict=True)]
    summing = not sizes.keys() <= set(output)
    for i, j in _pairs(terms, output, sizes):
        second, first = terms.pop(j), terms.pop(i)
        needed = set(output).union(*(t for _, t in terms))
        if _comes_later(first, second, output):
            first, second = second, first
        terms.append(_multiply_terms(first, second, needed, sizes, summing))
    result = _in_order(_sum_unneeded_labels(terms[0], set(output)), output, sizes)
    return not_equal(result, 0) if dtype == BOOL else result


@public
def einsum(subscripts: str | ArrayLike, *operands: Any) -> Variable:
    """Return the sum of products over labelled axes, as in `np.einsum("ij,jk->ik", x, y)`.

    Labels may also be lists of integers from 0 to 51, or `...`, behind each operand, and finally
    for the output: `einsum(x, [0, 1], y, [1, 2], [0, 2])`.

    Labels not in the output are summed; a label repeated in one operand takes a diagonal; an
    ellipsis stands for axes that are broadcast. Without `->` the output has the labels that occur
    once, in alphabetical order. Several operands are multiplied in the cheapest order, found by
    `np.einsum_path`. A sum over no elements is 0, whatever the other operands are.

    Raises `ArgumentError` for invalid subscripts and `ShapeError` if they do not match the
    operands.

    >>> pg.einsum("ij,jk->ik", [[1.0, 2.0]], [[3.0], [4.0]])
    tensor([[11.]])
    """
    if isinstance(subscripts, str):
        return einsum_(subscripts, *operands)
    text, arrays = _from_lists(subscripts, *operands)
    return einsum_(text, *arrays)


def _parse_subscripts(subscripts: str, operands: list[Variable]) -> tuple[list[Labels], Labels]:
    """Return the labels of each operand and of the output."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(operands):
        raise ArgumentError(
            f"einsum subscripts {subscripts!r} are for {len(parts)} operands, "
            f"{len(operands)} are given"
        )
    letters = [part.replace("...", "", 1) for part in (*parts, right)]
    if not all(part == "" or (part.isascii() and part.isalpha()) for part in letters):
        raise ArgumentError(f"einsum subscripts {subscripts!r} cannot be read")
    ranks = []
    for part, named, x in zip(parts, letters, operands, strict=False):
        rank = x.ndim - len(named)
        if rank < 0 or (rank > 0 and "..." not in part):
            raise ShapeError(f"einsum subscripts {part!r} do not fit {x.type}")
        ranks.append(rank)
    widest = max(ranks)
    hidden = tuple(str(i) for i in range(widest))
    labels = [
        _labels_of(part, hidden[widest - rank :]) for part, rank in zip(parts, ranks, strict=True)
    ]
    return labels, _output(subscripts, arrow, right, labels, hidden)


def _labels_of(part: str, hidden: Labels) -> Labels:
    """Return the labels of one part, with those of the ellipsis inserted."""
    if "..." not in part:
        return tuple(part)
    before, _, behind = part.partition("...")
    return (*before, *hidden, *behind)


def _output(
    subscripts: str, arrow: str, right: str, labels: list[Labels], hidden: Labels
) -> Labels:
    count = Counter(label for part in labels for label in part)
    if not arrow:
        return (*hidden, *sorted(k for k, n in count.items() if n == 1 and k.isalpha()))
    if hidden and "..." not in right:
        raise ArgumentError(
            f"einsum subscripts {subscripts!r} have axes under the ellipsis that the output lacks"
        )
    output = _labels_of(right, hidden)
    if len(set(output)) != len(output) or not set(output) <= count.keys():
        raise ArgumentError(
            f"einsum subscripts {subscripts!r}: each label of the output is one of an operand, "
            "named once"
        )
    return output


def _sizes(subscripts: str, operands: list[Variable], labels: list[Labels]) -> dict[str, int]:
    """Return the size of each label; sizes of one are broadcast."""
    sizes: dict[str, int] = {}
    for x, part in zip(operands, labels, strict=True):
        for label, extent in zip(part, x.shape, strict=True):
            known = sizes.get(label, 1)
            if known != 1 and extent not in (1, known):
                found = " and ".join(str(v.type) for v in operands)
                raise ShapeError(
                    f"einsum {subscripts!r} of {found}: label {label!r} has sizes "
                    f"{known} and {extent}"
                )
            sizes[label] = extent if known == 1 else known
    return sizes


def _one_axis_a_label(x: Variable, labels: Labels, sizes: dict[str, int]) -> Term:
    """Take diagonals of repeated labels, and drop labels along which `x` is broadcast."""
    for label, count in Counter(labels).items():
        for _ in range(count - 1):
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ShapeError(f"einsum takes a diagonal along {label!r} of {x.type}")
            x = diagonal(x, 0, first, second)
            rest = (k for i, k in enumerate(labels) if i not in (first, second))
            labels = (*rest, label)
    full = [(k, n) for k, n in zip(labels, x.shape, strict=True) if n == sizes[k]]
    return reshape_to(x, tuple(n for _, n in full)), tuple(k for k, _ in full)


def _pairs(terms: list[Term], output: Labels, sizes: dict[str, int]) -> list[tuple[int, int]]:
    """Return the pairs of terms to multiply in each step, as found by `np.einsum_path`.

    The product of two terms is appended to the others.
    """
    letter = dict(zip(sizes, string.ascii_letters, strict=False))
    if len(terms) < 3 or len(sizes) > len(letter):
        return [(0, 1)] * (len(terms) - 1)
    parts = ["".join(letter[k] for k in labels) for _, labels in terms]
    subscripts = f"{','.join(parts)}->{''.join(letter[k] for k in output)}"
    known = {k: typical(n) for k, n in sizes.items()}
    shapes = [np.broadcast_to(np.float64(0), [known[k] for k in labels]) for _, labels in terms]
    search = "optimal" if len(terms) <= _FEW else "greedy"
    path: list[Any] = np.einsum_path(subscripts, *shapes, optimize=search)[0][1:]
    if any(len(places) != 2 for places in path):
        return [(0, 1)] * (len(terms) - 1)
    return [(min(pair), max(pair)) for pair in path]


def _comes_later(first: Term, second: Term, output: Labels) -> bool:
    """Return whether the labels only in `first` follow those only in `second` in the output.

    The rows of a product come from its first factor: exchanging the factors then saves a copy.
    """
    left, right = set(first[1]), set(second[1])
    places = {k: i for i, k in enumerate(output)}
    own = [places[k] for k in left - right if k in places]
    others = [places[k] for k in right - left if k in places]
    return bool(own and others) and min(own) > max(others)


def _sum_unneeded_labels(term: Term, needed: set[str]) -> Term:
    """Sum the term over the labels that are not needed elsewhere."""
    x, labels = term
    axes = tuple(i for i, k in enumerate(labels) if k not in needed)
    if not axes:
        return term
    return emit(reductions.reduce_sum, x, axes=axes), tuple(k for k in labels if k in needed)


def _multiply_terms(
    first: Term, second: Term, needed: set[str], sizes: dict[str, int], summing: bool
) -> Term:
    """Return the product of two terms, summed over labels that are not needed elsewhere.

    `summing` says whether any label of any term is summed over.
    """
    early = _summed_first(first[1], second[1], needed, sizes)
    (x, left), (y, right) = (_sum_unneeded_labels(t, set(t[1]) - early) for t in (first, second))
    both = [k for k in left if k in right]
    lead = [k for k in both if k in needed]
    inner = [k for k in both if k not in needed]
    rows = [k for k in left if k not in both]
    columns = [k for k in right if k not in both]
    result = (*lead, *rows, *columns)
    if not inner:
        x, y = (_in_order(t, result, sizes) for t in ((x, left), (y, right)))
        whole = emit(elementwise.mul, x, y)
        if summing and whole.type.is_inexact:
            # Sums start with 0.0, even where a product of sums would be -0.0.
            whole = whole + 0.0
        return _sum_unneeded_labels((whole, result), needed)
    shape = [tuple(sizes[k] for k in group) for group in (lead, rows, inner, columns)]
    m, k, n = (math.prod(extents) for extents in shape[1:])
    flat_x = reshape_to(_permuted_to(x, left, (*lead, *rows, *inner)), (*shape[0], m, k))
    flat_y = reshape_to(_permuted_to(y, right, (*lead, *inner, *columns)), (*shape[0], k, n))
    whole = reshape_to(product(flat_x, flat_y), (*shape[0], *shape[1], *shape[3]))
    return _sum_unneeded_labels((whole, result), needed)


def _summed_first(left: Labels, right: Labels, needed: set[str], sizes: dict[str, int]) -> set[str]:
    """Return the labels over which one of two terms is summed before the multiplication.

    If NumPy's innermost loops are over the last labels of one term, which the other lacks, it sums
    these elements first. So infinities and NaN of the other are multiplied with these sums, and not
    with the elements.
    """
    labels = [k for k in sizes if (k in left or k in right) and sizes[k] not in (0, 1)]
    loops = _loops(sorted(labels, key=lambda k: (k not in needed, k)), (left, right))
    early: set[str] = set()
    for own, other in ((left, right), (right, left)):
        kept = needed.union(other)
        for label, last in zip(loops, (k for k in reversed(own) if k in loops), strict=False):
            if label != last or label in kept:
                break
            early.add(label)
    return early


def _loops(labels: list[str], terms: tuple[Labels, ...]) -> list[str]:
    """Return the labels in the order of NumPy's loops over contiguous arrays, innermost first.

    The order is kept unless a term has its axes in another order, like `nditer` sorts them.
    """
    order: list[str] = []
    for label in reversed(labels):
        place = len(order)
        for i in reversed(range(len(order))):
            both = [t for t in terms if label in t and order[i] in t]
            if both and not all(t.index(order[i]) < t.index(label) for t in both):
                break
            place = i if both else place
        order.insert(place, label)
    return order


def _empty_sum(operands: list[Variable], shape: Shape) -> Variable:
    """Return sums over an empty axis: zeros that depend on every operand."""
    parts = [
        emit(slice_, reshape_to(x, (x.size,)), starts=(0,), sizes=(0,), steps=(1,))
        for x in operands
    ]
    zero = emit(reductions.reduce_sum, emit(concat, *parts, axis=0), axes=(0,))
    return broadcast_to_shape(zero, shape)


def _permuted_to(x: Variable, labels: Labels, order: Labels) -> Variable:
    return permute_axes(x, tuple(labels.index(k) for k in order))


def _in_order(term: Term, order: Labels, sizes: dict[str, int]) -> Variable:
    """Return the term with its axes in `order`, broadcast along missing labels."""
    x, labels = term
    x = _permuted_to(x, labels, tuple(k for k in order if k in labels))
    x = reshape_to(x, tuple(sizes[k] if k in labels else 1 for k in order))
    return broadcast_to_shape(x, tuple(sizes[k] for k in order))
