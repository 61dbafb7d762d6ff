"""What needs PyTorch. Importing this does not import it: the functions do, where they use it."""
