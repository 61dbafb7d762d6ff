"""Batches by an order that can be gone on with: the script's own loader, iterated by ours."""
