"""Services on a trace of requests: what serving it would have cost, by several policies."""
