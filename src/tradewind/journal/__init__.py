"""Numbered commits in a store, and the runs that a store holds."""
