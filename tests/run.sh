#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# Builds everything and runs every test. Preset release: its programs are those of examples/run.sh, and the tests keep
# their assertions.
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
python3 tests/skips.py build/release/Testing/Temporary/LastTest.log
