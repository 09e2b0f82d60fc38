"""Inspection of programs: costs, profiles, differences, explanations, checks."""
