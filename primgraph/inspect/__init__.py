"""What is asked of programs: costs, profiles, differences, explanations, checks."""
