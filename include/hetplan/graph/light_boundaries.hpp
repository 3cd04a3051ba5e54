// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where one would cut a layer sequence: boundaries that carry less than their neighbours.

#include <cstddef>
#include <vector>

#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

/// The sequence layer by layer, in an order in which every edge points forward. Source: own.
[[nodiscard]] layer_sequence each_layer_of(const layer_sequence& s);

/// The boundaries that carry no more than their neighbours.
///
/// @param carried  bytes by boundary; boundary 0 is before the first block.
/// @return         ascending, without 0 and the end.   Source  own.
[[nodiscard]] std::vector<std::size_t> light_boundaries(const std::vector<double>& carried);

/// The same for what crosses the boundaries of a sequence, per sample, there and back.
///
/// @return     ascending, without 0 and the end.
/// Complexity  that of sequence_cuts.   Source  own.
[[nodiscard]] std::vector<std::size_t> light_boundaries(const planning_graph& model, const layer_sequence& s);

/// The layers in their own numbering, in blocks that end at light boundaries, at most `most` of them, of about equal forward FLOP, or
/// of about as many layers in a model that has profiles instead.
///
/// Complexity  that of sequence_cuts.   Source  own.
[[nodiscard]] layer_sequence light_blocks(const planning_graph& model, std::size_t most);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/graph/light_boundaries.ipp>
#endif
