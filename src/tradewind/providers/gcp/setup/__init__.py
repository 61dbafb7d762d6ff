"""What machines on Google Cloud need, made once for a store.

things.py    all of it as plain data: the one description; roles.py: who may do what; nets.py and
             fast.py: networks, and those for GPUDirect
make.py      looks and makes (services.py, bucket.py, accounts.py, network.py by calls.py)
printed.py   prints it instead: terraform.py, commands.py (gcloud), roles
teardown.py  removes it
"""
