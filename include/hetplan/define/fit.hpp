// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Definitions of fitting devices to measurements, for one source of a program.
/// Needs plan; Eigen.

#ifndef HETPLAN_SEPARATE
#error "hetplan/define/fit.hpp: compile every source of the program with -DHETPLAN_SEPARATE"
#endif

#include <hetplan/fit/bounded_least_squares.ipp>
#include <hetplan/fit/fit_devices.ipp>
