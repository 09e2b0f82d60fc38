"""Modules and layers by topic, in files with torch's names."""

from primgraph.compat.mirror import mirror

mirror(globals())
