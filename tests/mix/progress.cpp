// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/mix/mixing_controller.hpp>
#include <hetplan/mix/progress.hpp>

#include "support/noisy_jobs.hpp"
#include "support/random_source.hpp"
#include "support/solvers.hpp"

namespace test_progress {

using namespace hetplan;
using mix::decision;
using mix::job_state;
using mix::plan_rates;
using mix::uniform_progress;
using test::noise_kind;
using test::noisy_job;
using test::noisy_run;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// Returns true if the best plan at its pessimistic rate finishes the job before the deadline.
bool starts_safe(const noisy_job& j, double pessimism) {
  double most = 0;
  for (std::size_t p = 0; p < j.expected.plans.size(); ++p) {
    most = std::max(most, j.expected.plans[p].rate * (j.deadline_s() - j.expected.cost(std::nullopt, p).pause_s));
  }
  return j.work <= (1 - pessimism) * most;
}

/// Returns the job's periods with the rates that the controller expects.
std::vector<mix::rate_period> expected_periods(const noisy_job& j) {
  std::vector<mix::rate_period> all = j.periods;
  for (auto& p : all) p.rates = j.expected;
  return all;
}

struct excess {
  std::vector<double> shares = {};
  double spent_J = 0, bound_J = 0;
  void add(double energy_J, double least_J) {
    shares.push_back(energy_J / least_J - 1);
    spent_J += energy_J;
    bound_J += least_J;
  }
  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double s : shares) sum += s;
    return sum / static_cast<double>(shares.size());
  }
  /// Returns the share that a fraction `part` of all shares do not exceed.
  [[nodiscard]] double quantile(double part) const {
    std::vector<double> sorted = shares;
    std::sort(sorted.begin(), sorted.end());
    return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(part * static_cast<double>(sorted.size())))];
  }
  [[nodiscard]] double total() const { return spent_J / bound_J - 1; }
};

/// Runs jobs and checks the laws that hold for each.
struct campaign {
  int possible = 0, met = 0;
  excess over_clairvoyant = {}, over_expected = {};

  campaign(int jobs, const test::noise_options& noise, const mix::progress_options& options) {
    for (std::uint64_t seed = test::first_seed(), end = seed + static_cast<std::uint64_t>(jobs); seed < end; ++seed) {
      CAPTURE(seed);
      const noisy_job j = test::random_noisy_job(seed, noise);
      const noisy_run r = test::run(j, {j.expected, options});
      const mix::clairvoyant_bound bound = mix::clairvoyant(j.periods, j.work);
      // work is counted once: exactly the job if the deadline is met, else less
      if (r.met) CHECK(r.work == Approx(j.work).epsilon(1e-9));
      else CHECK(r.work < j.work);
      CHECK(r.end_s <= j.deadline_s() * (1 + 1e-12));
      CHECK(r.busy_s + r.pause_s <= r.end_s * (1 + 1e-9));
      if (noise.size <= options.pessimism && starts_safe(j, options.pessimism)) CHECK(r.met);  // the law of the reserve
      if (r.met) CHECK(bound.status.ok());
      if (!bound.status.ok()) continue;
      ++possible;
      if (!r.met) continue;
      ++met;
      CHECK(r.energy_J >= bound.energy_J * (1 - 1e-9));
      over_clairvoyant.add(r.energy_J, bound.energy_J);
      over_expected.add(r.energy_J, mix::clairvoyant(expected_periods(j), j.work).energy_J);
    }
  }
};

}  // namespace

TEST_CASE("of 1000 jobs under noise that all plans share, 99 % of those that can end in time do, with energy near the least", "[long]") {
  const campaign c(1000, {.kind = noise_kind::common}, {});
  CAPTURE(c.possible, c.met, c.over_clairvoyant.mean(), c.over_clairvoyant.quantile(0.95), c.over_clairvoyant.quantile(1),
          c.over_clairvoyant.total());
  CHECK(c.possible >= 950);
  CHECK(c.met >= 0.99 * c.possible);
  CHECK(c.over_clairvoyant.total() <= 0.05);
  CHECK(c.over_clairvoyant.mean() <= 0.05);
  CHECK(c.over_clairvoyant.quantile(0.95) <= 0.10);
  CHECK(c.over_expected.mean() <= 0.02);
}

TEST_CASE("of 1000 jobs whose plans each have their own luck, 99 % of those that can end in time do", "[long]") {
  const campaign c(1000, {.kind = noise_kind::own}, {});
  CAPTURE(c.possible, c.met, c.over_clairvoyant.mean(), c.over_clairvoyant.quantile(0.95), c.over_clairvoyant.quantile(1),
          c.over_clairvoyant.total());
  CHECK(c.met >= 0.99 * c.possible);
  // The clairvoyant picks the luckiest plan of every minute, which no controller can. Against expected rates, the excess is as above.
  CHECK(c.over_clairvoyant.total() <= 0.18);
  CHECK(c.over_expected.mean() <= 0.02);
}

TEST_CASE("with free switches and common noise a job ends in time if anybody could end it, whatever the horizon") {
  for (const double horizon_s : {300.0, 3600.0, inf}) {
    CAPTURE(horizon_s);
    const campaign c(200, {.kind = noise_kind::common, .pause_s = 0}, {.horizon_s = horizon_s});
    CHECK(c.met == c.possible);
  }
}

TEST_CASE("without noise and without switching costs the controller takes the least energy there is") {
  const campaign whole(100, {.size = 0, .pause_s = 0, .least_slack = 1.3}, {.pessimism = 1e-6});
  CAPTURE(whole.over_clairvoyant.mean(), whole.over_clairvoyant.quantile(1));
  CHECK(whole.met == 100);
  CHECK(whole.over_clairvoyant.mean() <= 0.002);
  CHECK(whole.over_clairvoyant.quantile(1) <= 0.02);  // turns are rounded to a tenth of a period
}

TEST_CASE("one long horizon takes less energy than many short ones, and the reserve keeps deadlines that are missed without", "[long]") {
  const campaign whole(300, {}, {}), hours(300, {}, {.horizon_s = 3600}), minutes(300, {}, {.horizon_s = 600});
  CAPTURE(whole.over_clairvoyant.total(), hours.over_clairvoyant.total(), minutes.over_clairvoyant.total());
  CHECK(whole.over_clairvoyant.total() < hours.over_clairvoyant.total());
  CHECK(hours.over_clairvoyant.total() < minutes.over_clairvoyant.total());
  const campaign bold(300, {}, {.pessimism = 0});
  CHECK(bold.met < 0.95 * bold.possible);
  CHECK(whole.met >= 0.99 * whole.possible);
}

TEST_CASE("a decision by hand: the economical plan while there is time, the fast one when it is due, then nothing") {
  // 0.5/s at 20 W, 1/s at 80 W, idle 10 W; a switch to the fast plan takes 20 s
  const uniform_progress c{{.plans = {{0.5, 20}, {1, 80}}, .switches = {{{}, {20, 0}, {20, 0}, {}}, {}}, .idle_W = 10}, {.period_s = 10}};
  decision d = c.decide({.work_left = 100, .time_left_s = 400, .running = 0});
  CHECK(d.plan == 0u);
  CHECK(d.seconds == 10);
  CHECK(d.horizon_s == 400);
  CHECK(d.progress == 100);
  CHECK_FALSE(d.reserve);
  // 0.8 (150 - 10 - 20) = 96 are in reach after the next period, which does 0.5 * 0.8 * 10 = 4: 100 are just safe
  CHECK_FALSE(c.decide({.work_left = 99.9, .time_left_s = 150, .running = 0}).reserve);
  d = c.decide({.work_left = 100.1, .time_left_s = 150, .running = 0});
  CHECK(d.reserve);
  CHECK(d.plan == 1u);
  CHECK(d.pause_s == 20);
  CHECK(d.seconds == 30);
  SECTION("from nothing the faster plan starts, though the other order switches for less") {
    uniform_progress dear = c;
    dear.rates.switches.between[1].pause_s = 1;
    CHECK(mix::mix(dear.rates, {.horizon_s = 400, .progress = 300}).parts[0].plan == 0);
    CHECK(dear.decide({.work_left = 300, .time_left_s = 400}).plan == 1u);
  }
  SECTION("the switch may take longer than it gains") {
    d = c.decide({.work_left = 100, .time_left_s = 30, .running = 0});
    CHECK(d.plan == 0u);
    CHECK(d.mixture.shortfall == 85);
  }
  SECTION("a horizon brings its share, and is gone on with") {
    uniform_progress paper = c;
    paper.options.horizon_s = 100;
    job_state now{.work_left = 160, .time_left_s = 400, .running = 0};
    d = paper.decide(now);
    CHECK(d.horizon_s == 100);
    CHECK(d.progress == 40);
    now = mix::after(now, d, 10, 4);
    CHECK(now.horizon_left_s == 90);
    CHECK(now.progress_left == 36);
    CHECK(paper.decide(now).progress == 36);
    now.horizon_left_s = 0;
    now.progress_left = 0;
    CHECK(paper.decide(now).progress == Approx(40));
    CHECK(now.work_left == 156);
    CHECK(now.time_left_s == 390);
  }
  SECTION("no work: idle until the deadline") {
    d = c.decide({.work_left = 0, .time_left_s = 30, .running = 0});
    CHECK_FALSE(d.plan);
    CHECK(d.seconds == 30);
    CHECK(d.status.ok());
  }
  SECTION("too late: the status says so, and the plan that ends first runs") {
    d = c.decide({.work_left = 30, .time_left_s = -2, .running = 0});
    CHECK(d.status.result == outcome::infeasible);
    CHECK(d.status.reason == "deadline passed 2 s ago with 30 units of work left");
    CHECK(d.plan == 1u);
    CHECK(c.decide({.work_left = 10, .time_left_s = 0, .running = 0}).plan == 0u);
  }
  SECTION("work that is not worth its price waits, until it is gone") {
    uniform_progress frugal = c;
    frugal.options.shortfall_J = 1;
    d = frugal.decide({.work_left = 10, .time_left_s = 400, .running = 0});
    CHECK_FALSE(d.plan);
    CHECK(d.seconds == 10);
  }
}

TEST_CASE("the controller names bad options and states") {
  const plan_rates rates{.plans = {{1, 2}}, .switches = {}, .idle_W = 1};
  const auto decide = [&](const mix::progress_options& o, const job_state& s) { return uniform_progress{rates, o}.decide(s); };
  CHECK_THROWS_WITH(decide({.horizon_s = 0}, {}), "uniform_progress: horizon_s is 0; expected more than 0, or infinity");
  CHECK_THROWS_WITH(decide({.period_s = inf}, {}), "uniform_progress: period_s is inf; expected a finite number > 0");
  CHECK_THROWS_WITH(decide({.pessimism = 1}, {}), "uniform_progress: pessimism is 1; expected [0, 1)");
  CHECK_THROWS_WITH(decide({}, {.work_left = -1}), "uniform_progress: work_left is -1; expected a finite number >= 0");
  CHECK_THROWS_WITH(decide({}, {.time_left_s = std::nan("")}), "uniform_progress: time_left_s is nan; expected a finite number");
  CHECK_THROWS_WITH(decide({}, {.horizon_left_s = -1}), "uniform_progress: horizon_left_s is -1, progress_left 0; expected numbers >= 0");
  CHECK_THROWS_AS(decide({}, {.running = 1}), invalid_input);
}

TEST_CASE("the clairvoyant's energy is the linear program's over all periods") {
  for (std::uint64_t seed = test::first_seed(), end = seed + 300; seed < end; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    std::vector<mix::rate_period> periods;
    double most = 0;
    lp_problem lp;
    lp_problem::row done{.terms = {}, .lower = 0, .upper = 0};
    for (int t = random.integer(1, 8); t > 0; --t) {
      mix::rate_period p{.seconds = random.chance(0.1) ? 0 : random.between(1, 100),
                         .rates = test::random_plan_rates(random, random.integer(1, 5), 0)};
      if (random.chance(0.2)) p.rates.plans[0].rate = 0;
      if (random.chance(0.1)) p.rates.plans.clear();
      if (random.chance(0.2)) p.rates.idle_W *= 20;  // some plans draw less than idling
      lp_problem::row time{.terms = {{lp.add_column(p.rates.idle_W), 1}}, .lower = p.seconds, .upper = p.seconds};
      double fastest = 0;
      for (const auto& plan_here : p.rates.plans) {
        const int x = lp.add_column(plan_here.power_W, 0, plan_here.rate > 0 ? inf : 0);
        time.terms.emplace_back(x, 1);
        done.terms.emplace_back(x, plan_here.rate);
        fastest = std::max(fastest, plan_here.rate);
      }
      most += fastest * p.seconds;
      lp.rows.push_back(time);
      periods.push_back(p);
    }
    const double work = most * random.between(0, 1.1);
    done.lower = done.upper = std::min(work, most * (1 - 1e-13));
    lp.rows.push_back(done);
    const mix::clairvoyant_bound bound = mix::clairvoyant(periods, work);
    const lp_solution s = glpk_lp{}.solve(lp);
    REQUIRE(s.status == lp_status::optimal);
    CHECK(bound.energy_J == Approx(s.objective).epsilon(1e-9));
    CHECK(bound.status.ok() == (work <= most));
    CHECK(bound.shortfall == Approx(std::max(0.0, work - most)).epsilon(1e-9).margin(1e-9));
    CHECK(bound.progress + bound.shortfall == Approx(work));
    // the price is the cost of a little more work
    if (work > 0 && work * (1 + 1e-7) < most) {
      const double more = mix::clairvoyant(periods, work * (1 + 1e-7)).energy_J - bound.energy_J;
      const double price = more / (work * 1e-7);
      const double next = mix::clairvoyant(periods, work * (1 + 1e-7)).price_J;
      CHECK(price >= bound.price_J - 1e-3 * std::abs(bound.price_J));
      CHECK(price <= next + 1e-3 * std::abs(next));
    }
  }
  CHECK(mix::clairvoyant({}, 1).status.reason == "clairvoyant: 1 of 1 units of work do not fit before the deadline");
  CHECK(mix::clairvoyant({}, 0).status.ok());
  CHECK_THROWS_WITH(mix::clairvoyant({}, -1), "clairvoyant: work is -1; expected a finite number >= 0");
}

TEST_CASE("of plans that end a late job at once but for rounding the first is taken, and tenths of the work add up to all of it") {
  uniform_progress c;
  c.rates.plans = {{10, 1}, {2 / 0.3, 1}};
  c.rates.switches.start = {{0.1, 0}, {0, 0}};
  REQUIRE(0.1 + 2.0 / 10 > 2 / (2 / 0.3));  // 0.3 s either way
  CHECK(c.decide({.work_left = 2, .time_left_s = -1}).plan == 0U);

  for (int n = 2; n <= 40; ++n) {
    CAPTURE(n);
    c.rates = {.plans = {{1, 1}}};
    job_state now{.work_left = n / 10.0, .time_left_s = n / 10.0};
    for (int i = 0; i < n; ++i) {
      const decision d = c.decide(now);
      CHECK(d.status.ok());
      CHECK(d.mixture.shortfall == 0);
      REQUIRE(d.plan == 0U);
      now = mix::after(now, d, 0.1, 0.1);
    }
    CHECK(now.work_left == 0);
  }
}

TEST_CASE("a job that the fastest plan just ends in time at its worst is safe") {
  for (int n = 3; n <= 40; ++n) {
    CAPTURE(n);
    uniform_progress c;
    c.options.pessimism = 0;
    c.options.period_s = 0.1;
    c.rates.plans = {{1, 5}, {0.5, 1}};  // first the frugal plan, then the fast one
    double left = 0;
    for (int i = 0; i < n; ++i) left += 0.1;
    // A period of the frugal plan, then the fast one without a pause: 0.05 + (n - 1) / 10 in all.
    const decision d = c.decide({.work_left = 0.05 + (n - 1) / 10.0, .time_left_s = left, .running = 1});
    CHECK(d.plan);
    CHECK(d.status.ok());
    CHECK_FALSE((d.reserve && d.plan == 1U));
  }
}

}  // namespace test_progress
