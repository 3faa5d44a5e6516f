"""Plans: a small algebra over collections, and its rendering as a dataflow."""
