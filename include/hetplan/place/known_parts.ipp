// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/known_parts.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <hetplan/place/heft.hpp>
#include <hetplan/place/improve_schedule.hpp>
#include <hetplan/place/optimal_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>
#include <hetplan/place/placement_bounds.hpp>
#include <hetplan/place/relaxed_placement.hpp>

namespace HETPLAN_NAMESPACE::place {

namespace detail {

[[nodiscard]] HETPLAN_INLINE std::uint64_t fingerprint(const placement_data& d) {
  std::uint64_t h = d.edges.size();
  const auto add = [&](std::uint64_t x) { h = (h ^ x) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29; };
  for (const double s : d.time_s) add(std::bit_cast<std::uint64_t>(s));
  for (const double s : d.edge_time_s) add(std::bit_cast<std::uint64_t>(s));
  for (const operator_edge& e : d.edges) add(e.from * 1'000'003 + e.to), add(std::bit_cast<std::uint64_t>(e.bytes));
  return h;
}

}  // namespace detail

HETPLAN_INLINE known_parts::known_parts(const placement_table& t, const placement_rules& r, const series_parts& s,
                                        const series_search_options& o)
    : table_(t), rules_(r), series_(s), options_(o), parts_(list_parts(s)), left_(o.steps) {
  std::map<std::uint64_t, std::vector<std::size_t>> alike;
  for (const part_of_series& p : parts_) {
    placement_data data = part_data(t, p);
    auto& candidates = alike[detail::fingerprint(data)];
    const auto it = std::find_if(candidates.begin(), candidates.end(), [&](std::size_t k) {
      return kinds_[k].like.entry == p.entry && kinds_[k].like.exit == p.exit && kinds_[k].data == data;
    });
    kind_of_.push_back(it == candidates.end() ? kinds_.size() : *it);
    if (it != candidates.end()) continue;
    candidates.push_back(kinds_.size());
    kinds_.push_back({p, std::move(data), std::vector<part_between>((p.entry ? t.devices() : 1) * (p.exit ? t.devices() : 1))});
  }
}

HETPLAN_INLINE placement_table known_parts::table_between(const part_kind& kind, std::size_t pair) const {
  const std::size_t from = pair / exits(kind), to = pair % exits(kind);
  return part_table(kind.data, kind.like, kind.like.entry ? std::optional(from) : std::nullopt,
                    kind.like.exit ? std::optional(to) : std::nullopt);
}

HETPLAN_INLINE long long known_parts::steps_of_node(const part_kind& kind) const {
  return steps_per_node(kind.data.operators.size(), kind.data.edges.size(), table_.devices());
}

HETPLAN_INLINE bool known_parts::look() {
  const auto first_steps = [&](const part_kind& kind) {
    return 8 * static_cast<long long>(kind.data.operators.size()) + 4 * steps_of_node(kind);
  };
  long long needed = 0;
  for (const part_kind& kind : kinds_) needed += first_steps(kind) * static_cast<long long>(kind.between.size());
  if (needed > left_) return false;
  for (part_kind& kind : kinds_) {
    for (std::size_t pair = 0; pair < kind.between.size(); ++pair) search(kind, pair, first_steps(kind));
  }
  return true;
}

HETPLAN_INLINE void known_parts::search(part_kind& kind, std::size_t pair, long long steps) {
  part_between& b = kind.between[pair];
  b.steps = steps;
  const placement_table t = table_between(kind, pair);
  operator_schedule s = b.best;
  const bool large = t.size() > options_.exact_operators;
  if (!s.found()) {
    s = heft(t, rules_);
    s.status = {};  // a list schedule that was not found proves nothing
    if (large) b.lower_s = bounds_of(t).best_s();
  }
  s.steps = 0;
  s.bound_s = std::min(b.lower_s, s.makespan_s);
  if (large) s = improve_schedule(t, rules_, std::move(s), {.steps = steps});
  const long long steps_of_proof = large ? steps / 2 : steps;
  s = optimal_schedule(t, rules_, std::move(s), {.steps = steps_of_proof});
  left_ -= s.steps + 2 * steps_of_node(kind);  // beside the searches, what they begin with
  if (s.status.result == outcome::infeasible) {
    b.lower_s = std::numeric_limits<double>::infinity();
    searched_ += s.status.proof->searched;
    return;
  }
  b.exhausted = s.status.ok();
  b.lower_s = std::max(b.lower_s, s.bound_s);
  b.best = std::move(s);
}

HETPLAN_INLINE bool known_parts::relax(const part_path& path) {
  bool any = false;
  for (std::size_t i = 0; options_.lp.exists() && left_ > 0 && i < path.steps.size(); ++i) {
    part_kind& kind = kinds_[kind_of_[i]];
    const std::size_t pair = pair_of(kind, path.steps[i]);
    part_between& b = kind.between[pair];
    // Small parts are searched to the end sooner than their programs help.
    if (b.relaxed || b.settled() || kind.data.operators.size() <= options_.exact_operators) continue;
    const relaxed_bound bound = relax_placement(table_between(kind, pair), rules_, b.upper_s(), options_.lp);
    b.relaxed = any = true;
    b.lower_s = std::max(b.lower_s, std::min(bound.bound_s, b.upper_s()));
    left_ -= bound.steps;
  }
  return any;
}

HETPLAN_INLINE bool known_parts::refine(std::initializer_list<const part_path*> paths) {
  std::set<std::pair<std::size_t, std::size_t>> open;
  for (const part_path* path : paths) {
    for (std::size_t i = 0; i < path->steps.size(); ++i) {
      const part_kind& kind = kinds_[kind_of_[i]];
      const std::size_t pair = pair_of(kind, path->steps[i]);
      if (!kind.between[pair].settled()) open.emplace(kind_of_[i], pair);
    }
  }
  bool any = false;
  for (const auto& [kind, pair] : open) {
    const long long before = kinds_[kind].between[pair].steps, most = (left_ - reserved_) / (2 * static_cast<long long>(open.size()));
    if (most <= before) continue;
    search(kinds_[kind], pair, std::min(4 * before, most));
    any = true;
  }
  return any;
}

HETPLAN_INLINE void known_parts::add_elsewhere() {
  for (part_kind& kind : kinds_) {
    for (std::size_t b = 0; b < kind.between.size(); ++b) {
      if (!kind.between[b].best.found()) continue;
      const placement_table t = table_between(kind, b);
      const std::size_t entry = b / exits(kind), exit = b % exits(kind);
      std::set<std::size_t> on;
      if (kind.like.entry) on.insert(entry);
      if (kind.like.exit) on.insert(exit);
      for (const std::size_t k : on) {
        std::vector<std::size_t> device(t.size(), k);
        if (kind.like.entry) device.front() = entry;
        if (kind.like.exit) device.back() = exit;
        operator_schedule s = schedule_in_order(t, rules_, {t.order().begin(), t.order().end()}, device);
        if (s.found()) kind.between[b].elsewhere.push_back(std::move(s));
      }
    }
  }
}

}  // namespace HETPLAN_NAMESPACE::place
