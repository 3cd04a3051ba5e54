// SPDX-License-Identifier: BSL-1.0
// Decisions of the runtime adapter: mixtures, Pareto sets and their volume, and jobs under noise.
//
// Targets: a mixing decision in 100 us with up to 50 plans; 99 % of the feasible deadlines met, with 5 % more energy than the clairvoyant.
//
// The clairvoyant knows all rates and switches for free. `expected` is the least energy if all rates were as expected, the best that a
// controller without knowledge of the future can hope for. --json prints only the timings.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/mix/mixing.hpp>
#include <hetplan/mix/mixing_controller.hpp>
#include <hetplan/mix/pareto_set.hpp>
#include <hetplan/mix/progress.hpp>
#include <hetplan/solve/glpk.hpp>

#include "measure.hpp"
#include "report.hpp"
#include "support/noisy_jobs.hpp"
#include "support/random_source.hpp"

using namespace hetplan;

namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 100 * share);
  return text;
}

/// Returns points on and behind a curved front, most of which are kept.
std::vector<std::vector<double>> front(int points, int criteria) {
  test::random_source random(7);
  std::vector<std::vector<double>> all;
  for (int i = 0; i < points; ++i) {
    std::vector<double> p;
    double norm = 0;
    for (int k = 0; k < criteria; ++k) {
      p.push_back(random.between(0.01, 1));
      norm += p.back() * p.back();
    }
    const double factor = random.chance(0.3) ? random.between(1, 1.2) : 1;
    for (double& x : p) x = 1.5 - x / (std::sqrt(norm) * factor);
    all.push_back(p);
  }
  return all;
}

struct outcome_of_jobs {
  int possible = 0, met = 0;
  std::vector<double> over_clairvoyant = {};
  double energy_J = 0, clairvoyant_J = 0, expected_J = 0;
  long long switches = 0, reserve = 0, decisions = 0;
};
outcome_of_jobs run_jobs(int jobs, const test::noise_options& noise, const mix::progress_options& options) {
  outcome_of_jobs all;
  for (int i = 1; i <= jobs; ++i) {
    const test::noisy_job job = test::random_noisy_job(static_cast<std::uint64_t>(i), noise);
    const mix::clairvoyant_bound bound = mix::clairvoyant(job.periods, job.work);
    if (!bound.status.ok()) continue;
    ++all.possible;
    const test::noisy_run r = test::run(job, {job.expected, options});
    if (!r.met) continue;
    ++all.met;
    all.over_clairvoyant.push_back(r.energy_J / bound.energy_J - 1);
    all.energy_J += r.energy_J;
    all.clairvoyant_J += bound.energy_J;
    std::vector<mix::rate_period> expected = job.periods;
    for (auto& p : expected) p.rates = job.expected;
    all.expected_J += mix::clairvoyant(expected, job.work).energy_J;
    all.switches += r.switches;
    all.reserve += r.reserve;
    all.decisions += r.decisions;
  }
  std::sort(all.over_clairvoyant.begin(), all.over_clairvoyant.end());
  return all;
}

void add_row(bench::report& table, int jobs, const std::string& noise_name, const test::noise_options& noise,
             const mix::progress_options& o) {
  const outcome_of_jobs r = run_jobs(jobs, noise, o);
  double sum = 0;
  for (const double x : r.over_clairvoyant) sum += x;
  const double n = std::max(1, r.met);
  const auto& x = r.over_clairvoyant;
  char switches[32], reserve[32];
  std::snprintf(switches, sizeof switches, "%.1f", static_cast<double>(r.switches) / n);
  std::snprintf(reserve, sizeof reserve, "%.1f", static_cast<double>(r.reserve) / n);
  table.add({noise_name, std::isfinite(o.horizon_s) ? to_text(o.horizon_s) + " s" : "the rest", to_text(noise.pause_s) + " s",
             percent(o.pessimism), percent(r.met / static_cast<double>(std::max(1, r.possible))), percent(sum / n),
             x.empty() ? "-" : percent(x[std::min(x.size() - 1, x.size() * 95 / 100)]), x.empty() ? "-" : percent(x.back()),
             percent(r.energy_J / r.clairvoyant_J - 1), percent(r.energy_J / r.expected_J - 1), switches, reserve});
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (!options.json) std::printf("A call is the mean of many; a call's target is 100 us.\n");
  {
    bench::table table(options);
    test::random_source random(1);
    for (const int plans : {5, 10, 20, 50}) {
      const mix::plan_rates rates = test::random_plan_rates(random, plans, 30);
      double fastest = 0;
      for (const auto& p : rates.plans) fastest = std::max(fastest, p.rate);
      const mix::mixing_goal goal{.horizon_s = 3600, .progress = 0.6 * 3600 * fastest, .running = 1};
      const int calls = options.quick ? 10 : 1000;
      const auto many = [calls](auto&& call) {
        return [calls, call] {
          double sum = 0;
          for (int i = 0; i < calls; ++i) sum += call();
          return sum;
        };
      };
      const std::string size = std::to_string(plans) + " plans: ";
      table.run(size + "mixture, exact", calls, "1/s", 1e4, many([&] { return mix::mix(rates, goal).objective; }));
      table.run(size + "controller's decision", calls, "1/s", 1e4, many([&] {
                  return mix::uniform_progress{rates, {}}.decide({.work_left = goal.progress, .time_left_s = 3600, .running = 1}).seconds;
                }));
      table.run(size + "mixture, linear program", calls / 10, "1/s", 0, [&, calls] {
        double sum = 0;
        for (int i = 0; i < calls / 10; ++i) sum += mix::mix_relaxed(rates, goal, glpk_lp{}).objective;
        return sum;
      });
    }
    for (const int criteria : {2, 3, 5}) {
      for (const int points : {100, 1000, 10000}) {
        if (options.quick && points > 1000) continue;
        const auto all = front(points, criteria);
        const std::string size = std::to_string(points) + " points, " + std::to_string(criteria) + " criteria: ";
        const auto fill = [&] {
          mix::pareto_set<int> set(static_cast<std::size_t>(criteria));
          for (const auto& p : all) set.insert(p, 0);
          return set;
        };
        table.run(size + "Pareto set", points, "inserts/s", 0, [&] { return fill().size(); });
        if (criteria > 3) continue;
        const std::vector<double> reference(static_cast<std::size_t>(criteria), 1.5);
        table.run(size + "hypervolume", points, "points/s", 0, [&] { return mix::hypervolume(all, reference); });
      }
    }
  }
  if (options.json) return 0;
  const int jobs = options.quick ? 30 : 1000;
  bench::report table(
      std::to_string(jobs) + " jobs, rates within 20 % of what is expected; energy beyond the clairvoyant's and beyond the expected, in %",
      {"noise", "horizon", "pause up to", "reserve for %", "met %", "mean", "p95", "max", "total", "expected", "switches", "reserves"});
  for (const auto& [name, kind] : {std::pair{"common", test::noise_kind::common}, std::pair{"own", test::noise_kind::own}}) {
    for (const double pause_s : {0.0, 30.0, 120.0}) {
      for (const double horizon_s : {300.0, 900.0, 3600.0, inf}) {
        add_row(table, jobs, name, {.kind = kind, .pause_s = pause_s}, {.horizon_s = horizon_s});
      }
    }
    for (const double pessimism : {0.0, 0.05, 0.1}) add_row(table, jobs, name, {.kind = kind}, {.pessimism = pessimism});
  }
  bench::print({table}, options);
}
