"""Hosts of one's own, reached by the user's own OpenSSH: workstations, a rack, a lab's servers.

there/        what runs on a host: leases of GPUs, machines, their keepers
program.py    there/, as one text that is sent over the connection
client.py     a question to a host, and its answer
troubles.py   what ssh says, and what it means to us
names.py      how hosts and their machines are called
facts.py      how machines on hosts behave
footprint.py  what `tradewind setup ssh` has found and made, and where that is written down
offers.py     what hosts have, as offers
usable.py     which of a plan's ways hosts can take now
provider.py   launch, list, end
links.py      a folder that hosts share, as a store
relay.py      connections by which hosts reach a store on this computer
found.py      whether machines can be on a host that was looked at
reach.py      which hosts reach each other, and by what address
answers.py    what hosts answer, checked
setup.py      `tradewind setup ssh` and `teardown`
checks.py     `tradewind doctor ssh`
who.py        on a host: by what address the others reach it
aboard.py     on a host: notices
"""
