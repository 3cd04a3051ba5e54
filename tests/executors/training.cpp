// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <thread>

#include "executors/common/worker.hpp"
#include "executors/threads/links.hpp"

using namespace executors;
TEST_CASE("x") {}
