"""Google Cloud: Compute Engine's machines and TPU VMs, for whoever owns a bucket of Cloud Storage.

Google is asked over REST (../rest.py). google-auth (the extra `gcp`) says who we are, and is
imported when it is used.

credentials.py  who we are, as Google's own tools find it, and the project
api.py          the calls of Google's APIs that we make, and the permission that each needs
operations.py   what Google has accepted and does later: waited for, and what went wrong
troubles.py     Google's error codes, and what each means to us
labels.py       what stands in a machine's name and labels, and how it is read back
footprint.py    what `tradewind setup gcp` has made, and where that is written down
facts.py        how machines of Google behave
provider.py     launch, list, terminate
links.py        signed links to objects of Cloud Storage
shell.py        `tradewind ssh`, through Identity-Aware Proxy
aboard.py       on a machine: notices and secrets (metadata.py, secrets.py); who.py: which it is

machines/       what Compute Engine is asked for and tells
tpu/            TPU VMs
limits/         what a project can have: zones, types, images, quotas
checks/         `tradewind doctor gcp`
setup/          `tradewind setup gcp` and `teardown`: made, printed, removed
"""
