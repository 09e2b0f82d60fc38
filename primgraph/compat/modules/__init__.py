"""Modules as torch has them: tables of parameters, buffers and modules, hooks and state dicts.

`module.Module` is the base of the modules and layers of the systems in `primgraph.compat`.
"""
