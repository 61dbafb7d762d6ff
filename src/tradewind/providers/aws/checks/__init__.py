"""What `tradewind doctor aws` finds out.

account.py      who we are, whether our clock is right, the role; then each region
regions.py      image, network and quotas of one region
permissions.py  what we may do there, by dry runs
"""
