// SPDX-License-Identifier: BSL-1.0
#include <hetplan/plan/plan.hpp>

int stages_of(const hetplan::plan& p);

int main() { return stages_of(hetplan::plan{}); }
