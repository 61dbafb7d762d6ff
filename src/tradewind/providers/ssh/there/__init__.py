"""What runs on a host, of Python 3.11 and its standard library alone. It is sent with each question
(../program.py), and nothing of it stays but the keepers of machines.

moments.py    clocks
folder.py     what lies where on a host, and whose it is
processes.py  all processes of a machine, and how they are killed
drivers.py    what the drivers' tools tell of GPUs
gpus.py       the GPUs, who uses them, and leases of them
kits.py       what machines begin with, where the store cannot be seen from here
relay.py      sockets that lead to a store on the user's computer
keeper.py     the process that holds a machine's leases, starts it and ends it
machines.py   launch, list, end
look.py       what a host is and has
main.py       one question, one answer
"""
