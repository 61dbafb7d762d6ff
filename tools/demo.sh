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

say 'A 1.3B model on 26B tokens, done in three days: what should I rent?'
show plan examples/pretrain-1.3b/work.yaml --html demo/plan.html

say 'Will an 8B model fit on eight A100s, and how fast will it go?'
show estimate --model llama-3.1-8b --on 8xA100-80GB --seq 8192

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
printf '\nOpen demo/plan.html and demo/prices.html in a browser. Next: tradewind --help, docs/\n'
