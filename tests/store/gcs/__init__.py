"""A Cloud Storage server for tests: its XML API as object stores use it, and of its JSON API what
tools ask of buckets and objects. Generations are real: of sixteen who create at once one does.

    python -m tests.store.gcs PORT --state FOLDER [--bucket runs]

What is written is kept in the folder, and is there again after a restart. By itself it lets
everybody in; tests/cloud/faces/google puts a gate before it, which knows tokens, policies and
signed links.

    objects.py   buckets and objects, on disk            xml.py     the one API
    server.py    HTTP, the gate, the books               json.py    the other
    signed.py    links that were signed                  gate.py    who may

Known lies: older generations are not kept, nor what was deleted (soft delete is written down in the
bucket and nothing follows); a generation is a counter, and no time; composed, encrypted and held
objects are not there; an object's own ACL is not looked at; a part of an upload may be of any size;
listings are never late (the real ones are not either).
"""
