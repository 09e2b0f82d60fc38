"""Calls of custom functions: executed on tensors, recorded in programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial, update_wrapper
from typing import Any

from primgraph.custom.declared import Declared
from primgraph.custom.static import is_operand, split_arguments
from primgraph.custom.tensors import TensorCall
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.tensor import Tensor, tensor
from primgraph.ir.primitive import innermost
from primgraph.operators.call import handle_operator
from primgraph.operators.variable import Variable


def call_custom(
    rule: Declared, args: Sequence[Any], kwargs: dict[str, Any], fixed: Iterable[int] = ()
) -> Any:
    """Call a custom function; arguments at the `fixed` positions are not arrays."""
    static, operands = split_arguments(rule.definition.name, args, kwargs, fixed)
    if not operands:
        return rule.definition.begin(args, kwargs)[0]
    in_program = adopting.get() is not None or any(isinstance(a, Variable) for a in operands)
    if in_program or (innermost.get() is not None and not _any_tensor(operands)):
        record = update_wrapper(partial(_record_call, rule, static), rule.definition.begin)
        return handle_operator(record, users=True)(*operands)
    given = [tensor(a) if is_operand(a) and not isinstance(a, Tensor) else a for a in args]
    return TensorCall(rule, static, given, kwargs).run()


def _record_call(rule: Declared, static: Any, *operands: Any) -> Any:
    return rule.record(static, operands)


def _any_tensor(operands: Sequence[Any]) -> bool:
    return any(isinstance(a, Tensor) for a in operands)
