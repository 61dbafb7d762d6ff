#!/bin/sh
# Debian packages (and one of npm) that the tests marked `system` use. A missing one is a failure, not a skip.
set -eu
needed=''
command -v chromium >/dev/null || needed="$needed chromium"
command -v ip >/dev/null || needed="$needed iproute2"
command -v cc >/dev/null || needed="$needed gcc libc6-dev"
command -v tmux >/dev/null || needed="$needed tmux"
command -v zsh >/dev/null || needed="$needed zsh"
command -v fish >/dev/null || needed="$needed fish"
command -v azurite-blob >/dev/null || command -v npm >/dev/null || needed="$needed npm"
[ "$(id -u)" = 0 ] && root='' || root='sudo'
if [ -n "$needed" ]; then
  $root apt-get update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $needed >/dev/null
fi
# Azure's own emulator of its blob storage.
command -v azurite-blob >/dev/null || $root npm install --silent --global azurite >/dev/null
