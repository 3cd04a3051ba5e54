#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# Builds the command line program, then runs the main job into examples/out.
#   sh examples/run.sh [--no-install]
set -eu
unset CDPATH
cd "$(dirname "$0")/.."
. examples/packages.sh

may_install=$(install_choice "$@")
# shellcheck disable=SC2086  # a list of words
require_packages "$may_install" $build_packages

# Tests stay in the build folder where they can be built: leaving them out would delete what tests/run.sh has built.
tests=ON
is_present catch2 || tests=OFF
cmake --preset release -DHETPLAN_BUILD_TESTS=$tests
cmake --build --preset release --target hetplan_cli

mkdir -p examples/out
sh examples/main_job.sh build/release/bin/hetplan examples/out
