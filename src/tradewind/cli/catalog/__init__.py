"""Commands about the catalog: search it, compare, look after it."""
