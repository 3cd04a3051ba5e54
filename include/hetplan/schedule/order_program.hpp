// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The linear program of a fixed order of events: exact rates for that order.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/schedule/event_order.hpp>
#include <hetplan/schedule/network_schedule.hpp>
#include <hetplan/schedule/timing_rows.hpp>

namespace hetplan::schedule {

/// Rates from fractions of volumes in intervals: `share_of(transfer, interval)`, `times_s` the intervals' limits.
///
/// An interval shorter than 1e-12 of the run moves nothing worth a rate.
template <class ShareOf>
[[nodiscard]] prescribed rates_of_shares(const cep_graph& cep, const std::vector<std::uint32_t>& draining, const std::vector<double>& times_s, ShareOf&& share_of) {
  prescribed out;
  std::map<std::uint32_t, double> rate;  // of the transfers that move
  for (std::size_t k = 0; k + 1 < times_s.size(); ++k) {
    const double length_s = times_s[k + 1] - times_s[k];
    if (length_s <= 1e-12 * times_s.back()) continue;
    for (const std::uint32_t t : draining) {
      const double now = std::max(0.0, share_of(t, k)) * cep.tasks().transfers[t].volume_bytes / length_s;
      double& before = rate[t];
      if (now != before) out.rates.push_back({times_s[k], t, now});
      before = now;
    }
  }
  for (const auto& [t, before] : rate) {
    if (before != 0) out.rates.push_back({times_s.back(), t, 0});
  }
  return out;
}

/// minimise the makespan, given who starts and ends in which order.
///
/// Between two events the set of active transfers is fixed, so all that counts is which fraction of its volume each moves
/// there: rows keep every resource's capacity times the interval's length. Columns: the timing, and a fraction for every
/// transfer and interval between its start and end. All times in units of the run that the order comes from, so that
/// numbers are near 1.
///
/// Complexity  2 transfers - 1 intervals; as many fractions as the transfers' spans count intervals.
/// Source      Dora, eq. 6 for a fixed order.
class order_program {
 public:
  order_program(const cep_graph& cep, event_order order, double unit_s)
      : cep_(&cep), order_(std::move(order)), timing_(cep, lp_, unit_s) {
    order_rows();
    add_shares();
    capacity_rows();
  }

  [[nodiscard]] const lp_problem& problem() const { return lp_; }
  [[nodiscard]] const event_order& order() const { return order_; }
  /// The column of an event's time.
  [[nodiscard]] int column(const transfer_event& e) const {
    return e.ends ? timing_.end(cep_->tasks().node_of_transfer(e.transfer)) : timing_.ready(e.transfer);
  }

  /// The makespan of a solution [s].
  [[nodiscard]] double makespan_s(const lp_solution& s) const { return s.objective * timing_.unit_s(); }
  /// Its rates.
  [[nodiscard]] prescribed rates(const lp_solution& s) const {
    std::vector<double> times_s;
    for (const transfer_event& e : order_) {
      const double time = s.x[static_cast<std::size_t>(column(e))] * timing_.unit_s();
      times_s.push_back(times_s.empty() ? time : std::max(time, times_s.back()));
    }
    return rates_of_shares(*cep_, timing_.draining(), times_s, [&](std::uint32_t t, std::size_t k) {
      const auto it = share_.find({t, k});
      return it == share_.end() ? 0.0 : s.x[static_cast<std::size_t>(it->second)];
    });
  }

  /// The basis of another order of the same graph, as far as its columns and rows are the same; new columns start at 0, new
  /// rows basic.
  [[nodiscard]] lp_basis start_from(const order_program& other, const lp_basis& basis) const {
    lp_basis start{std::vector<lp_position>(lp_.objective.size(), lp_position::at_lower), std::vector<lp_position>(lp_.rows.size(), lp_position::basic)};
    if (basis.columns.size() != other.lp_.objective.size() || basis.rows.size() != other.lp_.rows.size()) return {};
    std::copy_n(basis.columns.begin(), first_share_, start.columns.begin());
    std::copy_n(basis.rows.begin(), first_capacity_, start.rows.begin());
    const auto take = [](const auto& mine, const auto& theirs, const auto& from, auto& to) {
      for (const auto& [key, index] : mine) {
        if (const auto it = theirs.find(key); it != theirs.end()) to[static_cast<std::size_t>(index)] = from[static_cast<std::size_t>(it->second)];
      }
    };
    take(share_, other.share_, basis.columns, start.columns);
    take(capacity_, other.capacity_, basis.rows, start.rows);
    return start;
  }

 private:
  using interval_of = std::pair<std::uint32_t, std::size_t>;  ///< (transfer or resource, interval)

  void order_rows() {
    for (std::size_t i = 1; i < order_.size(); ++i) {
      lp_.rows.push_back({.terms = {{column(order_[i]), 1}, {column(order_[i - 1]), -1}}, .lower = 0});
    }
  }

  void add_shares() {
    first_share_ = lp_.objective.size();
    std::map<std::uint32_t, std::size_t> began;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::uint32_t t = order_[i].transfer;
      if (!order_[i].ends) {
        began[t] = i;
        continue;
      }
      lp_problem::row whole{.terms = {}, .lower = 1, .upper = 1};
      for (std::size_t k = began.at(t); k < i; ++k) {
        share_[{t, k}] = lp_.add_column(0);
        whole.terms.emplace_back(share_[{t, k}], 1);
      }
      lp_.rows.push_back(std::move(whole));
    }
    first_capacity_ = lp_.rows.size();
  }

  /// sum of weight volume fraction / capacity <= length, by resource and interval.
  void capacity_rows() {
    const tasks::task_graph& g = cep_->tasks();
    for (const auto& [key, share] : share_) {
      const auto& [t, k] = key;
      for (const resource_use& u : g.routes[g.transfers[t].route].via) {
        const auto [it, is_new] = capacity_.try_emplace({static_cast<std::uint32_t>(u.resource.index()), k}, static_cast<int>(lp_.rows.size()));
        if (is_new) lp_.rows.push_back({.terms = {{column(order_[k + 1]), -1}, {column(order_[k]), 1}}, .upper = 0});
        const double alone_s = g.transfers[t].volume_bytes * u.weight / cep_->network()[u.resource].capacity.value();
        lp_.rows[static_cast<std::size_t>(it->second)].terms.emplace_back(share, alone_s / timing_.unit_s());
      }
    }
  }

  const cep_graph* cep_;  ///< programs of one graph can be assigned
  event_order order_;
  lp_problem lp_;
  timing_rows timing_;
  std::map<interval_of, int> share_;     ///< columns
  std::map<interval_of, int> capacity_;  ///< rows
  std::size_t first_share_ = 0, first_capacity_ = 0;
};

}  // namespace hetplan::schedule
