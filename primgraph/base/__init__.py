"""Modules that import nothing above them: files, locks, interrupts, the user's source lines."""
