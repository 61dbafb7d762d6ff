"""Plans as files that do the same without us: images, manifests, scripts.

A kind of file is a module (or a small folder) in `kinds/` and a line in `registry.py`. It has

    TAKES = (registry.TRAINING,)
    SETTINGS = (Setting("labels", "Whose labels of nodes", ("plain", "gke")),)

    def export(asked: Asked, settings: Mapping[str, str]) -> Exported: ...

and is pure: of what is asked for (asked.py) it makes texts by path (exported.py), or raises Refused
with the reason and the nearest that works. It writes no header and no file, and reads nothing:
`making.py` puts a header over each text and sees that none holds a secret, `folder.py` writes them.
No kind imports another: what two of them need lies beside `kinds/`.
"""
