// SPDX-License-Identifier: BSL-1.0
// DeepCEE's adapter beside a plan that stays as it is: the section `adapter` of its reproduction page, alone.

#include <hetplan/hetplan.hpp>

#include "reproduce/deepcee_adapter.hpp"

int main(int argc, char** argv) { bench::add_adapter(bench::sections(argc, argv)); }
