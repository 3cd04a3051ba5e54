#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# Profile, plan, run, compare: one small case on every executor that is installed. Files stay in examples/out/executors.
#   sh examples/executors/run.sh [--no-install]
# Everything that is measured: python3 examples/executors/validate.py threads (or mpi, torch).
set -eu
unset CDPATH
cd "$(dirname "$0")/../.."
. examples/packages.sh

may_install=$(install_choice "$@")
# shellcheck disable=SC2086  # a list of words
require_packages "$may_install" $build_packages python3
# shellcheck disable=SC2086
require_packages "$may_install" $executor_packages || echo "Going on without them." >&2

tests=ON
is_present catch2 || tests=OFF
cmake --preset release -DHETPLAN_BUILD_TESTS=$tests
targets="hetplan_cli executor_threads"
if is_present libopenmpi-dev && is_present openmpi-bin; then targets="$targets executor_mpi"; fi
# shellcheck disable=SC2086  # a list of words
cmake --build --preset release --target $targets

status=0
for executor in threads mpi torch; do
  case $executor in
    mpi)
      if ! is_present libopenmpi-dev || ! is_present openmpi-bin; then
        echo "mpi: SKIPPED, it needs libopenmpi-dev and openmpi-bin" >&2
        continue
      fi
      ;;
    torch)
      if ! is_present python3-torch; then
        echo "torch: SKIPPED, it needs python3-torch" >&2
        continue
      fi
      ;;
  esac
  echo "$executor: profile, plan, run, compare" >&2
  python3 -B examples/executors/validate.py "$executor" --anyway --case "air/dora phase 2" --iterations 3 --out "examples/out/executors/$executor" || status=1
done
exit $status
