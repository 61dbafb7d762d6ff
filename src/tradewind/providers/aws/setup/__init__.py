"""What machines on AWS need, made once for a store.

things.py     all of it as plain data: the one description; policies.py: who may do what
make.py       looks and makes (bucket.py, roles.py, network.py by calls.py, as changes.py)
terraform.py  prints it instead, as cloudformation.py does
teardown.py   removes it
"""
