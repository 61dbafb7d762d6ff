"""A leg's machines.

order.py         a purchase, as EC2 is asked for it; reservations.py: of what the user owns already
groups.py        placement groups: machines that stand close together
userdata.py      what a machine is told at its launch: first.sh, and first.py in it
listing.py       EC2's instances as our machines
paid.py          what spot machines were charged at
"""
