"""A folder or a file for each cloud that can be spoken to: its wire format, and nothing that is
true of other clouds too (that is in tests/cloud)."""
