"""Commands about work that is not yet running: plan, estimate, check."""
