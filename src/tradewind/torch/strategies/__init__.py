"""A plan's layout made real: replicas, shards, split tensors, stages; precision; memory.

`prepare` is the way in. One file for each strategy, which knows nothing of the others; what they
may be combined to is in `prepare`.
"""
