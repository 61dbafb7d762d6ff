"""Runs in a market that is written down: who sells what, at which price, and takes what away."""
