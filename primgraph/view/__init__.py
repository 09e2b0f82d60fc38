"""Pictures of graphs: as data, text, SVG and HTML."""
