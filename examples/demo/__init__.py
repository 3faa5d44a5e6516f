"""The demonstration, `python -m examples.demo`: many queries over one changing graph, with sharing and without."""
