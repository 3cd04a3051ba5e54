// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/automatic_orders.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <hetplan/schedule/dispatch_rules.hpp>
#include <hetplan/schedule/interleaved_orders.hpp>
#include <hetplan/schedule/order_beam.hpp>
#include <hetplan/schedule/order_moves.hpp>
#include <hetplan/schedule/order_optimum.hpp>
#include <hetplan/schedule/round_search.hpp>
#include <hetplan/schedule/stretched_orders.hpp>
#include <hetplan/schedule/v_search.hpp>

namespace HETPLAN_NAMESPACE::schedule::detail {

/// What a search has found, the best first, and what it has spent.
class automatic_search {
 public:
  automatic_search(const pipeline_times& p, const automatic_options& options)
      : p_(p), options_(options), table_(p), left_(options.steps),
        bound_(order_outlook(table_, options.goal).bound(partial_orders(table_))) {
    if (goal_known()) return;
    bound_ = 0;  // a device that begins later may have a shorter span
    for (const auto& d : table_.devices) bound_ = std::max(bound_, static_cast<ticks>(table_.m) * d.work);
  }

  [[nodiscard]] const tick_table& table() const { return table_; }
  [[nodiscard]] ticks bound() const { return bound_; }
  /// Is the goal of orders a matter of when devices end alone?
  [[nodiscard]] bool goal_known() const { return options_.goal == order_goal::makespan || table_.starts_known; }
  [[nodiscard]] long long left() const { return left_; }
  /// No orders are better than the first found.
  [[nodiscard]] bool done() const { return !found_.empty() && found_.front().orders.value <= bound_; }
  struct candidate {
    found_orders orders;
    const char* by;
  };
  [[nodiscard]] const std::vector<candidate>& found() const { return found_; }

  /// All but the proof.
  void run() {
    for (const auto& [rule, name] : {std::pair{dispatch_rule::eager, "eager"}, std::pair{dispatch_rule::compact, "compact"}}) {
      add(dispatched_sequence(table_, rule), name);
    }
    patterns();
    prove();
    beams();
    fewer();
    improve();
    prove();
  }

 private:
  static constexpr std::size_t most_of_a_kind = 6, most_stages_proven = 64;

  void add(found_orders&& f, const char* by) {
    if (f.value == never) return;
    const auto worse = [&](const candidate& c) { return f.value < c.orders.value; };
    const auto at = std::find_if(found_.begin(), found_.end(), worse);
    if (std::any_of(found_.begin(), at, [&](const candidate& c) { return c.orders.sequence == f.sequence; })) return;
    found_.insert(at, {std::move(f), by});
    // Few of each kind: small changes of another kind may come to more.
    std::size_t same = 0;
    const auto too_many =
        std::find_if(found_.begin(), found_.end(), [&](const candidate& c) { return c.by == by && ++same > most_of_a_kind; });
    if (too_many != found_.end()) found_.erase(too_many);
  }
  void add(std::vector<partial_orders::task>&& sequence, const char* by) {
    const ticks value = value_of(table_, options_.goal, sequence);
    left_ -= static_cast<long long>(sequence.size());
    add(found_orders{std::move(sequence), value}, by);
  }

  void patterns() {
    if (done()) return;
    add(best_rounds(table_, options_.goal), "rounds");
    const bool one_each = std::all_of(table_.devices.begin(), table_.devices.end(), [](const auto& d) { return d.stages.size() <= 1; });
    if (one_each) {
      long long share = left_ / 4;
      left_ -= share;
      add(searched_rounds(table_, options_.goal, bound_, share), "rounds");
      left_ += share;
      return;
    }
    if (is_v_shape(table_)) {
      long long share = left_ / 4;
      left_ -= share;
      v_orders v = searched_v(table_, options_.goal, bound_, most_of_a_kind, share);
      for (found_orders& f : v.as_they_are) add(std::move(f), "V blocks");
      for (found_orders& f : v.gaps_chosen) add(std::move(f), "V blocks, gaps chosen");
      left_ += share;
    }
    if (const auto passes = interleaved_passes(table_); !passes.empty()) {
      for (const bool pull : {false, true}) {
        for (const gap_rule g : {gap_rule::whole, gap_rule::largest, gap_rule::any}) {
          add(filled_orders(table_, passes, std::vector<gap_rule>(table_.devices.size(), g), pull), "interleaved");
        }
      }
    }
  }

  /// By branch and bound, within a share of all steps; again where something better has been found since.
  void prove() {
    if (done() || !goal_known()) return;
    if (table_.stages.size() > most_stages_proven || found_.front().orders.value == tried_to_prove_) return;
    constexpr long long steps_a_state = 100;
    optimum o = proven_optimum(table_, options_.goal, found_.front().orders, options_.steps / (4 * steps_a_state));
    left_ -= o.states * steps_a_state;
    tried_to_prove_ = o.orders.value;
    if (o.proven) bound_ = o.orders.value;
    if (o.orders.value < found_.front().orders.value) add(std::move(o.orders), "branch and bound");
  }

  /// Wider ones as long as the steps for one are there; each child costs its parent's bound over all stages.
  void beams() {
    const long long each = static_cast<long long>(table_.tasks() * (table_.stages.size() + 4));
    for (const std::size_t width : {std::size_t{5}, std::size_t{20}, std::size_t{60}}) {
      const long long cost = each * static_cast<long long>(width) * 2;
      if (done() || cost > left_ / 4) return;
      left_ -= cost;
      add(beam_search(table_, options_.goal, width), "beam");
    }
  }

  /// A pipeline in its steady state repeats itself: what is good for three or four microbatches per device is found with less.
  void fewer() {
    const int per_device = static_cast<int>(p_.devices());
    for (const int m : {2 * per_device, 3 * per_device}) {
      if (done() || m * 4 > 3 * p_.microbatches || left_ <= 0) return;
      pipeline_times less = p_;
      less.microbatches = m;
      automatic_options o = options_;
      o.steps = left_ / 3;
      automatic_search small(less, o);
      small.run();
      left_ -= o.steps - small.left();
      for (const candidate& c : small.found()) {
        if (done()) return;
        add(stretched_orders(small.table(), table_, options_.goal, c.orders.sequence), c.by);
      }
    }
  }

  void improve() {
    // Half for all alike, since the best before is not always the best after; what is left for the best.
    const std::vector<candidate> starts = found_;
    const long long each = left_ / 2 / static_cast<long long>(starts.size());
    for (std::size_t i = 0; i < starts.size(); ++i) improve(starts[i], each, i);
    for (std::uint64_t i = starts.size(); left_ > 0 && !done(); ++i) improve(candidate(found_.front()), std::max(left_ / 3, each / 4), i);
  }
  void improve(const candidate& c, long long share, std::uint64_t draw) {
    if (done()) return;
    left_ -= share;
    add(improved_orders(table_, options_.goal, c.orders, bound_, share, options_.seed + draw), c.by);
    left_ += share;
  }

  const pipeline_times& p_;
  automatic_options options_;
  tick_table table_;
  long long left_;
  ticks bound_, tried_to_prove_ = never;
  std::vector<candidate> found_;
};

}  // namespace HETPLAN_NAMESPACE::schedule::detail

namespace HETPLAN_NAMESPACE::schedule {

HETPLAN_INLINE found_by_search automatic_orders(const pipeline_times& p, const automatic_options& options) {
  check(p);
  detail::automatic_search search(p, options);
  search.run();
  const auto& best = search.found().front();
  found_by_search out;
  out.orders = detail::orders_of(search.table(), best.orders.sequence);
  out.value = static_cast<double>(best.orders.value) * search.table().unit;
  out.bound = static_cast<double>(search.bound()) * search.table().unit;
  out.optimal = search.done();
  out.by = best.by;
  out.steps = options.steps - search.left();
  return out;
}

}  // namespace HETPLAN_NAMESPACE::schedule
