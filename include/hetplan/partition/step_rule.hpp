// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Latency estimates taken apart: two numbers per partial plan extend each exactly, one stage at a time.

#include <algorithm>
#include <limits>

#include <hetplan/cluster/exchange.hpp>
#include <hetplan/partition/candidate_costs.hpp>
#include <hetplan/partition/cell_policy.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/step_sums.hpp>

namespace HETPLAN_NAMESPACE::partition {

/// A communication step between a stage and a tail behind it.
struct link_step {
  double total_s = 0;  ///< e = f + b of one microbatch
  double backward_s = 0;
  double own_s = 0;  ///< the link's traffic of the whole iteration, latency once each way
};

/// How steps add up. By dominant step, one law per mode: training T = D + R, D = max_i (M e_i + sum_{j<i} e_j),
/// R = max_s (A_s - sum_{j<s} b_j); inference T = max_i (M e_i + sum_{j != i} e_j); generation, between tokens,
/// T = max(M max_i e_i, sum_i e_i). With warm-up 1 microbatches take turns: D = M sum_i e_i.
/// By sum and largest: T = sum_i e_i + (M - 1) max_i e_i, where a stage's e includes A / M. By largest step: T = max_i of
/// M e_i, A_i and a link's whole traffic. On a graph of stages, sums run along the longest way.
///
/// Source     Asteroid, eqs. 4-6, regrouped (docs/concepts.md, "the estimate"); plan/step_sums.hpp for the other two.
///            Deviation: traffic in both directions of a full-duplex wire overlaps; the token's way back is left out.
class step_rule {
 public:
  enum class law { training, inference, generation, sum_and_largest, largest_step };

  /// What all tails behind a stage and the links to them amount to.
  struct suffix {
    double reach_s = 0;
    double rest_s = 0;
  };

  step_rule(mode m, int microbatch_size, int microbatches, warmup_rule warmup = warmup_rule::hide_communication,
            latency_rule steps = latency_rule::dominant_step)
      : law_(law_of(m, steps)), training_(m == mode::training), size_(microbatch_size), microbatches_(microbatches),
        serial_microbatches_(warmup == warmup_rule::one ? microbatches : 1) {}

  /// Calls f with the law as a template argument.
  template <class F>
  decltype(auto) dispatch(F&& f) const {
    switch (law_) {
      case law::training: return f.template operator()<law::training>();
      case law::inference: return f.template operator()<law::inference>();
      case law::generation: return f.template operator()<law::generation>();
      case law::sum_and_largest: return f.template operator()<law::sum_and_largest>();
      case law::largest_step: break;
    }
    return f.template operator()<law::largest_step>();
  }
  [[nodiscard]] link_step link(const exchange_cost& x, double forward_bytes, double gradient_bytes) const {
    const auto t = time_link(x, size_, microbatches_, forward_bytes, training_ ? gradient_bytes : 0);
    return {t.total_s, t.backward_s, t.own_s};
  }
  [[nodiscard]] suffix empty_suffix() const { return {0, law_ == law::training ? -std::numeric_limits<double>::infinity() : 0}; }
  [[nodiscard]] law how() const { return law_; }
  [[nodiscard]] suffix through(const link_step& c, double reach_s, double rest_s) const {
    switch (law_) {
      case law::training: return {std::max(c.own_s, serial_microbatches_ * c.total_s + reach_s), rest_s - c.backward_s};
      case law::inference: return {std::max(c.own_s + rest_s, c.total_s + reach_s), c.total_s + rest_s};
      case law::generation: return {std::max(c.own_s, reach_s), c.total_s + rest_s};
      case law::sum_and_largest: return {std::max((microbatches_ - 1) * c.total_s, reach_s), c.total_s + rest_s};
      case law::largest_step: break;
    }
    return {std::max(c.own_s, reach_s), rest_s};
  }
  /// Prepends a stage. How: the rule's law, where the caller has looked it up once for many.
  template <law How>
  [[nodiscard]] suffix extend(const suffix& t, double total_s, double backward_s, double collective_s) const {
    const double busy = microbatches_ * total_s;
    if constexpr (How == law::training)
      return {std::max(busy, serial_microbatches_ * total_s + t.reach_s), std::max(collective_s, t.rest_s - backward_s)};
    if constexpr (How == law::inference) return {std::max(busy + t.rest_s, total_s + t.reach_s), total_s + t.rest_s};
    if constexpr (How == law::generation) return {std::max(busy, t.reach_s), total_s + t.rest_s};
    if constexpr (How == law::sum_and_largest) {
      const double step = total_s + collective_s / microbatches_;
      return {std::max((microbatches_ - 1) * step, t.reach_s), step + t.rest_s};
    }
    return {std::max({busy, collective_s, t.reach_s}), t.rest_s};
  }
  [[nodiscard]] suffix extend(const suffix& t, double total_s, double backward_s, double collective_s) const {
    return dispatch([&]<law How>() { return extend<How>(t, total_s, backward_s, collective_s); });
  }
  /// T of a whole plan from its sources.
  template <law How>
  [[nodiscard]] double response_s(double reach_s, double rest_s) const {
    if constexpr (How == law::training) return reach_s + std::max(0.0, rest_s);
    if constexpr (How == law::generation) return std::max(reach_s, rest_s);
    if constexpr (How == law::sum_and_largest) return reach_s + rest_s;
    return reach_s;
  }
  [[nodiscard]] double response_s(double reach_s, double rest_s) const {
    return dispatch([&]<law How>() { return response_s<How>(reach_s, rest_s); });
  }
  /// T at least, when stages with these least figures are to come before this tail.
  template <law How>
  [[nodiscard]] double response_at_least_s(double reach_s, double rest_s, const link_step& c, double path_s, double busiest_s) const {
    const double busy = microbatches_ * busiest_s;
    if constexpr (How == law::training) {
      return std::max(std::max(serial_microbatches_ * path_s + std::max(c.own_s, serial_microbatches_ * c.total_s + reach_s),
                               reach_s + std::max(0.0, rest_s)),
                      busy);
    }
    if constexpr (How == law::inference) return std::max(std::max(path_s + c.total_s + reach_s, busy + rest_s), c.own_s + rest_s);
    if constexpr (How == law::generation) return std::max(std::max(reach_s, path_s + c.total_s + rest_s), std::max(busy, c.own_s));
    if constexpr (How == law::sum_and_largest) {
      return std::max(reach_s, (microbatches_ - 1) * std::max(busiest_s, c.total_s)) + std::max(path_s, busiest_s) + c.total_s + rest_s;
    }
    return std::max({reach_s, busy, c.own_s});
  }
  [[nodiscard]] double response_at_least_s(double reach_s, double rest_s, const link_step& c, double path_s, double busiest_s) const {
    return dispatch([&]<law How>() { return response_at_least_s<How>(reach_s, rest_s, c, path_s, busiest_s); });
  }

 private:
  static law law_of(mode m, latency_rule steps) {
    if (steps == latency_rule::sum_and_largest) return law::sum_and_largest;
    if (steps == latency_rule::largest_step) return law::largest_step;
    return m == mode::training ? law::training : m == mode::inference ? law::inference : law::generation;
  }

  law law_;
  bool training_;
  int size_, microbatches_;
  double serial_microbatches_;  ///< how often a microbatch waits for the whole way before the next one starts: with warm-up 1, each does
};

}  // namespace HETPLAN_NAMESPACE::partition
