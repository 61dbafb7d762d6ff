"""What the figures of a training mean. Needs no PyTorch: whoever looks on may be far away."""
