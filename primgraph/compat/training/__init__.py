"""Optimizers and learning-rate schedules that the four systems share."""
