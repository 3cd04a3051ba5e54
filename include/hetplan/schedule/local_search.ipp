// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/local_search.hpp>

#include <algorithm>
#include <random>
#include <string>

#include <hetplan/core/sorting.hpp>
#include <hetplan/simulate/simulator.hpp>
#include <hetplan/simulate/wait_states.hpp>

namespace hetplan::schedule {

HETPLAN_INLINE message_rules order_of_ends::operator()(const cep_graph& cep, const trace& alone) const {
  std::vector<std::pair<double, message_chunk>> ends;
  for (std::uint32_t f = 0; f < cep.messages(); ++f) ends.push_back({alone.transfers[cep.transfers_of(f).front()].end_s, {f, 0}});
  sort_stably(ends);
  std::vector<message_chunk> sequence;
  for (const auto& [end, chunk] : ends) sequence.push_back(chunk);
  return rules_of_sequence(cep.messages(), sequence);
}

HETPLAN_INLINE std::vector<any_search_start> usual_starts() {
  return {critical_path_first{}, longest_tail_first{}, order_of_ends{}, earliest_first{}, smallest_first{}, all_equal{}};
}

namespace detail {

[[nodiscard]] HETPLAN_INLINE int& priority_of(message_rules& rules, const message_chunk& c) { return rules[c.message][c.chunk].priority; }

/// Inserts a chunk at a priority of its own. Chunks at that priority or a later one move back by one.
[[nodiscard]] HETPLAN_INLINE message_rules inserted(message_rules rules, const message_chunk& c, int at) {
  for (auto& message : rules) {
    for (chunk_rule& r : message) r.priority += r.priority >= at ? 1 : 0;
  }
  priority_of(rules, c) = at;
  return rules;
}

}  // namespace detail

HETPLAN_INLINE message_rules overtake_rival::operator()(const cep_graph&, message_rules rules, const contention& at) const {
  const int place = detail::priority_of(rules, at.rival);
  return detail::inserted(std::move(rules), at.urgent, place);
}

HETPLAN_INLINE message_rules hold_back_rival::operator()(const cep_graph&, message_rules rules, const contention& at) const {
  const int place = detail::priority_of(rules, at.urgent) + 1;
  return detail::inserted(std::move(rules), at.rival, place);
}

HETPLAN_INLINE message_rules join_rival::operator()(const cep_graph&, message_rules rules, const contention& at) const {
  detail::priority_of(rules, at.urgent) = detail::priority_of(rules, at.rival);
  return rules;
}

HETPLAN_INLINE message_rules let_rival_join::operator()(const cep_graph&, message_rules rules, const contention& at) const {
  detail::priority_of(rules, at.rival) = detail::priority_of(rules, at.urgent);
  return rules;
}

HETPLAN_INLINE std::vector<any_search_move> usual_moves() { return {overtake_rival{}, hold_back_rival{}, join_rival{}, let_rival_join{}}; }

namespace detail {

class local_searcher {
 public:
  local_searcher(const cep_graph& cep, const local_search_options& options, const any_observer<schedule_tried>& observer)
      : cep_(cep), options_(options), observer_(observer), random_(options.seed) {}

  [[nodiscard]] network_schedule run() {
    const auto size = static_cast<long long>(std::max<std::size_t>(1, cep_.tasks().transfers.size()));
    most_steps_ = std::min(options_.steps, std::max(8LL, options_.transfers / size));
    best_ = {.bound = cep_.bound()};
    const trace alone = schedule::run(cep_, best_);
    best_.latency = alone.latency;
    count(best_.latency);
    if (cep_.messages() > 1 && !finished()) {
      start(alone);
      while (!options_.moves.empty() && !finished() && improve()) {
      }
    }
    best_.steps = steps_;
    best_.gap = gap_of(best_);
    if (out_of_time() && best_.latency > best_.bound * (1 + 1e-12))
      best_.status = {outcome::stopped, "local search: stopped by its time limit after " + std::to_string(steps_) + " runs"};
    if (told_to_stop_) best_.status = {outcome::stopped, "local search: stopped by an observer after " + std::to_string(steps_) + " runs"};
    return std::move(best_);
  }

 private:
  struct simulated {
    message_rules rules;
    tasks::task_graph graph;
    hetplan::trace trace;
  };

  /// Sets the current rules to those of the best start. At least one start is run, whatever the limits.
  void start(const trace& alone) {
    for (const any_search_start& rules_of : options_.starts) {
      if (finished() && !now_.rules.empty()) return;
      simulated tried = run_rules(rules_of(cep_, alone));
      if (now_.rules.empty() || tried.trace.latency < now_.trace.latency) now_ = std::move(tried);
    }
  }

  /// Tries one move. Returns false if the critical chain loses no time, so that the current rules are optimal.
  bool improve() {
    std::vector<critical_link> lost = critical_chain(now_.graph, now_.trace, cep_.network());
    std::erase_if(lost,
                  [&](const critical_link& l) { return !now_.graph.is_transfer(l.node) || l.lost_s <= 1e-9 * now_.trace.latency.value(); });
    std::uint32_t slowed = 0;
    std::vector<std::uint32_t> others;
    while (others.empty()) {
      if (lost.empty()) return false;
      const std::size_t at = pick(lost.size());
      slowed = static_cast<std::uint32_t>(lost[at].node - now_.graph.computes.size());
      others = rivals(slowed);
      lost.erase(lost.begin() + static_cast<std::ptrdiff_t>(at));
    }
    simulated next;
    next.rules = now_.rules;
    contention at{chunk_of(slowed), chunk_of(others[pick(others.size())])};
    if (pick(moves_per_cut) == 0) at.rival = cut(next.rules, at.rival.message);
    next.rules = options_.moves[pick(options_.moves.size())](cep_, std::move(next.rules), at);
    if (same_order(next.rules, now_.rules)) {  // with other priority numbers: needs no simulation
      now_.rules = std::move(next.rules);
      count(best_.latency);
      return true;
    }
    next = run_rules(std::move(next.rules));
    const double slack = options_.tolerance * std::max(0.0, 1 - static_cast<double>(steps_) / static_cast<double>(most_steps_));
    if (next.trace.latency <= now_.trace.latency * (1 + slack)) now_ = std::move(next);
    return true;
  }

  /// Returns the transfers under way at the same time as the slowed one on one of its resources.
  [[nodiscard]] std::vector<std::uint32_t> rivals(std::uint32_t slowed) const {
    const tasks::task_graph& g = now_.graph;
    const auto& via = g.routes[g.transfers[slowed].route].via;
    const interval mine = now_.trace.transfers[slowed];
    std::vector<std::uint32_t> out;
    for (std::uint32_t t = 0; t < g.transfers.size(); ++t) {
      const interval other = now_.trace.transfers[t];
      if (t == slowed || other.start_s >= mine.end_s || other.end_s <= mine.start_s) continue;
      const auto& theirs = g.routes[g.transfers[t].route].via;
      const bool meet = std::any_of(via.begin(), via.end(), [&](const resource_use& a) {
        return std::any_of(theirs.begin(), theirs.end(), [&](const resource_use& b) { return a.resource == b.resource; });
      });
      if (meet) out.push_back(t);
    }
    return out;
  }

  /// Returns the chunk of a transfer in the current graph, where chunks take the place of their transfer.
  [[nodiscard]] message_chunk chunk_of(std::uint32_t transfer) const {
    const auto& all = now_.graph.transfers;
    const auto whole = std::count_if(all.begin(), all.begin() + transfer + 1, [](const tasks::transfer& t) { return t.chunk == 0; }) - 1;
    return {cep_.message_of(static_cast<std::uint32_t>(whole)), static_cast<std::uint32_t>(all[transfer].chunk)};
  }

  /// Cuts a message into one more chunk if the limit allows. Returns its last chunk.
  [[nodiscard]] message_chunk cut(message_rules& rules, std::uint32_t message) const {
    auto& chunks = rules[message];
    if (chunks.size() < static_cast<std::size_t>(std::max(1, options_.most_chunks))) chunks.push_back(chunks.back());
    return {message, static_cast<std::uint32_t>(chunks.size() - 1)};
  }

  static constexpr std::size_t moves_per_cut = 8;

  [[nodiscard]] static bool same_order(const message_rules& a, const message_rules& b) {
    const auto release_of = [](const chunk_rule& c) { return c.release; };
    const auto same_releases = [&](const auto& x, const auto& y) { return std::ranges::equal(x, y, {}, release_of, release_of); };
    return std::ranges::equal(a, b, same_releases) && ranks_of(a) == ranks_of(b);
  }

  /// Returns the rank of every chunk among the distinct priorities, with -1 behind each message.
  [[nodiscard]] static std::vector<int> ranks_of(const message_rules& rules) {
    std::vector<int> priorities, ranks;
    for (const auto& message : rules) {
      for (const chunk_rule& c : message) priorities.push_back(c.priority);
    }
    std::sort(priorities.begin(), priorities.end());
    priorities.erase(std::unique(priorities.begin(), priorities.end()), priorities.end());
    for (const auto& message : rules) {
      for (const chunk_rule& c : message) {
        const auto at = std::ranges::lower_bound(priorities, c.priority);
        ranks.push_back(static_cast<int>(at - priorities.begin()));
      }
      ranks.push_back(-1);
    }
    return ranks;
  }

  simulated run_rules(message_rules rules) {
    simulated r{.rules = std::move(rules), .graph = {}, .trace = {}};
    r.graph = cep_.with(r.rules);
    r.trace = simulate(r.graph, cep_.network(), policy_of_plan{sharing::priority});
    if (r.trace.latency < best_.latency) {
      best_.sharing_policy = sharing::priority;
      best_.rules = r.rules;
      best_.latency = r.trace.latency;
    }
    count(best_.latency);
    return r;
  }

  void count(seconds best) {
    ++steps_;
    if (observer_({steps_, best}) == control::stop) told_to_stop_ = true;
  }
  [[nodiscard]] bool out_of_time() const { return options_.time_limit && clock_.elapsed_s() > options_.time_limit->value(); }
  [[nodiscard]] bool finished() const {
    return steps_ >= most_steps_ || told_to_stop_ || best_.latency <= best_.bound * (1 + 1e-12) || out_of_time();
  }
  [[nodiscard]] std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  const cep_graph& cep_;
  const local_search_options& options_;
  const any_observer<schedule_tried>& observer_;
  std::mt19937_64 random_;
  stopwatch clock_;
  network_schedule best_;
  simulated now_;
  long long steps_ = 0, most_steps_ = 0;
  bool told_to_stop_ = false;
};

}  // namespace detail

HETPLAN_INLINE network_schedule local_search(const cep_graph& cep, const local_search_options& options,
                                             const any_observer<schedule_tried>& observer) {
  if (options.starts.empty()) throw invalid_input("local_search: no starts; expected at least one");
  return detail::local_searcher(cep, options, observer).run();
}

}  // namespace hetplan::schedule
