"""Functions of branches and loops: their graphs are functions of operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primgraph.control.branches import cond
from primgraph.control.loops import while_loop
from primgraph.interop.torch.table import Site, means
from primgraph.operators import reshape
from primgraph.operators.variable import Variable


@means("higher_order.cond")
def _cond(site: Site, test: Any, then: Any, otherwise: Any, operands: Sequence[Any] = ()) -> Any:
    given = list(operands)
    flag = reshape(test, ()) if isinstance(test, Variable) else test
    return tuple(
        cond(
            flag,
            lambda: tuple(site.run(then, given)),
            lambda: tuple(site.run(otherwise, given)),
        )
    )


@means("higher_order.while_loop")
def _while_loop(
    site: Site, test: Any, body: Any, carried: Sequence[Any], more: Sequence[Any] = ()
) -> Any:
    rest = list(more)

    def goes_on(*state: Any) -> Any:
        found = site.run(test, [*state, *rest])
        return reshape(found[0] if isinstance(found, list | tuple) else found, ())

    found = while_loop(goes_on, lambda *state: tuple(site.run(body, [*state, *rest])), *carried)
    return tuple(found) if isinstance(found, tuple | list) else (found,)
