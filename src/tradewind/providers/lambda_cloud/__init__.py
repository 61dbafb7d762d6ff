"""Lambda Cloud: machines with GPUs, on demand, one by one, by its API v1. No library is needed.

api.py        the calls that we make, what is answered, and where the key is found
troubles.py   Lambda's error codes, and what each means to us
names.py      what stands in a machine's name: Lambda tells neither whose it is nor since when
facts.py      how machines of Lambda behave
provider.py   launch, list, terminate: one machine a call (../gang.py makes requests of them)
usable.py     what can be had of a plan's ways, at the prices of now
footprint.py  what `tradewind setup lambda` has made, and where that is written down
setup.py      `tradewind setup lambda` and `teardown`
checks.py     `tradewind doctor lambda`
who.py        on a machine: by what address the others reach it
"""
