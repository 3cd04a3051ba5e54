// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What pictures of an adaptation show: what changed when, what was wanted when, and names that all policies' plans share.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/adapt/timeline.hpp>
#include <hetplan/io/clock_scale.hpp>
#include <hetplan/io/policy_history.hpp>
#include <hetplan/plan/job.hpp>
#include <hetplan/plan/same_placement.hpp>

namespace hetplan::io::detail {

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

/// A resource's capacity [B/s] or a device's speed [factor] over time, and when the device was away.
struct changing {
  std::size_t index = 0;  ///< of the resource or device
  double nominal = 1;
  std::vector<level> levels = {};
  std::vector<level> away = {};

  /// How far and how long it was off its nominal value: which rows are worth their room.
  [[nodiscard]] double deviation() const {
    double sum = 0;
    for (const level& l : levels) sum += (l.to_s - l.from_s) * std::min(1.0, std::abs(l.value / nominal - 1));
    for (const level& l : away) sum += l.to_s - l.from_s;
    return sum;
  }
};

/// A plan's name among all that ran under any policy: a letter for who computes what, a number for how: microbatches,
/// shares, the schedule of the network.
struct plan_name {
  std::size_t layout = 0;   ///< 0: A
  std::size_t variant = 0;  ///< 0: the first with this layout
  [[nodiscard]] std::string text() const {
    std::string name;
    for (std::size_t n = layout + 1; n > 0; n = (n - 1) / 26) name.insert(name.begin(), static_cast<char>('A' + (n - 1) % 26));
    return name + (variant == 0 ? "" : std::to_string(variant + 1));
  }
};

/// Only predictions and planners may differ.
[[nodiscard]] inline bool same_execution(const plan& a, const plan& b) {
  return a.microbatch_size == b.microbatch_size && a.microbatches == b.microbatches && a.pipelines == b.pipelines &&
         a.parameter_server == b.parameter_server && a.stages == b.stages && a.schedule == b.schedule && a.network == b.network &&
         a.transfers == b.transfers && a.workload == b.workload;
}

/// The timeline and the histories as pictures need them.
class adaptation_view {
 public:
  static constexpr std::size_t most_resources = 6, most_devices = 8;

  adaptation_view(std::span<const policy_history> rows, const adapt::timeline& t, const cluster& c, const qoe_target& first_wish)
      : policies(rows), duration_s(t.duration.value()) {
    read_conditions(t, c);
    read_wishes(t, first_wish);
    for (const policy_history& row : rows) {
      names.emplace_back();
      for (const plan& p : row.history.plans) names.back().push_back(name_of(p));
    }
  }

  std::span<const policy_history> policies;
  double duration_s;
  std::vector<changing> resources = {}, devices = {};  ///< those that change; the most changing ones, by index
  std::size_t hidden = 0;                              ///< others that change
  std::vector<adapt::event> transfers = {};
  std::vector<level> wanted = {};                      ///< response; infinite while nothing is wanted
  std::vector<double> deadlines = {};                  ///< that were in force when their time came, or at the end
  std::vector<double> marks = {};                      ///< when something happened that is no step of a trace; ascending
  std::vector<std::vector<plan_name>> names = {};      ///< by policy and index into history::plans
  std::vector<std::vector<const plan*>> layouts = {};  ///< the plans of each letter, by variant

  [[nodiscard]] std::string name(std::size_t policy, std::size_t index) const {
    return index < names[policy].size() ? names[policy][index].text() : std::string("none");
  }
  [[nodiscard]] std::size_t layout(std::size_t policy, std::size_t index) const {
    return index < names[policy].size() ? names[policy][index].layout : 0;
  }
  /// The response that was wanted at a time.
  [[nodiscard]] double wanted_at(double t) const {
    const auto it = std::upper_bound(wanted.begin(), wanted.end(), t, [](double at, const level& l) { return at < l.from_s; });
    return std::prev(it)->value;
  }

 private:
  void read_conditions(const adapt::timeline& t, const cluster& c) {
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

  void keep_most(std::vector<changing>& all, std::size_t most) {
    if (all.size() <= most) return;
    hidden += all.size() - most;
    std::stable_sort(all.begin(), all.end(), [](const changing& a, const changing& b) { return a.deviation() > b.deviation(); });
    all.resize(most);
    std::sort(all.begin(), all.end(), [](const changing& a, const changing& b) { return a.index < b.index; });
  }

  void read_wishes(const adapt::timeline& t, const qoe_target& first) {
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

  [[nodiscard]] plan_name name_of(const plan& p) {
    std::size_t l = 0;
    while (l < layouts.size() && !same_placement(*layouts[l].front(), p)) ++l;
    if (l == layouts.size()) layouts.emplace_back();
    std::size_t v = 0;
    while (v < layouts[l].size() && !same_execution(*layouts[l][v], p)) ++v;
    if (v == layouts[l].size()) layouts[l].push_back(&p);
    return {l, v};
  }
};

}  // namespace hetplan::io::detail
