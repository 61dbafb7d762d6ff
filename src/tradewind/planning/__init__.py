"""The cheapest way to finish a workload in time: enumerate, price, rank, explain what lost.
`tradewind.plan` is `api/planned.plan`, which calls `planner.plan`."""
