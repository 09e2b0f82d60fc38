"""Misuse of the public functions: the class, the words, and the user's line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import sample, traced

import primgraph.operators as ops
from primgraph.errors import ArgumentError, BuildError, DTypeError, PrimgraphError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.operators.variable import Variable

X = sample((3, 4))
INTS = np.arange(12).reshape(3, 4)
BOOLS = INTS > 5
BYTES = INTS.astype(np.uint8)

SHAPE_ERRORS = [
    (lambda v: v + np.ones(3), r"add cannot broadcast f64\[3,4\] with f64\[3\]: sizes \[3, 4\]"),
    (lambda v: v < np.ones(3), r"less cannot broadcast f64\[3,4\] with f64\[3\]"),
    (lambda v: ops.where(v > 0, v, np.ones(3)), r"where cannot broadcast bool\[3,4\] with f64"),
    (lambda v: ops.clip(v, np.ones(3)), r"less cannot broadcast f64\[3,4\] with f64\[3\]"),
    (lambda v: ops.sum(v, 2), r"sum of f64\[3,4\]: axis 2 is out of bounds"),
    (lambda v: ops.mean(v, -3), r"mean of f64\[3,4\]: axis -3 is out of bounds"),
    (lambda v: ops.max(v, (0, -2)), r"max of f64\[3,4\]: an axis is named twice"),
    (lambda v: ops.softmax(v[0, 0]), r"softmax of f64\[\]: axis -1 is out of bounds"),
    (lambda v: ops.argmax(v, 2), r"argmax of f64\[3,4\]: axis 2"),
    (lambda v: ops.cumsum(v, 2), r"cumsum of f64\[3,4\]: axis 2"),
    (lambda v: ops.reshape(v, (5, -1)), r"reshape of f64\[3,4\]: cannot reshape 12 elements"),
    (lambda v: ops.reshape(v, (-1, -1)), r"only one extent may be -1"),
    (lambda v: ops.broadcast_to(v, (3,)), r"broadcast_to cannot turn f64\[3,4\] into shape \(3,\)"),
    (lambda v: ops.broadcast_to(v, (3, 1)), r"broadcast_to cannot turn"),
    (lambda v: ops.transpose(v, (0, 0)), r"transpose of f64\[3,4\]: \(0, 0\) is not a permutation"),
    (lambda v: ops.swapaxes(v, 0, 2), r"swapaxes of f64\[3,4\]: axis 2"),
    (lambda v: ops.moveaxis(v, (0, 1), 0), "2 axes cannot go to 1 places"),
    (lambda v: ops.moveaxis(v, (0, 0), (0, 1)), "named twice"),
    (lambda v: ops.squeeze(v, 0), r"squeeze of f64\[3,4\]: axis 0 has extent 3, not 1"),
    (lambda v: ops.expand_dims(v, 3), r"expand_dims of f64\[3,4\]: axis 3"),
    (lambda v: ops.expand_dims(v, (0, 0)), "named twice"),
    (lambda v: ops.tril(v[0, 0]), r"tril of f64\[\]"),
    (lambda v: ops.concatenate([v, v[0]]), r"concatenate along axis 0 cannot join f64\[3,4\]"),
    (lambda v: ops.concatenate([v, v[:, 1:]]), r"cannot join f64\[3,4\] and f64\[3,3\]"),
    (lambda v: ops.concatenate([v[0, 0]]), r"0-d arrays such as f64\[\](.|\n)*pg\.stack"),
    (lambda v: ops.concatenate([v], 2), r"concatenate of f64\[3,4\]: axis 2"),
    (lambda v: ops.stack([v, v[0]]), r"arrays of one shape, not f64\[3,4\] and f64\[4\]"),
    (lambda v: ops.stack([v], 3), r"stack of f64\[3,4\]: axis 3"),
    (lambda v: ops.split(v, 5), "axis 0 does not divide into 5 equal parts"),
    (lambda v: ops.split(v, 0), "into 0 equal parts"),
    (lambda v: ops.roll(v, (1, 2, 3), (0, 1)), "3 shifts for 2 axes"),
    (lambda v: ops.tile(v, -1), "negative"),
    (lambda v: ops.repeat(v, [1, 2], 0), r"repeat of f64\[3,4\] along axis 0: \[1, 2\]"),
    (lambda v: ops.pad(v, [(1, 1)] * 3), r"pad of f64\[3,4\]: pad_width"),
    (lambda v: ops.pad(v, -1), "negative values"),
    (lambda v: ops.take_along_axis(v, [0], 0), r"as many axes in i64\[1\] as in f64\[3,4\]"),
    (
        lambda v: ops.scatter_add(v, [0, 1], np.ones((3, 4))),
        r"cannot put f64\[3,4\] where \(2, 4\)",
    ),
    (lambda v: ops.set_slice(v, 0, np.ones(3)), r"set_slice into f64\[3,4\] cannot put f64\[3\]"),
    (lambda v: ops.diagonal(v, axis2=0), "two different axes"),
    (lambda v: ops.strided_slice(v, [0], [1], [2, 3]), "as many bounds as axes"),
    (lambda v: ops.layer_norm(v, v[0, 1:]), r"a weight of shape \(4,\), not f64\[3\]"),
    (lambda v: ops.batch_norm(v, v[0], v[0, 1:]), r"a variance of shape \(4,\), not f64\[3\]"),
    (lambda v: ops.cross_entropy(v, [0, 1]), r"labels of shape \(3,\), not i64\[2\]"),
    (lambda v: ops.zeros((2, -1)), r"shape \(2, -1\) has a negative extent"),
    (lambda v: ops.full((2,), v), r"full cannot repeat f64\[3,4\] to shape \(2,\)"),
]


@pytest.mark.parametrize(("function", "words"), SHAPE_ERRORS)
def test_shape_errors(function: Any, words: str) -> None:
    with pytest.raises(ShapeError, match=words) as caught:
        traced(function, X)
    assert "written here:  test_operator_errors.py:" in str(caught.value)


DTYPE_ERRORS = [
    (lambda v: v - v, BOOLS, r"subtract does not take bool\[3,4\] and bool\[3,4\]"),
    (lambda v: -v, BOOLS, r"negative does not take bool\[3,4\]"),
    (lambda v: v & 1, X, r"bitwise_and takes integers and booleans, not f64\[3,4\] and 1"),
    (lambda v: 1 | v, X, r"bitwise_or takes integers and booleans(.|\n)*logical_and"),
    (lambda v: v ^ v, X, "bitwise_xor takes integers and booleans"),
    (lambda v: v << 1, X, "left_shift takes integers and booleans"),
    (lambda v: ~v, X, r"invert takes integers and booleans, not f64\[3,4\]"),
    (lambda v: v + 256, BYTES, "256 cannot be a constant of dtype uint8"),
    (lambda v: v * -1, BYTES, "-1 cannot be a constant of dtype uint8"),
    (lambda v: ops.where(v > 1, v, 300), BYTES, "300 cannot be a constant"),
    (lambda v: ops.clip(v, -1, 3), BYTES, "-1 cannot be a constant"),
    (lambda v: v**-1, INTS, r"integers have no negative powers: i64\[3,4\] to the power -1"),
    (lambda v: v ** np.array([-1]), INTS, "no negative powers"),
    (lambda v: v**300, BYTES, "300 cannot be a constant of dtype uint8"),
    (lambda v: v + np.array(1, "timedelta64[s]"), X, r"timedelta64\[s\] is not supported"),
    (lambda v: v + np.array("a"), X, "not supported"),
    (lambda v: v.astype("datetime64[s]"), X, r"datetime64\[s\] is not supported"),
    (lambda v: v.astype("nonsense"), X, "'nonsense' is not a dtype"),
    (lambda v: ops.round(v, -1), INTS, "to -1 decimals is not supported"),
    (lambda v: ops.take(v, [0.5]), X, r"take takes integer indices, not f64\[1\]"),
    (lambda v: ops.gather(v, v), X, r"gather takes integer indices, not f64\[3,4\]"),
    (lambda v: ops.scatter_add(v, [0], 0.5), INTS, r"cannot put f64\[\] into i64\[3,4\]"),
    (lambda v: ops.one_hot(v, 3), X, r"integer indices, not f64\[3,4\]"),
    (lambda v: ops.uniform(v), X, r"the key of uniform is an integer, not f64\[3,4\]"),
    (lambda v: ops.dropout(v, 0.5), X, r"the key of dropout is an integer, not f64\[\]"),
    (lambda v: ops.uniform(1, dtype=int), X, "uniform makes floats, not int64"),
    (lambda v: ops.cross_entropy(v, [True] * 3), X, r"not bool\[3\]"),
    (lambda v: ops.array([300], dtype="uint8"), X, "300 to 300 do not fit dtype uint8"),
    (lambda v: ops.iota(3, dtype=bool), X, "not in bool"),
]


@pytest.mark.parametrize(("function", "array", "words"), DTYPE_ERRORS)
def test_dtype_errors(function: Any, array: Any, words: str) -> None:
    with pytest.raises(DTypeError, match=words) as caught:
        traced(function, array)
    assert "written here:  test_operator_errors.py:" in str(caught.value)


ARGUMENT_ERRORS = [
    (lambda v: v + None, "cannot make an array of NoneType None"),
    (lambda v: ops.add(v, [[1, 2], [3]]), "cannot make an array of list"),
    (lambda v: v + np.ma.array([1], mask=[True]), "masked array"),
    (lambda v: ops.sum(v, 0, np.float64), "keepdims is True or False, not"),
    (lambda v: ops.mean(v, 0, 1), "keepdims is True or False, not 1"),
    (lambda v: ops.sum(v, 0.5), r"sum of f64\[3,4\]: an axis is an integer, not 0.5"),
    (lambda v: ops.var(v, ddof=v), "plain data, not Variable"),
    (lambda v: ops.norm(v, 3), "norm of matrices takes no order 3"),
    (lambda v: ops.reshape(v, v), "a shape is fixed when the program is built"),
    (lambda v: ops.reshape(v, (3, v[0, 0])), "it cannot be a variable"),
    (lambda v: ops.reshape(v, (3.5, 2)), "made of integers"),
    (lambda v: ops.zeros(v), "a shape is an integer or a sequence"),
    (lambda v: ops.transpose(v, 1), "axes is a sequence of integers"),
    (lambda v: ops.arange(v[0, 0]), "arange takes numbers"),
    (lambda v: ops.arange(1, 2, 0), "step 0"),
    (lambda v: ops.linspace(0, 1, 2.5), "whole number"),
    (lambda v: ops.concatenate([]), "at least one array"),
    (lambda v: ops.concatenate(3), "at least one array"),
    (lambda v: ops.stack([]), "at least one array"),
    (lambda v: ops.add_n([]), "at least one array"),
    (lambda v: ops.add_n(v), "at least one array"),
    (lambda v: ops.split(v, 0.5), "split takes integers"),
    (lambda v: ops.strided_slice(v, 0, 1, 2), "sequences of integers"),
    (lambda v: ops.clip(v, 0, a_min=1), "min and a_min can.t be provided simultaneously"),
    (lambda v: ops.var(v, ddof=1, correction=0), "ddof and correction are two names"),
    (lambda v: ops.einsum(v, [0, 52]), "integer from 0 to 51, not 52"),
    (lambda v: ops.einsum(v, v), "as a string, not Variable(.|\n)*list of integers"),
    (lambda v: ops.split(v, [v]), "fixed when the program is built"),
    (lambda v: ops.tile(v, 1.5), "tile takes integers"),
    (lambda v: ops.roll(v, 0.5), "roll takes integers"),
    (lambda v: ops.pad(v, 0.5), "of integral type"),
    (lambda v: ops.pad(v, 1, "middle"), "pad: mode 'middle' is not supported"),
    (lambda v: ops.pad(v, 1, "mean", constant_values=1), "'mean' takes no constant_values"),
    (lambda v: ops.pad(v, 1, "wrap", stat_length=1), "'wrap' takes no stat_length"),
    (lambda v: ops.pad(v, 1, "reflect", reflect_type="both"), "'even' or 'odd', not 'both'"),
    (lambda v: ops.pad(v, 1, "mean", stat_length=0.5), "stat_length are integers"),
    (lambda v: ops.unpackbits(ops.astype(v, "uint8"), count=-97), "cannot leave out 97"),
    (lambda v: ops.packbits(ops.astype(v, "uint8"), bitorder="up"), "'big' or 'little'"),
    (lambda v: ops.round(v, 0.5), "decimals is an integer"),
    (lambda v: ops.scale(v, 2.0, 1.0, "yes"), "bias_after_scale is True or False"),
    (lambda v: ops.gelu(v, "tanh"), "approximate is True or False, not 'tanh'"),
    (lambda v: ops.layer_norm(v, eps="small"), "eps is a number, not str 'small'"),
    (lambda v: ops.cross_entropy(v, [0, 1, 2], reduction="max"), "reduction 'max'"),
    (lambda v: ops.dropout(v, 1, 1.5), "rate is a probability between 0 and 1, not 1.5"),
    (lambda v: ops.dropout(v, 1, v), "plain data, not Variable"),
    (lambda v: ops.dropout(v, 1, mode="none"), "dropout mode 'none'"),
    (lambda v: ops.dropout(v, [1, 2]), r"one key, not i64\[2\]"),
    (lambda v: ops.bernoulli(1, 3, -0.1), "p is a probability"),
    (lambda v: ops.uniform(1, 3, low="a"), "low is a number"),
    (lambda v: ops.tensordot(v, v, "ij"), "a pair"),
]


@pytest.mark.parametrize(("function", "words"), ARGUMENT_ERRORS)
def test_argument_errors(function: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words) as caught:
        traced(function, X)
    assert "written here:  test_operator_errors.py:" in str(caught.value)


def test_the_message_names_the_operands_and_where_they_come_from() -> None:
    builder = Builder()
    x = Variable(builder, builder.input(TensorType((3, 4), FLOAT64), "features"))
    h = ops.tanh(x)
    with pytest.raises(ShapeError) as caught:
        ops.matmul(h, np.ones((5, 2)))
    first, here, operand, *_ = str(caught.value).splitlines()
    assert first == "matmul cannot multiply f64[3,4] by f64[5,2]: inner sizes 4 and 5 differ"
    assert here.startswith("  written here:  test_operator_errors.py:")
    assert here.endswith("ops.matmul(h, np.ones((5, 2)))")
    assert operand.startswith("  f64[3,4] comes from tanh at test_operator_errors.py:")
    with pytest.raises(ShapeError, match=r"f64\[3,4\] comes from tanh at test_operator_errors"):
        ops.layer_norm(h, x)


def test_variables_of_two_programs_do_not_meet() -> None:
    first, second = Builder(), Builder()
    x, y = (Variable(b, b.input(TensorType((), FLOAT64))) for b in (first, second))
    for function in (ops.add, ops.mse_loss, lambda u, v: ops.stack([u, v])):
        with pytest.raises(BuildError, match="two different programs"):
            function(x, y)


def test_variables_have_no_elements_to_look_at() -> None:
    builder = Builder()
    x = Variable(builder, builder.input(TensorType((), FLOAT64)))
    for use in (bool, len, list, np.asarray, float, int, lambda v: range(3)[v]):
        with pytest.raises(TypeError):
            use(x)
    with pytest.raises(PrimgraphError, match="has no elements before the program runs") as caught:
        np.asarray(x)
    assert "written here:  test_operator_errors.py:" in str(caught.value)
