#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# Runs a command as somebody does who has a Debian 12 with git and nothing else: a machine on which the tests ran hides what
# the scripts forget to install. The last commit is cloned into a minimal system in a temporary folder, which is removed
# afterwards, also when interrupted. Sources of packages are this machine's; what was downloaded is kept for the next time.
#   sh tests/bare_machine.sh [COMMAND ARGUMENT...]     in the clone; default: sh examples/run.sh
# Needs root, for its own mounts and chroot. Folders: TMPDIR (5 GB for tests/run.sh), XDG_CACHE_HOME.
set -eu
unset CDPATH

# Inside: a mount namespace of its own, whose mounts end with it, and process 1 of its own, with which all others end.
if [ "${1:-}" = --inside ]; then
  root=$2
  packages=$3
  shift 3
  mount -t proc proc "$root/proc"
  mount -t tmpfs tmpfs "$root/dev/shm"
  mount -t devpts devpts "$root/dev/pts"
  mount --bind "$packages" "$root/var/cache/apt/archives"
  exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} ${no_proxy:+"no_proxy=$no_proxy"} \
    sh -c 'cd /root/hetplan && exec "$@"' sh "$@"
fi

tree=$(cd "$(dirname "$0")/.." && pwd)
cd "$tree"
. examples/packages.sh

if [ "$(id -u)" -ne 0 ]; then
  echo "bare_machine.sh: not run: making a system in a folder takes root (mounts, chroot, device files)." >&2
  exit 77
fi
[ $# -gt 0 ] || set -- sh examples/run.sh
require_packages yes debootstrap git

# Where this machine has its packages from: addresses and releases of Debian's own.
sources=$(apt-get indextargets --format '$(CREATED_BY) $(ORIGIN) $(CODENAME) deb $(REPO_URI) $(RELEASE) $(COMPONENT)' |
  sed -n 's/^Packages Debian bookworm[a-z-]* \(deb .*\)$/\1/p' | sort -u)
mirror=$(printf '%s\n' "$sources" | sed -n 's/^deb \([^ ]*\) bookworm main$/\1/p' | head -n 1)
if [ -z "$mirror" ]; then
  echo "bare_machine.sh: apt knows no source of Debian 12 (bookworm main); run apt-get update, or run this on Debian 12." >&2
  exit 1
fi

packages=${XDG_CACHE_HOME:-$HOME/.cache}/hetplan/debian-12-packages
mkdir -p "$packages"
root=
running=
# Nothing of the other namespace is mounted here: removing the folder cannot reach into the cache.
end() {
  trap '' INT TERM HUP
  if [ -n "$running" ]; then
    kill -KILL "$running" 2>/dev/null || true
    wait "$running" 2>/dev/null || true
  fi
  [ -n "$root" ] || return 0
  rm -f "$root.log"
  # The last process in there may still be on its way out.
  for _ in 1 2 3 4 5; do
    rm -rf --one-file-system "$root" 2>/dev/null && return 0
    sleep 1
  done
  rm -rf --one-file-system "$root"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

root=$(mktemp -d "${TMPDIR:-/var/tmp}/hetplan-bare.XXXXXX")
chmod 755 "$root" # it is everybody's /

# run COMMAND...    in the background, because a shell hears signals only while it waits; its status is run's
run() {
  "$@" </dev/null &
  running=$!
  status=0
  wait "$running" || status=$?
  running=
  return "$status"
}

echo "bare_machine.sh: a minimal Debian 12 with git, in $root" >&2
if ! run unshare --mount --pid --fork --kill-child debootstrap --variant=minbase --include=git --cache-dir="$packages" \
  bookworm "$root" "$mirror" >"$root.log" 2>&1; then
  tail -n 20 "$root.log" >&2
  echo "bare_machine.sh: debootstrap failed" >&2
  exit 1
fi
rm -f "$root.log"
printf '%s\n' "$sources" >"$root/etc/apt/sources.list"
apt-config dump Acquire >"$root/etc/apt/apt.conf.d/99acquire"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io" # it does not live long
mkdir -p "$root/dev/shm" "$root/dev/pts"
git clone -q --no-hardlinks . "$root/root/hetplan"
[ -z "$(git status --porcelain)" ] || echo "bare_machine.sh: the last commit is checked; uncommitted changes take no part" >&2

echo "bare_machine.sh: $*" >&2
status=0
run unshare --mount --pid --fork --kill-child sh "$tree/tests/bare_machine.sh" --inside "$root" "$packages" "$@" || status=$?
echo "bare_machine.sh: exit status $status" >&2
exit "$status"
