"""From graphs to plans: order, fusion, blocks, places, and loop nests."""
