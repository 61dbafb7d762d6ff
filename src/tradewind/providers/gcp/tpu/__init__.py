"""TPU slices: several machines (its workers) that are bought, taken and ended as one.

kinds.py     what a slice is, by the catalog's name: its workers, its runtime
api.py       the calls of tpu.googleapis.com v2; troubles.py: what its errors mean
order.py     a purchase, as it is asked for: a node, or a queued resource
listing.py   nodes and queued resources as our machines, those that are gone by their operations
provider.py  slices as a Provider

In the catalog a slice is one machine with all its chips, at one price. For a run each worker is a
machine, a rank and a part of that price (kinds.by_worker). Google ends a slice as a whole: whoever
terminates one of its workers ends them all.
"""
