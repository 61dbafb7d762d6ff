"""EC2: machines for whoever owns a bucket. boto3 (the extra `aws`) is imported when it is used.

clients.py    clients of an account, region by region, and whose account it is
troubles.py   AWS's error codes, and what each means to us; denied.py: what it says behind a no
footprint.py  what `tradewind setup aws` has made, and where that is written down
provider.py   launch, list, terminate

machines/     what EC2 is asked for and tells, what a machine is told, and what it costs
limits/       what an account can have: zones, types, images, quotas, spot prices
checks/       `tradewind doctor aws`
setup/        `tradewind setup aws` and `teardown`: made, printed, removed
"""
