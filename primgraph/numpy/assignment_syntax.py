"""Rewriting of assignments in place, in the code of functions that are copied for tracing.

`r[i] = v` becomes `r = set_item(v, r, (i,), r)`, and `r += v` becomes `r = update("iadd", r, v)`:
a NumPy array can be replaced by an array of the program when a traced value is written to it; see
`assignments`. Assignments to globals go to the globals of the original function.

The source is used only if it compiles to the very code of the function: a file that has changed,
or code without a source, such as that of `exec`, is left as it is.
"""

from __future__ import annotations
import __future__

import ast
import dis
import linecache
import operator
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import lru_cache, reduce
from types import CodeType
from typing import Any

from primgraph.base.user_lines import lines_in
from primgraph.ir.frontend.syntax import parse

__all__ = ["GLOBALS", "PREFIX", "assigns_to_globals", "codes", "rewritten"]

# Names in rewritten code: of the helpers of `assignments`, of the original globals, and of values
# that are assigned in parts.
PREFIX = "_primgraph_"
GLOBALS = PREFIX + "globals"

_KEPT = 4096
# Flags of code that comes of `from __future__ import`, which code that runs `compile` may pass on.
_FUTURE = reduce(
    operator.or_, [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.DictComp, ast.GeneratorExp, ast.ListComp, ast.SetComp)
_SCOPES = (*_DEFINITIONS, ast.Lambda, ast.ClassDef, *_COMPREHENSIONS)
_NAMED = (*_DEFINITIONS, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
_OPERATORS = {
    ast.Add: "iadd", ast.BitAnd: "iand", ast.BitOr: "ior", ast.BitXor: "ixor",
    ast.Div: "itruediv", ast.FloorDiv: "ifloordiv", ast.LShift: "ilshift", ast.MatMult: "imatmul",
    ast.Mod: "imod", ast.Mult: "imul", ast.Pow: "ipow", ast.RShift: "irshift", ast.Sub: "isub",
}  # fmt: skip


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object, and those of functions and classes within it."""
    waiting = [code]
    while waiting:
        inner = waiting.pop()
        yield inner
        waiting += [c for c in inner.co_consts if isinstance(c, CodeType)]


@lru_cache(_KEPT)
def assigns_to_globals(code: CodeType) -> bool:
    """Return whether a function of that code assigns to globals: a copy would assign to its own."""
    return any(
        step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
        for inner in codes(code)
        for step in dis.get_instructions(inner)
    )


def rewritten(code: CodeType) -> CodeType | None:
    """Return the code with assignments rewritten; None if its source is not known for certain."""
    # Equal code may stand in several files.
    return _rewritten(code, code.co_filename)


@lru_cache(_KEPT)
def _rewritten(code: CodeType, file: str) -> CodeType | None:
    linecache.checkcache(file)
    try:
        module = _module("".join(lines_in(file)))
    except (SyntaxError, ValueError):
        return None
    tree = next((t for t in _trees(module, code) if _compiled(t, code) == code), None)
    node = next((n for n in ast.walk(tree) if _is_definition(n, code)), None) if tree else None
    if tree is None or not isinstance(node, _DEFINITIONS):
        return None
    _Rewriting(node).run()
    found = _compiled(ast.fix_missing_locations(tree), code)
    return found if found is not None and found.co_freevars == code.co_freevars else None


def _trees(module: ast.Module, code: CodeType) -> Iterator[ast.Module]:
    """Yield the parts of a module that the code of one function may have been compiled with.

    Python compiles calls of names that the module imports in another way. A part of a file that is
    run alone, such as a cell, may lack the imports.
    """
    places = [n for n in module.body if _covers(n, code.co_firstlineno)]
    others = [n for n in module.body if not isinstance(n, (*_DEFINITIONS, ast.ClassDef))]
    for beside in (others, []):
        listed = [n for n in module.body if n in places or n in beside]
        yield ast.Module([deepcopy(n) if n in places else n for n in listed], [])


@lru_cache(8)
def _module(text: str) -> ast.Module:
    return parse(text)


def _covers(node: ast.stmt, line: int) -> bool:
    return _first_line(node) <= line <= (node.end_lineno or node.lineno)


def _first_line(node: ast.stmt) -> int:
    """Return the line at which the code of a definition begins: that of its decorators."""
    listed: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in listed)])


def _is_definition(node: ast.AST, code: CodeType) -> bool:
    if not isinstance(node, _DEFINITIONS) or node.name != code.co_name:
        return False
    return _first_line(node) == code.co_firstlineno


def _compiled(tree: ast.Module, code: CodeType) -> CodeType | None:
    """Return the code of the function of `code` in a module that is compiled."""
    flags = code.co_flags & _FUTURE
    whole = compile(tree, code.co_filename, "exec", flags, dont_inherit=True)
    name = code.co_name, code.co_firstlineno
    return next((c for c in codes(whole) if (c.co_name, c.co_firstlineno) == name), None)


class _Rewriting:
    """Rewriting of one function, and of the functions within it.

    `own` are names that hold an array of the function itself: its locals, and those of functions
    around it that are rewritten too.
    """

    def __init__(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, around: frozenset[str] = frozenset()
    ) -> None:
        self._node = node
        declared = [n for n in _inside(node) if isinstance(n, ast.Global | ast.Nonlocal)]
        self._globals = {x for n in declared if isinstance(n, ast.Global) for x in n.names}
        outer = {x for n in declared if isinstance(n, ast.Nonlocal) for x in n.names}
        self._locals = _bound(node) - self._globals - outer
        self._around = around - self._locals - self._globals
        self._own = self._locals | self._around
        self._borrowed: set[str] = set()
        self._declared = outer
        self._count = 0

    def run(self) -> None:
        """Rewrite the body in place."""
        for node in [*_inside(self._node)]:
            if isinstance(node, ast.If) and _is_mask_guard(node):
                name = ast.Name(PREFIX + "may_choose", ast.Load())
                node.test = ast.copy_location(ast.Call(name, [node.test], []), node.test)
        for node in [*_inside(self._node)]:
            for field in ("body", "orelse", "finalbody"):
                listed = getattr(node, field, None)
                if isinstance(listed, list) and not isinstance(node, _SCOPES):
                    setattr(node, field, self._block(listed))
        self._node.body = self._block(self._node.body)
        names = sorted(self._borrowed - self._declared)
        if names:
            place = ast.get_docstring(self._node, clean=False) is not None
            first = self._node.body[0]
            self._node.body.insert(int(place), ast.copy_location(ast.Nonlocal(names), first))

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            if isinstance(statement, _DEFINITIONS):
                _Rewriting(statement, frozenset(self._own)).run()
            if self._globals:
                statement = _Globals(self._globals).visit(statement)
            if isinstance(statement, ast.Assign):
                found += self._assignment(statement)
            elif isinstance(statement, ast.AugAssign):
                found.append(self._update(statement))
            else:
                found.append(statement)
        return found

    def _assignment(self, statement: ast.Assign) -> list[ast.stmt]:
        """Return the statements for an assignment, which may have several targets or parts."""
        parts = [n for t in statement.targets for n in _leaves(t)]
        if not any(_is_element(n) for n in parts):
            return [statement]
        if len(parts) == 1 and parts == statement.targets:
            return [self._set(parts[0], statement.value)]
        found: list[ast.stmt] = []
        value = statement.value
        if len(statement.targets) > 1:
            name = self._temporary()
            found.append(_assign(ast.Name(name, ast.Store()), value))
            value = ast.Name(name, ast.Load())
        for target in statement.targets:
            leaves = [*_leaves(target)]
            if leaves == [target]:
                found.append(self._set(target, value))
                continue
            names = {id(leaf): self._temporary() for leaf in leaves}
            found.append(_assign(_with_names(target, names), value))
            found += [self._set(n, ast.Name(names[id(n)], ast.Load())) for n in leaves]
            gone: list[ast.expr] = [ast.Name(name, ast.Del()) for name in names.values()]
            found.append(ast.Delete(gone))
        if len(statement.targets) > 1:
            found.append(ast.Delete([ast.Name(name, ast.Del())]))
        return [ast.copy_location(s, statement) for s in found]

    def _set(self, target: ast.expr, value: ast.expr) -> ast.stmt:
        """Return the assignment of a value to a target without parts."""
        if not _is_element(target):
            return _assign(target, value)
        array, path = _container(target)
        if self._is_own(array):
            given = [value, _loaded(array), path, _loaded(array)]
            return self._replaced("set_item", target, array, given)
        return _statement(_call("set_held_item", target, value, array, path), target)

    def _update(self, statement: ast.AugAssign) -> ast.stmt:
        target, name = statement.target, ast.Constant(_OPERATORS[type(statement.op)])
        if _is_element(target):
            array, path = _container(target)
            # The part is read before the value is computed, as Python does.
            if self._is_own(array):
                part = _call("part_of", target, _loaded(array), path)
                given = [name, _loaded(array), part, statement.value, _loaded(array)]
                return self._replaced("update_item", statement, array, given)
            part = _call("held_part", target, array, path)
            call = _call("update_held_item", statement, name, part, statement.value)
            return _statement(call, statement)
        if self._is_own(target):
            given = [name, _loaded(target), statement.value]
            return self._replaced("update", statement, target, given)
        return statement

    def _is_own(self, array: ast.expr) -> bool:
        return isinstance(array, ast.Name) and array.id in self._own

    def _replaced(
        self, name: str, place: ast.AST, array: ast.expr, given: Sequence[ast.expr]
    ) -> ast.stmt:
        """Return the call of a helper whose result replaces an array of the function."""
        assert isinstance(array, ast.Name)
        if array.id not in self._locals:
            self._borrowed.add(array.id)
        found = _assign(ast.Name(array.id, ast.Store()), _call(name, place, *given))
        return _statement(found, place)

    def _temporary(self) -> str:
        self._count += 1
        return f"{PREFIX}{self._count}"


class _Globals(ast.NodeTransformer):
    """Assign to the globals of the original function, where Python would to those of a copy."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._names or not _is_stored(node):
            return node
        found = ast.Subscript(ast.Name(GLOBALS, ast.Load()), ast.Constant(node.id), node.ctx)
        return ast.copy_location(found, node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        node.value = self.visit(node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        self.generic_visit(node)
        node.simple = int(isinstance(node.target, ast.Name))
        return node

    def visit(self, node: ast.AST) -> Any:
        """Leave scopes within the function as they are."""
        return node if isinstance(node, _SCOPES) else super().visit(node)


def _is_mask_guard(node: ast.If) -> bool:
    """Return whether a branch assigns elements by a mask, and its test is whether there are any.

    Without the test, the branch would do the same: `if mask.any(): y[mask] = f(x[mask])`.
    """
    mask = _tested_mask(node.test)
    if mask is None or node.orelse:
        return False
    targets = [t for s in node.body for t in _assigned(s)]
    return bool(targets) and all(
        isinstance(t, ast.Subscript) and ast.dump(t.slice) == ast.dump(mask) for t in targets
    )


def _assigned(statement: ast.stmt) -> list[ast.expr]:
    """Return what an assignment assigns to; for other statements one that is no element."""
    if isinstance(statement, ast.Assign):
        return statement.targets
    if isinstance(statement, ast.AugAssign):
        return [statement.target]
    return [ast.Constant(None)]


def _tested_mask(test: ast.expr) -> ast.expr | None:
    """Return `m` for `m.any()`, `np.any(m)` and `x[m].size`, also if that is compared with 0."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Gt):
        zero = test.comparators[0]
        is_positive = isinstance(zero, ast.Constant) and type(zero.value) is int and zero.value == 0
        return _tested_mask(test.left) if is_positive else None
    found: ast.expr | None = None
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and not test.keywords:
        if test.func.attr == "any" and len(test.args) < 2:
            found = test.args[0] if test.args else test.func.value
    elif isinstance(test, ast.Attribute) and test.attr == "size":
        found = test.value.slice if isinstance(test.value, ast.Subscript) else None
    return found if isinstance(found, ast.Name) else None


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function that belong to its own scope."""
    waiting = [*ast.iter_child_nodes(node)]
    while waiting:
        inner = waiting.pop()
        yield inner
        if not isinstance(inner, _SCOPES):
            waiting += ast.iter_child_nodes(inner)


def _bound(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the names that a function binds: its arguments, and whatever its statements name."""
    every = node.args
    given = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
    found = {a.arg for a in given if a is not None}
    for inner in _inside(node):
        if isinstance(inner, ast.Name) and _is_stored(inner):
            found.add(inner.id)
        elif isinstance(inner, ast.alias):
            found.add((inner.asname or inner.name).partition(".")[0])
        elif isinstance(inner, _NAMED):
            found |= {inner.name} if inner.name else set()
        elif isinstance(inner, ast.MatchMapping) and inner.rest:
            found.add(inner.rest)
        elif isinstance(inner, _COMPREHENSIONS):
            # Names of `:=` in comprehensions are those of the function.
            named = [n.target for n in ast.walk(inner) if isinstance(n, ast.NamedExpr)]
            found |= {n.id for n in named}
    return found


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _is_element(target: ast.AST) -> bool:
    """Return whether a target is an element of an array, not one of the original globals."""
    if not isinstance(target, ast.Subscript):
        return False
    return not (isinstance(target.value, ast.Name) and target.value.id == GLOBALS)


def _leaves(target: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a target, in order."""
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _leaves(part)
    elif isinstance(target, ast.Starred):
        yield from _leaves(target.value)
    else:
        yield target


def _with_names(target: ast.expr, names: dict[int, str]) -> ast.expr:
    """Return a target with other names in the place of its parts."""
    if isinstance(target, ast.Tuple | ast.List):
        return type(target)([_with_names(t, names) for t in target.elts], ast.Store())
    if isinstance(target, ast.Starred):
        return ast.Starred(_with_names(target.value, names), ast.Store())
    return ast.Name(names[id(target)], ast.Store())


def _container(target: ast.AST) -> tuple[ast.expr, ast.expr]:
    """Return the array of `a[i][j]` and the tuple of its indices, from the outside in."""
    path: list[ast.expr] = []
    node = target
    while isinstance(node, ast.Subscript):
        path.insert(0, _index(node.slice))
        node = node.value
    assert isinstance(node, ast.expr)
    return node, ast.Tuple(path, ast.Load())


def _index(node: ast.expr) -> ast.expr:
    """Return an index as an expression: slices are calls."""
    if isinstance(node, ast.Slice):
        bounds = [b or ast.Constant(None) for b in (node.lower, node.upper, node.step)]
        return ast.copy_location(_call("slice", node, *bounds), node)
    if isinstance(node, ast.Tuple):
        return ast.copy_location(ast.Tuple([_index(n) for n in node.elts], ast.Load()), node)
    return node


def _loaded(node: ast.expr) -> ast.expr:
    return (
        ast.copy_location(ast.Name(node.id, ast.Load()), node)
        if isinstance(node, ast.Name)
        else node
    )


def _call(name: str, place: ast.AST, *arguments: ast.expr) -> ast.Call:
    found = ast.Call(ast.Name(PREFIX + name, ast.Load()), [*arguments], [])
    return ast.fix_missing_locations(ast.copy_location(found, place))


def _statement(found: ast.expr | ast.stmt, place: ast.AST) -> ast.stmt:
    """Return an expression or a statement as the statement at a place."""
    statement = found if isinstance(found, ast.stmt) else ast.Expr(found)
    return ast.fix_missing_locations(ast.copy_location(statement, place))


def _assign(target: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], value), value))
