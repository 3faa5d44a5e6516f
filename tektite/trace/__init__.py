"""Batches, the spines that merge them, and the traces and handles that readers see."""
