"""Matrix chain ordering: multiply chains of matrices in the cheapest order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.primitives.linear_algebra.products import CONTRACTS, matmul
from primgraph.transforms.dataflow.contract import primitives_only, transform

# Longer chains are split into pieces of this many factors, as the search takes cubic time.
_LONGEST = 24


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def matrix_chain(graph: Graph) -> Graph:
    """Multiply chains of matrices in the order with the fewest scalar multiplications.

    A chain is a tree of `matmul` whose inner results nothing else reads. As real numbers all
    orders give the same (Cormen et al., Introduction to Algorithms, 15.2); rounding differs.

    >>> graph = pg.trace(lambda a, b, x: a @ b @ x, *[pg.spec((9, 9))] * 2, pg.spec((9, 1)))
    >>> print(pg.transforms.matrix_chain(graph))
    graph f(%a: f64[9,9], %b: f64[9,9], %x: f64[9,1]) {
      %0: f64[9,1] = matmul(%b, %x)
      %1: f64[9,1] = matmul(%a, %0)
      return %1
    }
    """
    chains, inner = _chains(graph)
    if not chains:
        return graph
    builder, moved = rebuild(graph)
    with builder:
        for eqn in graph.body:
            if eqn in inner:
                continue
            factors = chains.get(eqn)
            if factors is None:
                copy(builder, eqn, moved)
                continue
            builder.source = eqn.source or NOWHERE
            moved[eqn.output] = _multiply_chain([moved[v] for v in factors])
    return builder.graph([moved[v] for v in graph.outputs])


def _chains(graph: Graph) -> tuple[dict[Equation, list[Value]], set[Equation]]:
    """Return the factors of each chain that another order makes cheaper, and its inner products."""
    reads = Counter(graph.outputs)
    for eqn in graph.body:
        reads.update(eqn.inputs)
    products = {e.output: e for e in graph.body if e.op.fact(CONTRACTS)}
    taken: set[Equation] = set()
    chains: dict[Equation, list[Value]] = {}
    inner: set[Equation] = set()
    for eqn in reversed(graph.body):
        if not eqn.op.fact(CONTRACTS) or eqn in taken:
            continue
        factors, within = _factors(eqn, products, reads)
        taken.update(within)
        if len(factors) > 2 and _least(factors)[0] < sum(map(_cost, (eqn, *within))):
            chains[eqn] = factors
            inner.update(within)
    return chains, inner


def _factors(
    root: Equation, products: dict[Value, Equation], reads: Counter[Value]
) -> tuple[list[Value], list[Equation]]:
    """Return the factors of the chain `root` in order, and its inner products."""
    factors: list[Value] = []
    within: list[Equation] = []
    waiting = list(reversed(root.inputs))
    while waiting:
        value = waiting.pop()
        eqn = products.get(value)
        if eqn is None or reads[value] > 1 or len(factors) + len(waiting) + 2 > _LONGEST:
            factors.append(value)
        else:
            within.append(eqn)
            waiting += reversed(eqn.inputs)
    return factors, within


def _cost(eqn: Equation) -> int:
    return eqn.output.type.size * eqn.inputs[0].shape[-1]


def _least(factors: Sequence[Value]) -> tuple[int, dict[tuple[int, int], int]]:
    """Return the least cost of the chain, and the split point of each part."""
    lead = factors[0].type.size // max(1, factors[0].shape[-2] * factors[0].shape[-1])
    sides = [factors[0].shape[-2], *(f.shape[-1] for f in factors)]
    count = len(factors)
    cost = {(i, i + 1): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length
            options = (
                (cost[i, k] + cost[k, j] + lead * sides[i] * sides[k] * sides[j], k)
                for k in range(i + 1, j)
            )
            cost[i, j], split[i, j] = min(options)
    return cost[0, count], split


def _multiply_chain(factors: Sequence[Value]) -> Value:
    """Return the product, split as `_least` computes."""
    split = _least(factors)[1]
    made: dict[tuple[int, int], Value] = {(i, i + 1): f for i, f in enumerate(factors)}
    waiting = [(0, len(factors))]
    while waiting:
        i, j = waiting[-1]
        k = split[i, j]
        missing = [part for part in ((i, k), (k, j)) if part not in made]
        if missing:
            waiting += missing
            continue
        made[i, j] = matmul(made[i, k], made[k, j])
        waiting.pop()
    return made[0, len(factors)]
