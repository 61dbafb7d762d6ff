#!/bin/bash
# What a machine of Tradewind does when it comes up. Nothing in here is secret: the links die soon.
# However it ends, the machine ends with it; if it could not even begin, it says why.
umask 077
home=/var/lib/tradewind
mkdir -p "$home" && cd "$home" || shutdown -h now
exec > >(tee -a "$home/first.log") 2>&1
# Should everything here hang, the machine has its hard stop nevertheless.
(sleep @STOP_S@; shutdown -h now) > /dev/null 2>&1 &
export PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root
# Should somebody restart the machine, this does not run again, and nobody would stop it.
again=/var/lib/cloud/scripts/per-boot
if [ -d "$again" ]; then
  printf '#!/bin/sh\nshutdown -h now\n' > "$again/tradewind" && chmod 755 "$again/tradewind"
fi
@ENVIRONMENT@

@FIND_PYTHON@
python=$(find_python)
if [ -z "$python" ] && command -v apt-get > /dev/null; then
  echo "no Python 3.11 or newer; asking the system's packages for it"
  apt-get update -qq && apt-get install -qq -y python3.11 python3.11-venv
  python=$(find_python)
fi
cat > given.json <<'@END@'
@GIVEN@
@END@
cat > first.py <<'@END@'
@PROGRAM@
@END@
if [ -z "$python" ]; then
  echo "error: this image has no Python 3.11 or newer, and none can be installed"
  code=1
else
  "$python" -P first.py "$home/given.json"
  code=$?
fi
if [ "$code" != 0 ]; then
  echo "ended with code $code"
  sleep 1
  tail -c 60000 first.log > last.log
  # Each rank has a key of its own; one that never learned its rank takes any.
  tell=(@TELL@)
  rank=$(cat rank 2> /dev/null || echo "$RANDOM")
  to=${tell[$((rank % ${#tell[@]}))]}
  curl -sS --retry 5 --max-time 60 -T last.log "$to" || wget -q --method=PUT --body-file=last.log "$to"
fi
shutdown -h now
