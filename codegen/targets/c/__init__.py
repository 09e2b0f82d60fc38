"""Printers of C for loop nests."""
