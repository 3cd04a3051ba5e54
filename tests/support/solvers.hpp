// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The solvers of this build, for tests that run with each of them.

#include <hetplan/solve/glpk.hpp>
#ifdef HETPLAN_HAS_CLP
#include <hetplan/solve/clp.hpp>
#define LP_SOLVERS glpk_lp, clp_lp
#else
#define LP_SOLVERS glpk_lp
#endif
#ifdef HETPLAN_HAS_CBC
#include <hetplan/solve/cbc.hpp>
#define MILP_SOLVERS glpk_milp, cbc_milp
#else
#define MILP_SOLVERS glpk_milp
#endif
