"""Commands that write a plan as files, and build images of them."""
