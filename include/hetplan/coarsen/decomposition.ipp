// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/coarsen/decomposition.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <hetplan/core/sorting.hpp>

namespace hetplan::decompose {

namespace detail {

/// Throws invalid_input unless every layer is in exactly one block, no block is empty, and both maps agree.
HETPLAN_INLINE void check_partition(const planning_graph& model, const coarsen::blocks& blocks) {
  const auto fail = [](const std::string& what) { throw invalid_input("serial: " + what); };
  const std::string expected = "; expected " + std::to_string(model.size()) + ", one for each layer of the model";
  const std::size_t entries = blocks.block_of.size();
  if (entries != model.size()) fail("block_of has " + std::to_string(entries) + " entries" + expected);
  std::vector<char> seen(model.size(), 0);
  std::size_t count = 0;
  for (std::size_t b = 0; b < blocks.layers.size(); ++b) {
    const std::string where = "block " + std::to_string(b);
    if (blocks.layers[b].empty()) fail(where + " is empty; expected at least one layer");
    for (const layer_id l : blocks.layers[b]) {
      const std::string number = "layer " + std::to_string(l.value);
      if (!l.valid() || l.index() >= model.size()) fail(where + " holds " + number + ", which the model lacks");
      const std::string which = number + " \"" + model[l].name + "\"";
      if (seen[l.index()]) fail(which + " is in a block twice; expected once");
      if (blocks.block_of[l.index()] != b) {
        fail(which + " is in " + where + ", but block_of says " + std::to_string(blocks.block_of[l.index()]));
      }
      seen[l.index()] = 1;
      ++count;
    }
  }
  if (count != model.size()) fail("the blocks hold " + std::to_string(count) + " layers" + expected);
}

}  // namespace detail

HETPLAN_INLINE layer_sequence serial(const planning_graph& model, const coarsen::blocks& blocks) {
  detail::check_partition(model, blocks);
  const std::size_t n = blocks.layers.size();
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (const layer_edge& e : model.edges()) {
    const std::size_t from = blocks.block_of[e.from.index()], to = blocks.block_of[e.to.index()];
    if (from != to) edges.emplace_back(from, to);
  }
  sort_distinct(edges);
  const std::vector<std::size_t> order = topological_order(n, edges);
  if (order.size() < n) {
    const auto [from, to] = edge_on_cycle(n, edges, order);
    throw invalid_input("serial: block " + std::to_string(from) + " -> block " + std::to_string(to) +
                        " is on a cycle; expected a partition whose blocks form a DAG");
  }

  std::vector<std::size_t> successors(n, 0), predecessors(n, 0), before(n, n);  // before: the predecessor in the chain
  for (const auto& [from, to] : edges) {
    ++successors[from];
    ++predecessors[to];
  }
  for (const auto& [from, to] : edges) {
    if (successors[from] == 1 && predecessors[to] == 1) before[to] = from;
  }

  std::vector<std::vector<std::size_t>> chains;
  std::vector<std::size_t> chain_of(n);
  for (const std::size_t b : order) {
    if (before[b] == n) {
      chain_of[b] = chains.size();
      chains.push_back({b});
    } else {
      chain_of[b] = chain_of[before[b]];
      chains[chain_of[b]].push_back(b);
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> by_smallest;  // (smallest block, chain)
  for (std::size_t c = 0; c < chains.size(); ++c) {
    by_smallest.emplace_back(*std::min_element(chains[c].begin(), chains[c].end()), c);
  }
  sort_stably(by_smallest);
  std::vector<std::size_t> rank(chains.size());
  for (std::size_t i = 0; i < by_smallest.size(); ++i) rank[by_smallest[i].second] = i;
  std::vector<std::pair<std::size_t, std::size_t>> between;
  for (const auto& [from, to] : edges) {
    if (chain_of[from] != chain_of[to]) between.emplace_back(rank[chain_of[from]], rank[chain_of[to]]);
  }

  layer_sequence out;
  out.chain_first.clear();
  for (const std::size_t r : topological_order(chains.size(), between)) {
    out.chain_first.push_back(out.blocks.size());
    for (const std::size_t b : chains[by_smallest[r].second]) {
      out.blocks.push_back(blocks.layers[b]);
      sort_stably(out.blocks.back());
    }
  }
  return out;
}

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
    sort_stably(sequence.blocks[b]);
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
