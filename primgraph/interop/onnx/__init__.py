"""ONNX models as functions, and graphs as ONNX models."""
