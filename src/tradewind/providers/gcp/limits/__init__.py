"""What a project can have.

zones.py    zones, and which of them offer a machine type, an accelerator or a TPU slice
quotas.py   how many GPUs, CPUs and addresses it may have at once
families.py the same of H100 and newer on demand, by Cloud Quotas
images.py   what a machine starts from, and which GPUs that can drive
looking.py  all of this for many ways at once
usable.py   of a plan's ways, those that can be launched
"""
