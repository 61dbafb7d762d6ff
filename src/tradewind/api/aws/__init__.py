"""AWS for a store: setting an account up, and machines there for its runs."""
