// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/mix/mixing.hpp>
#include <hetplan/mix/mixing_controller.hpp>

#include "support/noisy_jobs.hpp"
#include "support/random_source.hpp"
#include "support/solvers.hpp"

namespace test_mixing {

using namespace hetplan;
using mix::mixing_goal;
using mix::mixture;
using mix::plan_rates;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// Returns random plans, including dominated ones; some draw less power than idling.
plan_rates random_rates(test::random_source& random, int most_plans) {
  if (random.chance(0.5)) return test::random_plan_rates(random, random.integer(1, most_plans), 0);
  plan_rates r{.plans = {}, .switches = {}, .idle_W = random.chance(0.3) ? 0 : random.between(1, 10)};
  for (int p = random.integer(1, most_plans); p > 0; --p)
    r.plans.push_back({random.between(0.1, 3), random.between(random.chance(0.1) ? 0 : 10, 100)});
  return r;
}

/// Adds switching costs that no detour reduces: of the target's parts, those that the source lacks (delta switching).
void add_costs(test::random_source& random, plan_rates& r, double scale_s) {
  const std::size_t n = r.plans.size();
  std::vector<std::uint64_t> holds{0};  // the start holds nothing
  for (std::size_t p = 0; p < n; ++p) holds.push_back(random.next() & 0xff);
  const double joules = random.chance(0.5) ? 0 : random.between(0, 20);
  const double least = random.chance(0.5) ? 0 : 0.2;
  const auto cost = [&](std::size_t from, std::size_t to) {
    double missing = least;
    for (std::uint64_t bits = holds[to] & ~holds[from]; bits != 0; bits &= bits - 1) missing += 0.1;
    return mix::switch_cost{scale_s * missing, joules * missing};
  };
  for (std::size_t from = 1; from <= n; ++from) {
    for (std::size_t to = 1; to <= n; ++to) r.switches.between.push_back(cost(from, to));
  }
  for (std::size_t to = 1; to <= n; ++to) r.switches.start.push_back(cost(0, to));
}

mixing_goal random_goal(test::random_source& random, const plan_rates& r, double least_rate, double most_rate) {
  double fastest = 0;
  for (const auto& p : r.plans) fastest = std::max(fastest, p.rate);
  mixing_goal g{.horizon_s = random.between(1, 20)};
  g.progress = random.chance(0.03) ? 0 : g.horizon_s * fastest * random.between(least_rate, most_rate);
  if (random.chance(0.6)) g.running = random.index(r.plans.size());
  g.shortfall_J = random.chance(0.3) ? random.between(0, 100) : 1e5;
  return g;
}

/// Checks the totals of a mixture against its parts.
void require_consistent(const mixture& m, const plan_rates& r, const mixing_goal& g) {
  double time = m.idle_s, work = 0, energy = m.idle_s * r.idle_W;
  std::optional<std::size_t> from = g.running;
  for (const auto& part : m.parts) {
    const auto in = r.cost(from, part.plan);
    REQUIRE(part.pause_s == in.pause_s);
    REQUIRE(part.seconds > 0);
    time += part.pause_s + part.seconds;
    work += part.seconds * r.plans[part.plan].rate;
    energy += part.pause_s * r.idle_W + in.energy_J + part.seconds * r.plans[part.plan].power_W;
    from = part.plan;
  }
  CHECK(m.idle_s >= 0);
  CHECK(time == Approx(g.horizon_s).epsilon(1e-9));
  CHECK(work == Approx(m.progress).epsilon(1e-9).margin(1e-9));
  CHECK(m.progress + m.shortfall == Approx(g.progress).epsilon(1e-12));
  CHECK(energy == Approx(m.energy_J).epsilon(1e-9));
  CHECK(m.objective == Approx(m.energy_J + (std::isfinite(g.shortfall_J) ? g.shortfall_J * m.shortfall : 0)).epsilon(1e-9));
}

/// Returns the least objective for plans in this order, whose pauses are paid, by a linear program over their seconds of work.
double best_of_sequence(const plan_rates& r, const mixing_goal& g, const std::vector<std::size_t>& sequence) {
  double time = g.horizon_s, energy = 0;
  std::optional<std::size_t> from = g.running;
  for (const std::size_t p : sequence) {
    const auto in = r.cost(from, p);
    time -= in.pause_s;
    energy += in.energy_J + in.pause_s * r.idle_W;
    from = p;
  }
  if (time < 0) return inf;
  lp_problem lp;
  lp_problem::row fill{.terms = {}, .lower = time, .upper = time}, work{.terms = {}, .lower = g.progress, .upper = g.progress};
  const std::set<std::size_t> plans(sequence.begin(), sequence.end());
  for (const std::size_t p : plans) {
    const int w = lp.add_column(r.plans[p].power_W);
    fill.terms.emplace_back(w, 1);
    work.terms.emplace_back(w, r.plans[p].rate);
  }
  fill.terms.emplace_back(lp.add_column(r.idle_W), 1);
  work.terms.emplace_back(lp.add_column(g.shortfall_J), 1);
  lp.rows = {fill, work};
  const lp_solution s = glpk_lp{}.solve(lp);
  return s.status == lp_status::optimal ? s.objective + energy : inf;
}

/// Returns the least objective over all sequences of up to three turns.
double best_of_three(const plan_rates& r, const mixing_goal& g) {
  double best = best_of_sequence(r, g, {});
  const std::size_t n = r.plans.size();
  for (std::size_t a = 0; a < n; ++a) {
    best = std::min(best, best_of_sequence(r, g, {a}));
    for (std::size_t b = 0; b < n; ++b) {
      if (b == a) continue;
      best = std::min(best, best_of_sequence(r, g, {a, b}));
      for (std::size_t c = 0; c < n; ++c) {
        if (c != b) best = std::min(best, best_of_sequence(r, g, {a, b, c}));  // including returns to the first plan
      }
    }
  }
  return best;
}

}  // namespace

TEST_CASE("without switching costs the linear program, the hull and the search of supports agree") {
  for (std::uint64_t seed = test::first_seed(), end = seed + 800; seed < end; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    const plan_rates r = random_rates(random, 8);
    const mixing_goal g = random_goal(random, r, 0, 1.3);
    const mixture hull = mix::mix_on_hull(r, g), lp = mix::mix_relaxed(r, g, glpk_lp{}), exact = mix::mix(r, g);
    REQUIRE(lp.status.ok());
    CHECK(hull.objective == Approx(lp.objective).epsilon(1e-9));
    CHECK(exact.objective == Approx(hull.objective).epsilon(1e-9));
    require_consistent(hull, r, g);
    require_consistent(exact, r, g);
    require_consistent(lp, r, g);
    if (exact.parts.size() == 2)
      CHECK(mix::rate_hull(r).power_W(g.progress / g.horizon_s) * g.horizon_s == Approx(exact.energy_J).epsilon(1e-9));
  }
}

TEST_CASE("with an infinite price the least shortfall comes first, and energy decides among equals") {
  for (std::uint64_t seed = test::first_seed(), end = seed + 300; seed < end; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    plan_rates r = random_rates(random, 6);
    const bool costs = random.chance(0.5);
    if (costs) add_costs(random, r, 3);
    mixing_goal g = random_goal(random, r, 0, 1.3);
    g.shortfall_J = inf;
    const mixture m = mix::mix(r, g), lp = mix::mix_relaxed(r, g, glpk_lp{});
    require_consistent(m, r, g);
    double most = 0;
    for (std::size_t p = 0; p < r.plans.size(); ++p) most = std::max(most, r.plans[p].rate * (g.horizon_s - r.cost(g.running, p).pause_s));
    CHECK(m.shortfall == Approx(std::max(0.0, g.progress - most)).epsilon(1e-9).margin(1e-9 * g.progress));
    mixing_goal dear = g;
    dear.shortfall_J = 1e9;
    if (m.shortfall == 0) {
      CHECK(m.energy_J == Approx(mix::mix(r, dear).energy_J).epsilon(1e-9));
      REQUIRE(lp.status.ok());
      CHECK(lp.energy_J <= m.energy_J * (1 + 1e-9));
    } else if (!costs) {
      REQUIRE(lp.status.result == outcome::infeasible);
      CHECK(lp.status.proof->rows.front().needed > lp.status.proof->rows.front().available);
    }
  }
}

TEST_CASE("no sequence of three turns is better than a mixture of two plans, and the linear program bounds them all") {
  int two = 0, strict = 0;
  for (std::uint64_t seed = test::first_seed(), end = seed + 1000; seed < end; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    plan_rates r = random_rates(random, 4);
    add_costs(random, r, random.between(0, 2));
    const mixing_goal g = random_goal(random, r, 0.2, 1.1);
    const mixture m = mix::mix(r, g);
    require_consistent(m, r, g);
    const double best = best_of_three(r, g);
    CHECK(m.objective == Approx(best).epsilon(1e-9));
    const mixture lp = mix::mix_relaxed(r, g, glpk_lp{});
    REQUIRE(lp.status.ok());
    CHECK(lp.objective <= best + 1e-9 * std::abs(best));
    two += m.parts.size() == 2 ? 1 : 0;
    strict += lp.objective < best * (1 - 1e-6) ? 1 : 0;
  }
  CHECK(two > 100);     // mixtures of two plans are common
  CHECK(strict > 100);  // the bound is not tight
}

TEST_CASE("the linear program bounds mixtures also where a detour would save") {
  for (std::uint64_t seed = test::first_seed(), end = seed + 300; seed < end; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    plan_rates r = random_rates(random, 5);
    const std::size_t n = r.plans.size();
    for (std::size_t i = 0; i < n * n + n; ++i) {
      (i < n ? r.switches.start : r.switches.between).push_back({random.between(0, 4), random.between(0, 50)});
    }
    const mixing_goal g = random_goal(random, r, 0, 1.2);
    CHECK(mix::mix_relaxed(r, g, glpk_lp{}).objective <= mix::mix(r, g).objective * (1 + 1e-9));
  }
}

TEST_CASE("a grid of times finds nothing better than the mixture, and comes near it") {
  for (std::uint64_t seed = test::first_seed(), end = seed + 60; seed < end; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    plan_rates r = random_rates(random, 3);
    add_costs(random, r, random.between(0, 3));
    mixing_goal g = random_goal(random, r, 0, 1.2);
    g.shortfall_J = random.between(0, 200);
    const mixture m = mix::mix(r, g);
    const int steps = 1500;
    double best = r.idle_W * g.horizon_s + g.shortfall_J * g.progress;
    for (std::size_t p = 0; p < r.plans.size(); ++p) {
      for (std::size_t q = 0; q < r.plans.size(); ++q) {
        const auto in = r.cost(g.running, p), over = r.cost(p, q);  // q == p: one plan and idling
        const double time = g.horizon_s - in.pause_s - over.pause_s;
        if (time <= 0) continue;
        for (int i = 0; i <= steps; ++i) {
          const double first = time * i / steps, rest = q == p ? 0 : time - first;
          const double work = first * r.plans[p].rate + rest * r.plans[q].rate;
          if (work > g.progress * (1 + 1e-12)) continue;
          const double energy = (g.horizon_s - first - rest) * r.idle_W + in.energy_J + over.energy_J + first * r.plans[p].power_W +
                                rest * r.plans[q].power_W;
          best = std::min(best, energy + g.shortfall_J * (g.progress - work));
        }
      }
    }
    CHECK(m.objective <= best * (1 + 1e-9));
    CHECK(best <= m.objective + (200 * 3 + 100) * g.horizon_s / steps + 1e-9);  // one step of work and of power
  }
}

TEST_CASE("a horizon by hand: an economical plan runs, a fast one helps out") {
  // 100 s for 70 units. slow: 0.5/s at 20 W, fast: 1/s at 80 W, idle 10 W.
  plan_rates r{.plans = {{0.5, 20}, {1, 80}}, .switches = {}, .idle_W = 10};
  mixing_goal g{.horizon_s = 100, .progress = 70, .running = 0};
  mixture m = mix::mix(r, g);
  REQUIRE(m.parts.size() == 2);
  CHECK(m.parts[0] == mix::mixture_part{0, 0, 60});
  CHECK(m.parts[1] == mix::mixture_part{1, 0, 40});
  CHECK(m.energy_J == 60 * 20 + 40 * 80);
  CHECK(m.idle_s == 0);
  SECTION("a switch takes its time from both, and the same plans need more of the fast one") {
    r.switches.between = {{}, {10, 5}, {10, 5}, {}};
    m = mix::mix(r, g);
    REQUIRE(m.parts.size() == 2);
    CHECK(m.parts[0] == mix::mixture_part{0, 0, 40});
    CHECK(m.parts[1] == mix::mixture_part{1, 10, 50});
    CHECK(m.energy_J == 40 * 20 + 10 * 10 + 5 + 50 * 80);
  }
  SECTION("without a running plan the faster one is first where the order costs the same, and where it must") {
    g.running.reset();
    CHECK(mix::mix(r, g).parts[0].plan == 1);
    r.switches.between = {{}, {1, 0}, {2, 0}, {}};  // slow to fast is cheaper than fast to slow
    CHECK(mix::mix(r, g).parts[0].plan == 0);
    g.order = mix::turn_order::faster_first;
    CHECK(mix::mix(r, g).parts[0].plan == 1);
  }
  SECTION("little work is done by the running plan, which then idles") {
    g.progress = 20;
    m = mix::mix(r, g);
    CHECK(m.parts == std::vector<mix::mixture_part>{{0, 0, 40}});
    CHECK(m.idle_s == 60);
  }
  SECTION("no work, no plan") {
    g.progress = 0;
    m = mix::mix(r, g);
    CHECK(m.parts.empty());
    CHECK(m.energy_J == 1000);
  }
  SECTION("too much work: the fast plan alone, and a shortfall") {
    g.progress = 130;
    m = mix::mix(r, g);
    CHECK(m.status.ok());
    CHECK(m.parts == std::vector<mix::mixture_part>{{1, 0, 100}});
    CHECK(m.shortfall == 30);
  }
  SECTION("work that costs more than its price is left undone") {
    g.shortfall_J = 100;  // per unit of work beyond idling, 20 J for the slow plan, then 120 J
    m = mix::mix(r, g);
    CHECK(m.parts == std::vector<mix::mixture_part>{{0, 0, 100}});
    CHECK(m.shortfall == 20);
    CHECK(mix::rate_hull(r).price_J(0.4) == 20);
    CHECK(mix::rate_hull(r).price_J(0.7) == 120);
  }
  SECTION("a horizon shorter than the pause leaves the running plan") {
    r.switches.between = {{}, {10, 0}, {10, 0}, {}};
    g.horizon_s = 8;
    g.progress = 6;
    m = mix::mix(r, g);
    CHECK(m.parts == std::vector<mix::mixture_part>{{0, 0, 8}});
    CHECK(m.shortfall == 2);
  }
  SECTION("deadlines pass") {
    g.horizon_s = -3;
    for (const mixture& late : {mix::mix(r, g), mix::mix_on_hull(r, g), mix::mix_relaxed(r, g, glpk_lp{})}) {
      REQUIRE(late.status.result == outcome::infeasible);
      CHECK(late.status.proof->rows.front() == infeasibility_proof::row{"units of work in no time", 70, 0});
      CHECK(late.status.reason == "deadline passed 3 s ago with 70 units of work left");
      CHECK(late.shortfall == 70);
    }
    g.progress = 0;
    CHECK(mix::mix(r, g).status.ok());
  }
}

TEST_CASE("with as good alternatives the mixture switches less, has fewer plans and smaller indices") {
  // All plans are on one line from idling: their mixtures cost the same.
  const plan_rates r{.plans = {{1, 20}, {2, 30}, {3, 40}, {2, 30}}, .switches = {}, .idle_W = 10};
  const auto plans = [&](std::optional<std::size_t> running, double progress) {
    std::vector<std::size_t> all;
    for (const auto& part : mix::mix(r, {.horizon_s = 10, .progress = progress, .running = running}).parts) all.push_back(part.plan);
    return all;
  };
  CHECK(plans(std::nullopt, 15) == std::vector<std::size_t>{1});
  CHECK(plans(3, 15) == std::vector<std::size_t>{3});
  CHECK(plans(2, 15) == std::vector<std::size_t>{2});
  CHECK(plans(0, 15) == std::vector<std::size_t>{1});  // one switch either way: a single plan
  CHECK(plans(0, 25) == std::vector<std::size_t>{2});
}

TEST_CASE("the hull's power is convex, its price rises, and plans above it are never mixed") {
  for (std::uint64_t seed = test::first_seed(), end = seed + 100; seed < end; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    const plan_rates r = random_rates(random, 10);
    const mix::rate_hull hull(r);
    for (const auto& p : r.plans) CHECK(hull.power_W(p.rate) <= p.power_W * (1 + 1e-12));
    for (std::size_t k = 0; k + 2 < hull.corners().size(); ++k) CHECK(hull.slope(k) < hull.slope(k + 1));
    CHECK(hull.power_W(0) == r.idle_W);
    CHECK(hull.power_W(hull.fastest() * 1.01) == inf);
    CHECK(hull.price_J(hull.fastest() * 1.01) == inf);
  }
  CHECK(mix::rate_hull({.plans = {{0, 3}}, .switches = {}, .idle_W = 5}).corners().size() == 1);
  CHECK(mix::mix_on_hull({.plans = {}, .switches = {}, .idle_W = 5}, {.horizon_s = 2, .progress = 1}).shortfall == 1);
}

TEST_CASE("a mixture's bad input is named") {
  const plan_rates good{.plans = {{1, 2}, {2, 3}}, .switches = {}, .idle_W = 1};
  const mixing_goal goal{.horizon_s = 1, .progress = 1};
  const auto with = [&](auto change) {
    plan_rates r = good;
    change(r);
    return r;
  };
  CHECK_THROWS_WITH(mix::mix(with([](plan_rates& r) { r.plans[1].rate = -1; }), goal),
                    "plan_rates: plans[1].rate is -1; expected a finite number >= 0");
  CHECK_THROWS_WITH(mix::mix(with([](plan_rates& r) { r.plans[0].power_W = inf; }), goal),
                    "plan_rates: plans[0].power_W is inf; expected a finite number >= 0");
  CHECK_THROWS_WITH(mix::mix(with([](plan_rates& r) { r.idle_W = std::nan(""); }), goal),
                    "plan_rates: idle_W is nan; expected a finite number >= 0");
  CHECK_THROWS_WITH(mix::mix(with([](plan_rates& r) { r.switches.between.resize(3); }), goal),
                    "plan_rates: switches.between has 3 entries; expected none or 4");
  CHECK_THROWS_WITH(mix::mix(with([](plan_rates& r) {
                               r.switches.start = {{}, {-2, 0}};
                             }),
                             goal),
                    "plan_rates: switches.start[1].pause_s is -2; expected a finite number >= 0");
  CHECK_THROWS_WITH(mix::mix(good, {.horizon_s = inf, .progress = 1}), "mixing: horizon_s is inf; expected a finite number");
  CHECK_THROWS_WITH(mix::mix(good, {.horizon_s = 1, .progress = -1}), "mixing: progress is -1; expected a finite number >= 0");
  CHECK_THROWS_WITH(mix::mix(good, {.horizon_s = 1, .progress = 1, .running = {}, .shortfall_J = -1}),
                    "mixing: shortfall_J is -1; expected a number >= 0, or infinity");
  CHECK_THROWS_WITH(mix::mix(good, {.horizon_s = 1, .progress = 1, .running = 2}),
                    "plan_rates: plan 2 runs, of 2; expected one of them or none");
  CHECK_THROWS_AS(mix::mixing_program(good, {.horizon_s = 0, .progress = 1}), invalid_input);
  CHECK(mix::mix_relaxed(good, goal, no_lp{}).status.result == outcome::stopped);
}

}  // namespace test_mixing
