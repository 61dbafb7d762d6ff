"""What an account can really have.

zones.py    regions, zones, which of them offer a type, and what a type is; kept by remembered.py
images.py   which image a machine starts from
quotas.py   how many vCPUs the account may have, and has
prices.py   spot prices; scores.py: how likely spot machines are to be had
usable.py   of a run's ways those that can be attempted, and why not the others; by looking.py
"""
