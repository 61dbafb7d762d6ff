"""Kubernetes clusters: nodes are offers, pods are machines, a leg is one Job.

cloud.py      the cloud, as the rest sees it        provider.py  what a controller asks of clusters
footprint.py  what setup has made, by cluster       client.py    requests, by the user's kubeconfig
labels.py     names and labels, and back            manifests/   the objects of a leg
offers/       what nodes there are, at what price   troubles.py  causes, in words, with what to do
setup.py      namespace, rights                     aboard.py, who.py  in the pod
"""
