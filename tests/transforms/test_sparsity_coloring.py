"""Colours: that they are proper, that products by them tell every element, and how few they are."""

import networkx as nx
import numpy as np
import pytest

import primgraph as pg
from primgraph.sparsity import greedy, rounds
from primgraph.sparsity.coloring import Coloring, _star_coloring, coloring, symmetric_coloring
from primgraph.sparsity.greedy import ORDERS, acyclic_colors, star_colors
from primgraph.sparsity.pattern import Pattern

pytestmark = pytest.mark.quick


def random_pattern(seed, symmetric=False):
    rng = np.random.default_rng(seed)
    height, width = rng.integers(1, 25, 2)
    height = width if symmetric else height
    mask = rng.random((height, width)) < rng.choice([0.05, 0.15, 0.4])
    if rng.random() < 0.3:
        mask[rng.integers(height)] = True
    if rng.random() < 0.3:
        mask[:, rng.integers(width)] = True
    return Pattern.from_dense(mask | mask.T if symmetric else mask)


def banded(n, below, above):
    i, j = np.indices((n, n))
    return Pattern.from_dense((i - j <= below) & (j - i <= above))


def grid(*extents, corners=False):
    """What each point of a grid has to do with its neighbours, along the axes or all around."""
    places = np.indices(extents).reshape(len(extents), -1)
    apart = np.abs(places[:, :, None] - places[:, None, :])
    near = apart.max(axis=0) <= 1 if corners else apart.sum(axis=0) <= 1
    return Pattern.from_dense(near)


def arrow(n):
    mask = np.eye(n, dtype=bool)
    mask[0] = mask[:, 0] = True
    return Pattern.from_dense(mask)


def seeds(colors, count):
    return (colors[:, None] == np.arange(count)).astype(float)


def values_of(found: Coloring, matrix):
    """The elements of `matrix` that products by the colours tell."""
    products = []
    if found.columns is not None:
        products.append((matrix @ seeds(found.columns, found.column_count)).T.ravel())
    if found.rows is not None:
        products.append((seeds(found.rows, found.row_count).T @ matrix).ravel())
    flat = np.concatenate(products)
    if not found.steps:
        return flat[found.places]
    values = np.full(found.pattern.nnz, np.nan)
    for step in found.steps:
        values[step.elements] = flat[step.places]
        at = step.elements[step.into]
        np.subtract.at(values, at, values[step.others])
    lower = found.pattern.rows >= found.pattern.indices
    dense = np.zeros(matrix.shape)
    dense[found.pattern.rows[lower], found.pattern.indices[lower]] = values[lower]
    return (np.tril(dense) + np.tril(dense, -1).T)[found.pattern.rows, found.pattern.indices]


def require_told(found: Coloring, rng, symmetric=False):
    pattern = found.pattern
    matrix = pattern.to_dense() * rng.uniform(1, 2, pattern.shape)
    matrix = matrix + matrix.T if symmetric else matrix
    expected = matrix[pattern.rows, pattern.indices]
    np.testing.assert_allclose(values_of(found, matrix), expected, rtol=1e-12)


def test_products_by_colours_tell_every_element():
    rng = np.random.default_rng(0)
    for seed in range(30):
        pattern = random_pattern(seed)
        alone = []
        for side in ("columns", "rows", "both", "auto"):
            for order in (*ORDERS, "auto") if seed < 8 else ("auto",):
                found = coloring(pattern, side, order)
                require_told(found, rng)
            alone.append(found.count)
        assert alone[-1] <= min(alone[:2])
        masks = (pattern.to_dense(), pattern.to_dense().T)
        assert alone[0] >= masks[0].sum(axis=1).max()
        assert alone[1] >= masks[1].sum(axis=1).max()


def test_symmetric_products_tell_every_element():
    rng = np.random.default_rng(1)
    for seed in range(30):
        pattern = random_pattern(seed, symmetric=True)
        counts = {}
        for method in ("columns", "star", "acyclic", "auto"):
            for order in (*ORDERS, "auto") if seed < 8 else ("auto",):
                found = symmetric_coloring(pattern, method, order)
                require_told(found, rng, symmetric=True)
            counts[method] = found.count
        assert counts["auto"] <= counts["columns"] + 1
        # What is symmetric is so to the last bit: both images come from one place.
        star = symmetric_coloring(pattern, "star")
        dense = np.zeros(pattern.shape, np.int64)
        dense[pattern.rows, pattern.indices] = star.places
        np.testing.assert_array_equal(dense, dense.T)


def test_star_and_acyclic_colours_are_so_by_definition():
    for seed in range(30):
        pattern = random_pattern(seed, symmetric=True)
        graph = nx.Graph(zip(pattern.rows.tolist(), pattern.indices.tolist(), strict=True))
        graph.remove_edges_from(list(nx.selfloop_edges(graph)))
        for order in ORDERS:
            star, acyclic = star_colors(pattern, order), acyclic_colors(pattern, order)
            for colors in (star, acyclic):
                assert all(colors[a] != colors[b] for a, b in graph.edges)
                for first in range(colors.max() + 1):
                    for second in range(first):
                        two = [v for v in graph if colors[v] in (first, second)]
                        part = graph.subgraph(two)
                        assert not two or nx.is_forest(part)
                        if colors is star:
                            middles = [v for v in part if part.degree(v) > 1]
                            assert part.subgraph(middles).number_of_edges() == 0


def test_colours_are_as_few_as_is_known_to_be_possible():
    for pattern, most, star, acyclic in [
        (banded(50, 1, 1), 3, 3, 2),
        (banded(60, 3, 1), 5, None, None),
        (banded(40, 2, 2), 5, 5, 3),
        (banded(40, 0, 0), 1, 1, 1),
        (grid(11, 12), 5, 5, 4),
        (grid(9, 10, corners=True), 9, 9, 6),
        (grid(5, 4, 6), 7, 7, None),
        (arrow(40), 3, 2, 2),
        (Pattern.from_dense(np.kron(np.eye(20), np.ones((4, 4)))), 4, 4, 4),
        (Pattern.from_dense(np.kron(np.eye(7), np.ones((2, 5)))), 2, None, None),
        (Pattern.from_dense(np.zeros((4, 5))), 1, None, None),
    ]:
        assert coloring(pattern).count <= most
        if star is not None:
            assert symmetric_coloring(pattern).count <= star
        if acyclic is not None:
            assert symmetric_coloring(pattern, "acyclic").count <= acyclic + 1
    # A million columns by their numbers alone; a list of colours one by one takes longer.
    n = 100_000
    rows = np.repeat(np.arange(n), 3)
    columns = np.clip(rows + np.tile([-1, 0, 1], n), 0, n - 1)
    wide = Pattern.from_coo(rows, columns, (n, n))
    assert symmetric_coloring(wide).count == coloring(wide).count == 3


def test_what_cannot_be_coloured_is_refused():
    pattern = banded(400, 1, 1)
    for color in (coloring, symmetric_coloring):
        with pytest.raises(pg.ArgumentError, match="takes a pattern, not"):
            color(np.eye(3))
    with pytest.raises(pg.OptionError, match="a side is one of auto, columns"):
        coloring(pattern, "column")
    with pytest.raises(pg.OptionError, match="an order is one of"):
        coloring(pattern, order="random")
    with pytest.raises(pg.OptionError, match="a method is one of"):
        symmetric_coloring(pattern, "direct")
    with pytest.raises(pg.ShapeError, match="not symmetric"):
        symmetric_coloring(banded(5, 0, 1))
    assert len(symmetric_coloring(pattern, "acyclic").steps) == 200
    with pytest.raises(pg.OptionError, match="wait for each other"):
        symmetric_coloring(banded(500, 1, 1), "acyclic")
    told = repr(coloring(arrow(40)))
    assert told.endswith("2 colours of columns and 1 colours of rows>")


def test_empty_patterns_have_colours_too():
    for shape in [(0, 0), (0, 3), (3, 0)]:
        found = coloring(Pattern.from_dense(np.zeros(shape)))
        assert found.places.size == 0
    assert symmetric_coloring(Pattern.from_dense(np.zeros((0, 0)))).places.size == 0


def test_colours_of_many_at_a_time_are_as_good_as_one_by_one():
    rng = np.random.default_rng(3)
    patterns = [random_pattern(s, symmetric=True) for s in range(40)]
    n = 800
    scattered = Pattern.from_coo(np.repeat(np.arange(n), 6), rng.integers(0, n, 6 * n), (n, n))
    # More colours than a word has bits.
    full = Pattern.from_dense(np.ones((150, 150)))
    for pattern in (*patterns, scattered.union(scattered.T), full):
        colors = rounds.column_colors(pattern)
        places = colors[pattern.indices] * pattern.shape[0] + pattern.rows
        assert np.unique(places).size == pattern.nnz
        assert colors.max(initial=0) <= greedy.column_colors(pattern).max(initial=0) + 3
        star = rounds.star_colors(pattern, 2)
        assert star.min(initial=2) == 2
        if pattern.shape[0] == n:
            assert star.max() <= 1.1 * star_colors(pattern, "natural", 2).max() + 2
        require_told(_star_coloring(pattern, star - 2), rng, symmetric=True)
    for s in range(40):
        pattern = random_pattern(s)
        places = rounds.column_colors(pattern)[pattern.indices] * pattern.shape[0] + pattern.rows
        assert np.unique(places).size == pattern.nnz
    assert np.array_equal(rounds.column_colors(scattered), rounds.column_colors(scattered))


def test_very_large_patterns_are_coloured_many_at_a_time(monkeypatch):
    monkeypatch.setattr("primgraph.sparsity.coloring._LARGE", 1000)
    rng = np.random.default_rng(4)
    n = 500
    pattern = Pattern.from_coo(np.repeat(np.arange(n), 4), rng.integers(0, n, 4 * n), (n, n))
    require_told(coloring(pattern), rng)
    require_told(coloring(pattern, "rows"), rng)
    require_told(symmetric_coloring(pattern.union(pattern.T)), rng, symmetric=True)
