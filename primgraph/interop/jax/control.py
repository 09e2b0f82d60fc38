"""Rules of calls, branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primgraph.control.branches import switch
from primgraph.control.checkpoints import checkpoint
from primgraph.control.loops import scan, while_loop
from primgraph.interop.jax.rules import (
    Site,
    constant,
    convert,
    emit,
    index_of_platform,
    rule,
    spread,
)
from primgraph.ir.types import BOOL, INT64
from primgraph.operators.numpy_arguments import call_named
from primgraph.operators.variable import Variable
from primgraph.primitives import logic


@rule("jit", "pjit", "closed_call", "core_call", "core_closed_call", "composite", "eval_jaxpr",
      keys=True)  # fmt: skip
def _call(at: Site, *operands: Variable) -> list[Variable]:
    closed = at.params.get("jaxpr", at.params.get("call_jaxpr"))
    return at.evaluator.run(closed, operands)


@rule("custom_vmap_call", keys=True)
def _custom_vmap_call(at: Site, *operands: Variable) -> list[Variable]:
    return at.evaluator.run(at["call"], operands)


@rule("linear_call", keys=True)
def _linear_call(at: Site, *operands: Variable) -> list[Variable]:
    return at.evaluator.run(at["callee"], operands)


@rule("remat2", "checkpoint", "remat", keys=True)
def _remat(at: Site, *operands: Variable) -> Sequence[Variable]:
    """A checkpoint: its inside is computed again in reverse mode."""
    body: Callable[..., Any] = checkpoint(
        _named("remat", lambda *xs: tuple(at.evaluator.run(at["jaxpr"], xs)))
    )
    found: Sequence[Variable] = body(*operands)
    return found


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    return function


@rule("cond", keys=True)
def _cond(at: Site, index: Variable, *operands: Variable) -> Sequence[Variable]:
    platforms = at.params.get("branches_platforms")
    if platforms is not None:
        return at.evaluator.run(at["branches"][index_of_platform(platforms)], operands)
    branches = [_branch(at, closed) for closed in at["branches"]]
    if not at.types:
        return ()
    number = convert(index, INT64) if index.dtype == BOOL else index
    found: Sequence[Variable] = switch(number, branches, *operands)
    return found


def _branch(at: Site, closed: Any) -> Callable[..., Any]:
    return _named("branch", lambda *xs: tuple(at.evaluator.run(closed, xs)))


@rule("platform_index")
def _platform_index(at: Site) -> Variable:
    return constant(index_of_platform(at["platforms"]), at.dtype)


@rule("scan", keys=True)
def _scan(at: Site, *operands: Variable) -> list[Variable]:
    consts, carries = at["num_consts"], at["num_carry"]
    fixed, init = operands[:consts], operands[consts : consts + carries]
    rows = operands[consts + carries :]

    def body(carry: Sequence[Variable], xs: Sequence[Variable]) -> Any:
        found = at.evaluator.run(at["jaxpr"], [*fixed, *carry, *xs])
        return tuple(found[:carries]), tuple(found[carries:])

    last, ys = scan(body, tuple(init), tuple(rows), at["length"], at["reverse"])
    return [*last, *ys]


@rule("while", keys=True)
def _while(at: Site, *operands: Variable) -> Sequence[Variable]:
    tests, bodies = at["cond_nconsts"], at["body_nconsts"]
    fixed, others = operands[:tests], operands[tests : tests + bodies]

    def test(state: Sequence[Variable]) -> Variable:
        (found,) = at.evaluator.run(at["cond_jaxpr"], [*fixed, *state])
        return found

    def condition(state: Sequence[Variable]) -> Variable:
        found = test(state)
        return call_named("any", found) if found.ndim else found

    def body(state: Sequence[Variable]) -> tuple[Variable, ...]:
        """The next state; in a batch of loops, of those that go on."""
        found = at.evaluator.run(at["body_jaxpr"], [*others, *state])
        goes = test(state) if at["cond_jaxpr"].out_avals[0].shape else None
        if goes is None:
            return tuple(found)
        known = range(goes.ndim)
        return tuple(
            emit(logic.select, spread(goes, new.shape, known), new, old)
            for new, old in zip(found, state, strict=True)
        )

    found: Sequence[Variable] = while_loop(condition, body, tuple(operands[tests + bodies :]))
    return found


@rule("debug_callback", "debug_print", "shape_assertion", keys=True)
def _without_result(at: Site, *operands: Variable) -> tuple[Variable, ...]:
    return ()


@rule("dim_as_value", "dimension_size")
def _dim_as_value(at: Site, *operands: Variable) -> Variable:
    if operands:
        return constant(operands[0].shape[at["dimension"]], at.dtype)
    return constant(at["dim"], at.dtype)
