"""The cheapest way to finish a workload in time: enumerate, price, rank, explain what lost.

import tradewind
found = tradewind.plan(tradewind.workload.load("work.yaml"))
print(found.best.instance_type, found.best.cost, found.best.chance)
"""
