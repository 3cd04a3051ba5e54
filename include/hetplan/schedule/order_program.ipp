// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/order_program.hpp>

namespace hetplan::schedule {

HETPLAN_INLINE order_program::order_program(const cep_graph& cep, std::shared_ptr<const order_frame> frame, event_order order)
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

HETPLAN_INLINE order_program::order_program(const cep_graph& cep, event_order order, double unit_s)
    : order_program(cep, std::make_shared<const order_frame>(order_frame{whole_run(cep, unit_s)}), std::move(order)) {}

HETPLAN_INLINE prescribed order_program::rates(const lp_solution& s) const {
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

HETPLAN_INLINE lp_basis order_program::start_from(const order_program& other, const lp_basis& basis) const {
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

HETPLAN_INLINE trace order_program::whole_run(const cep_graph& cep, double unit_s) {
  trace run = schedule::run(cep, network_schedule{});
  run.latency = seconds(unit_s);
  return run;
}

HETPLAN_INLINE lp_time order_program::time(const transfer_event& e) const {
  return e.ends ? timing_.end(cep_.tasks().node_of_transfer(e.transfer)) : timing_.ready(e.transfer);
}

HETPLAN_INLINE double order_program::seconds_of(const lp_time& t, const lp_solution& s) const {
  return ((t.column >= 0 ? s.x[static_cast<std::size_t>(t.column)] : 0) + t.constant) * timing_.unit_s();
}

HETPLAN_INLINE void order_program::add_shares() {
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

HETPLAN_INLINE std::map<std::uint32_t, double> order_program::moved_outside() const {
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

HETPLAN_INLINE void order_program::capacity_rows() {
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

HETPLAN_INLINE void order_program::add_length(const lp_time& from, const lp_time& until) {
  lp_problem::row row{.terms = {}, .upper = until.constant - from.constant};
  if (from.column != until.column) {
    if (until.column >= 0) row.terms.emplace_back(until.column, -1);
    if (from.column >= 0) row.terms.emplace_back(from.column, 1);
  }
  lp_.rows.push_back(std::move(row));
}

}  // namespace hetplan::schedule
