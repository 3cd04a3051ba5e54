// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Everything for one plan: nouns, doors, the waist, the judge, Dora and the simple planners; the others are in recipes/. Needs the
/// standard library alone. Plans over time are in adapt/ (recipes/dora_adapter.hpp, adapt/run.hpp), built-in models in zoo/, files in io/,
/// those of other projects in exchange/, pictures in draw/, GLPK in solve/glpk.hpp.

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/simulate/evaluate.hpp>
