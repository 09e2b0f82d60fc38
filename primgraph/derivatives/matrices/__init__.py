"""Matrices of derivatives: Jacobians and Hessians, dense, lazy and sparse."""
