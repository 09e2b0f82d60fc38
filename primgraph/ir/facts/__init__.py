"""Facts that primitives declare for analyses; see `primgraph.ir.primitive.Fact`."""
