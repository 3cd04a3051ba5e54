// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan as a placement: which device runs which operator, for whoever loads a graph and moves its operators.

#include <string>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

/// `{"format": "hetplan/placement/1", "model": M, "cluster": C, "placement": {LAYER: DEVICE, ...}, "order": {DEVICE: [LAYER, ...], ...}}`:
/// layers in the model's order; each device's in the order in which it runs them.
///
/// @param p    a valid plan with one pipeline.
/// Complexity  O(layers + orders).
/// Throws      invalid_input (several pipelines, or a layer that several devices share: a placement is one device per operator).
/// Source      ours: what Moirai's x_ik say, and the order that its start times say.
[[nodiscard]] std::string write_placement(const plan& p, const planning_graph& model, const cluster& c);

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/placement_json.ipp>
#endif
