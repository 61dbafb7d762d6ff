#!/bin/sh
# What a container of Tradewind does: the second way of coming up, beside first.sh. It shuts nothing
# down: it ends, and whoever started it takes the machine back. Its folder is $TRADEWIND_HOME, which
# may be the only one that it can write to. It is told to end by SIGTERM, and passes that on.
umask 077
home=${TRADEWIND_HOME:-/var/lib/tradewind}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$home" && cd "$home" || exit 1
if mkfifo said; then
  tee -a first.log < said &
  tee=$!
  exec > said 2>&1
  rm said
fi
@ENVIRONMENT@

@FIND_PYTHON@
python=$(find_python)
if [ -z "$python" ] && [ -x "$home/python/bin/python3" ]; then
  # Brought by another image (inject.py); what it was linked with comes behind the image's own.
  LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$home/python/linked:$home/python/lib"
  export LD_LIBRARY_PATH
  suits "$home/python/bin/python3" && python=$home/python/bin/python3
fi
code=@NO_PYTHON@
if [ -z "$python" ]; then
  echo "error: this image has no Python 3.11 or newer"
else
  cp "$here/given.json" "$here/first.py" . || exit 1
  "$python" -P first.py "$home/given.json" &
  ours=$!
  trap 'kill -TERM "$ours" 2> /dev/null' TERM # it is taken: save
  trap 'kill -INT "$ours" 2> /dev/null' INT # it is not needed any more
  wait "$ours"
  code=$?
  while kill -0 "$ours" 2> /dev/null; do # the wait was cut short by a signal
    wait "$ours"
    code=$?
  done
fi
if [ "$code" != 0 ]; then
  echo "ended with code $code"
  sleep 1
  # Each rank has a key of its own; one that never learned its rank takes any.
  set -- @TELL@
  rank=$(cat rank 2> /dev/null || echo $$)
  if [ "$#" != 0 ]; then
    shift $((rank % $#))
    if [ -n "$python" ]; then
      "$python" -c 'import sys, urllib.request as r
from pathlib import Path
data, to = open("first.log", "rb").read()[-60000:], sys.argv[1]
if to.startswith("file:"):
    path = Path(r.url2pathname(to.removeprefix("file://")))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
else:
    r.urlopen(r.Request(to, data, method="PUT"), timeout=60)' "$1"
    else
      curl -sS --retry 5 --max-time 60 -T first.log "$1" || wget -q --method=PUT --body-file=first.log "$1"
    fi
  fi
fi
exec > /dev/null 2>&1
[ -z "$tee" ] || wait "$tee"
exit "$code"
