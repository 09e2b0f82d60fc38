"""Programs of JAX as graphs: `from_jax`."""

from primgraph.interop.jax.tracing import from_jax

__all__ = ["from_jax"]
