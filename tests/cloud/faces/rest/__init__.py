"""One face for every cloud that is asked by JSON over HTTP: what differs between them is a table.

table.py says what a table has; face.py does what routes say; shapes.py writes JSON. A table with
its FACE is a module, such as ../lambda_cloud.py:

    FACE = Rest(Table(name="nimbus", …))

    with server.running(folder, "tests.cloud.faces.nimbus", Control, bodies="process") as cloud:
        urlopen(Request(f"{cloud.url}/v1/machines", headers={"Authorization": f"Bearer {KEY}"}))

Faults and lost answers are set by a route's `action`: `cloud.fail("launch", CODE, after=True)`.
"""
