#!/bin/sh
# Debian packages that the tests marked `system` use. A missing one is a failure, not a skip.
set -eu
needed=''
command -v chromium >/dev/null || needed="$needed chromium"
command -v tmux >/dev/null || needed="$needed tmux"
[ -z "$needed" ] && exit 0
[ "$(id -u)" = 0 ] && root='' || root='sudo'
$root apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $needed >/dev/null
