"""Data that keeps up with the training: shards and token files, from a store by way of a cache, and
loaders set to the machine. feeds/ goes on with all of it to the bit."""
