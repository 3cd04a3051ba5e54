// SPDX-License-Identifier: BSL-1.0
#include <hetplan/hetplan.hpp>

#include <iostream>

int main() { std::cout << hetplan::version << '\n'; }
