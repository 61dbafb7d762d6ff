"""What a cluster has, as offers.

look.py        what is asked of the API server, and what may not be asked
known.py       the labels by which vendors tell accelerators, spot machines and whose a cluster is
quantities.py  amounts as Kubernetes writes them
nodes.py       a node, read
shapes.py      nodes that are alike: what a pod asks for to get one, and how many there are
scaling.py     what an autoscaler could still add
"""
