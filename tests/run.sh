#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# Builds the library, the command, examples and tests, and runs every test that is not long. Preset release: its programs are those of
# examples/run.sh, and the tests keep their assertions. Long tests and benchmarks are run by .ci/run.
#   sh tests/run.sh [--no-install]
set -eu
unset CDPATH
cd "$(dirname "$0")/.."
. examples/packages.sh

may_install=$(install_choice "$@")
# shellcheck disable=SC2086  # lists of words
require_packages "$may_install" $build_packages $test_packages

cmake --preset release
cmake --build --preset release
ctest --preset release
