"""Money, derived from journals. Pure."""
