"""Hints for code that uses a variable as a number, in terms of the user's expression."""

from __future__ import annotations

import ast
from collections.abc import Collection
from functools import reduce
from types import ModuleType

from primgraph.base.array_functions import (
    ARGUMENTS,
    REMARKS,
    call_instead,
    method_instead,
    public_name,
    replacement_hint,
)
from primgraph.base.user_lines import user_frame
from primgraph.ir.frontend.user_expression import expressions, text_of

_CHOOSE = "choose between arrays with pg.where(condition, x, y)"
_READ = "call the function of the same name in primgraph, or run the program first"
_DEVICES = ("cpu", "cuda", "gpu", "mps", "tpu", "xpu")
_CONVERSIONS = ("float", "int", "complex", "bool", "str")


def hint_value_use(verb: str, is_traced: bool) -> str:
    """Return the hint to use the value of a variable after the run: to "convert" or "format" it."""
    if is_traced:
        return f"return the variable from the traced function, and {verb} what its call returns"
    return f"run the program and {verb} what it returns"


def hint_truth_value() -> str:
    """Return the hint for the truth value of a variable."""
    nodes = expressions()
    for node in nodes:
        rewritten = _rewrite_condition(node)
        if rewritten is not None:
            return f"write {rewritten}; {_CHOOSE}"
        if isinstance(node, ast.If) and _ends_a_loop(node, nodes):
            return (
                "a Python loop is unrolled, so it cannot end by a variable: write "
                "pg.while_loop(condition, body, state)"
            )
        if isinstance(node, ast.If):
            return f"{_CHOOSE}, what is computed with pg.cond({text_of(node.test)}, f, g, x)"
        if isinstance(node, ast.IfExp):
            parts = ", ".join(text_of(n) for n in (node.test, node.body, node.orelse))
            return f"write pg.where({parts})"
        if isinstance(node, ast.While):
            return (
                "a Python loop is unrolled while the program is built, so its condition cannot "
                "depend on a variable: write pg.while_loop(condition, body, state)"
            )
        if isinstance(node, ast.Assert):
            return "check what a run returns, not the variable; " + _CHOOSE
        if isinstance(node, ast.Call | ast.stmt):
            return _builtin_call_hint(node) or _CHOOSE
    return _CHOOSE


def _ends_a_loop(node: ast.If, around: list[ast.AST]) -> bool:
    """Return whether a branch of a statement within a loop leaves that loop."""
    is_within = any(isinstance(n, ast.For | ast.While) for n in around)
    leaves = (n for s in (*node.body, *node.orelse) for n in ast.walk(s))
    return is_within and any(isinstance(n, ast.Break | ast.Return) for n in leaves)


def _rewrite_condition(node: ast.AST) -> str | None:
    """Rewrite an expression without truth values of its parts; None for other expressions."""
    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            return _join_conditions("&", "pg.logical_and", parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return _join_conditions("|", "pg.logical_or", parts)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return f"pg.logical_not({text_of(part)})"
        case ast.Compare(left=item, ops=[ast.In()], comparators=[listed]):
            return f"any({text_of(item)} is item for item in {text_of(listed)})"
        case ast.Compare(left=item, ops=[ast.NotIn()], comparators=[listed]):
            return f"all({text_of(item)} is not item for item in {text_of(listed)})"
        case ast.Compare(left=first, ops=ops, comparators=rest) if len(ops) > 1:
            pairs = zip([first, *rest], ops, rest, strict=False)
            return _join_conditions("&", "", [ast.Compare(a, [op], [b]) for a, op, b in pairs])
    return None


def _join_conditions(sign: str, function: str, parts: list[ast.expr]) -> str:
    """Join conditions by an operator, or by a function of two if they may not be boolean."""
    texts = [text_of(part) for part in parts]
    if all(isinstance(part, ast.Compare | ast.BoolOp) for part in parts):
        return f" {sign} ".join(f"({text})" for text in texts)
    return reduce(lambda left, right: f"{function}({left}, {right})", texts)


def _builtin_call_hint(node: ast.AST) -> str:
    """Return the hint for a builtin function that compares its arguments."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return ""
    name, given = node.func.id, [text_of(a) for a in node.args]
    if name == "sorted":
        return REMARKS["sorted"]
    if name not in ("max", "min", "any", "all"):
        return ""
    if len(given) == 1 and not isinstance(node.args[0], ast.List | ast.Tuple | ast.GeneratorExp):
        return f"write pg.{name}({given[0]})"
    if name in ("any", "all"):
        return f"write pg.{name}(condition)"
    if len(given) == 2 and not node.keywords:
        return f"write pg.{name}imum({', '.join(given)})"
    listed = f"[{', '.join(given)}]" if len(given) > 1 else given[0]
    return f"write pg.{name}(pg.stack({listed}), axis=0)"


def hint_number(arrays: Collection[str], otherwise: str) -> str:
    """Return the hint for the conversion of an array to a number, or `otherwise`.

    `arrays` are the functions of primgraph that take an array first.
    """
    nodes = expressions()
    for node, outer in zip(nodes, [*nodes[1:], None], strict=False):
        match node, outer:
            case ast.Call(func=ast.Name(id="range"), args=given), _:
                bounds = [text_of(a) for a in given[:2]]
                first = "0" if len(bounds) == 1 else bounds[0]
                return f"write pg.fori_loop({first}, {bounds[-1]}, body, state)"
            case ast.Call(), _:
                name = _names(node)[-1]
                advice = "" if name in _CONVERSIONS else _function(node, arrays, arrays)
                return advice or otherwise
            case ast.Subscript(), ast.Assign(targets=[target], value=value) if target is node:
                return f"write {_rewrite_set(node, text_of(value))}"
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()), _:
                return otherwise.replace("convert", "format")
            case ast.stmt(), _:
                break
    return otherwise


def _rewrite_set(target: ast.Subscript, value: str) -> str:
    """Rewrite an assignment to elements as an assignment of a new array."""
    array, index = text_of(target.value), text_of(target.slice)
    if ":" in index:
        index = f"np.s_{ast.unparse(target).removeprefix(ast.unparse(target.value))}"
    return f"{array} = pg.set_slice({array}, {index}, {value})"


# What methods of JAX's `x.at[i]` make of the elements there and of a value.
_AT = {
    "set": "{v}",
    "add": "{e} + {v}",
    "subtract": "{e} - {v}",
    "multiply": "{e} * {v}",
    "mul": "{e} * {v}",
    "divide": "{e} / {v}",
    "power": "{e} ** {v}",
    "min": "pg.minimum({e}, {v})",
    "max": "pg.maximum({e}, {v})",
}


def _rewrite_at_update() -> str:
    """The assignment that `x.at[i].add(y)` and its kind stand for."""
    for node in expressions():
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Subscript(value=ast.Attribute(value=array, attr="at")) as place,
                    attr=method,
                ),
                args=[value],
            ) if method in _AT:
                target = ast.Subscript(array, place.slice, ast.Load())
                simple = isinstance(value, ast.Constant | ast.Name | ast.Call | ast.Subscript)
                told = text_of(value) if simple or method == "set" else f"({text_of(value)})"
                made = _AT[method].format(e=text_of(target), v=told)
                more = "; pg.scatter_add adds where indices repeat" if method == "add" else ""
                return f"write {_rewrite_set(target, made).partition(' = ')[2]}{more}"
            case ast.Attribute(attr="get", value=ast.Subscript(value=ast.Attribute(value=array))):
                return f"write {text_of(array)}[index]"
    return ""


def hint_method(name: str, is_traced: bool) -> str:
    """Return the hint for a method `name` that arrays lack, in terms of the user's line."""
    if name == "at" and (found := _rewrite_at_update()):
        return found
    array, call = "x", None
    for node in expressions():
        if isinstance(node, ast.Attribute) and node.attr == name:
            array = text_of(node.value)
        elif isinstance(node, ast.Call) and _names(node)[-1] == name:
            call = node
            break
    if name == "to" and call is not None and _is_of_device(call):
        return f"{REMARKS['device']}, and write {array}"
    if call is not None and (found := _own_call(name, [array, *map(text_of, call.args)], call)):
        return f"write {found}"
    return method_instead(name, array, is_traced)


def hint_function(name: str) -> str:
    """Return the hint for a function `name` that primgraph lacks, in terms of the user's line."""
    for node in expressions():
        if isinstance(node, ast.Call) and _names(node)[-1] == name:
            found = _own_call(name, [*map(text_of, node.args)], node)
            return f"write {found}" if found else replacement_hint(name)
    return replacement_hint(name)


def _own_call(name: str, arguments: list[str], call: ast.Call) -> str:
    """Return the call with the same arguments that replaces `call`, if one is known."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(not k.arg for k in call.keywords):
        return ""
    named = [f"{ARGUMENTS.get(k.arg or '', k.arg)}={text_of(k.value)}" for k in call.keywords]
    return call_instead(name, arguments, named)


def _is_of_device(call: ast.Call) -> bool:
    """Return whether a call of `to` names a device, and not a dtype."""
    texts = [a.value for a in call.args if isinstance(a, ast.Constant)]
    devices = [t for t in texts if isinstance(t, str) and t.partition(":")[0] in _DEVICES]
    return bool(devices) or any(k.arg == "device" for k in call.keywords)


def hint_assignment(*, masked: bool) -> str:
    """Return the hint for an assignment to elements of a variable, by a mask or other indices."""
    for node in expressions():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target, value = node.targets[0], text_of(node.value)
            array, index = text_of(target.value), text_of(target.slice)
            found = _rewrite_masked(array, index, value) if masked else _rewrite_set(target, value)
            return f"write {found}"
        if isinstance(node, ast.stmt):
            break
    kind = _rewrite_masked("x", "mask", "value") if masked else "y = pg.set_slice(x, index, value)"
    return f"{kind} is a new variable that has them"


def array_written() -> str:
    """Return the text of the array that the user's statement assigns to, or "the array"."""
    for node in expressions():
        match node:
            case ast.Subscript() | ast.Assign(targets=[ast.Subscript(), *_]) | ast.AugAssign():
                target: ast.AST = node
                if isinstance(node, ast.Assign):
                    target = node.targets[0]
                elif isinstance(node, ast.AugAssign):
                    target = node.target
                while isinstance(target, ast.Subscript):
                    target = target.value
                return text_of(target)
            case ast.stmt():
                break
    return "the array"


def _rewrite_masked(array: str, mask: str, value: str) -> str:
    return f"{array} = pg.where({mask}, {value}, {array})"


def hint_reading(known: Collection[str], arrays: Collection[str]) -> str:
    """Return the hint for a variable that NumPy or other code reads as an array.

    `known` are functions of primgraph, `arrays` those of them that take an array first.
    """
    nodes = expressions()
    for node, outer in zip(nodes, [*nodes[1:], None], strict=False):
        match node, outer:
            case ast.Subscript(), ast.Assign(targets=[target], value=value) if target is node:
                return f"write {_rewrite_set(node, text_of(value))}"
        if isinstance(node, ast.Call):
            advice = _function(node, known, arrays)
            called = ".".join(_names(node))
            theirs = called.startswith(("np.", "numpy."))
            instead = "write it with functions of primgraph, or " if theirs else ""
            return advice or f"{instead}give {called} what a run of the program returns"
        if isinstance(node, ast.Subscript):
            return f"write pg.array({text_of(node.value)})[{text_of(node.slice)}]"
        if isinstance(node, ast.stmt):
            break
    return _READ


def _function(node: ast.Call, known: Collection[str], arrays: Collection[str]) -> str:
    """Return the hint to call primgraph's function of equal name or meaning; empty for others."""
    names = _names(node)
    special = replacement_hint(".".join(names[-2:]))
    if special:
        return special
    name = names[-1] if names[-1] in known else public_name(names[-1])
    if name not in known:
        return replacement_hint(names[-1])
    given = [ast.unparse(a) for a in (*node.args, *node.keywords)]
    if name in arrays and node.args and isinstance(node.args[0], ast.List | ast.Tuple):
        given[0] = f"pg.array({given[0]})"
    if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
        given.insert(0, ast.unparse(node.func.value))
    return f"write pg.{name}({', '.join(given)})"


def _names(node: ast.Call) -> list[str]:
    """Return the parts of the dotted name of the callee."""
    names: list[str] = []
    inner: ast.AST = node.func
    while isinstance(inner, ast.Attribute):
        names.insert(0, inner.attr)
        inner = inner.value
    return [inner.id, *names] if isinstance(inner, ast.Name) else names or ["it"]


def _is_module(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    frame = user_frame()
    return isinstance({**frame.f_globals, **frame.f_locals}.get(node.id), ModuleType)
