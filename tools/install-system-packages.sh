#!/bin/sh
# Debian packages (and a few of npm) that the tests marked `system` use. A missing one is a failure, not a skip.
set -eu
cd "$(dirname "$0")/.."
needed=''
command -v chromium >/dev/null || needed="$needed chromium"
command -v ip >/dev/null || needed="$needed iproute2"
command -v cc >/dev/null || needed="$needed gcc libc6-dev"
command -v tmux >/dev/null || needed="$needed tmux"
command -v zsh >/dev/null || needed="$needed zsh"
command -v fish >/dev/null || needed="$needed fish"
command -v npm >/dev/null || needed="$needed npm"
[ "$(id -u)" = 0 ] && root='' || root='sudo'
if [ -n "$needed" ]; then
  $root apt-get update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $needed >/dev/null
fi
# Azure's own emulator of its blob storage.
command -v azurite-blob >/dev/null || $root npm install --silent --global azurite >/dev/null
# HashiCorp's own parser and formatter of Terraform's language, and what its provider for AWS knows. That is 37 MB, and
# ten times as much unpacked: tests read it as it comes. An installation that was cut off is begun again.
tf=build/terraform
if [ ! -e "$tf/ready-21.22.1-0.21.0" ]; then
  rm -rf "$tf" && mkdir -p "$tf"
  npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix "$tf" \
    @cdktf/hcl2json@0.21.0 @cdktf/hcl-tools@0.21.0 >/dev/null
  npm pack --silent --pack-destination "$tf" @cdktf/provider-aws@21.22.1 >/dev/null
  touch "$tf/ready-21.22.1-0.21.0"
fi
