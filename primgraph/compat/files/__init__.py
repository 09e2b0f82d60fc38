"""Files of tensors, state dicts and containers of them, without pickle, for all systems."""
