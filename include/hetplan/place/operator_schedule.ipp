// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/operator_schedule.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/core/linkage.hpp>

namespace hetplan::place {

HETPLAN_INLINE channels::channels(const placement_table& t, contention c) : devices_(t.devices()), first_{0} {
  size_ = c == contention::none ? 0 : c == contention::one_port ? 2 * devices_ : t.resources();
  for (std::size_t from = 0; from < devices_; ++from) {
    for (std::size_t to = 0; to < devices_; ++to) {
      if (from != to && c == contention::one_port) {
        all_.insert(all_.end(), {from, devices_ + to});
      } else if (from != to && c != contention::none) {
        const auto& resources = t.pair(from, to).resources;
        all_.insert(all_.end(), resources.begin(), resources.end());
      }
      first_.push_back(all_.size());
    }
  }
}

namespace detail {

/// Times of one schedule are sums of the same numbers in different orders.
class schedule_check {
 public:
  schedule_check(const placement_table& t, const placement_rules& r, const operator_schedule& s)
      : table_(t), rules_(r), schedule_(s), slack_s_(1e-9 * (std::isfinite(s.makespan_s) ? s.makespan_s : 0)) {}

  [[nodiscard]] std::optional<std::string> run() {
    const std::size_t n = table_.size();
    if (schedule_.device.size() != n || schedule_.start_s.size() != n)
      return "expected a device and a start for each of " + std::to_string(n) + " operators";
    double last_s = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (schedule_.device[i] >= table_.devices()) return named(i) + " is on no device";
      if (!std::isfinite(time_s(i))) return named(i) + " cannot run on device " + std::to_string(schedule_.device[i]);
      if (!(schedule_.start_s[i] >= 0)) return named(i) + " starts at " + to_text(schedule_.start_s[i]) + " s";
      last_s = std::max(last_s, end_s(i));
    }
    if (largest_overflow_bytes(table_, schedule_.device) > 0) return "a device holds more than it has memory";
    if (!(std::abs(last_s - schedule_.makespan_s) <= slack_s_)) return "the makespan is not the last end";
    if (auto fault = find_overlap()) return fault;
    if (auto fault = find_fault_of_transfers()) return fault;
    return find_late_data();
  }

 private:
  using interval = std::pair<double, double>;

  [[nodiscard]] std::string named(std::size_t op) const { return "operator \"" + escaped(table_.data().operators[op]) + "\""; }
  [[nodiscard]] double time_s(std::size_t op) const { return table_.time_s(op, schedule_.device[op]); }
  [[nodiscard]] double end_s(std::size_t op) const { return schedule_.start_s[op] + time_s(op); }

  [[nodiscard]] bool overlap(std::vector<interval>& all) const {
    std::sort(all.begin(), all.end());
    return std::adjacent_find(all.begin(), all.end(),
                              [&](const interval& a, const interval& b) { return b.first < a.second - slack_s_; }) != all.end();
  }

  [[nodiscard]] std::optional<std::string> find_overlap() const {
    std::vector<std::vector<interval>> busy(table_.devices());
    for (std::size_t i = 0; i < table_.size(); ++i) busy[schedule_.device[i]].emplace_back(schedule_.start_s[i], end_s(i));
    for (std::size_t k = 0; k < busy.size(); ++k) {
      if (overlap(busy[k])) return "two operators of device " + std::to_string(k) + " overlap";
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> find_fault_of_transfers() {
    const channels holds(table_, rules_.contention);
    std::vector<std::vector<interval>> busy(holds.size());
    for (const scheduled_transfer& x : schedule_.transfers) {
      if (x.edge >= table_.edges().size()) return "a transfer carries no edge";
      const std::size_t producer = table_.edges()[x.edge].from;
      const std::string name = "the transfer of " + named(producer);
      if (x.from != schedule_.device[producer] || x.to >= table_.devices() || x.to == x.from) return name + " leaves another device";
      if (x.start_s < end_s(producer) - slack_s_) return name + " starts before its producer ends";
      const double takes_s = carried_s(table_, rules_.copies, x.edge, x.from, x.to);
      if (!(std::abs(x.end_s - x.start_s - takes_s) <= slack_s_)) return name + " takes another time";
      const std::size_t key = rules_.copies == transfer_copies::per_edge ? x.edge : producer;
      if (!arrival_s_.emplace(std::pair(key, x.to), x.end_s).second) return name + " runs twice";
      const double held = held_s(table_, rules_, x.edge, x.from, x.to);
      if (rules_.contention == contention::shared && held <= 0) continue;
      for (const std::size_t c : holds.of(x.from, x.to)) busy[c].emplace_back(x.end_s - held, x.end_s);
    }
    for (std::size_t c = 0; c < busy.size(); ++c) {
      if (overlap(busy[c])) return "two transfers overlap on channel " + std::to_string(c);
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> find_late_data() const {
    for (std::size_t e = 0; e < table_.edges().size(); ++e) {
      const auto [from, to, size] = table_.edges()[e];
      double there_s = end_s(from);
      if (schedule_.device[from] != schedule_.device[to]) {
        const std::size_t key = rules_.copies == transfer_copies::per_edge ? e : from;
        const auto it = arrival_s_.find({key, schedule_.device[to]});
        if (it == arrival_s_.end()) return "no transfer carries the data of " + named(from) + " to " + named(to);
        there_s = it->second;
      }
      if (schedule_.start_s[to] < there_s - slack_s_) return named(to) + " starts before the data of " + named(from) + " are there";
    }
    return std::nullopt;
  }

  const placement_table& table_;
  const placement_rules& rules_;
  const operator_schedule& schedule_;
  double slack_s_;
  std::map<std::pair<std::size_t, std::size_t>, double> arrival_s_;  ///< by edge or producer, and device
};

}  // namespace detail

HETPLAN_INLINE std::optional<std::string> find_broken_rule(const placement_table& t, const placement_rules& r, const operator_schedule& s) {
  return detail::schedule_check(t, r, s).run();
}

HETPLAN_INLINE std::vector<std::size_t> sequence_of(const placement_table& t, const operator_schedule& s) {
  std::vector<std::size_t> sequence(t.order().begin(), t.order().end());
  const auto key = [&](std::size_t v) { return std::pair(s.start_s[v], s.start_s[v] + t.time_s(v, s.device[v])); };
  std::stable_sort(sequence.begin(), sequence.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return sequence;
}

HETPLAN_INLINE void sort_transfers(std::vector<scheduled_transfer>& transfers) {
  std::sort(transfers.begin(), transfers.end(), [](const scheduled_transfer& a, const scheduled_transfer& b) {
    return std::tie(a.start_s, a.end_s, a.edge, a.to) < std::tie(b.start_s, b.end_s, b.edge, b.to);
  });
}

HETPLAN_INLINE std::vector<double> excess_bytes(const placement_table& t, const std::vector<std::size_t>& device) {
  device_memory memory(t);
  for (const std::size_t i : t.order()) {
    if (device[i] < t.devices()) memory.add(i, device[i]);
  }
  std::vector<double> excess;
  for (std::size_t k = 0; k < t.devices(); ++k) excess.push_back(-memory.free_bytes(k));
  return excess;
}

HETPLAN_INLINE double largest_overflow_bytes(const placement_table& t, const std::vector<std::size_t>& device) {
  const std::vector<double> excess = excess_bytes(t, device);
  return *std::max_element(excess.begin(), excess.end());
}

}  // namespace hetplan::place
