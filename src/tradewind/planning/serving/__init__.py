"""The cheapest set of replicas that keeps latency targets: see `planner.plan`."""
