"""What `tradewind doctor gcp` finds out.

project.py      who we are, whether our clock is right, billing and APIs; then the others
permissions.py  what we may do, and what machines may
places.py       image, network and subnetworks
quotas.py       how many GPUs, CPUs, addresses and TPUs the project may have
"""

from tradewind.providers.gcp.checks.project import checks

__all__ = ["checks"]
