// SPDX-License-Identifier: BSL-1.0
#include <hetplan/hetplan.hpp>

#include "all_forward.hpp"

const void* version_seen_by_two();

// An inline variable has one address in the whole program.
int main() { return version_seen_by_two() == &hetplan::version ? 0 : 1; }
