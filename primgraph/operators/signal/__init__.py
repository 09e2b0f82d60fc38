"""Fourier transforms, convolutions and pools."""
