// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/adaptation_view.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include <hetplan/plan/plan.hpp>

namespace hetplan::draw::detail {

/// The levels of something over time; what is set last at one instant counts.
class level_curve {
 public:
  void set(double at_s, double value) {
    if (!levels_.empty() && levels_.back().from_s == at_s) levels_.pop_back();
    if (!levels_.empty() && levels_.back().value == value) return;
    levels_.push_back({at_s, at_s, value});
  }
  /// Closes every level where the next begins, the last at the end.
  [[nodiscard]] std::vector<level> until(double end_s) && {
    for (std::size_t i = 0; i < levels_.size(); ++i) levels_[i].to_s = i + 1 < levels_.size() ? levels_[i + 1].from_s : end_s;
    return std::move(levels_);
  }

 private:
  std::vector<level> levels_;
};

HETPLAN_INLINE double changing::deviation() const {
  double sum = 0;
  for (const level& l : levels) sum += (l.to_s - l.from_s) * std::min(1.0, std::abs(l.value / nominal - 1));
  for (const level& l : away) sum += l.to_s - l.from_s;
  return sum;
}

HETPLAN_INLINE std::string plan_name::text() const {
  std::string name;
  for (std::size_t n = layout + 1; n > 0; n = (n - 1) / 26) name.insert(name.begin(), static_cast<char>('A' + (n - 1) % 26));
  return name + (variant == 0 ? "" : std::to_string(variant + 1));
}

/// Only predictions and planners may differ.
[[nodiscard]] HETPLAN_INLINE bool same_execution(const plan& a, const plan& b) {
  return a.microbatch_size == b.microbatch_size && a.microbatches == b.microbatches && a.pipelines == b.pipelines &&
         a.parameter_server == b.parameter_server && a.stages == b.stages && a.schedule == b.schedule &&
         a.sharing_policy == b.sharing_policy && a.transfers == b.transfers && a.workload == b.workload;
}

HETPLAN_INLINE adaptation_view::adaptation_view(std::span<const io::policy_history> rows, const adapt::timeline& t, const cluster& c,
                                                const qoe_target& first_target)
    : policies(rows), duration_s(t.duration.value()) {
  read_conditions(t, c);
  read_targets(t, first_target);
  for (const io::policy_history& row : rows) {
    names.emplace_back();
    for (const plan& p : row.history.plans) names.back().push_back(name_of(p));
  }
}

HETPLAN_INLINE std::string adaptation_view::name(std::size_t policy, std::size_t index) const {
  return index < names[policy].size() ? names[policy][index].text() : std::string("none");
}

HETPLAN_INLINE std::size_t adaptation_view::layout(std::size_t policy, std::size_t index) const {
  return index < names[policy].size() ? names[policy][index].layout : 0;
}

HETPLAN_INLINE double adaptation_view::wanted_at(double t) const {
  const auto it = std::upper_bound(wanted.begin(), wanted.end(), t, [](double at, const level& l) { return at < l.from_s; });
  return std::prev(it)->value;
}

HETPLAN_INLINE void adaptation_view::read_conditions(const adapt::timeline& t, const cluster& c) {
  std::vector<level_curve> capacity(c.network().resources().size()), speed(c.size()), away(c.size());
  std::vector<std::size_t> steps(capacity.size(), 0);
  const auto network = c.network().resources();
  for (std::size_t r = 0; r < capacity.size(); ++r) capacity[r].set(0, network[r].capacity.value());
  for (std::size_t d = 0; d < c.size(); ++d) speed[d].set(0, 1), away[d].set(0, 0);
  for (const adapt::event& e : t.events) {
    if (!(e.at < t.duration)) break;
    if (const auto* x = std::get_if<adapt::capacity_becomes>(&e.what)) ++steps[x->resource.index()];
  }
  constexpr std::size_t trace = 50;  // more steps than this are not told one by one
  for (const adapt::event& e : t.events) {
    if (!(e.at < t.duration)) break;
    const double at = e.at.value();
    bool mark = true;
    if (const auto* x = std::get_if<adapt::capacity_becomes>(&e.what)) {
      capacity[x->resource.index()].set(at, x->capacity.value());
      mark = steps[x->resource.index()] <= trace;
    } else if (const auto* s = std::get_if<adapt::speed_becomes>(&e.what)) {
      speed[s->device.index()].set(at, s->speed);
    } else if (const auto* l = std::get_if<adapt::device_leaves>(&e.what)) {
      away[l->device.index()].set(at, 1);
    } else if (const auto* j = std::get_if<adapt::device_joins>(&e.what)) {
      away[j->device.index()].set(at, 0);
    } else if (std::holds_alternative<adapt::transfer_begins>(e.what)) {
      transfers.push_back(e);
    }
    if (mark && (marks.empty() || marks.back() < at)) marks.push_back(at);
  }
  for (std::size_t r = 0; r < capacity.size(); ++r) {
    changing x{r, network[r].capacity.value(), std::move(capacity[r]).until(duration_s)};
    if (x.levels.size() > 1 || x.levels.front().value != x.nominal) resources.push_back(std::move(x));
  }
  for (std::size_t d = 0; d < c.size(); ++d) {
    changing x{d, 1, std::move(speed[d]).until(duration_s), std::move(away[d]).until(duration_s)};
    std::erase_if(x.away, [](const level& l) { return l.value == 0; });
    if (x.levels.size() > 1 || x.levels.front().value != 1 || !x.away.empty()) devices.push_back(std::move(x));
  }
  keep_most(resources, most_resources);
  keep_most(devices, most_devices);
}

HETPLAN_INLINE void adaptation_view::keep_most(std::vector<changing>& all, std::size_t most) {
  if (all.size() <= most) return;
  hidden += all.size() - most;
  std::stable_sort(all.begin(), all.end(), [](const changing& a, const changing& b) { return a.deviation() > b.deviation(); });
  all.resize(most);
  std::sort(all.begin(), all.end(), [](const changing& a, const changing& b) { return a.index < b.index; });
}

HETPLAN_INLINE void adaptation_view::read_targets(const adapt::timeline& t, const qoe_target& first) {
  constexpr double never = std::numeric_limits<double>::infinity();
  level_curve latency, deadline;
  latency.set(0, first.latency ? first.latency->value() : never);
  deadline.set(0, first.deadline ? first.deadline->value() : never);
  for (const adapt::event& e : t.events) {
    if (!(e.at < t.duration)) break;
    const auto* q = std::get_if<adapt::qoe_becomes>(&e.what);
    if (q == nullptr) continue;
    if (q->latency) latency.set(e.at.value(), q->latency->value());
    if (q->deadline) deadline.set(e.at.value(), q->deadline->value());
  }
  wanted = std::move(latency).until(duration_s);
  for (const level& l : std::move(deadline).until(duration_s)) {
    if (l.value >= l.from_s && l.value <= l.to_s) deadlines.push_back(l.value);
  }
}

HETPLAN_INLINE plan_name adaptation_view::name_of(const plan& p) {
  std::size_t l = 0;
  while (l < layouts.size() && !same_placement(*layouts[l].front(), p)) ++l;
  if (l == layouts.size()) layouts.emplace_back();
  std::size_t v = 0;
  while (v < layouts[l].size() && !same_execution(*layouts[l][v], p)) ++v;
  if (v == layouts[l].size()) layouts[l].push_back(&p);
  return {l, v};
}

}  // namespace hetplan::draw::detail
