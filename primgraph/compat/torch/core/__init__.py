"""Parts of the tensor of torch, and settings."""
