// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Definitions of YAML files, for one source of a program.
/// Needs plan; yaml-cpp.

#ifndef HETPLAN_SEPARATE
#error "hetplan/define/yaml.hpp: compile every source of the program with -DHETPLAN_SEPARATE"
#endif

#include <hetplan/exchange/pipeedge_yaml.ipp>
