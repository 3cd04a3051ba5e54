// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/graph/layer_sequence.hpp>

#include <algorithm>

#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>

namespace hetplan {

HETPLAN_INLINE std::size_t layer_sequence::chain_of(std::size_t block) const {
  return static_cast<std::size_t>(std::upper_bound(chain_first.begin(), chain_first.end(), block) - chain_first.begin()) - 1;
}

HETPLAN_INLINE bool layer_sequence::is_stage(std::size_t first, std::size_t last) const {
  if (first >= last || last > size()) return false;
  const std::size_t head = chain_of(first), tail = chain_of(last - 1);
  return head == tail || (first == chain_first[head] && last == chain_end(tail));
}

HETPLAN_INLINE std::vector<layer_id> layer_sequence::layers_of(std::size_t first, std::size_t last) const {
  std::vector<layer_id> layers;
  for (std::size_t b = first; b < last; ++b) layers.insert(layers.end(), blocks[b].begin(), blocks[b].end());
  return layers;
}

HETPLAN_INLINE layer_sequence cut_between_places(layer_sequence s, std::span<const device_id> place) {
  if (place.empty()) return s;
  layer_sequence cut{{}, {}};
  for (std::size_t b = 0; b < s.size(); ++b) {
    if (std::binary_search(s.chain_first.begin(), s.chain_first.end(), b)) cut.chain_first.push_back(cut.size());
    cut.blocks.emplace_back();
    for (const layer_id l : s.blocks[b]) {  // by id: every edge inside a block points forward
      std::vector<layer_id>& last = cut.blocks.back();
      if (!last.empty() && place[last.back().index()] != place[l.index()]) cut.blocks.emplace_back();
      cut.blocks.back().push_back(l);
    }
  }
  return cut;
}

HETPLAN_INLINE layer_sequence sequence_of(const planning_graph& model) {
  layer_sequence all;
  all.blocks.reserve(model.size());
  for (const layer& l : model.layers()) all.blocks.push_back({l.id});
  return all;
}

HETPLAN_INLINE sequence_cuts::sequence_cuts(const planning_graph& model, const layer_sequence& sequence,
                                            std::span<const double> edge_shares)
    : crossed_by_(sequence.size() + 1), nearest_(sequence.size() + 1, none) {
  std::vector<std::size_t> block_of(model.size());
  for (std::size_t b = 0; b < sequence.size(); ++b) {
    for (const layer_id l : sequence.blocks[b]) block_of[l.index()] = b;
  }
  for (const layer& l : model.layers()) add_tensor(model, block_of, l.id, edge_shares);
  // The order in which boundaries list their tensors: by producing block, last first, then by layer.
  sort_stably(tensors_, [](const tensor& x, const tensor& y) { return x.from > y.from; });
  for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
    const std::span<const reader> all = readers_of(t);
    for (std::size_t b = tensors_[t].from + 1, next = 0; b <= all.back().block; ++b) {
      while (all[next].block < b) ++next;
      crossed_by_[b].push_back(t);
      nearest_[b] = std::min(nearest_[b], all[next].block);
    }
  }
}

HETPLAN_INLINE std::vector<std::size_t> sequence_cuts::ports(std::size_t boundary) const {
  std::vector<std::size_t> all;
  for (const std::uint32_t t : crossed_by_[boundary]) {
    for (const reader& r : readers_after(t, boundary)) all.push_back(r.block);
  }
  sort_distinct(all);
  return all;
}

HETPLAN_INLINE std::vector<crossing> sequence_cuts::crossings(std::size_t boundary) const {
  const std::vector<std::size_t> through = ports(boundary);
  std::vector<crossing> all;
  for (const std::uint32_t t : crossed_by_[boundary]) {
    for (const reader& r : readers_after(t, boundary)) {
      const auto port = static_cast<std::size_t>(std::lower_bound(through.begin(), through.end(), r.block) - through.begin());
      all.push_back({tensors_[t].from, port, tensors_[t].layer, r.forward_bytes, r.gradient_bytes});
    }
  }
  return all;
}

HETPLAN_INLINE std::pair<double, double> sequence_cuts::bytes_in(std::size_t first, std::size_t last) const {
  double forward = 0, gradient = 0;
  for (const std::uint32_t t : crossed_by_[first]) {
    const std::span<const reader> later = readers_after(t, first);
    double most = 0, most_gradient = 0;
    if (later.back().block < last) {
      most = later.front().most_forward_bytes;
      most_gradient = later.front().most_gradient_bytes;
    } else {
      for (const reader& r : later) {
        if (r.block >= last) break;
        most = std::max(most, r.forward_bytes);
        most_gradient = std::max(most_gradient, r.gradient_bytes);
      }
    }
    forward += most;
    gradient += most_gradient;
  }
  return {forward, gradient};
}

HETPLAN_INLINE std::pair<double, double> sequence_cuts::bytes_out(std::size_t first, std::size_t last,
                                                                  const std::vector<std::size_t>& stage_of) const {
  keyed<std::pair<double, double>> most;  // by (tensor, reading stage)
  for (const std::uint32_t t : crossed_by_[last]) {
    if (tensors_[t].from < first) break;
    for (const reader& r : readers_after(t, last)) {
      auto& [forward, gradient] = most[{tensors_[t].layer, stage_of[r.block]}];
      forward = std::max(forward, r.forward_bytes);
      gradient = std::max(gradient, r.gradient_bytes);
    }
  }
  std::pair<double, double> sum;
  for (const std::size_t i : most.keys().in_order()) {
    sum.first += most.values()[i].first;
    sum.second += most.values()[i].second;
  }
  return sum;
}

HETPLAN_INLINE bool sequence_cuts::serial() const {
  for (std::size_t b = 1; b + 1 < crossed_by_.size(); ++b) {
    const auto short_way = [&](std::uint32_t t) { return tensors_[t].from + 1 == b && readers_of(t).back().block == b; };
    if (crossed_by_[b].empty() || !std::all_of(crossed_by_[b].begin(), crossed_by_[b].end(), short_way)) return false;
  }
  return true;
}

HETPLAN_INLINE void sequence_cuts::add_tensor(const planning_graph& model, const std::vector<std::size_t>& block_of, layer_id l,
                                              std::span<const double> edge_shares) {
  const std::size_t from = block_of[l.index()];
  keyed<std::pair<double, double>> by_block;
  for (const layer_edge& e : model.out_edges(l)) {
    const std::size_t to = block_of[e.to.index()];
    if (to == from) continue;
    auto& [forward, gradient] = by_block[{to}];
    const double share = edge_shares.empty() ? 1 : edge_shares[static_cast<std::size_t>(&e - model.edges().data())];
    forward = std::max(forward, e.forward.value() * share);
    gradient = std::max(gradient, e.gradient.value() * share);
  }
  if (by_block.empty()) return;
  tensors_.push_back({from, l.index(), readers_.size(), by_block.size()});
  for (const std::size_t i : by_block.keys().in_order()) {
    const auto [forward, gradient] = by_block.values()[i];
    readers_.push_back({static_cast<std::size_t>(by_block.keys().key_of(i)[0].value), forward, gradient, forward, gradient});
  }
  for (std::size_t i = readers_.size() - 1; i > tensors_.back().first_reader; --i) {
    reader& before = readers_[i - 1];
    before.most_forward_bytes = std::max(before.most_forward_bytes, readers_[i].most_forward_bytes);
    before.most_gradient_bytes = std::max(before.most_gradient_bytes, readers_[i].most_gradient_bytes);
  }
}

HETPLAN_INLINE std::span<const sequence_cuts::reader> sequence_cuts::readers_of(std::uint32_t t) const {
  return std::span(readers_).subspan(tensors_[t].first_reader, tensors_[t].readers);
}

HETPLAN_INLINE std::span<const sequence_cuts::reader> sequence_cuts::readers_after(std::uint32_t t, std::size_t boundary) const {
  const auto all = readers_of(t);
  const auto at = std::partition_point(all.begin(), all.end(), [&](const reader& r) { return r.block < boundary; });
  return all.subspan(static_cast<std::size_t>(at - all.begin()));
}

HETPLAN_INLINE crossing_table::crossing_table(const sequence_cuts& cuts) {
  for (std::size_t b = 0; b < cuts.boundaries(); ++b) {
    ports_.push_back(cuts.ports(b));
    crossings_.push_back(cuts.crossings(b));
  }
}

HETPLAN_INLINE crossing_table::crossing_table(const sequence_cuts& cuts, const sequence_cuts& first, const sequence_cuts& later)
    : crossing_table(cuts) {
  for (std::size_t b = 0; b < cuts.boundaries(); ++b) {  // the same tensors and readers, in the same order
    const std::vector<crossing> of_first = first.crossings(b), of_later = later.crossings(b);
    for (std::size_t i = 0; i < crossings_[b].size(); ++i) {
      crossings_[b][i].first_bytes = of_first[i].forward_bytes;
      crossings_[b][i].later_bytes = of_later[i].forward_bytes;
    }
  }
}

HETPLAN_INLINE layer_sequence each_layer_of(const layer_sequence& s) {
  layer_sequence fine;
  for (const auto& block : s.blocks) {
    for (const layer_id l : block) fine.blocks.push_back({l});
  }
  return fine;
}

HETPLAN_INLINE std::vector<std::size_t> light_boundaries(const std::vector<double>& carried) {
  std::vector<std::size_t> light;
  for (std::size_t b = 1; b < carried.size(); ++b) {
    const bool least = (b == 1 || carried[b] <= carried[b - 1]) && (b + 1 == carried.size() || carried[b] <= carried[b + 1]);
    if (least) light.push_back(b);
  }
  return light;
}

HETPLAN_INLINE std::vector<std::size_t> light_boundaries(const planning_graph& model, const layer_sequence& s) {
  const sequence_cuts cuts(model, s);
  std::vector<double> carried;
  for (std::size_t b = 0; b < s.size(); ++b) {
    const auto [forward_bytes, gradient_bytes] = cuts.bytes_in(b, s.size());
    carried.push_back(forward_bytes + gradient_bytes);
  }
  return light_boundaries(carried);
}

HETPLAN_INLINE layer_sequence light_blocks(const planning_graph& model, std::size_t most) {
  return light_blocks(model, sequence_of(model), most);
}

HETPLAN_INLINE layer_sequence light_blocks(const planning_graph& model, const layer_sequence& all, std::size_t most) {
  std::vector<double> before{0};
  const bool counted =
      std::any_of(model.layers().begin(), model.layers().end(), [](const layer& l) { return l.forward_flops.value() > 0; });
  for (const auto& block : all.blocks) before.push_back(before.back() + (counted ? model[block.front()].forward_flops.value() : 1));
  layer_sequence row;
  std::size_t begun = 0;
  double next = before.back() / static_cast<double>(most);
  std::vector<std::size_t> ends = light_boundaries(model, all);
  const bool few = ends.size() < most;
  ends.push_back(all.size());
  for (const std::size_t end : ends) {
    // Rounding, and layers without FLOP behind all others, must not produce one block too many.
    if (!few && end != all.size() && (before[end] < next || row.size() + 1 == most)) continue;
    row.blocks.push_back(all.layers_of(begun, end));
    std::sort(row.blocks.back().begin(), row.blocks.back().end());
    begun = end;
    next = before[end] + before.back() / static_cast<double>(most);
  }
  return row;
}

}  // namespace hetplan
