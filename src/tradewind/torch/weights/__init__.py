"""The trained weights out of a checkpoint, in formats that others read."""
