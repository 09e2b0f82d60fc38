"""Ground of the house: files, locks, interrupts, lines of the user's code."""
