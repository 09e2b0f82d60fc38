"""Gradients of tensors."""
