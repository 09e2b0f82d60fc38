"""Functions whose derivatives the user gives."""
