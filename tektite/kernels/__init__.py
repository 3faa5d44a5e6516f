"""Kernels: the only place with loops over rows. Plain loops over words, compiled by Numba, run without the GIL."""
