#!/bin/sh
# What `make demo` shows. Everything is answered from the catalog in the package: no account, no key.
set -eu
TRADEWIND_HOME=$(mktemp -d)
export TRADEWIND_HOME
trap 'rm -rf "$TRADEWIND_HOME"' EXIT
mkdir -p demo

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
show() {
  printf '\n$ tradewind'
  for word in "$@"; do printf ' %s' "$word"; done
  printf '\n'
  # 3: nothing matches, as when every price in an old package has become stale. It says so.
  tradewind "$@" || [ $? -eq 3 ]
}

say 'Eight H100s in one machine, anywhere: who is cheapest?'
show offers h100:8 --limit 8

say 'The same money counted per PFLOP-hour, spot only, at least 40 GB each'
show offers --market spot --memory 40GB --sort pflop-hour --limit 5

say 'Three clouds, the same machine: what differs?'
show compare p4d.24xlarge a2-highgpu-8g Standard_ND96asr_v4

say 'What the catalog does not trust, and why'
show catalog doctor --limit 2

say 'Pictures'
show offers --plot demo/prices.html
show accelerators --plot demo/generations.png
printf '\nOpen demo/prices.html in a browser. Next: tradewind --help, docs/\n'
