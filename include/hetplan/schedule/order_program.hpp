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
#include <hetplan/schedule/network_schedule.hpp>
#include <hetplan/schedule/timing_rows.hpp>

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
  order_program(const cep_graph& cep, std::shared_ptr<const order_frame> frame, event_order order)
      : cep_(cep), frame_(std::move(frame)), order_(std::move(order)), timing_(cep, frame_->run, frame_->window, lp_) {
    const time_window& w = frame_->window;
    opens_ = !std::isinf(w.from_s);
    if (opens_) times_.push_back(timing_.moment(w.from_s));
    for (const transfer_event& e : order_) times_.push_back(time(e));
    if (!std::isinf(w.to_s)) times_.push_back(timing_.moment(w.to_s));
    for (std::size_t i = 1; i < times_.size(); ++i) timing_.after(lp_, times_[i], times_[i - 1], 0);
    add_shares();
    capacity_rows();
  }

  /// An order of all events, whichever run it comes from: every draining transfer's start, and behind it its end.
  /// `unit_s`: about as long as it takes.
  order_program(const cep_graph& cep, event_order order, double unit_s)
      : order_program(cep, std::make_shared<const order_frame>(order_frame{whole_run(cep, unit_s)}), std::move(order)) {}

  [[nodiscard]] const lp_problem& problem() const { return lp_; }
  [[nodiscard]] const event_order& order() const { return order_; }
  [[nodiscard]] const std::shared_ptr<const order_frame>& frame() const { return frame_; }
  /// Is it about the whole run?
  [[nodiscard]] bool covers_all() const { return std::isinf(frame_->window.from_s) && std::isinf(frame_->window.to_s); }

  /// The makespan of a solution [s].
  [[nodiscard]] double makespan_s(const lp_solution& s) const { return seconds_of(timing_.makespan(), s); }
  [[nodiscard]] double event_s(std::size_t i, const lp_solution& s) const { return seconds_of(time(order_[i]), s); }

  /// Its rates: the window's, and around it those of the run.
  [[nodiscard]] prescribed rates(const lp_solution& s) const {
    std::vector<double> times_s;
    for (const lp_time& t : times_) times_s.push_back(times_s.empty() ? seconds_of(t, s) : std::max(seconds_of(t, s), times_s.back()));
    const std::vector<rate_change> inside = rates_of_shares(cep_, timing_.draining(), times_s, [&](std::uint32_t t, std::size_t k) {
      const auto it = share_.find({t, k});
      return it == share_.end() ? 0.0 : s.x[static_cast<std::size_t>(it->second)];
    });
    const auto& [run, window] = *frame_;
    const double earlier_s = run.latency.value() - makespan_s(s);
    prescribed all;
    std::map<std::uint32_t, double> at_end;  // of the run, when the window ends
    for (const rate_change& r : run.rates) {
      if (r.at_s < window.from_s) all.rates.push_back(r);
      if (r.at_s < window.to_s) at_end[r.transfer] = r.rate;
    }
    all.rates.insert(all.rates.end(), inside.begin(), inside.end());
    if (std::isinf(window.to_s)) return all;
    for (const auto& [t, rate] : at_end) {
      if (rate > 0) all.rates.push_back({times_s.back(), t, rate});
    }
    for (const rate_change& r : run.rates) {
      if (r.at_s >= window.to_s) all.rates.push_back({r.at_s - earlier_s, r.transfer, r.rate});
    }
    return all;
  }

  /// The basis of another order in the same frame, as far as its columns and rows are the same; new columns start at 0, new
  /// rows basic.
  [[nodiscard]] lp_basis start_from(const order_program& other, const lp_basis& basis) const {
    lp_basis start{std::vector<lp_position>(lp_.objective.size(), lp_position::at_lower),
                   std::vector<lp_position>(lp_.rows.size(), lp_position::basic)};
    const bool known = basis.columns.size() == other.lp_.objective.size() && basis.rows.size() == other.lp_.rows.size();
    if (!known || first_share_ != other.first_share_ || first_capacity_ != other.first_capacity_) return {};
    std::copy_n(basis.columns.begin(), first_share_, start.columns.begin());
    std::copy_n(basis.rows.begin(), first_capacity_, start.rows.begin());
    const auto take = [](const auto& mine, const auto& theirs, const auto& from, auto& to) {
      for (const auto& [key, index] : mine) {
        if (const auto it = theirs.find(key); it != theirs.end())
          to[static_cast<std::size_t>(index)] = from[static_cast<std::size_t>(it->second)];
      }
    };
    take(share_, other.share_, basis.columns, start.columns);
    take(capacity_, other.capacity_, basis.rows, start.rows);
    return start;
  }

 private:
  using interval_of = std::pair<std::uint32_t, std::size_t>;  ///< (transfer or resource, interval)

  [[nodiscard]] static trace whole_run(const cep_graph& cep, double unit_s) {
    trace run = schedule::run(cep, network_schedule{});
    run.latency = seconds(unit_s);
    return run;
  }

  [[nodiscard]] lp_time time(const transfer_event& e) const {
    return e.ends ? timing_.end(cep_.tasks().node_of_transfer(e.transfer)) : timing_.ready(e.transfer);
  }
  [[nodiscard]] double seconds_of(const lp_time& t, const lp_solution& s) const {
    return ((t.column >= 0 ? s.x[static_cast<std::size_t>(t.column)] : 0) + t.constant) * timing_.unit_s();
  }

  /// By draining transfer: a fraction for every interval in which it is active, which add up to what it moves in the window.
  void add_shares() {
    first_share_ = lp_.objective.size();
    std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> active;  // first interval, the one behind the last
    for (const std::uint32_t t : timing_.draining()) active[t] = {0, times_.empty() ? 0 : times_.size() - 1};
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::size_t point = i + (opens_ ? 1 : 0);
      (order_[i].ends ? active[order_[i].transfer].second : active[order_[i].transfer].first) = point;
    }
    const std::map<std::uint32_t, double> outside = moved_outside();
    for (const auto& [t, span] : active) {
      const auto it = outside.find(t);
      const double part = it == outside.end() ? 1 : std::clamp(1 - it->second / cep_.tasks().transfers[t].volume_bytes, 0.0, 1.0);
      lp_problem::row whole{.terms = {}, .lower = part, .upper = part};
      for (std::size_t k = span.first; k < span.second; ++k) {
        share_[{t, k}] = lp_.add_column(0);
        whole.terms.emplace_back(share_[{t, k}], 1);
      }
      lp_.rows.push_back(std::move(whole));
    }
    first_capacity_ = lp_.rows.size();
  }

  /// The bytes that the run moves before and behind the window, by transfer.
  [[nodiscard]] std::map<std::uint32_t, double> moved_outside() const {
    const auto& [run, window] = *frame_;
    std::map<std::uint32_t, double> bytes;
    std::map<std::uint32_t, rate_change> last;
    for (const rate_change& r : run.rates) {
      if (const auto it = last.find(r.transfer); it != last.end() && it->second.rate > 0) {
        const double from = it->second.at_s, to = r.at_s;
        const double inside = std::max(0.0, std::min(to, window.to_s) - std::max(from, window.from_s));
        bytes[r.transfer] += it->second.rate * (to - from - inside);
      }
      last[r.transfer] = r;
    }
    return bytes;
  }

  /// sum of weight volume fraction / capacity <= length, by resource and interval.
  void capacity_rows() {
    const tasks::task_graph& g = cep_.tasks();
    for (const auto& [key, share] : share_) {
      const auto& [t, k] = key;
      for (const resource_use& u : g.routes[g.transfers[t].route].via) {
        const auto [it, is_new] =
            capacity_.try_emplace({static_cast<std::uint32_t>(u.resource.index()), k}, static_cast<int>(lp_.rows.size()));
        if (is_new) add_length(times_[k], times_[k + 1]);
        lp_.rows[static_cast<std::size_t>(it->second)].terms.emplace_back(
            share, tasks::work_s(g.transfers[t], u, cep_.network()) / timing_.unit_s());
      }
    }
  }
  /// A row ... <= until - from.
  void add_length(const lp_time& from, const lp_time& until) {
    lp_problem::row row{.terms = {}, .upper = until.constant - from.constant};
    if (from.column != until.column) {
      if (until.column >= 0) row.terms.emplace_back(until.column, -1);
      if (from.column >= 0) row.terms.emplace_back(from.column, 1);
    }
    lp_.rows.push_back(std::move(row));
  }

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
