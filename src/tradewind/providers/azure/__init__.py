"""Azure, as others' tools are told of it: nothing is rented there by us yet."""
