// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Local search on the order of transfers and on their chunks, led by what the critical chain loses to sharing.

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/schedule/list_schedule.hpp>
#include <hetplan/simulate/critical_chain.hpp>

namespace hetplan::schedule {

struct local_search_options {
  long long steps = 300;                       ///< simulated runs, at most
  std::uint64_t seed = 1;
  int most_chunks = 2;                         ///< per transfer
  double tolerance = 0.03;                     ///< first accepts a run so much slower; falls to 0 with the steps
  std::optional<seconds> time_limit = {};      ///< on the wall clock; reached, the answer is `stopped` and may differ from run to run
};

/// For observers: the search has run one more schedule.
struct schedule_tried {
  long long steps = 0;
  seconds latency;  ///< of the best so far
};

namespace detail {

/// One search; see local_search.
template <class... Observers>
class local_searcher {
 public:
  local_searcher(const cep_graph& cep, const local_search_options& options, Observers&... observers)
      : cep_(cep), options_(options), observers_(observers...), random_(options.seed) {}

  [[nodiscard]] network_schedule run() {
    best_ = uncontrolled(cep_);
    count(best_.latency);
    if (cep_.flows() > 1 && !finished()) {
      start();
      while (!finished() && improve()) {
      }
    }
    best_.steps = steps_;
    best_.gap = gap_to(best_.latency, best_.bound);
    if (out_of_time()) best_.status = {outcome::stopped, "local search: stopped by its time limit after " + std::to_string(steps_) + " runs"};
    if (told_to_stop_) best_.status = {outcome::stopped, "local search: stopped by an observer after " + std::to_string(steps_) + " runs"};
    return std::move(best_);
  }

 private:
  struct run_of_sequence {
    std::vector<flow_chunk> sequence;
    tasks::task_graph graph;
    hetplan::trace trace;
  };

  /// The best of the priority rules, and of the order in which transfers end if they are left alone.
  void start() {
    std::vector<std::vector<flow_chunk>> first{urgency_sequence(cep_, critical_path_first{}), urgency_sequence(cep_, longest_tail_first{}),
                                               ending_sequence(), urgency_sequence(cep_, earliest_first{}), urgency_sequence(cep_, smallest_first{})};
    for (auto& sequence : first) {
      if (finished() && !now_.sequence.empty()) return;
      run_of_sequence tried = try_sequence(std::move(sequence));
      if (now_.sequence.empty() || tried.trace.latency < now_.trace.latency) now_ = std::move(tried);
    }
  }

  [[nodiscard]] std::vector<flow_chunk> ending_sequence() const {
    const trace t = schedule::run(cep_, best_);
    std::vector<std::pair<double, flow_chunk>> ends;
    for (std::uint32_t f = 0; f < cep_.flows(); ++f) ends.push_back({t.transfers[cep_.transfers_of(f).front()].end_s, {f, 0}});
    std::sort(ends.begin(), ends.end());
    std::vector<flow_chunk> sequence;
    for (const auto& [end, chunk] : ends) sequence.push_back(chunk);
    return sequence;
  }

  /// Changes the present sequence where its critical chain loses time; false if it loses none and so is optimal.
  bool improve() {
    std::vector<critical_link> lost = critical_chain(now_.graph, now_.trace, cep_.network());
    std::erase_if(lost, [&](const critical_link& l) { return !now_.graph.is_transfer(l.node) || l.lost_s <= 1e-9 * now_.trace.latency.value(); });
    if (lost.empty()) return false;
    const auto slowed = static_cast<std::uint32_t>(lost[pick(lost.size())].node - now_.graph.computes.size());
    const std::vector<std::uint32_t> others = rivals(slowed);
    if (others.empty()) return false;  // a resource too slow for its route: nothing to gain by order
    const std::uint32_t rival = others[pick(others.size())];
    std::vector<flow_chunk> sequence = now_.sequence;
    const flow_chunk urgent = chunk_of(slowed);
    flow_chunk other = chunk_of(rival);
    if (pick(8) == 0) other = cut(sequence, other.flow);
    if (other.flow == urgent.flow && other.chunk == urgent.chunk) return true;
    if (pick(2) == 0) move_before(sequence, urgent, other); else move_after(sequence, other, urgent);
    run_of_sequence tried = try_sequence(std::move(sequence));
    const double slack = options_.tolerance * (1 - static_cast<double>(steps_) / static_cast<double>(options_.steps));
    if (tried.trace.latency <= now_.trace.latency * (1 + std::max(0.0, slack))) now_ = std::move(tried);
    return true;
  }

  /// Transfers that were under way at the same time on one of its resources.
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

  /// A transfer of the present run as its flow and chunk.
  [[nodiscard]] flow_chunk chunk_of(std::uint32_t transfer) const {
    const auto number = static_cast<std::size_t>(now_.graph.transfers[transfer].priority);  // its place in the sequence
    return now_.sequence[number];
  }

  /// Cuts a flow into one more chunk behind its others, if it may be cut; the chunk that is new, else the last one.
  flow_chunk cut(std::vector<flow_chunk>& sequence, std::uint32_t flow) const {
    std::size_t last = 0;
    std::uint32_t chunks = 0;
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      if (sequence[i].flow != flow) continue;
      chunks = std::max(chunks, sequence[i].chunk + 1);
      last = i;
    }
    if (chunks >= static_cast<std::uint32_t>(std::max(1, options_.most_chunks))) return sequence[last];
    sequence.insert(sequence.begin() + static_cast<std::ptrdiff_t>(last) + 1, {flow, chunks});
    return {flow, chunks};
  }

  static void move_before(std::vector<flow_chunk>& s, flow_chunk what, flow_chunk before) {
    s.erase(std::find(s.begin(), s.end(), what));
    s.insert(std::find(s.begin(), s.end(), before), what);
  }
  static void move_after(std::vector<flow_chunk>& s, flow_chunk what, flow_chunk after) {
    s.erase(std::find(s.begin(), s.end(), what));
    s.insert(std::find(s.begin(), s.end(), after) + 1, what);
  }

  run_of_sequence try_sequence(std::vector<flow_chunk> sequence) {
    run_of_sequence r{.sequence = std::move(sequence), .graph = {}, .trace = {}};
    flow_rules rules = rules_of_sequence(cep_.flows(), r.sequence);
    r.graph = cep_.with(rules);
    r.trace = simulate(r.graph, cep_.network(), by_priority{});
    if (r.trace.latency < best_.latency) {
      best_.network = sharing::priority;
      best_.rules = std::move(rules);
      best_.latency = r.trace.latency;
    }
    count(best_.latency);
    return r;
  }

  void count(seconds best) {
    ++steps_;
    const flow answer = std::apply([&](auto&... o) { return notify(schedule_tried{steps_, best}, o...); }, observers_);
    told_to_stop_ = told_to_stop_ || answer == flow::stop;
  }
  [[nodiscard]] bool out_of_time() const {
    return options_.time_limit && std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count() > options_.time_limit->value();
  }
  [[nodiscard]] bool finished() const {
    return steps_ >= options_.steps || told_to_stop_ || best_.latency <= best_.bound * (1 + 1e-12) || out_of_time();
  }
  [[nodiscard]] std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  const cep_graph& cep_;
  const local_search_options& options_;
  std::tuple<Observers&...> observers_;
  std::mt19937_64 random_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  network_schedule best_;
  run_of_sequence now_;
  long long steps_ = 0;
  bool told_to_stop_ = false;
};

}  // namespace detail

/// Searches for the order of transfers with the earliest end, from the best of several priority rules.
///
/// A step takes a transfer of the critical chain that lost time to others, and puts it before one of them, or one of
/// them behind it, or cuts one. A chain that loses nothing is a path of the graph, so the schedule is optimal.
///
/// @return      never slower than transfers left alone: then that is the answer.
/// Complexity   options.steps simulations.   Determinism  the seed decides, but for a time limit.
/// Source       Dora, section 4.2, which names no neighbourhood; this one is ours.
template <observer<schedule_tried>... Observers>
[[nodiscard]] network_schedule local_search(const cep_graph& cep, const local_search_options& options = {}, Observers&&... observers) {
  return detail::local_searcher<std::remove_reference_t<Observers>...>(cep, options, observers...).run();
}

}  // namespace hetplan::schedule
