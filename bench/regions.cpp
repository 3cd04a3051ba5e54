// SPDX-License-Identifier: BSL-1.0
// Splits of a chain of layers over regions under DeepCEE's eq. 1: time of the exact search, and gap of the paper's beam search.
//   bench_regions [--quick] [--json]
//
// Target: 12 regions x 400 layers in 1 s, 50 regions x 400 layers by the beam in 10 s.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <hetplan/partition/region_dp.hpp>
#include <support/random_region_chain.hpp>

#include "measure.hpp"
#include "report.hpp"

namespace {

using namespace hetplan;
using namespace hetplan::partition;

std::string number(const char* format, double v) {
  char text[32];
  std::snprintf(text, sizeof text, format, v);
  return text;
}
std::string name(region_cost c) { return c == region_cost::printed ? "printed" : "serial links"; }
std::string name(region_use u) { return u == region_use::all ? "all" : "any"; }

struct size {
  std::size_t regions, layers;
  int microbatches;
};

constexpr double slow[] = {0.1, 1, 10, 100};

void exact(bench::report& out, const size& s, std::uint64_t seeds) {
  for (const double transfers : slow) {
    for (const region_cost cost : {region_cost::printed, region_cost::serial_links}) {
      for (const region_use use : {region_use::all, region_use::any}) {
        std::vector<double> took_s, weighed;
        std::size_t stages = 0, stopped = 0;
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
          const region_chain c = test::random_region_chain(seed, s.regions, s.layers, s.microbatches, transfers);
          took_s.push_back(bench::seconds_of([&] {
            const region_result r = split_exactly(c, {.cost = cost, .use = use});
            weighed.push_back(static_cast<double>(r.weighed));
            stages += r.split.region.size();
            stopped += r.status.ok() ? 0 : 1;
            return r.weighed;
          }));
        }
        out.add({std::to_string(s.regions) + " x " + std::to_string(s.layers) + ", m = " + std::to_string(s.microbatches), name(cost),
                 name(use), number("%g", transfers), number("%.1f", static_cast<double>(stages) / static_cast<double>(seeds)),
                 number("%.3f s", bench::median(took_s)), number("%.3f s", *std::max_element(took_s.begin(), took_s.end())),
                 number("%.2g", *std::max_element(weighed.begin(), weighed.end())), std::to_string(stopped)});
      }
    }
  }
}

/// Reports the beam's gap to the exact search, and the gap that split_in_order leaves for its order.
void gaps(bench::report& out, const size& s, std::uint64_t seeds) {
  struct tally {
    double sum = 0, worst = 0;
    void add(double gap) { sum += gap, worst = std::max(worst, gap); }
  };
  for (const double transfers : slow) {
    for (const region_use use : {region_use::all, region_use::any}) {
      const std::size_t widths[] = {16, 64};
      tally beams[2], cuts[2];
      double took_s[2] = {};
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const region_chain c = test::random_region_chain(seed, s.regions, s.layers, s.microbatches, transfers);
        const region_result exact = split_exactly(c, {.use = use});
        for (std::size_t w = 0; w < 2; ++w) {
          beam_against_exact both{.exact = exact, .beam = {}};
          took_s[w] += bench::seconds_of([&] { return (both.beam = split_by_beam(c, {.use = use, .width = widths[w]})).weighed; });
          beams[w].add(both.gap());
          both.beam = split_in_order(c, both.beam.split.region, {.use = use});
          cuts[w].add(both.gap());
        }
      }
      const auto n = static_cast<double>(seeds);
      for (std::size_t w = 0; w < 2; ++w) {
        out.add({std::to_string(s.regions) + " x " + std::to_string(s.layers), std::to_string(widths[w]), name(use),
                 number("%g", transfers), number("%.1f %%", 100 * beams[w].sum / n), number("%.1f %%", 100 * beams[w].worst),
                 number("%.1f %%", 100 * cuts[w].sum / n), number("%.1f %%", 100 * cuts[w].worst), number("%.4f s", took_s[w] / n)});
      }
    }
  }
}

/// Runs the beam with too many regions for the exact search.
void many(bench::report& out, const size& s) {
  for (const double transfers : slow) {
    for (const region_use use : {region_use::all, region_use::any}) {
      const region_chain c = test::random_region_chain(1, s.regions, s.layers, s.microbatches, transfers);
      double beam_s = 0, both_s = 0, seconds = 0;
      beam_s = bench::seconds_of([&] { return seconds = split_by_beam(c, {.use = use}).split.seconds; });
      region_split finished;
      both_s = bench::seconds_of([&] { return (finished = split_regions(c, {.use = use}).split).seconds; });
      out.add({std::to_string(s.regions) + " x " + std::to_string(s.layers), name(use), number("%g", transfers),
               std::to_string(finished.region.size()), number("%.2f s", beam_s), number("%.2f s", both_s),
               number("%.1f %%", 100 * (1 - finished.seconds / seconds))});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::report times("Exact splits",
                      {"regions x layers", "cost", "regions used", "transfers", "stages", "median", "most", "extensions", "stopped"});
  bench::report beam("The beam behind them, eq. 1 as printed, m = 16",
                     {"regions x layers", "width", "regions used", "transfers", "gap", "worst", "cut in its order", "worst", "time"});
  bench::report large("Many regions, m = 16",
                      {"regions x layers", "regions used", "transfers", "stages", "beam", "with its order's cut", "gained"});
  if (options.quick) {
    exact(times, {4, 40, 8}, 1);
    gaps(beam, {4, 40, 16}, 1);
    many(large, {16, 20, 16});
  } else {
    for (const size& s : {size{8, 100, 16}, {12, 100, 16}, {12, 400, 2}, {12, 400, 16}, {12, 400, 128}}) exact(times, s, 3);
    for (const size& s : {size{4, 40, 16}, {8, 100, 16}}) gaps(beam, s, 40);
    gaps(beam, {12, 400, 16}, 5);
    for (const size& s : {size{50, 100, 16}, {50, 400, 16}}) many(large, s);
  }
  bench::print({times, beam, large}, options);
}
