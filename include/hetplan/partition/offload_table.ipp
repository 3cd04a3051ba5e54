// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/offload_table.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <hetplan/core/keyed.hpp>
#include <hetplan/cost/token_passes.hpp>
#include <hetplan/solve/cheapest_tiers.hpp>

namespace hetplan::partition {

namespace detail {

/// Returns true if plans may put the layer's weights below the devices' memory, where that frees some.
[[nodiscard]] HETPLAN_INLINE bool is_movable(const layer& l, const workload& w, double state) {
  return state > 0 && (w.mode != mode::training || !l.trainable);
}

}  // namespace detail

HETPLAN_INLINE offload_table::offload_table(const planning_graph& model, const layer_sequence& sequence, const cluster& c,
                                            const any_cost_model& cost, const any_memory_model& memory, const workload& w,
                                            const prefix_table& table) {
  const auto devices = c.devices();
  if (std::all_of(devices.begin(), devices.end(), [](const device& d) { return d.tiers.empty(); })) return;
  shares_ = table.distinct_shares();
  movable_.assign(sequence.size() + 1, 0);
  for (std::size_t b = 0; b < sequence.size(); ++b) {
    movable_[b + 1] = movable_[b];
    for (const layer_id l : sequence.blocks[b]) {
      const double state = checked_state(memory, model[l], w, 1);
      if (detail::is_movable(model[l], w, state)) movable_[b + 1] += state;
    }
  }
  devices_.resize(devices.size());
  for (const device& d : devices) {
    if (!d.tiers.empty()) add_device(model, sequence, c, d, cost, memory, w, table);
  }
}

HETPLAN_INLINE void offload_table::add_device(const planning_graph& model, const layer_sequence& sequence, const cluster& c,
                                              const device& d, const any_cost_model& cost, const any_memory_model& memory,
                                              const workload& w, const prefix_table& table) {
  constexpr std::array phases{phase::forward, phase::backward_input, phase::backward_weight};
  device_tiers& mine = devices_[d.id.index()];
  double largest_per_byte = 0;  // bytes that leave memory for each byte of a tier: 1, unless the memory model says otherwise
  for (const memory_tier& t : d.tiers) mine.room.push_back(t.memory.value());
  mine.degrees = usable_degrees(model, d);
  const token_passes passes(w, model);
  const std::size_t columns = mine.degrees.size() * shares_, asked = w.mode == mode::training ? phases.size() : 1;
  std::vector<std::vector<added>> rows(model.size(), std::vector<added>(columns * d.tiers.size()));
  std::vector<double> base(model.size()), moved(model.size());
  for (std::size_t g = 0; g < mine.degrees.size(); ++g) {
    for (std::size_t s = 0; s < shares_; ++s) {
      for (std::size_t k = 0; k < passes.distinct().size(); ++k) {
        const token_pass& pass = passes.distinct()[k];
        for (std::size_t i = 0; i < asked; ++i) {
          work_kind kind = pass.asks(phases[i], table.samples_of(s), mine.degrees[g]);
          cost.times_s(model, kind, d, base.data());
          for (std::size_t t = 0; t < d.tiers.size(); ++t) {
            const memory_tier& tier = d.tiers[t];
            kind.tier_bandwidth = tier.bandwidth;
            if (tier.shared.valid()) kind.tier_bandwidth = std::min(tier.bandwidth, c.network()[tier.shared].capacity);
            cost.times_s(model, kind, d, moved.data());
            for (const layer& l : model.layers()) {
              if (!pass.runs(l)) continue;
              const double more_s = std::max(0.0, moved[l.id.index()] - base[l.id.index()]);
              added& a = rows[l.id.index()][(g * shares_ + s) * d.tiers.size() + t];
              const auto mean = [&](run_part part) {
                return passes.size(part) > 0 ? passes.count_of(k, part) * more_s / passes.size(part) : 0;
              };
              a.total += mean(run_part::whole);
              if (i > 0) a.backward += mean(run_part::whole);
              if (!table.has_parts()) continue;
              a.first += mean(run_part::first_token);
              a.later += mean(run_part::later_tokens);
            }
          }
        }
      }
    }
  }
  std::vector<int> members(model.weight_groups().size(), 0);
  for (const layer& l : model.layers()) {
    if (l.weight_group >= 0) ++members[static_cast<std::size_t>(l.weight_group)];
  }
  keyed<std::size_t> types;
  std::vector<std::size_t> group(members.size(), std::numeric_limits<std::size_t>::max());
  for (std::size_t b = 0; b < sequence.size(); ++b) {
    for (const layer_id id : sequence.blocks[b]) {
      const layer& l = model[id];
      const double state = checked_state(memory, l, w, 1);
      if (!detail::is_movable(l, w, state)) continue;
      if (l.weight.value() > 0) largest_per_byte = std::max(largest_per_byte, state / l.weight.value());
      else largest_per_byte = std::numeric_limits<double>::infinity();
      if (l.weight_group >= 0 && members[static_cast<std::size_t>(l.weight_group)] > 1) {
        std::size_t& at = group[static_cast<std::size_t>(l.weight_group)];
        if (at >= mine.shared.size()) {
          at = mine.shared.size();
          mine.shared.push_back({state, l.weight.value()});
        }
        mine.shared[at].blocks.push_back(b);
        mine.shared[at].rows.push_back(rows[id.index()]);
        continue;
      }
      key_parts key{state, l.weight.value()};
      for (const added& a : rows[id.index()]) key.insert(key.end(), {a.total, a.backward, a.first, a.later});
      if (types.insert(key, mine.types.size()))
        mine.types.push_back({state, l.weight.value(), rows[id.index()], std::vector<std::uint32_t>(sequence.size() + 1)});
      ++mine.types[*types.find(key)].before[b + 1];
    }
  }
  for (layer_type& t : mine.types) {
    for (std::size_t b = 0; b < sequence.size(); ++b) t.before[b + 1] += t.before[b];
  }
  double room = 0;
  for (const double r : mine.room) room += r;
  mine.most_freed = room > 0 ? room * largest_per_byte * (1 + 1e-9) : 0;
}

HETPLAN_INLINE std::optional<interval_time> offload_table::cheapest(std::size_t first, std::size_t last, device_id d, int share, int degree,
                                                                    double need) const {
  if (!(need > 0)) return interval_time{};
  if (!has_tiers(d)) return std::nullopt;
  const device_tiers& mine = devices_[d.index()];
  const std::size_t tiers = mine.room.size();
  const auto g = static_cast<std::size_t>(std::find(mine.degrees.begin(), mine.degrees.end(), degree) - mine.degrees.begin());
  const std::size_t column = (g * shares_ + prefix_table::which_share(share)) * tiers;
  std::vector<tier_item> items;
  std::vector<std::vector<added>> costs;  // by item and tier
  const auto add = [&](double freed, double weight, int count, std::vector<added> of_tier) {
    tier_item item{count, freed, weight};
    for (const added& a : of_tier) item.cost_s.push_back(a.total);
    items.push_back(std::move(item));
    costs.push_back(std::move(of_tier));
  };
  for (const layer_type& t : mine.types) {
    const auto here = t.rows.begin() + static_cast<std::ptrdiff_t>(column);
    const auto count = static_cast<int>(t.before[last] - t.before[first]);
    if (count > 0) add(t.freed, t.weight, count, {here, here + static_cast<std::ptrdiff_t>(tiers)});
  }
  for (const shared_type& t : mine.shared) {
    std::vector<added> sum(tiers);
    bool any = false;
    for (std::size_t i = 0; i < t.blocks.size(); ++i) {
      if (t.blocks[i] < first || t.blocks[i] >= last) continue;
      any = true;
      for (std::size_t k = 0; k < tiers; ++k) {
        const added& a = t.rows[i][column + k];
        sum[k] = {sum[k].total + a.total, sum[k].backward + a.backward, sum[k].first + a.first, sum[k].later + a.later};
      }
    }
    if (any) add(t.freed, t.weight, 1, std::move(sum));
  }
  const auto chosen = cheapest_tiers(items, need, mine.room, most_nodes);
  if (!chosen) return std::nullopt;
  interval_time more{.degree = degree};
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (std::size_t k = 0; k < tiers; ++k) {
      const int n = chosen->taken[i][k];
      more.total_s += n * costs[i][k].total;
      more.backward_s += n * costs[i][k].backward;
      more.first_s += n * costs[i][k].first;
      more.later_s += n * costs[i][k].later;
    }
  }
  return more;
}

}  // namespace hetplan::partition
