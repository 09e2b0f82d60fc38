"""Facts that primitives declare about themselves: see `primgraph.ir.primitive.Fact`."""
