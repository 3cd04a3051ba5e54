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
#include <hetplan/schedule/round_search.hpp>
#include <hetplan/schedule/stretched_orders.hpp>
#include <hetplan/schedule/v_search.hpp>

namespace HETPLAN_NAMESPACE::schedule::detail {

/// What a search has found, the best first, and what it has spent.
class automatic_search {
 public:
  automatic_search(const pipeline_times& p, const automatic_options& options)
      : p_(p), options_(options), table_(p), left_(options.steps),
        bound_(order_outlook(table_, options.goal).bound(partial_orders(table_))) {}

  [[nodiscard]] const tick_table& table() const { return table_; }
  [[nodiscard]] ticks bound() const { return bound_; }
  [[nodiscard]] long long left() const { return left_; }
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
    beams();
    fewer();
    improve();
  }

 private:
  static constexpr std::size_t most_kept = 8;

  void add(found_orders&& f, const char* by) {
    if (f.value == never) return;
    const auto worse = [&](const candidate& c) { return f.value < c.orders.value; };
    const auto at = std::find_if(found_.begin(), found_.end(), worse);
    if (std::any_of(found_.begin(), at, [&](const candidate& c) { return c.orders.sequence == f.sequence; })) return;
    found_.insert(at, {std::move(f), by});
    if (found_.size() > most_kept) found_.pop_back();
  }
  void add(std::vector<partial_orders::task>&& sequence, const char* by) {
    const ticks value = value_of(table_, options_.goal, sequence);
    left_ -= static_cast<long long>(sequence.size());
    add(found_orders{std::move(sequence), value}, by);
  }

  void patterns() {
    if (done()) return;
    const bool one_each = std::all_of(table_.devices.begin(), table_.devices.end(), [](const auto& d) { return d.stages.size() <= 1; });
    if (one_each) {
      long long share = left_ / 4;
      left_ -= share;
      add(searched_rounds(table_, options_.goal, bound_, share), "rounds");
      left_ += share;
      return;
    }
    add(best_rounds(table_, options_.goal), "rounds");
    if (is_v_shape(table_)) {
      long long share = left_ / 4;
      left_ -= share;
      for (found_orders& f : searched_v(table_, options_.goal, bound_, most_kept / 2, share)) add(std::move(f), "V blocks");
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
    const std::vector<candidate> starts = found_;
    // The best gets half, the next half of what is left, …
    for (std::size_t i = 0; i < std::min(starts.size(), most_kept / 2); ++i) {
      if (done()) return;
      long long share = std::max(0LL, left_ / 2), given = share;
      add(improved_orders(table_, options_.goal, starts[i].orders, bound_, share, options_.seed + i), starts[i].by);
      left_ -= given - share;
    }
  }

  const pipeline_times& p_;
  automatic_options options_;
  tick_table table_;
  long long left_;
  ticks bound_;
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
  out.optimal = search.table().starts_known && best.orders.value <= search.bound();
  out.by = best.by;
  out.steps = options.steps - search.left();
  return out;
}

}  // namespace HETPLAN_NAMESPACE::schedule
