"""Graphs as models of ONNX."""
