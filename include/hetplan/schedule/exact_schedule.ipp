// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/exact_schedule.hpp>

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
    const int* column = share_.find({t, k});
    return column == nullptr ? 0.0 : s.x[static_cast<std::size_t>(*column)];
  });
  const auto& [run, window] = *frame_;
  const double earlier_s = run.latency.value() - makespan_s(s);
  prescribed all;
  keyed<double> at_end;  // by transfer: rates of the run at the window's end
  for (const rate_change& r : run.rates) {
    if (r.at_s < window.from_s) all.rates.push_back(r);
    if (r.at_s < window.to_s) at_end[{r.transfer}] = r.rate;
  }
  all.rates.insert(all.rates.end(), inside.begin(), inside.end());
  if (std::isinf(window.to_s)) return all;
  for (const std::size_t i : at_end.keys().in_order()) {
    const auto t = static_cast<std::uint32_t>(at_end.keys().key_of(i)[0].value);
    if (const double rate = at_end.values()[i]; rate > 0) all.rates.push_back({times_s.back(), t, rate});
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
  const auto take = [](const keyed<int>& mine, const keyed<int>& theirs, const auto& from, auto& to) {
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (const int* index = theirs.find(mine.keys().key_of(i)))
        to[static_cast<std::size_t>(mine.values()[i])] = from[static_cast<std::size_t>(*index)];
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
  keyed<std::pair<std::size_t, std::size_t>> active;  // by transfer: first interval, and one past the last
  for (const std::uint32_t t : timing_.draining()) active[{t}] = {0, times_.empty() ? 0 : times_.size() - 1};
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::size_t point = i + (opens_ ? 1 : 0);
    (order_[i].ends ? active[{order_[i].transfer}].second : active[{order_[i].transfer}].first) = point;
  }
  const keyed<double> outside = moved_outside();
  for (const std::size_t i : active.keys().in_order()) {
    const auto t = static_cast<std::uint32_t>(active.keys().key_of(i)[0].value);
    const auto [from, to] = active.values()[i];
    const double* moved = outside.find({t});
    const double part = moved == nullptr ? 1 : std::clamp(1 - *moved / cep_.tasks().transfers[t].volume_bytes, 0.0, 1.0);
    lp_problem::row whole{.terms = {}, .lower = part, .upper = part};
    for (std::size_t k = from; k < to; ++k) {
      const int column = share_[{t, k}] = lp_.add_column(0);
      whole.terms.emplace_back(column, 1);
    }
    lp_.rows.push_back(std::move(whole));
  }
  first_capacity_ = lp_.rows.size();
}

HETPLAN_INLINE keyed<double> order_program::moved_outside() const {
  const auto& [run, window] = *frame_;
  keyed<double> bytes;
  keyed<rate_change> last;
  for (const rate_change& r : run.rates) {
    rate_change& before = last[{r.transfer}];
    if (before.rate > 0) {
      const double from = before.at_s, to = r.at_s;
      const double inside = std::max(0.0, std::min(to, window.to_s) - std::max(from, window.from_s));
      bytes[{r.transfer}] += before.rate * (to - from - inside);
    }
    before = r;
  }
  return bytes;
}

HETPLAN_INLINE void order_program::capacity_rows() {
  const tasks::task_graph& g = cep_.tasks();
  for (std::size_t i = 0; i < share_.size(); ++i) {
    const key_view key = share_.keys().key_of(i);
    const auto t = static_cast<std::size_t>(key[0].value), k = static_cast<std::size_t>(key[1].value);
    for (const resource_use& u : g.routes[g.transfers[t].route].via) {
      if (capacity_.insert({u.resource, k}, static_cast<int>(lp_.rows.size()))) add_length(times_[k], times_[k + 1]);
      lp_.rows[static_cast<std::size_t>(*capacity_.find({u.resource, k}))].terms.emplace_back(
          share_.values()[i], tasks::work_s(g.transfers[t], u, cep_.network()) / timing_.unit_s());
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

namespace hetplan::schedule::detail {

HETPLAN_INLINE reachability::reachability(const cep_graph& cep, const std::vector<tasks::node_id>& targets)
    : number_(cep.tasks().size(), none), words_((targets.size() + 63) / 64), reached_(cep.tasks().size() * words_, 0) {
  std::uint32_t numbers = 0;
  for (const tasks::node_id n : targets) {
    if (number_[n] == none) number_[n] = numbers++;
  }
  const tasks::task_graph& g = cep.tasks();
  const std::vector<tasks::node_id> order = tasks::longest_paths(g, cep.network()).order, next = tasks::detail::next_on_device(g);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    std::uint64_t* mine = &reached_[*it * words_];
    if (number_[*it] != none) mine[number_[*it] / 64] |= std::uint64_t{1} << number_[*it] % 64;
    const auto join = [&](tasks::node_id m) {
      for (std::size_t i = 0; i < words_; ++i) mine[i] |= reached_[m * words_ + i];
    };
    for (const tasks::node_id m : g.successors_of(*it)) join(m);
    if (g.is_compute(*it) && next[*it] < g.size()) join(next[*it]);
  }
}

HETPLAN_INLINE bool reachability::operator()(tasks::node_id a, tasks::node_id b) const {
  return (reached_[a * words_ + number_[b] / 64] >> number_[b] % 64 & 1) != 0;
}

HETPLAN_INLINE order_choice::order_choice(const cep_graph& cep, const trace& known)
    : cep_(cep), timing_(cep, known, {}, program_.relaxation) {
  lp_problem& lp = program_.relaxation;
  const auto makespan = static_cast<std::size_t>(timing_.makespan().column);
  lp.upper[makespan] = std::max(1.0, lp.lower[makespan]);  // in units of the known schedule, which may meet its bound
  const auto& f = timing_.draining();
  points_ = 2 * f.size();
  for (std::size_t k = 0; k < points_; ++k) {
    time_.push_back(lp.add_column(0, 0, 1));
    if (k > 0) lp.rows.push_back({.terms = {{time_[k], 1}, {time_[k - 1], -1}}, .lower = 0});
  }
  for (std::size_t i = 0; i < f.size(); ++i) add_transfer(i);
  for (std::size_t k = 0; k < points_; ++k) one_event_per_point(k);
  capacities();
  known_orders();
}

HETPLAN_INLINE prescribed order_choice::rates(const milp_solution& s) const {
  std::vector<double> times_s;
  for (const int column : time_) times_s.push_back(s.x[static_cast<std::size_t>(column)] * unit_s());
  for (std::size_t k = 1; k < times_s.size(); ++k) times_s[k] = std::max(times_s[k], times_s[k - 1]);
  return {rates_of_shares(cep_, timing_.draining(), times_s, [&](std::uint32_t t, std::size_t k) {
    const auto i =
        static_cast<std::size_t>(std::lower_bound(timing_.draining().begin(), timing_.draining().end(), t) - timing_.draining().begin());
    return s.x[static_cast<std::size_t>(share_[i][k])];
  })};
}

HETPLAN_INLINE int order_choice::add_binary() {
  program_.integers.push_back(program_.relaxation.add_column(0, 0, 1));
  return program_.integers.back();
}

HETPLAN_INLINE void order_choice::add_row(std::vector<std::pair<int, double>> terms, double lower, double upper) {
  program_.relaxation.rows.push_back({std::move(terms), lower, upper});
}

HETPLAN_INLINE void order_choice::add_transfer(std::size_t i) {
  const std::uint32_t t = timing_.draining()[i];
  const int ready = timing_.ready(t).column, end = timing_.end(cep_.tasks().node_of_transfer(t)).column;
  started_.emplace_back();
  ended_.emplace_back();
  share_.emplace_back();
  std::vector<std::pair<int, double>> whole;
  for (std::size_t k = 0; k < points_; ++k) {
    started_[i].push_back(add_binary());
    ended_[i].push_back(add_binary());
    const int u = started_[i][k], v = ended_[i][k];
    if (k > 0) {
      add_row({{u, 1}, {started_[i][k - 1], -1}}, 0);
      add_row({{v, 1}, {ended_[i][k - 1], -1}}, 0);
      add_row({{started_[i][k - 1], 1}, {v, -1}}, 0);  // a transfer ends after its start
    }
    add_row({{time_[k], 1}, {ready, -1}, {u, -1}}, -1);                       // u = 1: ready <= time k
    if (k + 1 < points_) add_row({{end, 1}, {time_[k + 1], -1}, {v, 1}}, 0);  // v = 0: end >= time k + 1
    if (k + 1 == points_) break;
    share_[i].push_back(program_.relaxation.add_column(0, 0, 1));
    add_row({{u, 1}, {v, -1}, {share_[i][k], -1}}, 0);
    whole.emplace_back(share_[i][k], 1);
  }
  fix(ended_[i].front(), 0);
  fix(started_[i].back(), 1);
  fix(ended_[i].back(), 1);
  add_row(std::move(whole), 1, 1);
}

HETPLAN_INLINE void order_choice::fix(int column, double value) {
  program_.relaxation.lower[static_cast<std::size_t>(column)] = program_.relaxation.upper[static_cast<std::size_t>(column)] = value;
}

HETPLAN_INLINE void order_choice::one_event_per_point(std::size_t k) {
  std::vector<std::pair<int, double>> terms;
  for (std::size_t i = 0; i < started_.size(); ++i) {
    terms.emplace_back(started_[i][k], 1);
    terms.emplace_back(ended_[i][k], 1);
  }
  const double events = static_cast<double>(k) + 1;
  add_row(std::move(terms), events, events);
}

HETPLAN_INLINE void order_choice::capacities() {
  const tasks::task_graph& g = cep_.tasks();
  for (std::size_t k = 0; k + 1 < points_; ++k) {
    std::vector<std::vector<std::pair<int, double>>> load(cep_.network().resources().size());
    for (std::size_t i = 0; i < share_.size(); ++i) {
      const tasks::transfer& x = g.transfers[timing_.draining()[i]];
      for (const resource_use& u : g.routes[x.route].via) {
        load[u.resource.index()].emplace_back(share_[i][k], tasks::work_s(x, u, cep_.network()) / unit_s());
      }
    }
    for (auto& terms : load) {
      if (terms.empty()) continue;
      terms.emplace_back(time_[k + 1], -1);
      terms.emplace_back(time_[k], 1);
      add_row(std::move(terms), -std::numeric_limits<double>::infinity(), 0);
    }
  }
}

HETPLAN_INLINE void order_choice::known_orders() {
  const tasks::task_graph& g = cep_.tasks();
  const std::vector<std::vector<tasks::node_id>> before = predecessors();
  const auto& f = timing_.draining();
  std::vector<tasks::node_id> asked;  // the transfers, their predecessors and successors
  for (const std::uint32_t t : f) {
    const tasks::node_id n = g.node_of_transfer(t);
    asked.push_back(n);
    asked.insert(asked.end(), before[n].begin(), before[n].end());
    asked.insert(asked.end(), g.successors_of(n).begin(), g.successors_of(n).end());
  }
  const reachability reaches(cep_, asked);
  for (std::size_t a = 0; a < f.size(); ++a) {
    for (std::size_t b = 0; b < f.size(); ++b) {
      const tasks::node_id na = g.node_of_transfer(f[a]), nb = g.node_of_transfer(f[b]);
      if (a == b) continue;
      if (reaches(na, nb)) {  // b starts after a ends
        for (std::size_t k = 1; k < points_; ++k) add_row({{ended_[a][k - 1], 1}, {started_[b][k], -1}}, 0);
        fix(started_[b].front(), 0);
        continue;
      }
      const tasks::transfer &x = g.transfers[f[a]], &y = g.transfers[f[b]];
      const auto no_later = [&](const tasks::transfer& s, tasks::node_id ns, const tasks::transfer& t, tasks::node_id nt) {
        return s.release_s <= t.release_s && s.latency_s <= t.latency_s && all_reach(reaches, before[ns], before[nt]);
      };
      if (!no_later(x, na, y, nb) || (a > b && no_later(y, nb, x, na))) continue;  // ties in the order of numbers
      for (std::size_t k = 0; k < points_; ++k) add_row({{started_[a][k], 1}, {started_[b][k], -1}}, 0);
      // On a common route a may end first, if all successors of b depend on a anyway.
      std::vector<tasks::node_id> after_a(g.successors_of(na).begin(), g.successors_of(na).end());
      std::vector<tasks::node_id> after_b(g.successors_of(nb).begin(), g.successors_of(nb).end());
      if (x.route != y.route || !all_reached(reaches, after_a, after_b)) continue;
      for (std::size_t k = 0; k < points_; ++k) add_row({{ended_[a][k], 1}, {ended_[b][k], -1}}, 0);
    }
  }
}

HETPLAN_INLINE bool order_choice::all_reach(const reachability& reaches, const std::vector<tasks::node_id>& from,
                                            const std::vector<tasks::node_id>& to) {
  return std::all_of(from.begin(), from.end(),
                     [&](tasks::node_id a) { return std::any_of(to.begin(), to.end(), [&](tasks::node_id b) { return reaches(a, b); }); });
}

HETPLAN_INLINE bool order_choice::all_reached(const reachability& reaches, const std::vector<tasks::node_id>& from,
                                              const std::vector<tasks::node_id>& to) {
  return std::all_of(to.begin(), to.end(), [&](tasks::node_id b) {
    return std::any_of(from.begin(), from.end(), [&](tasks::node_id a) { return reaches(a, b); });
  });
}

HETPLAN_INLINE std::vector<std::vector<tasks::node_id>> order_choice::predecessors() const {
  std::vector<std::vector<tasks::node_id>> before(cep_.tasks().size());
  for (tasks::node_id n = 0; n < cep_.tasks().size(); ++n) {
    for (const tasks::node_id m : cep_.tasks().successors_of(n)) before[m].push_back(n);
  }
  return before;
}

}  // namespace hetplan::schedule::detail
