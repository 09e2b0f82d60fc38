"""Greedy colouring with sets of colours as Python integers.

A set of colours is an integer with a bit for each, so that a vertex visits each neighbour once for
reading and once for writing. The time is that of two passes over all elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

import numpy as np

from primgraph.errors import OptionError
from primgraph.sparsity.pattern import Indices, Pattern

ORDERS = ("natural", "largest_first", "smallest_last")
# Number of vertices converted to Python integers at once.
_AT_ONCE = 65536


def column_colors(pattern: Pattern, order: str = "natural") -> Indices:
    """Colour the columns so that no row has two elements of one colour.

    Columns that share a row are neighbours in the graph (Coleman and Moré, SIAM J. Numer. Anal. 20,
    1983), which is distance-2 colouring of the columns in the bipartite graph of rows and columns
    (Gebremedhin, Manne and Pothen, SIAM Review 47, 2005, section 3).
    """
    turned = pattern.T
    taken = [0] * pattern.shape[0]
    colors = np.zeros(pattern.shape[1], np.int64)
    for columns, lists in _neighbors(turned, _order(pattern, turned, order)):
        found = []
        for rows in lists:
            used = 0
            for row in rows:
                used |= taken[row]
            bit = ~used & (used + 1)
            for row in rows:
                taken[row] |= bit
            found.append(bit.bit_length() - 1)
        colors[columns] = found
    return colors


def vertex_colors(pattern: Pattern) -> Indices:
    """Colour the vertices of a symmetric pattern so that neighbours differ.

    The diagonal is ignored.
    """
    bits = [0] * pattern.shape[0]
    for vertices, lists in _neighbors(pattern, np.arange(pattern.shape[0])):
        for vertex, others in zip(vertices.tolist(), lists, strict=True):
            used = 0
            for other in others:
                used |= bits[other]
            bits[vertex] = ~used & (used + 1)
    return np.array([bit.bit_length() - 1 for bit in bits], np.int64)


def star_colors(pattern: Pattern, order: str = "natural", first: int = 0) -> Indices:
    """Compute a star colouring of a symmetric pattern: neighbours differ, and no path of three
    edges has two colours.

    Each element off the diagonal is then alone of its colour in its row, or in its column. Two
    neighbours of a vertex share a colour only if it is above that of the vertex (Gebremedhin, Manne
    and Pothen 2005, section 4), so that no path of four vertices alternates. Colours start at
    `first`. The diagonal is ignored.
    """
    colors = [-1] * pattern.shape[0]
    # Colours of the neighbours, and those that a further neighbour must not take.
    around, barred = [0] * pattern.shape[0], [0] * pattern.shape[0]
    below = (1 << first) - 1
    for vertices, lists in _neighbors(pattern, _order(pattern, pattern, order)):
        for vertex, others in zip(vertices.tolist(), lists, strict=True):
            used = below
            for other in others:
                if other != vertex:
                    used |= barred[other]
            bit = ~used & (used + 1)
            color = bit.bit_length() - 1
            colors[vertex] = color
            for other in others:
                if other != vertex:
                    around[other] |= bit
                    if colors[other] < 0 or color < colors[other]:
                        barred[other] |= bit
            barred[vertex] = bit | (around[vertex] & (bit - 1))
    return np.array(colors, np.int64)


def acyclic_colors(pattern: Pattern, order: str = "natural") -> Indices:
    """Compute an acyclic colouring of a symmetric pattern: neighbours differ, and no cycle has two
    colours.

    The edges between any two colours form trees, which are kept as disjoint sets of edges
    (Gebremedhin, Tarafdar, Manne and Pothen, SIAM J. Sci. Comput. 29, 2007).
    """
    starts, columns = pattern.indptr.tolist(), pattern.indices.tolist()
    around = [
        [j for j in columns[starts[i] : starts[i + 1]] if j != i] for i in range(pattern.shape[0])
    ]
    colors = [-1] * pattern.shape[0]
    parents: dict[tuple[int, int], tuple[int, int]] = {}

    def root(edge: tuple[int, int]) -> tuple[int, int]:
        while parents[edge] != edge:
            parents[edge] = parents[parents[edge]]
            edge = parents[edge]
        return edge

    def edge(a: int, b: int) -> tuple[int, int]:
        return (a, b) if a < b else (b, a)

    for vertex in _order(pattern, pattern, order).tolist():
        known = [w for w in around[vertex] if colors[w] >= 0]
        used = 0
        met: dict[tuple[int, int], int] = {}
        for w in known:
            used |= 1 << colors[w]
        for w in known:
            for x in around[w]:
                if colors[x] >= 0 and not used >> colors[x] & 1:
                    tree = root(edge(w, x))
                    if met.setdefault(tree, w) != w:
                        used |= 1 << colors[x]
        color = (~used & (used + 1)).bit_length() - 1
        colors[vertex] = color
        first: dict[int, tuple[int, int]] = {}
        for w in known:
            new = edge(vertex, w)
            parents[new] = new
            joined = [first.setdefault(colors[w], new)]
            joined += [edge(w, x) for x in around[w] if colors[x] == color and x != vertex]
            for other in joined:
                parents[root(other)] = root(new)
    return np.array(colors, np.int64)


def _order(pattern: Pattern, turned: Pattern, order: str) -> Indices:
    """Return the columns of `pattern`, the rows of `turned`, in that order."""
    count = turned.shape[0]
    if order == "natural":
        return np.arange(count, dtype=np.int64)
    if order not in ORDERS:
        raise OptionError(f"an order is one of {', '.join(ORDERS)}, not {order!r:.60}")
    if pattern is turned:
        degrees = np.diff(pattern.indptr)
        return _largest(degrees) if order == "largest_first" else _smallest_last(pattern)
    # Number of elements in the rows of a column: an upper bound of the number of its neighbours.
    shares = np.concatenate([[0], np.cumsum(np.diff(pattern.indptr)[turned.indices])])
    degrees = shares[turned.indptr[1:]] - shares[turned.indptr[:-1]]
    return _largest(degrees) if order == "largest_first" else _fewest_last(pattern, turned, degrees)


def _largest(degrees: Indices) -> Indices:
    return np.argsort(-degrees, kind="stable")


def _smallest_last(pattern: Pattern) -> Indices:
    """Return the vertices of a symmetric pattern in smallest-last order by number of neighbours."""
    starts, columns = pattern.indptr.tolist(), pattern.indices.tolist()
    degrees = np.diff(pattern.indptr).tolist()
    heap = [(d, v) for v, d in enumerate(degrees)]
    heapify(heap)
    left, found = [True] * len(degrees), []
    while heap:
        degree, vertex = heappop(heap)
        if not left[vertex] or degree != degrees[vertex]:
            continue
        left[vertex] = False
        found.append(vertex)
        for other in columns[starts[vertex] : starts[vertex + 1]]:
            if left[other]:
                degrees[other] -= 1
                heappush(heap, (degrees[other], other))
    return np.array(found[::-1], np.int64)


def _fewest_last(pattern: Pattern, turned: Pattern, degrees: Indices) -> Indices:
    """Return the columns in smallest-last order by shared elements of rows."""
    starts, columns = pattern.indptr.tolist(), pattern.indices.tolist()
    beginnings, rows = turned.indptr.tolist(), turned.indices.tolist()
    left_of = degrees.tolist()
    heap = [(d, v) for v, d in enumerate(left_of)]
    heapify(heap)
    left, found = [True] * len(left_of), []
    while heap:
        degree, column = heappop(heap)
        if not left[column] or degree != left_of[column]:
            continue
        left[column] = False
        found.append(column)
        touched = set()
        for row in rows[beginnings[column] : beginnings[column + 1]]:
            for other in columns[starts[row] : starts[row + 1]]:
                if left[other]:
                    left_of[other] -= 1
                    touched.add(other)
        for other in touched:
            heappush(heap, (left_of[other], other))
    return np.array(found[::-1], np.int64)


def _neighbors(pattern: Pattern, order: Indices) -> Iterator[tuple[Indices, Iterator[list[int]]]]:
    """Yield rows of `pattern` in that order, in batches, with lists of their columns."""
    for first in range(0, order.size, _AT_ONCE):
        chosen = order[first : first + _AT_ONCE]
        counts = pattern.indptr[chosen + 1] - pattern.indptr[chosen]
        ends = np.cumsum(counts)
        places = np.arange(counts.sum()) + np.repeat(pattern.indptr[chosen] - ends + counts, counts)
        flat = pattern.indices[places].tolist()
        bounds = zip((ends - counts).tolist(), ends.tolist(), strict=True)
        yield chosen, (flat[a:b] for a, b in bounds)
