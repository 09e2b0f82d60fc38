"""What printers of Python share: names, titles, comments, long lines, modules and their clocks."""
