"""A training that goes on to the bit: what it consists of, how it is saved, put back and told."""
