"""The objects that a leg is made of, as the API server is sent them.

order.py      what all of them are made from
placement.py  which nodes suit, and what of one a pod asks for
pod.py        the pod: as unprivileged as Kubernetes knows
leg.py        the Job, or the JobSet around it; it is made suspended, and begins by a patch
beside.py     what its pods need besides: a Secret, a Service, Volcano's PodGroup
"""
