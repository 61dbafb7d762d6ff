"""`shutdown`, `poweroff`, `halt`, `reboot` and `systemctl` of a body: they tell the equipment, by
the metadata service, which kills the body. This is a program's text; what calls it is its name.

Known lies: processes get no SIGTERM first, as they do when the API ends a machine; a reboot is
refused; `systemctl` knows poweroff and halt and nothing else.
"""

METADATA = "TRADEWIND_BODY_METADATA"
"""The variable by which it is found, where 169.254.169.254 is not the body's own."""

PROGRAM = """
import os, sys, urllib.request
name, asked = os.path.basename(sys.argv[0]), sys.argv[1:]
after_s, words = 0.0, [each for each in asked if not each.startswith("-")]
if name == "reboot" or "-r" in asked or words[:1] == ["reboot"]:
    sys.exit("equipment: a body cannot be started again")
if "-c" in asked:
    sys.exit("equipment: a shutdown cannot be cancelled")
if name == "systemctl" and words[:1] not in (["poweroff"], ["halt"]):
    sys.exit("equipment: there is no systemd in a body")
if name == "shutdown":
    when = words[0] if words else "+1"
    after_s = 0.0 if when == "now" else 60.0 * float(when.lstrip("+"))
base = os.environ.get("TRADEWIND_BODY_METADATA", "http://169.254.169.254/")
url = base.rstrip("/") + "/equipment/shutdown?after_s=" + str(after_s)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
opener.open(urllib.request.Request(url, data=b"", method="POST"), timeout=10).close()
"""


def program(python: str) -> str:
    return f"#!{python} -IS\n{PROGRAM}"
