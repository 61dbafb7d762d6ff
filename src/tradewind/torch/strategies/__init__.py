"""A plan's layout made real: replicas, shards, split tensors, stages; precision; memory.

`prepare` is the way in. One file for each strategy, which knows nothing of the others; what goes
together is in `rules`.
"""
