// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/decompose/decomposition.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/decompose/serial.hpp>
#include <hetplan/graph/light_boundaries.hpp>

namespace hetplan::decompose {

HETPLAN_INLINE layer_sequence serial_chains::operator()(const planning_graph& model) const {
  return serial(model, coarsen::merge_small(model, {.share = merge_share}));
}
HETPLAN_INLINE layer_sequence joined_chains::operator()(const planning_graph& model) const {
  return serial_chains{merge_share}(model).joined();
}
HETPLAN_INLINE layer_sequence light_row::operator()(const planning_graph& model) const { return light_blocks(model, most); }

HETPLAN_INLINE layer_sequence checked(layer_sequence sequence, const planning_graph& model) {
  const auto fail = [&](const std::string& what) { throw invalid_model("decomposition of \"" + model.name() + "\": " + what); };
  const auto name = [&](layer_id l) { return "layer \"" + model[l].name + "\""; };
  constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> block_of(model.size(), nowhere);
  for (std::size_t b = 0; b < sequence.size(); ++b) {
    const std::string here = "block " + std::to_string(b);
    if (sequence.blocks[b].empty()) fail(here + " is empty; expected at least one layer");
    for (const layer_id l : sequence.blocks[b]) {
      if (!l.valid() || l.index() >= model.size()) fail(here + " holds layer " + std::to_string(l.value) + ", which the model lacks");
      std::size_t& mine = block_of[l.index()];
      if (mine != nowhere) fail(name(l) + " is in blocks " + std::to_string(mine) + " and " + std::to_string(b) + "; expected one");
      mine = b;
    }
    std::sort(sequence.blocks[b].begin(), sequence.blocks[b].end());
  }
  for (const layer& l : model.layers()) {
    if (block_of[l.id.index()] == nowhere) fail(name(l.id) + " is in no block; expected every layer in one");
  }
  for (const layer_edge& e : model.edges()) {
    const std::size_t from = block_of[e.from.index()], to = block_of[e.to.index()];
    if (from > to)
      fail("the tensor of " + name(e.from) + " leads from block " + std::to_string(from) + " back to " + name(e.to) + " in block " +
           std::to_string(to) + "; expected every edge forward or inside a block");
  }
  const auto& first = sequence.chain_first;
  if (first.empty() || first.front() != 0) fail("the first chain begins nowhere; expected it at block 0");
  for (std::size_t c = 0; c < first.size(); ++c) {
    if (first[c] < sequence.size() && (c == 0 || first[c - 1] < first[c])) continue;
    fail("chain " + std::to_string(c) + " begins at block " + std::to_string(first[c]) + "; expected one behind the chain before, below " +
         std::to_string(sequence.size()));
  }
  return sequence;
}

}  // namespace hetplan::decompose
