"""The front of a service: HAProxy before its replicas, driven as a library.

    routes    values: a Front (where it listens, keys, limits), a Backend (a replica), Affinity
    config    Front → the text of haproxy.cfg and of the maps beside it. Pure
    changes   what HAProxy has, what is wanted → commands for its runtime socket. Pure
    stats     what HAProxy says of itself → values. Pure
    requests  its log, a line a request → values, and sums by key. Pure
    runner    the process: started, changed without a lost request, looked at, stopped

Replicas are never in the configuration file. They are added at run time, in a state in which only
a passed probe opens them, so that coming and going needs no reload, and no replica has traffic
before it has answered its probe. docs/design/024-front.md says why.
"""
