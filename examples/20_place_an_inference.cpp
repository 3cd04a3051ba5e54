// SPDX-License-Identifier: BSL-1.0
// Operators of one inference on unequal devices: placement and order with a proof of optimality.
//
//            .-> left1 -> left2 -.            a GPU that is fast at all but `scan`, a CPU that is not far behind there
//   input --<                     >-> join
//            '-> scan  -> pack  -'
#include <cstdio>

#include <hetplan/place/series_schedule.hpp>

using namespace hetplan::place;

int main() {
  constexpr double ms = 1e-3;
  const placement_table measured({
      .operators = {"input", "left1", "left2", "scan", "pack", "join"},
      .devices = {"gpu", "cpu"},
      .edges = {{0, 1, 4e6}, {1, 2, 4e6}, {0, 3, 1e6}, {3, 4, 1e6}, {2, 5, 2e6}, {4, 5, 1e5}},
      .time_s = {1 * ms, 2 * ms, 4 * ms, 20 * ms, 4 * ms, 20 * ms, 9 * ms, 6 * ms, 1 * ms, 2 * ms, 2 * ms, 5 * ms},
      .held_bytes = {0, 8e6, 8e6, 1e6, 1e6, 2e6},
      .capacity_bytes = {20e6, 64e6},
      .pairs = {{}, {50e-6, 1 / 12e9, {0}}, {50e-6, 1 / 12e9, {1}}, {}},
      .resources = 2,
  });
  const operator_schedule found = find_schedule(measured, {contention::per_link, hetplan::transfer_copies::per_device});

  for (std::size_t v = 0; v < measured.size(); ++v) {
    const double start_s = found.start_s[v], end_s = start_s + measured.time_s(v, found.device[v]);
    std::printf("%-6s on %s   %6.3f - %6.3f ms\n", measured.data().operators[v].c_str(), measured.data().devices[found.device[v]].c_str(),
                start_s / ms, end_s / ms);
  }
  std::printf("makespan %.3f ms, gap %.1f %%\n", found.makespan_s / ms, 100 * found.gap());
}
