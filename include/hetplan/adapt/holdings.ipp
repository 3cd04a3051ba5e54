// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/holdings.hpp>

#include <algorithm>
#include <utility>

#include <range/v3/action/sort.hpp>
#include <range/v3/action/unique.hpp>
#include <range/v3/view/sliding.hpp>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE holdings::holdings(const planning_graph& model, std::size_t devices) : devices_(devices), held_(devices * model.size(), 0) {
  std::vector<layer_id> first_of_group(model.weight_groups().size());
  for (const layer& l : model.layers()) {
    tensor_.push_back(l.id);
    if (l.weight_group < 0) continue;
    layer_id& first = first_of_group[static_cast<std::size_t>(l.weight_group)];
    if (!first.valid()) first = l.id;
    tensor_.back() = first;
  }
}

HETPLAN_INLINE std::vector<state_part> holdings::state_of(device_id d, layer_id l) const {
  if (!has(d, l)) return {};
  const auto found = parts_.find(at(d, l));
  return found == parts_.end() ? std::vector<state_part>{{}} : found->second;
}

HETPLAN_INLINE bool holdings::has_parts(layer_id l) const {
  if (parts_.empty()) return false;
  for (std::size_t d = 0; d < devices_; ++d) {
    if (parts_.contains(at(device_id(d), l))) return true;
  }
  return false;
}

HETPLAN_INLINE std::vector<device_id> holdings::holders(layer_id l) const {
  std::vector<device_id> all;
  for (std::size_t d = 0; d < devices_; ++d) {
    if (has(device_id(d), l)) all.emplace_back(d);
  }
  return all;
}

HETPLAN_INLINE void holdings::add(device_id d, layer_id l) {
  held_[at(d, l)] = 1;
  parts_.erase(at(d, l));
}

HETPLAN_INLINE void holdings::add(device_id d, layer_id l, state_part part) {
  std::vector<state_part> all = state_of(d, l), joined;
  all.push_back(part);
  std::sort(all.begin(), all.end(), [](const state_part& a, const state_part& b) { return a.from < b.from; });
  for (const state_part& p : all) {
    if (!joined.empty() && p.from <= joined.back().to) joined.back().to = std::max(joined.back().to, p.to);
    else joined.push_back(p);
  }
  add(d, l);
  if (joined != std::vector<state_part>{{}}) parts_[at(d, l)] = std::move(joined);
}

HETPLAN_INLINE std::size_t holdings::cache_at(layer_id l, long long sequence) const {
  return static_cast<std::size_t>(sequence) * tensor_.size() + l.index();
}

HETPLAN_INLINE std::vector<state_part> state_pieces(layer_id tensor, const std::vector<state_part>& needed, const holdings& held) {
  std::vector<double> cuts;
  const auto cut = [&](const std::vector<state_part>& parts) {
    for (const state_part& p : parts) cuts.insert(cuts.end(), {p.from, p.to});
  };
  cut(needed);
  for (const device_id d : held.holders(tensor)) cut(held.state_of(d, tensor));
  cuts |= ranges::actions::sort | ranges::actions::unique;
  std::vector<state_part> all;
  for (const auto ends : ranges::views::sliding(cuts, 2)) all.push_back({ends[0], ends[1]});
  return all;
}

HETPLAN_INLINE void give_caches(holdings& held, const plan& p) {
  if (p.workload.mode != mode::generation) return;
  held.set_sequences(p.batch());
  std::vector<long long> first(p.pipeline_count() + 1, 0);
  for (std::size_t i = 0; i < p.pipeline_count(); ++i) first[i + 1] = first[i] + p.pipeline_samples(static_cast<int>(i));
  for (const stage& s : p.stages) {
    const auto pipeline = static_cast<std::size_t>(s.pipeline);
    for (const layer_id l : s.layers) {
      for (long long sequence = first[pipeline]; sequence < first[pipeline + 1];) {
        for (const assignment& a : s.devices) {
          for (int i = 0; i < a.samples && sequence < first[pipeline + 1]; ++i) held.set_cache_owner(l, sequence++, a.device);
        }
      }
    }
  }
}

HETPLAN_INLINE holdings holdings_of(const plan& p, const planning_graph& model, std::size_t devices) {
  holdings held(model, devices);
  for (const stage& s : p.stages) {
    for (const layer_id l : s.layers) {
      const int shards = s.state_shards();
      for (int i = 0; const assignment& a : s.devices) {
        // The quotient i / n is the same number in every stage, so that the boundaries of parts coincide.
        if (shards > 1) held.add(a.device, l, {static_cast<double>(i) / shards, static_cast<double>(i + 1) / shards});
        else held.add(a.device, l);
        ++i;
      }
    }
  }
  give_caches(held, p);
  return held;
}

HETPLAN_INLINE bool moves_nothing(const plan& from, const plan& to) {
  return from.stages == to.stages || (to.workload.mode != mode::generation && same_placement(from, to));
}

}  // namespace hetplan::adapt
