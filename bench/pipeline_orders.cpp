// SPDX-License-Identifier: BSL-1.0
// Pipeline orders: published configurations at equal memory, proofs, random pipelines, and search times.
//
// Targets: no published schedule is better; 125 and 242 proven faster than by Cbc (21 s and 40 s); 8 stages and 64 microbatches in 1 s.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/schedule/automatic_orders.hpp>
#include <hetplan/schedule/order_rules.hpp>
#include <hetplan/schedule/partial_orders.hpp>
#include <hetplan/schedule/pipeline_times.hpp>

#include "measure.hpp"
#include "support/random_source.hpp"
#include "support/zero_bubble_rows.hpp"

using namespace hetplan;
using namespace hetplan::schedule;

namespace {

/// Prints one comparison. Returns true if the published cost is reached.
bool compare(const std::string& name, const pipeline_times& p, double published, double bound, long long steps) {
  found_by_search found;
  const double s = bench::seconds_of([&] {
    found = automatic_orders(p, {.steps = steps});
    return 0;
  });
  const order_timeline run = replay_orders(p, found.orders);
  const double peak = *std::max_element(run.peaks.begin(), run.peaks.end());
  const bool kept = found.value <= published * (1 + test::zero_bubble_rounding) && found.value >= bound * (1 - 1e-9);
  std::printf("%-46s span %9.6g published %9.6g bound %9.6g%s makespan %9.6g peak %4.1f %6.3f s  %s%s\n", name.c_str(), found.value,
              published, std::max(bound, found.bound), found.optimal ? " proven" : "       ", run.makespan, peak, s, found.by.c_str(),
              kept ? "" : "  WORSE");
  return kept;
}

void published(bool quick) {
  const long long steps = quick ? 1'000'000 : 60'000'000;
  int kept = 0, all = 0;
  for (const test::zero_bubble_row& r : test::zero_bubble_rows()) {
    if (quick && r.microbatches > 8) continue;
    const bool uneven = r.forward.front() != r.forward.back() || r.forward[0] != r.forward[1];
    const std::string name =
        (uneven ? "uneven" : to_text(r.forward[0]) + "," + to_text(r.backward_input[0]) + "," + to_text(r.backward_weight[0])) +
        " c=" + to_text(r.delay) + " p=" + std::to_string(r.devices) + " m=" + std::to_string(r.microbatches);
    constexpr std::array memories{"M=p", "M=1.5p", "M=2p", "M=inf"};
    for (std::size_t c = 0; c < memories.size(); ++c, ++all) {
      kept += compare(name + " " + memories[c], r.pipeline(c), r.cost[c], r.bound[c], steps);
    }
    constexpr std::array shapes{"ZB-V", "V-half", "V-min"};
    for (std::size_t v = 0; v < shapes.size(); ++v) {
      if (r.v_cost[v] == 0) continue;
      ++all;
      const auto held = static_cast<double>(held_by(static_cast<v_schedule>(v), r.forward.size()));
      const pipeline_times p = r.v_pipeline(held);
      const std::vector<double> law = step_law_spans(p);
      kept += compare(name + " " + shapes[v], p, r.v_cost[v], *std::max_element(law.begin(), law.end()), steps);
    }
  }
  std::printf("%d of %d published costs are kept\n", kept, all);
}

void proofs() {
  struct known {
    std::size_t devices;
    int microbatches;
    phase_times each;
    double delay, least;
  };
  for (const known& k : {known{2, 3, {0, 5, 6, 4}, 0, 48}, known{3, 4, {0, 5, 6, 4}, 0, 70}, known{4, 4, {0, 5, 6, 4}, 0, 81},
                         known{4, 6, {0, 1, 1, 1}, 0, 19}, known{4, 8, {0, 5, 6, 4}, 0, 125}, known{4, 8, {0, 10, 10, 10}, 1, 242}}) {
    const pipeline_times p = interleaved(k.each, k.devices, 1, k.delay, k.microbatches);
    found_by_search found;
    const double s = bench::seconds_of([&] {
      found = automatic_orders(p);
      return 0;
    });
    std::printf("%zu stages, %d microbatches, F = %g, c = %g: %g%s in %.4f s, known optimum %g\n", k.devices, k.microbatches,
                k.each.forward, k.delay, found.value, found.optimal ? " proven" : " NOT PROVEN", s, k.least);
  }
}

struct gaps {
  std::vector<double> of_best = {};
  std::array<int, 4> alone = {};  ///< strictly best of compact, eager, original and automatic
  std::array<double, 3> excess = {};
  int proven = 0;
};

void report(const char* name, gaps g) {
  if (g.of_best.empty()) return;
  std::sort(g.of_best.begin(), g.of_best.end());
  const double n = static_cast<double>(g.of_best.size());
  double mean = 0;
  for (const double x : g.of_best) mean += x / n;
  std::printf(
      "%-24s %4zu pipelines, gap to the bound mean %5.2f %% median %5.2f %% worst %5.2f %%, proven %5.1f %%; alone the best: compact %4.1f "
      "%% "
      "eager %4.1f %% original %4.1f %% automatic %4.1f %%; above the best: compact %5.2f %% eager %5.2f %% original %5.2f %%\n",
      name, g.of_best.size(), 100 * mean, 100 * g.of_best[g.of_best.size() / 2], 100 * g.of_best.back(), 100 * g.proven / n,
      100 * g.alone[0] / n, 100 * g.alone[1] / n, 100 * g.alone[2] / n, 100 * g.alone[3] / n, 100 * g.excess[0] / n, 100 * g.excess[1] / n,
      100 * g.excess[2] / n);
}

/// Compares orders on seeded pipelines of 2 to 8 stages at equal memory, by the ratio of boundary delay to mean forward time.
void random_pipelines(int count, order_goal goal) {
  test::random_source random(1);
  constexpr std::array limits{0.1, 0.5, 2.0, 10.0};
  std::array<gaps, limits.size()> by_ratio;
  gaps all;
  for (int i = 0; i < count; ++i) {
    const int stages = random.integer(2, 8), microbatches = random.integer(stages, 4 * stages);
    const double skew = random.between(0, 0.8);
    std::vector<phase_times> s;
    double forward = 0;
    for (int k = 0; k < stages; ++k) {
      const double size = random.between(1 - skew, 1 + skew);
      s.push_back({.device = static_cast<std::size_t>(k),
                   .forward = size * random.between(0.8, 1.2),
                   .backward_input = size * random.between(0.8, 1.5),
                   .backward_weight = size * random.between(0.5, 1.2)});
      forward += s.back().forward / stages;
    }
    const std::size_t group = static_cast<std::size_t>(i) % limits.size();
    const double low = group == 0 ? 0 : limits[group - 1], ratio = random.between(low, limits[group]);
    const double memory = random.chance(0.2) ? std::numeric_limits<double>::infinity() : stages * random.between(1, 2);
    const pipeline_times p =
        chain_of(std::move(s), ratio * forward, microbatches, std::vector<double>(static_cast<std::size_t>(stages), memory));
    const auto judged = [&](const orders_by_device& orders) {
      const order_timeline run = replay_orders(p, orders);
      return goal == order_goal::makespan ? run.makespan : run.longest_span();
    };
    const found_by_search found = automatic_orders(p, {.goal = goal});
    const std::array values{judged(dispatched_orders(p, dispatch_rule::compact)), judged(dispatched_orders(p, dispatch_rule::eager)),
                            judged(zero_bubble_orders(p, goal)), judged(found.orders)};
    const double best = *std::min_element(values.begin(), values.end());
    for (gaps* g : {&all, &by_ratio[group]}) {
      g->of_best.push_back(best / found.bound - 1);
      g->proven += found.optimal ? 1 : 0;
      for (std::size_t k = 0; k < 3; ++k) g->excess[k] += values[k] / best - 1;
      for (std::size_t k = 0; k < values.size(); ++k) {
        bool alone = true;
        for (std::size_t o = 0; o < values.size(); ++o) alone = alone && (o == k || values[k] < values[o] * (1 - 1e-9));
        g->alone[k] += alone ? 1 : 0;
      }
    }
  }
  std::printf("by %s\n", goal == order_goal::makespan ? "makespan" : "longest span");
  for (std::size_t g = 0; g < limits.size(); ++g) report(("delay <= " + to_text(limits[g]) + " forwards").c_str(), by_ratio[g]);
  report("all", all);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  published(options.quick);
  proofs();
  random_pipelines(options.quick ? 8 : 500, order_goal::longest_span);
  random_pipelines(options.quick ? 8 : 500, order_goal::makespan);
  bench::table table(options);
  for (const auto& [devices, microbatches] : std::vector<std::pair<std::size_t, int>>{{4, 16}, {8, 64}}) {
    const std::string size = std::to_string(devices) + " devices x " + std::to_string(microbatches) + ", ";
    const double held = static_cast<double>(devices);
    const phase_times each{0, 5478, 5806, 3534};
    const pipeline_times p = interleaved(each, devices, 1, 200, microbatches, std::vector<double>(devices, held));
    const pipeline_times v = v_shape(each, devices, 200, microbatches, std::vector<double>(devices, 2 * held));
    table.run_within(size + "compact", 21, 0, [&](std::size_t) { return dispatched_orders(p, dispatch_rule::compact); });
    table.run_within(size + "original", 21, 0, [&](std::size_t) { return zero_bubble_orders(p); });
    table.run_within(size + "automatic", 5, 1, [&](std::size_t) { return automatic_orders(p); });
    table.run_within(size + "ZB-V", 21, 0, [&](std::size_t) { return v_orders(v, v_schedule::zero_bubble); });
    table.run_within(size + "automatic, V", 5, 1, [&](std::size_t) { return automatic_orders(v); });
  }
}
