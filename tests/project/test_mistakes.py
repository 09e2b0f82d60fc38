"""Mistakes, as a sceptical user makes them: the class, the line that is named, the words that help.

Each mistake is source text in a file of its own, so that the line is checked exactly: that of the
mark `# <-`, or else the last one.
"""

from __future__ import annotations

import copy
import inspect
import linecache
import math
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph.base import array_functions
from primgraph.compat import absent
from primgraph.errors import PrimgraphError
from primgraph.ir.facts import ops as registry

PREAMBLE = """
from pathlib import Path
import numpy as np
import primgraph as pg
program = pg.Program("model").__enter__()
other = pg.Program("other")
with other:
    alien = pg.data("alien", (3, 4))
x = pg.data("x", (3, 4))
v = pg.data("v", (4,))
i = pg.data("i", (2,), "int64")
b = pg.data("b", (3, 4), "bool")
w = pg.create_parameter((4,), name="w")
loss = pg.sum(x * w)
feed = {"x": np.ones((3, 4)), "v": np.ones(4), "i": np.zeros(2, np.int64)}
run = pg.Executor().run
f = lambda a: pg.sum(a * a)
graph = pg.trace(f, pg.spec(4))
kernel = pg.compile(graph)
ones = np.ones(4)
"""

OPERATORS = [
    ("x @ np.ones((5, 2))", "ShapeError", "matmul cannot multiply f64[3,4] by f64[5,2]: inner"),
    ("x + np.ones(3)", "ShapeError", "add cannot broadcast f64[3,4] with f64[3]: sizes [3, 4]"),
    ("pg.reshape(x, (5, -1))", "ShapeError", "cannot reshape 12 elements"),
    ("x.reshape(3, 'four')", "ArgumentError", "a shape is made of integers"),
    ("pg.reshape(x, 'abc')", "ArgumentError", "a shape is made of integers, not 'abc'"),
    ("pg.zeros('abc')", "ArgumentError", "a shape is an integer or a sequence of integers"),
    ("pg.zeros({})", "ArgumentError", "a shape is an integer or a sequence of integers"),
    ("pg.zeros((2, True))", "ArgumentError", "sequence of integers"),
    ("pg.zeros((3, None))", "ArgumentError", "a symbolic size has a name"),
    ("pg.zeros((-1, 3))", "ShapeError", "has a negative extent"),
    ("pg.zeros(10**30)", "ShapeError", "more elements than an array can have"),
    ("pg.sum(x, axis=2)", "AxisError", "sum of f64[3,4]: axis 2 is out of bounds"),
    ("pg.sum(x, axis=0.5)", "ArgumentError", "sum of f64[3,4]: an axis is an integer, not 0.5"),
    ("pg.sum(x, axis='rows')", "ArgumentError", "an axis is an integer, not 'rows'"),
    ("pg.sum(x, True)", "ArgumentError", "an axis is an integer, not True"),
    ("pg.sum(x, axis=(0, -2))", "ShapeError", "an axis is named twice"),
    ("pg.sum(x, axs=0)", "ArgumentError", "no argument 'axs'", "did you mean 'axis'? it takes (x"),
    ("pg.sum(x, 0, False, None, 1)", "ArgumentError", "sum: too many positional arguments"),
    ("pg.sum()", "ArgumentError", "sum: missing a required argument: 'x'", "it takes (x, axis="),
    ("pg.softmax(x, axs=0)", "ArgumentError", "softmax: there is no argument 'axs'", "'axis'"),
    ("x.mean(kepdims=True)", "ArgumentError", "Variable.mean: there is no", "mean 'keepdims'?"),
    ("x.shpe", "UnknownNameError", "a variable has nothing named 'shpe'", "did you mean 'shape'"),
    ("pg.tahn(x)", "UnknownNameError", "primgraph has nothing named 'tahn'", "'tanh'"),
    ("pg.Sigmoid(x)", "UnknownNameError", "nothing named 'Sigmoid'", "did you mean 'sigmoid'?"),
    ("pg.nn.Liner(3, 4)", "UnknownNameError", "primgraph.nn has nothing", "did you mean 'Linear'"),
    ("pg.optimizer.Adm()", "UnknownNameError", "primgraph.optimizer", "did you mean 'Adam'"),
    ("pg.initializers.Normel()", "UnknownNameError", "initializers", "did you mean 'Normal'"),
    ("import primgraph.compat.paddle as paddle\npaddle.tahn(x)", "UnknownNameError", "'tanh'"),
    ("pg.transforms.linearise(graph)", "UnknownNameError", "transforms", "mean 'linearize'"),
    ("pg.transpose(x, (0, 0))", "ShapeError", "(0, 0) is not a permutation"),
    ("pg.concatenate(x[0, 0])", "ArgumentError", "concatenate takes a list of at least one array"),
    ("pg.concatenate('abc')", "ArgumentError", "takes a list of at least one array, not 'abc'"),
    ("pg.concatenate([x, v])", "ShapeError", "cannot join f64[3,4] and f64[4]"),
    ("pg.stack([])", "ArgumentError", "stack takes a list of at least one array, not []"),
    ("pg.add_n(7)", "ArgumentError", "add_n takes a list of at least one array, not 7"),
    ("pg.split(x, 5)", "ShapeError", "axis 0 does not divide into 5 equal parts"),
    ("pg.split(x, 'ab')", "ArgumentError", "split takes integers", "not 'ab'"),
    ("pg.tile(x, b'a')", "ArgumentError", "tile takes integers that are fixed"),
    ("pg.roll(x, 1.5)", "ArgumentError", "roll takes integers that are fixed", "not 1.5"),
    ("pg.diagonal(x, 0.5)", "ArgumentError", "diagonal takes integers", "not 0.5"),
    ("pg.tril(x, None)", "ArgumentError", "tril takes integers", "not None"),
    ("pg.eye(3, k=1.5)", "ArgumentError", "eye takes integers", "not 1.5"),
    ("pg.arange(None)", "ArgumentError", "arange takes numbers, not None"),
    ("pg.arange(float('nan'))", "ArgumentError", "has no number of elements"),
    ("pg.linspace(0, 1, 10**30)", "ArgumentError", "makes a whole number of elements"),
    ("pg.one_hot(i, [3])", "ArgumentError", "sequence of integers"),
    ("pg.einsum('ij,jk', x)", "ArgumentError", "for 2 operands, 1 are given"),
    ("pg.pad(x, 1, 'mirror')", "ArgumentError", "pad: mode 'mirror' is not supported", "'reflect'"),
    ("pg.strided_slice(x, None, [0], [1])", "ArgumentError", "takes sequences of integers"),
    ("x[3]", "BoundsError", "index 3 is out of bounds for axis 0 of f64[3,4]"),
    ("x[0, 0, 0]", "BoundsError", "3 indices are too many for f64[3,4]"),
    ("x['a']", "ArgumentError", "cannot be indexed by str 'a'", "an index is an integer, slice"),
    ("x[[1, [2, 3]]]", "ArgumentError", "cannot make an array of list"),
    ("x[b].shape", "UnknownSizeError", "is not known before the program runs", "np.sum(mask)"),
    ("x[b] + x", "ShapeError", "an array of shape (3, 4)", "x[mask] and y[mask]"),
    ("x[b] + x[x > 1.0]", "ShapeError", "that two masks choose", "name the mask once"),
    ("x[b][0]", "UnknownSizeError", "has no place of its own", "pg.extract"),
    ("pg.sort(x[b])", "ArgumentError", "sort does not take elements", "pg.where(mask, x, 0)"),
    ("pg.sum(x[b], axis=1)", "BoundsError", "lie along axis 0, not 1"),
    ("pg.set_slice(x, x > 1.0, x[b])", "ShapeError", "by that mask only", "y[m] = f(x[m])"),
    ("x[b[0]]", "BoundsError", "a mask bool[4] does not fit f64[3,4]", "the shape of the array"),
    ("x[v]", "DTypeError", "by the variable f64[4]", "convert it with pg.astype"),
    ("pg.take(x, [0, 12])", "BoundsError", "index 12 is out of bounds for axis 0 of f64[12]"),
    ("x + 'abc'", "ArgumentError", "cannot make an array of str 'abc'"),
    ("x + None", "ArgumentError", "cannot make an array of NoneType None"),
    ("x * np.array([object()])", "ArgumentError", "cannot make an array of ndarray"),
    ("pg.cummax(x * 1j)", "UnsupportedDTypeError", "complex numbers have no order", "pg.abs(z)"),
    ("pg.full_like(x, 1j)", "DTypeError", "1j cannot be a constant of dtype float64"),
    (
        "b - b",
        "UnsupportedDTypeError",
        "subtract does not take bool[3,4] and bool[3,4]",
        "pg.astype",
    ),
    ("i ** -1", "DTypeError", "integers have no negative powers: i64[2] to the power -1"),
    ("x.astype('flat64')", "DTypeError", "'flat64' is not a dtype"),
    ("x + alien", "BuildError", "two different programs meet", "in one program"),
    ("pg.stack([x, alien])", "BuildError", "two different programs"),
    ("if x > 0: pass", "UnknownValueError", "truth of a variable is not known", "pg.where"),
    ("float(loss)", "UnknownValueError", "no number before the program runs", "run the program"),
    ("np.linalg.eig(x)", "NotSquareError", "eig takes square matrices, not f64[3,4]"),
    ("np.linalg.norm(x, 'abc')", "ArgumentError", "norm"),
    ("np.emath.sqrt(x)", "ArgumentError", "numpy.emath.sqrt has no counterpart", "implements"),
    (
        "f'{loss:.3f}'",
        "UnknownValueError",
        "no number before the program runs that '.3f' could",
        "run",
    ),
    (
        "'%.3f' % loss",
        "UnknownValueError",
        "no number before",
        "run the program and format what it",
    ),
    ("import pickle\npickle.dumps(x)", "BuildError", "a variable cannot be pickled", "pg.save"),
    ("3.0 in x", "UnknownValueError", "what a variable contains is not known", "pg.any(x == item)"),
    ("sorted([loss, w[0]])", "UnknownValueError", "the truth of a variable", "pg.sort"),
    (
        "while loss > 1: pass",
        "UnknownValueError",
        "the truth of a variable",
        "a Python loop is unrolled while the program is built",
    ),
    (
        "np.polynomial.polynomial.polyvander(v, 3)",
        "UnknownValueError",
        "no elements before",
        "write it with functions of primgraph, or give np.polynomial.polynomial.polyvander",
    ),
    ("assert loss > 1", "UnknownValueError", "the truth of a variable", "check what a run returns"),
    ("pg.sum(x, dim=0)", "ArgumentError", "no argument 'dim'", "did you mean 'axis'?"),
    ("x.mean(0, keep_dims=True)", "ArgumentError", "no argument 'keep_dims'", "'keepdims'"),
    ("x.relu_()", "UnknownNameError", "nothing named 'relu_'", "variables are immutable"),
    ("x.cuda()", "UnknownNameError", "nothing named 'cuda'", "no GPU target: leave it out"),
    ("x.kthvalue()", "UnknownNameError", "nothing named 'kthvalue'", "compute it with NumPy"),
    ("pg.kthvalue(x)", "UnknownNameError", "nothing named 'kthvalue'", "compute it with NumPy"),
    ("pg.Linear(3, 4)", "UnknownNameError", "nothing named 'Linear'", "there is pg.nn.Linear"),
    ("pg.Adam(0.1)", "UnknownNameError", "nothing named 'Adam'", "there is pg.optimizer.Adam"),
    ("pg.linearize(graph)", "UnknownNameError", "'linearize'", "there is pg.transforms.linearize"),
    ("pg.float32", "UnknownNameError", "nothing named 'float32'", "dtypes are NumPy's"),
    (
        "pg.cross_entropy(x, np.ones(3))",
        "ShapeError",
        "needs labels of shape (3, 4), not f64[3]",
        "classes are integers: pg.astype(labels, 'int64')",
    ),
    ("pg.layer_norm(x, eps='small')", "ArgumentError", "eps is a number, not str 'small'"),
    ("pg.dropout(x, 1, 1.5)", "ArgumentError", "a probability between 0 and 1, not 1.5"),
    ("pg.cross_entropy(x, [0, 1])", "ShapeError", "labels of shape (3,), not i64[2]"),
    ("pg.mse_loss(x, v, reduction='max')", "ArgumentError", "'max'", "'mean', 'sum' or 'none'"),
    ("x.name = 'w'", "BuildError", "the name 'w' is taken by another value"),
    ("x.stop_gradient = 1", "ArgumentError", "stop_gradient is True or False, not 1"),
]

PROGRAMS = [
    ("pg.data('x', (3,))", "BuildError", "an input or variable named 'x' already"),
    ("pg.data('', (3,))", "BuildError", "a name has 1 to 200 characters, 0 given"),
    ("pg.data(3, (3,))", "ArgumentError", "name is a string, not int 3"),
    ("pg.data('y')", "ArgumentError", "data: missing a required argument: 'shape'"),
    ("pg.data('y', shap=(3,))", "ArgumentError", "no argument 'shap'", "did you mean 'shape'?"),
    ("pg.data('y', (3,), dtype='f99')", "DTypeError", "'f99' is not a dtype"),
    ("pg.data('y', (3,), dtype='c32')", "DTypeError", "complex256 is not supported"),
    ("pg.create_parameter((3,), 'int64')", "DTypeError", "a parameter is of a float dtype"),
    ("pg.create_parameter(3, initializer=0.0)", "ArgumentError", "an initializer is", "Constant"),
    ("pg.create_parameter(3, is_bias='yes')", "ArgumentError", "is_bias is True or False, not str"),
    ("pg.create_parameter(3, name='')", "BuildError", "a name has 1 to 200 characters"),
    ("pg.Program(name=3)", "ArgumentError", "name is a string, not int 3"),
    ("program.random_seed = 0.5", "ArgumentError", "a seed is an integer, not 0.5"),
    ("program.update(x, x + 1.0)", "BuildError", "is not a parameter of this program"),
    ("program.update(w, w[:2])", "ShapeError", "'w' is f64[4] and cannot become f64[2]"),
    ("program.update(w, 3.0)", "ArgumentError", "new is a Variable, not float 3.0"),
    ("other.update(w, w + 1.0)", "BuildError", "belongs to another program"),
    ("program.graph([3])", "ArgumentError", "a variable is needed, not 3"),
    ("program.graph([alien])", "BuildError", "belongs to another program"),
    ("program.set_state_dict({'W': 1.0})", "FeedError", "no states named 'W'", "mean 'w'?"),
    ("program.set_state_dict({'w': ones[:2]})", "FeedError", "'w' is f64[4]; an array of"),
    ("program.set_state_dict(3)", "ArgumentError", "values is a mapping, not int 3"),
    ("program.state_dict(scope={})", "ArgumentError", "scope is a Scope or None, not dict"),
    ("pg.program_guard('main').__enter__()", "ArgumentError", "program is a Program, not str"),
    ("pg.Scope().get('w')", "FeedError", "the scope holds no 'w'"),
    ("pg.Scope().set('w', [1, [2, 3]])", "FeedError", "'w' cannot be set to [1, [2, 3]]"),
    ("pg.Scope().set('w', object())", "FeedError", "'w' cannot be set to", "object"),
    ("pg.set_default_dtype('int64')", "DTypeError", "the default dtype is a float dtype"),
    ("pg.spec((3, 'a b'))", "ArgumentError", "is not an extent"),
    ("pg.trace(3, pg.spec(3))", "ArgumentError", "trace: function is a function, not int 3"),
    ("pg.trace(lambda a: a, ones, ones)", "ArgumentError", "too many positional", "takes (a)"),
    ("pg.trace(lambda a: None, ones)", "ArgumentError", "returned None, not a variable"),
    (
        "def f(a):\n    return pg.create_parameter((3,)) * a  # <-\npg.trace(f, pg.spec(3))",
        "BuildError", "parameters belong to a program", "with pg.Program()",
    ),
    ("other.__exit__()", "BuildError", "other is left, but was not entered", "use `with`"),
    ("import pickle\npickle.dumps(program)", "BuildError", "cannot be pickled", "pg.save"),
]  # fmt: skip

RUNS = [
    ("run(3)", "ArgumentError", "run takes a Program, not int"),
    ("run(program, [1], [x])", "ArgumentError", "feed is a mapping of names, not list"),
    ("run(program, {}, [x])", "FeedError", "missing 'x' f64[3,4]", "'x' is declared at model.py"),
    ("run(program, {'X': 1.0, **feed}, [x])", "FeedError", "unexpected 'X'", "did you mean 'x'?"),
    ("run(program, {'x': ones}, [x])", "FeedError", "f64[4] is given, the shapes differ"),
    ("run(program, {'x': 'abc'}, [x])", "FeedError", "input 'x' is f64[3,4]"),
    ("run(program, {'x': None}, [x])", "FeedError", "input 'x' is f64[3,4]"),
    ("run(program, {'i': [0.5, 1.5]}, [i])", "FeedError", "a same_kind cast does not exist"),
    ("run(program, {'x': 1j * np.ones((3, 4))}, [x])", "FeedError", "feed array.real"),
    ("run(program, {'i': ['a', 'b']}, [i])", "FeedError", "input 'i' is i64[2]"),
    ("run(program, feed, ['wieght'])", "FeedError", "no such name", "it has 'x', 'v', 'i', 'b'"),
    ("run(program, {**feed, 'i': [0, 9]}, [pg.cross_entropy(x[:2], i)])", "RunError",
     "gather, a part of cross_entropy, failed in kernel model", "index 9", "of input 'i'"),
    ("run(program, feed, ['V'])", "FeedError", "cannot fetch 'V'", "did you mean 'v'?"),
    ("run(program, feed, [alien])", "FeedError", "it belongs to another program"),
    ("run(program, feed, [None])", "ArgumentError", "cannot fetch None", "pg.explain"),
    ("run(program, feed, [3])", "ArgumentError", "cannot fetch a int: only variables and names"),
    ("run(program, feed, [[[x]]])", "ArgumentError", "cannot fetch a list", "opened once"),
    ("run(program, feed, x)", "ArgumentError", "fetch_list is a list of variables or names"),
    ("run(program, feed, 3)", "ArgumentError", "fetch_list is a list", "not 3"),
    ("run(program, feed, [x], out=[])", "ArgumentError", "out has 0 arrays for 1 fetches"),
    ("run(program, feed, [x], out=3)", "ArgumentError", "out is a list of arrays"),
    ("run(program, feed, [x], out=[ones])", "ArgumentError", "a writable array of f64[3,4]"),
    ("run(program, feed, fetch=[x])", "ArgumentError", "no argument 'fetch'", "'fetch_list'"),
    ("run(program, feed, [x], borrow='yes')", "ArgumentError", "borrow is True or False, not 'yes"),
    ("run(program, feed, [x], debug='inf')", "OptionError", "debug='inf'", "choose 'nan'"),
    ("pg.Executor(scope={})", "ArgumentError", "scope is a Scope or None, not dict"),
    ("pg.Executor(math='sloppy')", "ArgumentError", "math='sloppy'", "'exact', 'signs', 'finite'"),
    ("pg.Executor(mth='fast')", "ArgumentError", "no argument 'mth'", "did you mean 'math'?"),
    ("run(program, {'i': [0, 9], **feed, 'i': np.array([0, 9])}, [pg.sin(v)[i]])", "RunError",
     "gather failed in kernel model: IndexError: index 9 is out of bounds", "kernel line:",
     "equation:", "= gather("),
    ("kernel()", "FeedError", "takes 1 arrays, 0 given"),
    ("kernel(np.ones(3))", "FeedError", "f64[3] is given, the shapes differ"),
    ("kernel('abc')", "FeedError", "input 'a' is f64[4]"),
    ("kernel(ones, out=3)", "ArgumentError", "result 0 needs a writable array"),
    ("kernel.save(3)", "ArgumentError", "path is a string or a path, not int 3"),
    ("pg.Kernel(3)", "ArgumentError", "graph is a Graph, not int 3"),
    ("pg.compile(3)", "ArgumentError", "compile takes a graph, not int", "pg.trace(function"),
    ("pg.compile(graph, style='fast')", "CompileError", "no style 'fast'", "planned, readable"),
    ("pg.compile(graph, math='sloppy')", "ArgumentError", "math='sloppy' is not known"),
    ("pg.compile(graph, donated=[0])", "ArgumentError", "donated is a mapping or None, not list"),
    ("pg.interpret(graph, 'abc')", "FeedError", "input 'a' of", "is f64[4]"),
    ("pg.interpret(graph)", "FeedError", "takes 1 arrays, 0 given"),
    ("pg.check_finite(3, ones)", "ArgumentError", "a function, graph or kernel, not 3"),
]  # fmt: skip

DERIVATIVES = [
    ("pg.grad(loss)", "ArgumentError", "grad: missing a required argument: 'inputs'"),
    ("pg.grad(lambda a: a, x)", "ArgumentError", "argnums is an integer", "write pg.grad(f)(x)"),
    ("pg.grad(lambda a: a, ones)", "ArgumentError", "not array([1., ", "write pg.grad(f)(x)"),
    ("pg.forward_grad(f, x)", "ArgumentError", "not the function", "pg.forward_grad(f(x), x)"),
    ("pg.grad(loss, [])", "ArgumentError", "grad got no inputs"),
    ("pg.grad(loss, 3)", "ArgumentError", "a variable or a sequence of variables as inputs"),
    ("pg.grad(loss, [x, None])", "ArgumentError", "sequence of variables as inputs"),
    ("pg.grad(loss, i)", "NotDifferentiable", "input 'i' is i64[2], and only floats have"),
    ("pg.grad(i, x)", "NotDifferentiable", "output 'i' is i64[2], and only floats"),
    ("pg.grad(pg.sum(v), x)", "NotDifferentiable", "does not depend on the inputs", "pg.explain"),
    ("pg.grad(loss, [x, v], allow_unused=False)", "NotDifferentiable", "'v', f64[4], is used by"),
    ("pg.grad(loss, x, allow_unused=False, materialize_grads=True)", "OptionError", "leave out"),
    ("pg.grad(loss, x, materialize_grad=True)", "ArgumentError", "did you mean 'materialize_grads"),
    ("pg.grad(loss, x, strict_scalar='no')", "ArgumentError", "strict_scalar is True or False"),
    ("pg.grad(x * 2, x, strict_scalar=True)", "ShapeError", "only one of one element"),
    (
        "pg.grad(loss, x, np.ones(3))",
        "ShapeError",
        "the seed has shape (3,), but the variable is f64[]",
    ),
    ("pg.grad(loss, x, [1.0, 2.0])", "ArgumentError", "has 2 entries for 1 variables"),
    ("pg.grad(loss, x, 1j)", "DTypeError", "does not become float64", "pg.real(z)"),
    ("pg.grad(loss, alien)", "BuildError", "two different programs"),
    ("pg.grad(loss, x, no_grad_vars=['w'])", "ArgumentError", "a set of variables as no_grad_vars"),
    ("pg.forward_grad(loss, x, np.ones(2))", "ShapeError", "the seed has shape (2,), but"),
    ("pg.grad(f)(np.arange(3))", "NotDifferentiable", "pass floats: a.astype(float)"),
    ("x.at[0].add(5.)", "UnknownNameError", "pg.set_slice(x, 0, x[0] + 5.0)", "pg.scatter_add"),
    ("x.at[1:].set(v)", "UnknownNameError", "pg.set_slice(x, np.s_[1:], v)"),
    ("x.at[0].multiply(v + 1)", "UnknownNameError", "pg.set_slice(x, 0, x[0] * (v + 1))"),
    ("x.at[i].max(v)", "UnknownNameError", "pg.set_slice(x, i, pg.maximum(x[i], v))"),
    ("pg.tree_map(f, x)", "UnknownNameError", "it is pg.tree.map"),
    ("pg.random.PRNGKey(0)", "UnknownNameError", "keys are integers: pg.random.normal(7"),
    ("pg.random.key(0)", "UnknownNameError", "keys are integers"),
    ("pg.random.fold_in(7, 1)", "UnknownNameError", "pg.random.split(key, 2) makes two keys"),
    ("pg.compile(pg.trace(f, pg.spec(4, 'float32')))(ones)", "FeedError", ".astype('float32')"),
    (
        "pg.trace(lambda n: np.ones(n), pg.spec((), int))",
        "ArgumentError",
        "static_argnames='n' passes its number",
    ),
    ("pg.scan(lambda c, a: (c, a), ones, 0.0)", "ShapeError", "are init and xs swapped?"),
    ("pg.vjp(3, x)", "ArgumentError", "vjp takes a function, not int"),
    ("pg.vjp(lambda a: a, [x, x])", "ArgumentError", "too many positional", "it takes (a)"),
    ("pg.vjp(lambda a: None, x)", "ArgumentError", "None"),
    ("pg.vjp(pg.sum, x, strict='a')", "ArgumentError", "vjp: strict is True or False, not str"),
    ("pg.jvp(pg.sum, x, np.ones(2))", "ShapeError", "the seed has shape (2,), but"),
    ("pg.jvp(lambda a: v, x, strict=True)", "NotDifferentiable", "no output depends on a"),
    ("pg.hvp(lambda a: a, x, x)", "NotScalarError", "hvp needs a function of one element"),
    ("pg.hvp(pg.sum, x)", "ArgumentError", "hvp: missing a required argument: 'v'"),
    ("pg.Jacobian(x, 3)", "ArgumentError", "a variable or a sequence of variables as inputs"),
    ("pg.Jacobian(x * 2, x, 'yes')", "ArgumentError", "is_batched is True or False, not str"),
    ("pg.Jacobian(x * 2, x)[12]", "BoundsError", "index 12 is out of bounds"),
    ("pg.Jacobian(x * 2, x)['a']", "IndexKindError", "cannot be indexed by str 'a'"),
    ("pg.Jacobian(loss, x, True)", "ShapeError", "axis 0 counts the samples"),
    ("pg.Jacobian(x, x).check_independent()", "OptionError", "no samples without is_batched"),
    ("pg.Hessian(x, x)", "NotScalarError", "Hessian needs a function of one element"),
    ("pg.Hessian(loss, x, None)", "ArgumentError", "is_batched is True or False, not NoneType"),
    ("pg.laplacian([loss], x)", "ArgumentError", "laplacian takes one variable as y, not ["),
    ("pg.laplacian(loss, i)", "NotDifferentiable", "input 'i' is i64[2]"),
    ("pg.divergence(loss, x)", "ShapeError", "divergence takes equal shapes"),
    ("pg.explain(loss)", "ArgumentError", "explain: missing a required argument: 'x'"),
    ("pg.explain(loss, 3)", "ArgumentError", "explain: x is a variable, not 3"),
    ("pg.explain(loss, x, feed={})", "FeedError", "missing 'x' f64[3,4]"),
    ("pg.check_grads(pg.sin, [ones], order=0)", "OptionError", "at least 1, not 0"),
    ("pg.check_grads(pg.sin, [ones], order='2')", "ArgumentError", "order is an integer, not str"),
    ("pg.check_grads(pg.sin, [ones], modes='reverse')", "OptionError", "'forward' and 'reverse'"),
    ("pg.check_grads(3, [ones])", "ArgumentError", "a function, graph or program, not int"),
    ("pg.check_grads(pg.argmax, [ones])", "ArgumentError", "needs float inputs and outputs"),
    ("pg.transforms.linearize(graph, [7])", "BuildError", "has 1 inputs, and none at 7"),
    (
        "g = pg.trace(lambda a: pg.sum(a * a), ones)  # <-\npg.transforms.transpose(g, [0])",
        "MissingRuleError",
        "the graph is not linear: mul",
    ),
    ("pg.transforms.lower(graph, allow=['tahn'])", "MissingRuleError", "no op is named", "tanh"),
    ("pg.transforms.lower(graph, 3)", "ArgumentError", "allow is a list or None, not int 3"),
    ("pg.transforms.batch(graph, 2, [1])", "BuildError", "axes are 0 or None, one for each"),
    ("pg.transforms.lower()", "ArgumentError", "lower: missing a required argument: 'graph'"),
    ("graph.with_outputs(3)", "ArgumentError", "outputs is a list, not int 3"),
]

TRAINING = [
    ("pg.optimizer.SGD('fast')", "ArgumentError", "a learning rate is a number, not 'fast'"),
    ("pg.optimizer.SGD(float('nan'))", "ArgumentError", "is a finite number from 0 on, not nan"),
    ("pg.optimizer.SGD(pg.optimizer.warmup(3))", "ArgumentError", "rate", "`schedule=`"),
    ("pg.optimizer.SGD(0.1, schedule=0.5)", "ArgumentError", "schedule is a function or None"),
    ("pg.optimizer.SGD(0.1, grad_clip=1.0)", "ArgumentError", "grad_clip is a function or None"),
    ("pg.optimizer.SGD(0.1, weight_decay='a')", "ArgumentError", "weight_decay is a number"),
    ("pg.optimizer.SGD(0.1, weight_decy=1)", "ArgumentError", "no argument", "'weight_decay'?"),
    ("pg.optimizer.Adam(beta1=1.0)", "ArgumentError", "beta1 is from 0 on and below 1, not 1.0"),
    ("pg.optimizer.Adam(epsilon=None)", "ArgumentError", "epsilon is a number, not NoneType"),
    ("pg.optimizer.clip_by_norm(-1.0)", "ArgumentError", "limit of a norm is positive, not -1.0"),
    ("pg.optimizer.clip_by_value('a', 1.0)", "ArgumentError", "low is a number, not str 'a'"),
    ("pg.optimizer.step_decay(0)", "ArgumentError", "length of a schedule is positive, not 0"),
    ("pg.optimizer.exponential_decay([1])", "ArgumentError", "gamma is a number, not list"),
    ("pg.optimizer.SGD(0.1).minimize(3.0)", "ArgumentError", "or a tensor, not float"),
    ("pg.optimizer.SGD(0.1).minimize(x)", "ShapeError", "a loss has one element", "sum or mean"),
    ("pg.optimizer.SGD(0.1).minimize(loss, [x])", "BuildError", "is not a parameter of the progr"),
    ("pg.optimizer.SGD(0.1).minimize(loss, 3)", "ArgumentError", "parameters is a list or None"),
    ("pg.optimizer.SGD(0.1).minimize(pg.sum(x))", "BuildError", "the loss cannot be lowered"),
    ("pg.optimizer.SGD(0.1).set_learning_rate(1.0)", "BuildError", "call minimize first"),
    ("pg.fit(3, loss, [feed], 1)", "ArgumentError", "a Program or a function, not int 3"),
    ("pg.fit(program, loss, [feed], 1)", "BuildError", "updates nothing", "minimize"),
    ("pg.optimizer.SGD(0.1).minimize(loss)\npg.fit(program, loss, feed, 1)", "ArgumentError",
     "feeds is a list or a function, not dict", "put it in a list"),
    ("pg.optimizer.SGD(0.1).minimize(loss)\npg.fit(program, loss, [feed], 0.5)", "ArgumentError",
     "epochs is an integer", "0.5"),
    ("pg.optimizer.SGD(0.1).minimize(loss)\npg.fit(program, loss, 3, 1)", "ArgumentError",
     "feeds is a list or a function, not int 3"),
    ("pg.optimizer.SGD(0.1, schedule=lambda: 1.0).minimize(loss)", "ArgumentError",
     "<lambda>: too many positional arguments", "it takes ()"),
    ("pg.optimizer.SGD(0.1, grad_clip=lambda g, n: g).minimize(loss)", "ArgumentError",
     "missing a required argument: 'n'"),
    ("pg.create_parameter(3, initializer=lambda s: np.ones(s), name='u')\nprogram.state_dict()",
     "ArgumentError", "the initializer of 'u' does not fit f64[3]", "it takes (s)"),
    ("pg.optimizer.SGD(0.1).minimize(loss)\npg.fit(program, loss, [feed], 1, lambda: None)",
     "ArgumentError", "too many positional arguments"),
    ("pg.nn.Tanh().apply(lambda: None)", "ArgumentError", "too many positional arguments"),
    ("pg.minibatches([ones], 2)", "ArgumentError", "arrays is a mapping, not list"),
    ("pg.minibatches({'a': ones}, 1.5)", "ArgumentError", "size is an integer, not float 1.5"),
    ("pg.minibatches({'a': ones, 'b': ones[:2]}, 1)", "ArgumentError", "one number of samples"),
    ("pg.scipy_objective(program, 3)", "ArgumentError", "takes a program and a loss, not 3"),
    ("pg.scipy_objective(program, loss)", "FeedError", "missing 'x' f64[3,4]"),
    ("pg.scipy_objective(program, loss, feed=feed).fun('a')", "ArgumentError", "an array of str"),
    ("pg.scipy_objective(program, loss, feed=feed).fun(ones[:3])", "ShapeError", "of 4 elements"),
    ("pg.nn.Linear('a', 4)", "ArgumentError", "in_features is an integer, not str 'a'"),
    ("pg.nn.Linear(4)", "ArgumentError", "Linear: missing a required argument: 'out_features'"),
    ("pg.nn.Linear(3, 2)(x)", "ShapeError", "cannot multiply f64[3,4] by f64[3,2]"),
    ("pg.nn.Linear(4, 2, bias=np.ones(2))", "ArgumentError", "bias is True or False, not ndarray"),
    ("pg.nn.Sequential(3)", "ArgumentError", "sublayer '0' is a Layer, not 3"),
    ("pg.nn.Sequential(pg.nn.Tanh())[1]", "BoundsError", "of 1 layers has no layer 1"),
    ("pg.nn.BatchNorm(4, layout='NWHC')", "ArgumentError", "'NWHC'", "use 'NCHW' or 'NHWC'"),
    ("pg.nn.Dropout('half')", "ArgumentError", "rate is a number, not str 'half'"),
    ("pg.nn.Tanh(3)", "ArgumentError", "too many positional"),
    ("pg.nn.Linear(4, 4).wieght", "UnknownNameError", "nothing named 'wieght'", "'weight'?"),
    ("pg.nn.Linear(4, 4).weight.foo", "UnknownNameError", "nothing named 'foo'"),
    ("pg.nn.Linear(4, 4).state_dict(pg.Scope())", "BuildError", "are in no program", "call it in"),
    ("layer = pg.nn.Linear(4, 4)\npg.trace(layer, pg.spec(4))", "BuildError", "traced function"),
    ("pg.optimizer.SGD(0.1).step()", "BuildError", "has no parameters", "layer.parameters()"),
    (
        "class Net(pg.nn.Layer):\n    def __init__(self):\n"
        "        self.body = pg.nn.Tanh()  # <-\nNet()",
        "BuildError", "has to call super().__init__() first",
    ),
    ("pg.initializers.Constant('a')", "ArgumentError", "value is a number, not str 'a'"),
    ("pg.initializers.Uniform(lo=1)", "ArgumentError", "no argument 'lo'", "did you mean 'low'?"),
]  # fmt: skip

FILES = [
    ("pg.save(3, 'a.pgz')", "ArgumentError", "program is a Program, not int 3"),
    ("pg.save(program, 3)", "ArgumentError", "path is a string or a path, not int 3"),
    ("pg.load(3)", "ArgumentError", "path is a string or a path, not int 3"),
    ("pg.load('missing.pgz')", "LoadError", "cannot read 'missing.pgz'"),
    ("Path('bad.pgz').write_bytes(b'PK nonsense')\npg.load('bad.pgz')", "LoadError", "is damaged"),
    ("pg.save(program, 'a.pgz')\ndata = Path('a.pgz').read_bytes()\n"
     "Path('a.pgz').write_bytes(data[:-30])\npg.load('a.pgz')", "LoadError", "damaged"),
    ("pg.save(program, 'a.pgz')\ndata = bytearray(Path('a.pgz').read_bytes())\ndata[700] ^= 255\n"
     "Path('a.pgz').write_bytes(data)\npg.load('a.pgz')", "LoadError", "a.pgz"),
    ("import zipfile\nwith zipfile.ZipFile('z.pgz', 'w') as z:\n    z.writestr('../evil', '')\n"
     "pg.load('z.pgz')", "LoadError", "members that such a file does not have"),
    ("pg.parse(3)", "ArgumentError", "text is a string, not int 3"),
    ("pg.parse('graph')", "LoadError", "no header, body and closing brace"),
    ("pg.parse('graph f(%x: f64[3]) {\\n %0: f64[3] = tahn(%x)\\n return %0\\n}')", "LoadError",
     "graph text, line 2, column 15: no op is named 'tahn'", "tanh"),
    ("pg.parse('graph f(%x: f64[3]) {\\n %0: f64[3] = sin(%y)\\n return %0\\n}')", "LoadError",
     "line 2, column 19: %y is used before it is bound"),
    ("pg.parse('graph f(%x: f64[3]) {\\n %0: f64[4] = sin(%x)\\n return %0\\n}')", "LoadError",
     "line 2, column 2: sin has type f64[3]"),
    ("pg.verify(3)", "ArgumentError", "graph is a Graph, not int 3"),
]  # fmt: skip

TOOLS = [
    ("pg.cost(3)", "ArgumentError", "a program or a kernel is needed, not int", "pg.trace"),
    ("pg.cost()", "ArgumentError", "cost: missing a required argument: 'target'"),
    ("pg.cost(program, loss)", "ArgumentError", "fetch_list is a list of variables or names"),
    ("pg.cost(program, [])", "ArgumentError", "nothing is fetched", "fetch_list=[...]"),
    ("pg.cost(program, ['V'])", "FeedError", "cannot fetch 'V'", "did you mean 'v'?"),
    ("pg.cost(graph, [loss])", "ArgumentError", "fetch_list chooses the results of a program"),
    ("pg.cost(kernel, [loss])", "ArgumentError", "of a program, not of <planned kernel f"),
    ("pg.profile(graph)", "ArgumentError", "profile: missing a required argument: 'feed'"),
    ("pg.profile(graph, [ones], repeats='many')", "ArgumentError", "at least 1, not 'many'"),
    ("pg.profile(graph, [ones], repeats=1.5)", "ArgumentError", "at least 1, not 1.5"),
    ("pg.profile(graph, [ones], range=True)", "ArgumentError", "no argument 'range'", "'ranges'"),
    ("pg.profile(program, feed, loss)", "ArgumentError", "fetch_list is a list of variables"),
    ("pg.profile(graph, [ones], [loss])", "ArgumentError", "chooses the results of a program"),
    ("pg.profile(graph, [ones], repeats=1).save(3)", "ArgumentError", "a path, not int 3"),
    ("pg.profile(graph, [ones], repeats=1).table('op', 'all')", "ArgumentError", "top is an int"),
    ("pg.diff(graph)", "ArgumentError", "diff: missing a required argument: 'after'"),
    ("pg.diff(graph, loss)", "ArgumentError", "two graphs, not Variable", "program.graph()"),
    ("pg.explain([loss], x)", "ArgumentError", "explain: y is a variable, not [<Variable"),
    ("pg.steps(3)", "ArgumentError", "a kernel can be drawn, not int", "pg.trace"),
    ("pg.steps(graph).save(3)", "ArgumentError", "path is a string or a path, not int 3"),
    ("pg.spy([[1, 2], [3]])", "ArgumentError", "spy takes a matrix, not [[1, 2], [3]]"),
    ("pg.spy(np.eye(3)).save(3)", "ArgumentError", "path is a string or a path, not int 3"),
    ("pg.growth(3)", "ArgumentError", "growth takes a function or a graph, not 3"),
    ("pg.growth(pg.sin, pg.spec(3), orders=1.5)", "OptionError", "is an integer", "not 1.5"),
    ("pg.growth(lambda: pg.ones(3))", "ArgumentError", "no input to differentiate by"),
    ("pg.growth(pg.abs, pg.spec(3, 'int64'))", "NotDifferentiable", "input 'x' is i64[3]"),
    ("pg.growth(pg.sin, pg.spec(3), orders=1).save(3)", "ArgumentError", "a path, not int 3"),
    ("pg.set_num_threads()", "ArgumentError", "missing a required argument: 'count'"),
    ("pg.set_num_threads('all')", "ArgumentError", "is a positive integer, not 'all'"),
    ("kernel.save('a.py', graph)", "ArgumentError", "others are kernels, not <graph f", "compile"),
    ("kernel.save('a.svg', kernel)", "ArgumentError", "'a.svg' would be a picture of one kernel"),
    ("graph.save(3)", "ArgumentError", "Graph.save: path is a string or a path, not int 3"),
    ("graph.to_svg(limit='a')", "ArgumentError", "limit is an integer, not str 'a'"),
    ("graph.show(line=3)", "ArgumentError", "no argument 'line'", "did you mean 'lines'?"),
    ("pg.extend.primitve", "UnknownNameError", "primgraph.extend has nothing", "'primitive'"),
    ("pg.extend.primitive(impl=3)", "ArgumentError", "impl is a function, not int 3"),
    ("pg.extend.operator('y')(lambda x: x)", "ArgumentError", "no parameter 'y'", "takes (x)"),
    ("pg.extend.elementwise(3, np.sin)", "ArgumentError", "name is a string, not int 3"),
    ("pg.extend.elementwise('mistaken', 3)", "ArgumentError", "impl is a function, not int 3"),
    ("pg.extend.spell('sin', 'np.sin({0})')", "ArgumentError", "op is a Primitive, not str 'sin'"),
    ("op = pg.extend.elementwise('misspelt', np.sin)\npg.extend.spell(op, 'np.sin({0}')",
     "BuildError", "'np.sin({0}' is no expression"),
    ("pg.extend.check_primitive('sin', ones)", "ArgumentError", "op is a Primitive, not str"),
    ("pg.TensorType(3, 'f')", "ArgumentError", "made of a tuple and a NumPy dtype", "pg.spec"),
    ("pg.transforms.batch(graph, -1)", "ShapeError", "shape (-1, 4) has a negative extent"),
    ("pg.trace(lambda a: {'a'}, ones)", "ArgumentError", "f returned {'a'}"),
    ("x[0] = 3.0", "ArgumentError", "a variable does not change", "pg.set_slice(x, 0, 3.0)"),
    ("range(loss)", "UnknownValueError", "a variable has no number before the program runs"),
]  # fmt: skip

# What reads a variable in files of the standard library or of an installed package.
CALLED = [
    ("pg.spec(3, 4)", "DTypeError", "4 is not a dtype", "one tuple, as in (3, 4)"),
    ("pg.zeros(3, 4)", "DTypeError", "4 is not a dtype", "one tuple, as in (3, 4)"),
    ("pg.fori_loop(0, 3, lambda s: s, x)", "ArgumentError", "<lambda>(i, val), but it takes (s)",
     "write a function of (i, val)"),
    ("pg.cond(True, lambda a: a, lambda a: -a)", "ArgumentError",
     "cond calls <lambda>(), but it takes (a)",
     "operands come after the branches"),
    ("pg.switch(0, [lambda: x], x)", "ArgumentError", "calls <lambda>(operand0), but it takes ()"),
    ("pg.scan(lambda c: (c, None), x, length=2)", "ArgumentError",
     "<lambda>(carry, x), but it takes (c)"),
    ("pg.while_loop(lambda: True, lambda v: v, x)", "ArgumentError",
     "calls <lambda>(val), but it takes ()"),
    ("pg.map(lambda a, b: a, x)", "ArgumentError", "map calls <lambda>(x), but it takes (a, b)"),
    ("pg.scan(lambda c, a: (c, a), 0.0, [1.0, 2.0])", "ShapeError", "xs[0] has no leading axis",
     "make one array of it by np.array"),
    ("pg.scan(lambda c, a: c, 0.0, ones)", "ArgumentError", "not a pair", "return carry, y"),
    ("min(pg.tensor(ones), pg.tensor(ones))", "ArgumentError", "is ambiguous",
     "write pg.minimum(pg.tensor(ones),"),
    ("pg.backward(loss)", "UnknownNameError", "nothing named 'backward'", "loss.backward()"),
    ("pg.nn.Module()", "UnknownNameError", "nothing named 'Module'", "pg.nn.Layer"),
    ("pg.from_dlpack([1.0])", "ArgumentError", "pg.tensor(x) takes"),
    ("pg.jacobian(f, 0)", "ArgumentError", "the number of an argument or the point", "argnums=0"),
    ("pg.hessian(f, 0)", "ArgumentError", "the number of an argument or the point", "argnums=0"),
]  # fmt: skip

# What users of other libraries write, by the mechanism that answers it.
NEWCOMERS = [
    # Names of other libraries.
    ("import primgraph.compat.torch as torch\ntorch.jit", "UnknownNameError",
     "torch.jit is not part of primgraph.compat.torch", "pg.jit"),
    ("from primgraph.compat.torch import nn\nnn.functional.rleu", "UnknownNameError",
     "torch.nn.functional.rleu is not part of primgraph.compat.torch", "did you mean 'relu'?"),
    ("from primgraph.compat.torch import optim\noptim.lr_scheduler.StepLr", "UnknownNameError",
     "torch.optim.lr_scheduler.StepLr is not part of", "did you mean 'StepLR'?"),
    ("from primgraph.compat import paddle\npaddle.signal", "UnknownNameError",
     "paddle.signal is not part of primgraph.compat.paddle", "pg.fft"),
    ("from primgraph.compat import paddle\npaddle.to_tensor([1.0], place='gpu')", "ArgumentError",
     "there is no place 'gpu'", "leave out place"),
    ("from primgraph.compat import oneflow\noneflow.boxing", "UnknownNameError",
     "oneflow.boxing is not part of primgraph.compat.oneflow"),
    ("from primgraph.compat.megengine import functional as F\nF.rellu", "UnknownNameError",
     "megengine.functional.rellu is not part of", "did you mean 'relu' or"),
    ("from primgraph.compat import autograd\nautograd.hess", "UnknownNameError",
     "autograd.hess is not part of primgraph.compat.autograd", "did you mean 'hessian'"),
    ("pg.devices()", "UnknownNameError", "nothing named 'devices'", "no GPU target"),
    ("pg.GradientTape()", "UnknownNameError", "'GradientTape'", "pg.grad(f) is the gradient"),
    ("pg.Session()", "UnknownNameError", "nothing named 'Session'", "pg.Executor().run(program"),
    ("pg.remat", "UnknownNameError", "nothing named 'remat'", "pg.checkpoint"),
    ("pg.odeint", "UnknownNameError", "nothing named 'odeint'", "solve_ivp"),
    ("program.run(feed)", "UnknownNameError", "a Program has nothing named 'run'", "Executor()"),
    ("program.grad(loss)", "UnknownNameError", "a Program has nothing", "write pg.grad(y, x)"),
    ("graph.nodse", "UnknownNameError", "a Graph has nothing named 'nodse'"),
    ("kernel.run(ones)", "UnknownNameError", "a Kernel has nothing", "write kernel(x0)"),
    ("pg.jit(f).save('f.py')", "UnknownNameError", "a function under pg.jit has nothing named 'sav",
     "f.kernel(x0).save('f.py')"),
    ("pg.nn.Linear(4, 2).to('cuda')", "UnknownNameError", "nothing named 'to'", "no GPU target"),
    # Devices and other arguments of other libraries.
    ("x.to('cuda')", "UnknownNameError", "nothing named 'to'", "no GPU target", "write x"),
    ("pg.tensor(ones).to(device='cuda:0')", "UnknownNameError", "nothing named 'to'", "no GPU"),
    ("pg.tensor(ones, device='cuda')", "ArgumentError", "tensor: there is no argument 'device'",
     "primgraph runs on the CPU: leave it out"),
    ("pg.tensor(ones, name='x')", "ArgumentError", "no argument 'name'", "only inputs and param"),
    ("pg.zeros(3, device='cuda')", "ArgumentError", "no argument 'device'", "runs on the CPU"),
    ("pg.jit(backend='cpu')", "ArgumentError", "no argument 'backend'", "runs on the CPU"),
    ("pg.Executor('cpu')", "ArgumentError", "scope is a Scope or None", "no place or device"),
    ("pg.sort(x, descending=True)", "ArgumentError", "'descending'", "pg.flip(pg.sort(x))"),
    ("pg.dropout(x, p=0.5)", "ArgumentError", "no argument 'p'", "did you mean 'rate'?"),
    ("pg.grad(f, wrt=0)", "ArgumentError", "grad: there is no argument 'wrt'", "mean 'argnums'?"),
    ("pg.root(f, 1.0, args=(2.0,))", "ArgumentError", "no argument 'args'", "lambda x: f(x, a)"),
    ("pg.root(f, 1.0, maxiter=5)", "ArgumentError", "'maxiter'", "did you mean 'max_trips'?"),
    # Arguments in another order, or one by one.
    ("pg.data((3, 4), 'y')", "ArgumentError", "name is a string",
     "are arguments swapped? it takes"),
    ("pg.root(1.0, f)", "ArgumentError", "f is a function, not float 1.0", "arguments swapped?"),
    ("pg.fori_loop(0, 3, x, lambda i, v: v)", "ArgumentError", "body_fun is a function",
     "it takes (lower, upper, body_fun, init_val)"),
    ("pg.create_parameter('u', (3,))", "DTypeError", "(3,) is not a dtype", "comes before the dty"),
    ("pg.transpose(x, 1, 0)", "ArgumentError", "write axes as one tuple: (1, 0)"),
    ("pg.broadcast_to(w, 3, 4)", "ArgumentError", "write shape as one tuple: (3, 4)"),
    ("pg.reshape(x, 4, 3)", "ArgumentError", "order is 'C'", "write the shape as one tuple"),
    ("pg.max(x, w)", "ArgumentError", "an axis is an integer", "pg.maximum(x, y) has"),
    ("pg.min(loss, 0.0)", "ArgumentError", "an axis is an integer", "pg.minimum(x, y) has"),
    ("pg.concatenate(x, w)", "ArgumentError", "put the arrays in one list: pg.concatenate([x, y])"),
    ("pg.jit(f, static_argnums=5)", "ArgumentError", "static_argnums has 5",
     "the first one has nu"),
    ("w.assign(w * 2.0)", "ArgumentError", "too many positional", "program.update(w, new)"),
    ("program.graph(loss)", "ArgumentError", "outputs is a list of variables",
     "program.graph([y])"),
    ("pg.nn.Sequential([pg.nn.Tanh()])", "ArgumentError", "is a Layer",
     "pg.nn.Sequential(*layers)"),
    ("pg.nn.Conv2d(3, 4)", "ArgumentError", "Conv2d: missing a required argument: 'kernel_size'"),
    ("pg.Tensor([1.0])", "ArgumentError", "Tensor is not called with list", "pg.tensor(x) makes"),
    ("pg.create_parameter((3,), initializer=0.1)", "ArgumentError",
     "pg.initializers.Constant(...)"),
    # Structures of loops and branches.
    ("pg.fori_loop(0, 3, lambda val, i: val + 1.0, x)", "ShapeError",
     "fori_loop: body returned f64[], but init_val is f64[3,4]", "the index i comes first"),
    ("pg.fori_loop(0, 3, lambda i, val: val + [x], [x])", "ArgumentError",
     "body returned [f64[3,4], f64[3,4]], but init_val is [f64[3,4]]", "a list cannot grow"),
    ("pg.fori_loop(0, 3, lambda i, val: {'a': val['a'][0]}, {'a': x})", "ShapeError",
     "body returned f64[4] at ['a'], but init_val is f64[3,4] there"),
    ("pg.scan(lambda c, a: ((c, c), a), x, length=2)", "ArgumentError",
     "scan: body returned (f64[3,4], f64[3,4]), but init is f64[3,4]", "returns carry, y"),
    ("pg.while_loop(lambda v: v > 0, lambda v: v, x)", "ShapeError",
     "condition returned bool[3,4], not a single boolean", "pg.any(val > 0)"),
    ("pg.cond(loss > 0, x, w)", "ArgumentError", "true_fun is a function", "pg.where(pred, x, y)"),
    ("pg.cond(loss > 0, lambda: x, lambda: w)", "ShapeError",
     "cond: true_fun returned f64[3,4], but false_fun returned f64[4]", "the same containers"),
    ("pg.switch(i[0], [lambda: x, lambda: (x, w)])", "ArgumentError",
     "switch: branch 1 returned (f64[3,4], f64[4]), but branch 0 returned f64[3,4]"),
    ("pg.scan(lambda c, a: (c, a), x)", "ArgumentError", "give xs or length",
     "pg.scan(f, init, xs"),
    ("pg.root(lambda z: z[:2], ones)", "ShapeError", "f returned f64[2], but x0 is f64[4]"),
    ("pg.root(lambda z, a: z - a, 1.0)", "ArgumentError",
     "root calls <lambda>(x), but it takes (z"),
    # Variables outside of what they belong to.
    ("kept = []\npg.fori_loop(0, 3, lambda i, v: (kept.append(v), v + 1)[1], x)\nkept[0] + x",
     "BuildError", "f64[3,4] is a variable of the loop or branch 'body', and is used outside of it",
     "pg.scan returns carry, y"),
    ("kept = []\npg.trace(lambda a: (kept.append(a), a)[1], ones)\npg.trace(lambda a: kept[0] + a, "
     "ones)", "BuildError", "'a' f64[4] is a variable of the function f, and is used outside of it",
     "return it from the function"),
    ("x[0] + alien[0]", "BuildError", "of program 'model' and f64[4] of program 'other'"),
    ("run(program, {x: np.ones((3, 4))}, [x])", "FeedError", "keys of a feed are names of inputs"),
    ("run(program, {**feed, 'other': ones}, [x])", "FeedError", "unexpected 'other'",
     "the program has the inputs 'x', 'v', 'i', 'b'"),
    ("run(program, feed, loss)", "ArgumentError", "fetch_list is a list", "write fetch_list=[y]"),
    ("run(feed, [loss])", "ArgumentError", "run takes a Program",
     "write run(program, feed, fetch_"),
    # Values while a function is traced.
    ("pg.trace(lambda a: float(a[0]), ones)", "UnknownValueError",
     "no number before the compiled function runs", "return the variable from the traced function"),
    ("pg.trace(lambda a: a.numpy(), ones)", "UnknownNameError", "nothing named 'numpy'",
     "return a from the traced function"),
    ("pg.trace(lambda n: pg.zeros(n), 3)", "ArgumentError", "a shape is an integer",
     "static_argnames='n' passes its number"),
    ("pg.trace(lambda a: np.unique(a), ones)", "ArgumentError", "the shape of what unique returns",
     "write pg.unique(x, size=n)"),
    ("pg.tensor(ones) and pg.tensor(ones)", "ArgumentError", "is ambiguous: it has 4 elements",
     "pg.logical_and(pg.tensor(ones), pg.tensor(ones))"),
    ("pg.tensor(1.0).backward()", "NotDifferentiable", "does not require grad",
     "requires_grad=True"),
    # Files.
    ("kernel.save('model')", "ArgumentError", "'model' does not end in .py, .c, .onnx or .mlir",
     "'model.py'"),
    ("kernel.save('model.pt')", "ArgumentError", "does not end in .py, .c, .onnx or .mlir",
     "writes C", "'model.onnx'"),
    ("pg.save(ones, 'x.npy')", "ArgumentError", "program is a Program, not ndarray",
     "np.savez(path"),
]  # fmt: skip

LIBRARIES = [
    ("np.full(3, loss)", "UnknownValueError", "no elements before the program runs"),
    ("np.sum([loss, loss])", "UnknownValueError", "no elements before the program runs"),
    ("import scipy.stats\nscipy.stats.norm.cdf(x)", "UnknownValueError", "before the program runs"),
    ("import statistics\nstatistics.median([x, v])", "UnknownValueError", "truth of a variable"),
    ("import functools\nfunctools.reduce(lambda a, b: a @ b, [x, x])", "ShapeError", "matmul"),
    ("import sys\nsys.path.insert(0, 'site-packages')\nimport squares\nsquares.of(x)",
     "UnknownValueError", "the truth of a variable"),
]  # fmt: skip

# Mistakes whose advice is code in the user's own words, or the meaning of a name.
ADVICE = [
    ("(x > 0) and (x < 1)", "(x > 0) & (x < 1)"),
    ("x > 0 or not b", "pg.logical_or(x > 0, not b)"),
    ("0 < x < 1", "(0 < x) & (x < 1)"),
    ("if 0 < loss <= 1: pass", "(0 < loss) & (loss <= 1)"),
    ("not b", "pg.logical_not(b)"),
    ("loss if loss > 0 else 0.0", "pg.where(loss > 0, loss, 0.0)"),
    ("max(x)", "pg.max(x)"),
    ("min(loss, w[0])", "pg.minimum(loss, w[0])"),
    ("max(loss, w[0], 2.0)", "pg.max(pg.stack([loss, w[0], 2.0]), axis=0)"),
    ("any(b)", "pg.any(b)"),
    ("x in [v, x]", "any(x is item for item in [v, x])"),
    ("x not in [v, w]", "all(x is not item for item in [v, w])"),
    ("x[x > 0] = 0", "x = pg.where(x > 0, 0, x)"),
    ("x[b] = 0", "x = pg.where(b, 0, x)"),
    ("x[0, 1:] = loss", "x = pg.set_slice(x, np.s_[0, 1:], loss)"),
    ("ones[0] = loss", "ones = pg.set_slice(ones, 0, loss)"),
    ("import math\nmath.sin(loss)", "pg.sin(loss)"),
    ("import math\nmath.fabs(loss)", "pg.fabs(loss)"),
    ("from math import sqrt\nsqrt(loss)", "pg.sqrt(loss)"),
    ("np.array([loss, loss])", "pg.array([loss, loss])"),
    ("np.asarray([[loss, 1.0], [w[0], w[1]]])", "pg.asarray([[loss, 1.0], [w[0], w[1]]])"),
    ("np.full(3, loss)", "pg.full(3, loss)"),
    ("np.mean([loss, loss])", "pg.mean(pg.array([loss, loss]))"),
    ("ones.dot(v)", "pg.dot(ones, v)"),
    ("ones[i]", "pg.array(ones)[i]"),
    ("import scipy.stats\nscipy.stats.norm.cdf(x)", "0.5 * (1 + pg.erf(x / 2**0.5))"),
    ("import scipy.special\nscipy.special.logsumexp(x)", "pg.logsumexp(x)"),
    ("pg.absolute(x)", "pg.abs(x)"),
    ("pg.relu6(x)", "pg.clip(x, 0.0, 6.0)"),
    ("pg.grad(f, ones)", "pg.grad(f)(x)"),
    ("loss.item()", "pg.Executor().run(program, feed, [loss])[0]"),
    ("x.numpy()", "pg.Executor().run(program, feed, [x])[0]"),
    ("loss.backward()", "pg.grad(loss, w)"),
    ("x.view(4, 3)", "pg.reshape(x, (4, 3))"),
    ("(x * 2.0).view(12)", "pg.reshape(x * 2.0, 12)"),
    ("v.expand(3, 4)", "pg.broadcast_to(v, (3, 4))"),
    ("x.masked_fill(x > 0, 1.5)", "pg.where(x > 0, 1.5, x)"),
    ("x.clamp(0.25, 0.5)", "pg.clip(x, 0.25, 0.5)"),
    ("pg.cat([x, x], dim=0)", "pg.concatenate([x, x], axis=0)"),
    ("(x + 1.0).to('float32')", "(x + 1.0).astype('float32')"),
    ("out = np.zeros(4)\nout[:] = v", "out = pg.set_slice(out, np.s_[:], v)"),
    ("min(x[0, 0], 3.0)", "pg.minimum(x[0, 0], 3.0)"),
]

MISTAKES = [
    *OPERATORS,
    *PROGRAMS,
    *RUNS,
    *DERIVATIVES,
    *TRAINING,
    *FILES,
    *TOOLS,
    *LIBRARIES,
    *CALLED,
    *NEWCOMERS,
]


def write_library(folder: Path) -> None:
    """An installed package of nobody's, which looks at what it is given."""
    package = folder / "site-packages" / "squares.py"
    package.parent.mkdir()
    package.write_text("def of(x):\n    return x * x if x else x\n", encoding="utf-8")


def provoked(
    text: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    namespace: dict[str, Any] | None = None,
) -> tuple[Exception, int]:
    """The error that `text` raises in a file of its own, and the line that it should name.

    `namespace` is where the names of the file are found afterwards.
    """
    file = folder / "model.py"
    source = f"{PREAMBLE.lstrip()}{text}\n"
    file.write_text(source, encoding="utf-8")
    write_library(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "squares", raising=False)
    linecache.checkcache()
    lines = source.splitlines()
    marked = [n for n, line in enumerate(lines, 1) if line.endswith("# <-")]
    namespace = {} if namespace is None else namespace
    namespace |= {"__name__": "model"}
    try:
        exec(compile(source, str(file), "exec"), namespace)
    except Exception as error:
        return error, marked[0] if marked else len(lines)
    finally:
        namespace["program"].__exit__()
        pg.set_default_dtype("float64")
    raise AssertionError(f"nothing was wrong with {text}")


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Forgets the primitives that a mistake was made with."""
    # With the ops of modules that the mistake is the first to import.
    before = dict(registry.registered())
    yield
    registry._registry.clear()
    registry._registry.update(before)


@pytest.mark.parametrize("mistake", MISTAKES, ids=[m[0].splitlines()[-1] for m in MISTAKES])
def test_a_mistake_is_told_with_its_line(
    mistake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, kind, *words = mistake
    error, line = provoked(text, tmp_path, monkeypatch)
    message = str(error)
    assert type(error).__name__ == kind, message
    for word in words:
        assert word in message, message
    assert isinstance(error, PrimgraphError), message
    written = [row for row in message.splitlines()[1:] if row.startswith("  written here:")]
    assert written, message
    assert f"model.py:{line} " in written[0], message
    assert written[0].endswith((tmp_path / "model.py").read_text().splitlines()[line - 1].strip())


@pytest.mark.parametrize(("text", "advice"), ADVICE, ids=[a[0] for a in ADVICE])
def test_advice_is_code_that_runs(
    text: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, Any] = {}
    error, line = provoked(text, tmp_path, monkeypatch, names)
    # NumPy chains what a variable says to an error of its own where elements are assigned to.
    message = str(error if isinstance(error, PrimgraphError) else error.__cause__)
    assert f"write {advice}" in message, message
    assert f"model.py:{line} " in message, message
    names |= {"f": lambda a: pg.sum(a * a), "x0": np.ones(4), "y": names["x"]}
    with names["program"]:
        exec(advice.replace("not b", "b"), names)


def test_what_python_asks_of_numbers_is_built_where_that_is_natural() -> None:
    with pg.Program() as program:
        x = pg.data("x", (2,))
        total = pg.sum(x)
        quotient, rest = divmod(x, 2.0)
        built = [round(x, 1), round(total), math.floor(total), math.ceil(total), quotient, rest]
        built += [divmod(7.0, x)[1], pg.array([total, [1.0, 2.0][0]]), pg.array([[total], [total]])]
        built += [np.linalg.norm(x), np.linalg.norm(x, 1, axis=0), copy.deepcopy({"x": x})["x"]]
        built += [x.tanh(), x.pow(2), x.norm(), x.logsumexp(axis=0)]
    array = np.array([2.34, 4.26])
    sum_ = array.sum()
    expected = [array.round(1), round(sum_), 6.0, 7.0, *divmod(array, 2.0), divmod(7.0, array)[1]]
    expected += [[sum_, 1.0], [[sum_], [sum_]], np.linalg.norm(array), sum_, array]
    expected += [np.tanh(array), array**2, np.linalg.norm(array), np.logaddexp(*array)]
    found = pg.Executor().run(program, {"x": array}, built)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15)


def test_a_series_times_a_variable_is_a_variable() -> None:
    pandas = pytest.importorskip("pandas")
    with pg.Program() as program:
        x = pg.data("x", (3,))
        y = pandas.Series([1.0, 2.0, 3.0]) * x
    assert isinstance(y, pg.Variable)
    assert pg.Executor().run(program, {"x": np.ones(3)}, [y])[0].tolist() == [1.0, 2.0, 3.0]


def test_there_are_many_mistakes_and_all_are_different() -> None:
    assert len({m[0] for m in MISTAKES}) == len(MISTAKES) >= 200


def test_names_that_are_not_there_are_not_there() -> None:
    with pg.Program():
        handle = pg.data("x", (2,))
    for owner in (pg, pg.nn, pg.optimizer, handle):
        assert not hasattr(owner, "tahn")
        assert not hasattr(owner, "__tahn__")
        assert getattr(owner, "tahn", None) is None
    names: dict[str, Any] = {}
    exec("from primgraph import *", names)
    assert set(pg.__all__) <= set(names)
    with pytest.raises(ImportError, match="cannot import name 'tahn'"):
        exec("from primgraph import tahn", names)


def test_the_parts_of_an_error_can_be_had_one_by_one() -> None:
    with pytest.raises(pg.ShapeError) as caught:
        pg.zeros((2, 3)) + pg.zeros((4,))
    error = caught.value
    assert error.message == str(error).splitlines()[0]
    assert error.place.file == __file__
    assert error.origin[0].startswith("written here:  test_mistakes.py:")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)


def test_where_all_code_is_installed_the_innermost_line_outside_primgraph_is_named(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    text = "import primgraph as pg\nprint(pg.trace(lambda a: pg.sin(a), 1.0).body[0].source)\n"
    (folder / "waves.py").write_text(text, encoding="utf-8")
    path = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{Path(pg.__file__).parents[1]}"}
    command = [sys.executable, "-m", "waves"]
    run = subprocess.run(command, env=path, capture_output=True, text=True, timeout=120)
    assert run.stdout.strip() == "waves.py:2", run.stderr


@pytest.mark.parametrize("module", [array_functions, absent])
def test_names_in_hints_exist(module):
    names = set(re.findall(r"\bpg((?:\.[a-z]\w+)+)", inspect.getsource(module)))
    assert len(names) > 10
    for name in names:
        found = pg
        for part in name.strip(".").split("."):
            found = getattr(found, part)
