"""From a graph to a plan: what is computed in which order, in which blocks, and where in memory."""
