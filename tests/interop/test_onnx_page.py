"""The page about models of ONNX."""

import onnx_table


def test_the_tables_are_those_of_the_package():
    assert onnx_table.shown() == onnx_table.table(), "run python tests/tools/onnx_table.py"
