// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The linear program of a fixed order of events: exact rates for that order.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <hetplan/schedule/event_order.hpp>
#include <hetplan/schedule/transfer_priority.hpp>

namespace hetplan::schedule {

/// Rates from fractions of volumes in intervals: `share_of(transfer, interval)`, `times_s` the intervals' limits.
///
/// Every transfer has rate 0 from the last limit on. A solver's rounding is large in short intervals: those below 1e-12 of
/// the run are left out, and rates beyond a capacity are cut to it.
template <class ShareOf>
[[nodiscard]] std::vector<rate_change> rates_of_shares(const cep_graph& cep, const std::vector<std::uint32_t>& draining,
                                                       const std::vector<double>& times_s, ShareOf&& share_of) {
  const tasks::task_graph& g = cep.tasks();
  const auto via = [&](std::uint32_t t) -> const auto& { return g.routes[g.transfers[t].route].via; };
  std::vector<rate_change> out;
  std::vector<double> rate(draining.size()), before(draining.size(), -1), used(cep.network().resources().size());
  for (std::size_t k = 0; k + 1 < times_s.size(); ++k) {
    const double length_s = times_s[k + 1] - times_s[k];
    if (length_s <= 1e-12 * times_s.back()) continue;
    std::fill(used.begin(), used.end(), 0);
    for (std::size_t i = 0; i < draining.size(); ++i) {
      rate[i] = std::max(0.0, share_of(draining[i], k)) * g.transfers[draining[i]].volume_bytes / length_s;
      for (const resource_use& u : via(draining[i])) used[u.resource.index()] += u.weight * rate[i];
    }
    for (std::size_t i = 0; i < draining.size(); ++i) {
      double fits = 1;
      for (const resource_use& u : via(draining[i])) {
        const double capacity = cep.network()[u.resource].capacity.value();
        if (used[u.resource.index()] > capacity) fits = std::min(fits, capacity / used[u.resource.index()]);
      }
      if (rate[i] * fits != before[i]) out.push_back({times_s[k], draining[i], rate[i] * fits});
      before[i] = rate[i] * fits;
    }
  }
  for (std::size_t i = 0; i < draining.size(); ++i) {
    if (before[i] > 0) out.push_back({times_s.back(), draining[i], 0});
  }
  return out;
}

/// A run whose order the program keeps, with its rates recorded; and in which window it may change.
struct order_frame {
  trace run;
  time_window window = {};
};

/// minimise the makespan, given who starts and ends in which order; outside of the frame's window everything stays, but
/// what comes behind it moves with the makespan.
///
/// Between two events the set of active transfers is fixed, so all that counts is which fraction of its volume each moves
/// there: rows keep every resource's capacity times the interval's length. Columns: the timing, and a fraction for every
/// transfer and interval between its start and end. All times in units of the run, so that numbers are near 1.
///
/// Complexity  an interval per event; as many fractions as the transfers' spans count intervals.
/// Source      Dora, eq. 6 for a fixed order.
class order_program {
 public:
  order_program(const cep_graph& cep, std::shared_ptr<const order_frame> frame, event_order order);

  /// An order of all events, whichever run it comes from: every draining transfer's start, and behind it its end.
  /// `unit_s`: about as long as it takes.
  order_program(const cep_graph& cep, event_order order, double unit_s);

  [[nodiscard]] const lp_problem& problem() const { return lp_; }
  [[nodiscard]] const event_order& order() const { return order_; }
  [[nodiscard]] const std::shared_ptr<const order_frame>& frame() const { return frame_; }
  /// Is it about the whole run?
  [[nodiscard]] bool covers_all() const { return std::isinf(frame_->window.from_s) && std::isinf(frame_->window.to_s); }

  /// The makespan of a solution [s].
  [[nodiscard]] double makespan_s(const lp_solution& s) const { return seconds_of(timing_.makespan(), s); }
  [[nodiscard]] double event_s(std::size_t i, const lp_solution& s) const { return seconds_of(time(order_[i]), s); }

  /// Its rates: the window's, and around it those of the run.
  [[nodiscard]] prescribed rates(const lp_solution& s) const;

  /// The basis of another order in the same frame, as far as its columns and rows are the same; new columns start at 0, new
  /// rows basic.
  [[nodiscard]] lp_basis start_from(const order_program& other, const lp_basis& basis) const;

 private:
  using interval_of = std::pair<std::uint32_t, std::size_t>;  ///< (transfer or resource, interval)

  [[nodiscard]] static trace whole_run(const cep_graph& cep, double unit_s);

  [[nodiscard]] lp_time time(const transfer_event& e) const;
  [[nodiscard]] double seconds_of(const lp_time& t, const lp_solution& s) const;

  /// By draining transfer: a fraction for every interval in which it is active, which add up to what it moves in the window.
  void add_shares();

  /// The bytes that the run moves before and behind the window, by transfer.
  [[nodiscard]] std::map<std::uint32_t, double> moved_outside() const;

  /// sum of weight volume fraction / capacity <= length, by resource and interval.
  void capacity_rows();
  /// A row ... <= until - from.
  void add_length(const lp_time& from, const lp_time& until);

  const cep_graph& cep_;
  std::shared_ptr<const order_frame> frame_;
  event_order order_;
  lp_problem lp_;
  timing_rows timing_;
  std::vector<lp_time> times_;           ///< the window's start, the events, the window's end
  bool opens_ = false;                   ///< does the window begin within the run
  std::map<interval_of, int> share_;     ///< columns
  std::map<interval_of, int> capacity_;  ///< rows
  std::size_t first_share_ = 0, first_capacity_ = 0;
};

}  // namespace hetplan::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/order_program.ipp>
#endif
