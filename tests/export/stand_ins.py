"""A cloud's command line and its metadata server, as the script of a machine asks them: a folder is
the bucket, and a file says what is to happen. What the script does with them is what is tested."""

from __future__ import annotations

from pathlib import Path

AWS = r"""#!/bin/bash
set -e
echo "aws $*" >> "$WORLD/asked"
local_of() { echo "${1/#s3:\/\/$BUCKET/$WORLD/bucket}"; }
refused() { # WHAT: so often as the file of that name has lines
  [ ! -s "$WORLD/refuses-$1" ] || { sed -i 1d "$WORLD/refuses-$1"; return 1; }
}
case "$1 $2" in
  "s3api head-object") test -e "$WORLD/bucket/$6" ;;
  "s3 cp") # --quiet FROM TO
    from=$(local_of "$4") to=$(local_of "$5")
    if [ "$to" = - ]; then cat "$from"; else mkdir -p "$(dirname "$to")"; cat > "$to"; fi ;;
  "s3 sync") # --quiet [--exact-timestamps] FROM TO
    exact=''
    [ "$4" != --exact-timestamps ] || { exact=yes; shift; }
    from=$(local_of "$4") to=$(local_of "$5")
    [ "$4" != checkpoints ] || refused save || exit 1
    mkdir -p "$from" "$to"
    (cd "$from" && find . -type f) | while read -r file; do
      one="$from/$file" other="$to/$file" keep=''
      if [ -e "$other" ] && [ "$(stat -c %s "$one")" = "$(stat -c %s "$other")" ]; then
        case "$4 $exact" in
          s3://*yes) [ "$one" -nt "$other" ] || [ "$other" -nt "$one" ] || keep=yes ;;
          s3://*) [ "$other" -nt "$one" ] || keep=yes ;; # as its own documentation has it
          *) [ "$one" -nt "$other" ] || keep=yes ;;
        esac
      fi
      [ -z "$keep" ] || continue
      mkdir -p "$(dirname "$other")"
      case "$4" in s3://*) cp -p "$one" "$other" ;; *) cp "$one" "$other" ;; esac
    done ;;
  "autoscaling set-desired-capacity")
    refused end || exit 254
    echo "$6" > "$WORLD/machines" ;;
  "autoscaling describe-auto-scaling-groups") echo "i-2	i-1" ;;
  "ec2 describe-instances")
    refused members || exit 254
    printf '127.0.0.2\t127.0.0.1\n' ;;
  "ssm get-parameter") echo "told-$5" ;;
  "secretsmanager get-secret-value") echo '{"key": "inner"}' ;;
  *) echo "aws $*?" >&2; exit 1 ;;
esac
"""
CURL = r"""#!/bin/bash
for each; do last=$each; done
case "$last" in
  */token) echo token ;;
  */local-ipv4) echo "${ADDRESS:-127.0.0.1}" ;;
  */spot/instance-action) test -e "$WORLD/notice" ;;
  *) exit 22 ;;
esac
"""


def put(world: Path) -> Path:
    """A folder for PATH."""
    tools = world / "tools"
    tools.mkdir(parents=True)
    for name, text in (("aws", AWS), ("curl", CURL)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    (world / "bucket").mkdir()
    return tools
