"""Tektite: standing queries over changing data that share the indexes they need."""
