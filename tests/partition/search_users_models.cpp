// SPDX-License-Identifier: BSL-1.0
// The search with user-defined objectives and cell policies.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/partition/two_substate_dp.hpp>

#include "support/search_instance.hpp"

namespace test_search_users_models {

using namespace hetplan;
using namespace hetplan::partition;

namespace {

struct energy_delay_product {
  double score(seconds response, joules energy) const { return response.value() * energy.value(); }
};
struct energy_before_deadline {
  seconds deadline;
  double score(seconds response, joules energy) const {
    return response <= deadline ? energy.value() : std::numeric_limits<double>::infinity();
  }
};
/// Negative and piecewise constant: many ties.
struct whole_centiseconds {
  double score(seconds response, joules) const { return std::floor(100 * response.value()) - 1000; }
};
/// Peak memory, which is unknown until a plan is complete.
struct least_peak_memory {
  double score(const evaluation& e) const { return e.peak_memory().value(); }
};
/// Falls as the response grows to one second: only exhaustive search is exact.
struct slowest_under_a_second {
  double score(const evaluation& e) const { return std::abs(1 - e.response().value()); }
};
/// Energy of the hottest device, which differs from plan to plan.
struct hottest_device {
  double score(const evaluation& e) const {
    double most = 0;
    for (const device_evaluation& d : e.devices) most = std::max(most, d.energy.value());
    return most;
  }
};
static_assert(check_objective<energy_delay_product>() && monotone_objective<energy_delay_product>);
static_assert(check_objective<least_peak_memory>() && !monotone_objective<least_peak_memory>);

/// Drops partial plans that are at most 2 % better than a kept one.
struct nearly_dominated {
  std::size_t capacity() const { return std::numeric_limits<std::size_t>::max(); }
  bool covers(const partial_plan& kept, const partial_plan& other) const { return kept.no_worse_than(other, 0.02); }
};
/// Beam search: drops only what exceeds its width.
struct beam {
  std::size_t width;
  std::size_t capacity() const { return width; }
  bool covers(const partial_plan&, const partial_plan&) const { return false; }
};
static_assert(check_cell_policy<nearly_dominated>() && check_cell_policy<beam>());

Approx near(double x) { return Approx(x).epsilon(1e-9).margin(1e-12); }

template <class Objective>
std::vector<scored_plan> best_of(const test::search_instance& i, const search_tables& t, const Objective& o, int keep) {
  space_options space;
  for (const auto& members : t.classes) space.device_order.insert(space.device_order.end(), members.begin(), members.end());
  return brute_force(i.sequence, i.model, i.cluster, roofline{}, plain_memory{}, linear_power{}, i.blank, space, o, dominant_step{}, keep);
}

template <class F>
void for_each_instance(std::uint64_t number, std::uint64_t offset, const test::search_shape& shape, F&& f) {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + number; ++seed) {
    const auto i = test::random_search_instance(seed + offset, shape);
    INFO(i.what);
    f(i, seed);
  }
}

template <class Objective, class Policy>
bool compare(const test::search_instance& i, const Objective& o, const Policy& policy, const search_options& options) {
  const search_tables t = test::tables_of(i);
  const auto best = best_of(i, t, o, 1);
  const search_result found = two_substate_dp(t, test::any_order(t, i.blank), i.blank, o, policy, options);
  REQUIRE(found.plans.empty() == best.empty());
  if (best.empty()) return false;
  REQUIRE(found.plans.front().score == near(best.front().score));
  REQUIRE(score(o, estimate(found.plans.front().plan, i.model, i.cluster, roofline{})) == near(best.front().score));
  for (std::size_t n = 1; n < found.plans.size(); ++n) REQUIRE(found.plans[n - 1].score <= found.plans[n].score);
  return true;
}

template <class Objective>
void require_best_by_dominance(std::uint64_t offset, const Objective& o) {
  int feasible = 0;
  for_each_instance(600, offset, {.most_layers = 6, .most_devices = 4}, [&](const auto& i, std::uint64_t) {
    feasible += compare(i, o, dominance{}, {.plans = 3, .coarse_boundaries = 2}) ? 1 : 0;
  });
  REQUIRE(feasible > 300);
}

}  // namespace

TEST_CASE("a user's monotone objective is served by dominance: energy times delay", "[long]") {
  require_best_by_dominance(80000, energy_delay_product{});
}

TEST_CASE("a user's objective may be flat, negative and full of ties", "[long]") { require_best_by_dominance(90000, whole_centiseconds{}); }

TEST_CASE("a user's objective may be infinite where a plan is worthless", "[long]") {
  int met = 0, missed = 0;
  for_each_instance(600, 100000, {.most_layers = 6, .most_devices = 4}, [&](const auto& i, std::uint64_t) {
    const search_tables t = test::tables_of(i);
    const energy_before_deadline o{seconds(0.02)};
    const auto best = best_of(i, t, o, 1);
    const search_result found =
        two_substate_dp(t, test::any_order(t, i.blank), i.blank, o, dominance{}, {.plans = 1, .coarse_boundaries = 2});
    if (best.empty()) REQUIRE(found.plans.empty());
    if (best.empty() || !std::isfinite(best.front().score)) {
      missed += best.empty() ? 0 : 1;
      if (!found.plans.empty()) REQUIRE_FALSE(std::isfinite(found.plans.front().score));
      return;
    }
    ++met;
    REQUIRE_FALSE(found.plans.empty());
    REQUIRE(found.plans.front().score == near(best.front().score));
  });
  REQUIRE(met > 50);
  REQUIRE(missed > 50);
}

TEST_CASE("an objective that reads the whole evaluation is served by exhaustion, list and all") {
  int feasible = 0;
  for_each_instance(450, 110000, {.most_layers = 5, .most_devices = 3}, [&](const auto& i, std::uint64_t seed) {
    const search_tables t = test::tables_of(i);
    const auto check = [&](const auto& o) {
      if (!compare(i, o, exhaustive{}, {.plans = 8})) return;
      ++feasible;
      const search_result found = two_substate_dp(t, test::any_order(t, i.blank), i.blank, o, exhaustive{}, {.plans = 8});
      REQUIRE(found.plans.size() <= 8);
      for (const found_plan& f : found.plans) {
        const evaluation e = estimate(f.plan, i.model, i.cluster, roofline{});
        REQUIRE(f.score == near(score(o, e)));
        REQUIRE_FALSE(find_broken_limit(e, i.cluster));
      }
      // If all devices differ, the whole lists are equal, not only their heads.
      if (t.classes.size() < i.cluster.size()) return;
      const auto list = best_of(i, t, o, 8);
      REQUIRE(found.plans.size() == list.size());
      for (std::size_t n = 0; n < list.size(); ++n) REQUIRE(found.plans[n].score == near(list[n].score));
    };
    switch (seed % 3) {
      case 0: check(least_peak_memory{}); break;
      case 1: check(slowest_under_a_second{}); break;
      default: check(hottest_device{}); break;
    }
  });
  REQUIRE(feasible > 250);
}

TEST_CASE("a policy that drops what is 2 % better at most loses no more than that for each stage", "[unsanitized]") {
  int feasible = 0, worse = 0;
  long long kept = 0, kept_by_dominance = 0;
  for_each_instance(8000, 120000, {.most_layers = 7, .most_devices = 4}, [&](const auto& i, std::uint64_t seed) {
    const search_tables t = test::tables_of(i);
    const device_space space = test::any_order(t, i.blank);
    // No budgets: with budgets, a plan that is slightly worse may be infeasible.
    const search_options options{.plans = 1, .keep_budgets = false, .prune = seed % 2 == 0, .coarse_boundaries = 2};
    const auto check = [&](const auto& o) {
      const search_result best = two_substate_dp(t, space, i.blank, o, dominance{}, options);
      const search_result found = two_substate_dp(t, space, i.blank, o, nearly_dominated{}, options);
      REQUIRE(found.plans.empty() == best.plans.empty());
      if (best.plans.empty()) return;
      ++feasible;
      kept += found.counts.kept;
      kept_by_dominance += best.counts.kept;
      const double ratio = found.plans.front().score / best.plans.front().score;
      const auto stages = static_cast<double>(best.plans.front().plan.stages.size());
      INFO("ratio " << ratio << ", " << stages << " stages");
      REQUIRE(ratio >= 1 - 1e-9);
      // The search is exact after the last drop. Each drop may cost a factor of 1.02 in D, and 2 % of D in R.
      REQUIRE(ratio <= std::pow(1.02, stages - 1) * (1 + 0.02 * (stages - 1)) * (1 + 1e-9));
      worse += ratio > 1 + 1e-9 ? 1 : 0;
    };
    if (seed % 3 == 0) check(minimize_energy{});
    else check(minimize_latency{});
  });
  REQUIRE(feasible > 5000);
  REQUIRE(kept < kept_by_dominance);
  REQUIRE(worse > 0);  // the policy loses something, or the bound is not tested
}

TEST_CASE("a beam keeps no more than its width and never beats dominance") {
  int feasible = 0;
  for_each_instance(300, 130000, {.most_layers = 6, .most_devices = 3}, [&](const auto& i, std::uint64_t) {
    const search_tables t = test::tables_of(i);
    const device_space space = test::any_order(t, i.blank);
    const search_options options{.plans = 1};
    const search_result best = two_substate_dp(t, space, i.blank, minimize_latency{}, dominance{}, options);
    std::size_t most = 0;
    const auto watch = [&](const cell_filled& e) {
      most = std::max(most, e.kept.size());
      return control::go;
    };
    const search_result found = two_substate_dp(t, space, i.blank, minimize_latency{}, beam{2}, options, watch);
    REQUIRE(most <= 2);
    if (best.plans.empty()) {
      REQUIRE(found.plans.empty());
      return;
    }
    ++feasible;
    if (!found.plans.empty()) REQUIRE(found.plans.front().score >= best.plans.front().score * (1 - 1e-9));
  });
  REQUIRE(feasible > 150);
}

}  // namespace test_search_users_models
