// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Costs and bounds of published zero-bubble schedulers, by an independent run of sail-sg's zero-bubble-pipeline-parallelism (schedulers of
/// Qi et al., 2023 and 2024), in the units of its tables.

#include <array>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/schedule/pipeline_times.hpp>

namespace hetplan::test {

/// A row of costs, the longest spans of a device. Columns: memory for p, 1.5 p, 2 p microbatches, and without limit.
struct zero_bubble_row {
  std::vector<double> forward, backward_input, backward_weight;
  double delay;
  int devices, microbatches;
  double one_f_one_b;  ///< 0: not given
  std::array<double, 4> cost, bound;
  std::array<double, 3> v_cost;  ///< ZB-V, V-half, V-min: two stages per device, each with these times; 0: not given

  [[nodiscard]] double memory(std::size_t column) const {
    return column == 3 ? std::numeric_limits<double>::infinity() : devices * (2.0 + static_cast<double>(column)) / 2;
  }
  [[nodiscard]] schedule::pipeline_times pipeline(std::size_t column) const {
    std::vector<schedule::phase_times> stages;
    for (std::size_t s = 0; s < forward.size(); ++s) {
      stages.push_back({.device = s, .forward = forward[s], .backward_input = backward_input[s], .backward_weight = backward_weight[s]});
    }
    return schedule::chain_of(std::move(stages), delay, microbatches, std::vector<double>(forward.size(), memory(column)));
  }
  /// Returns a V pipeline; a stage holds half of what a device does for a microbatch.
  [[nodiscard]] schedule::pipeline_times v_pipeline(double held) const {
    return schedule::v_shape({.forward = forward[0],
                              .backward_input = backward_input[0],
                              .backward_weight = backward_weight[0],
                              .activation = 0.5,
                              .kept_for_weights = 0.25},
                             forward.size(), delay, microbatches, std::vector<double>(forward.size(), held));
  }
};

/// Relative rounding error: costs of 10^6 and more were printed with six digits.
inline constexpr double zero_bubble_rounding = 5e-6;

inline const std::vector<zero_bubble_row>& zero_bubble_rows() {
  using four = std::array<double, 4>;
  using three = std::array<double, 3>;
  const auto even = [](std::size_t n, three times, double delay, int microbatches, double one_f_one_b, four cost, four bound, three v) {
    const auto all = [n](double each) { return std::vector<double>(n, each); };
    return zero_bubble_row{all(times[0]), all(times[1]), all(times[2]), delay, static_cast<int>(n),
                           microbatches,  one_f_one_b,   cost,          bound, v};
  };
  static const std::vector<zero_bubble_row> rows{
      even(4, {1, 1, 1}, 0, 8, 33, {27, 25, 24, 24}, {27, 25, 24, 24}, {48, 53, 59}),
      even(4, {1, 1, 1}, 0, 16, 57, {51, 49, 48, 48}, {51, 49, 48, 48}, {96, 101, 107}),
      even(4, {1, 1, 1}, 0, 32, 105, {99, 97, 96, 96}, {99, 97, 96, 96}, {192, 197, 203}),
      even(4, {1, 1, 1}, 0, 64, 201, {195, 193, 192, 192}, {195, 193, 192, 192}, {384, 0, 0}),
      even(8, {1, 1, 1}, 0, 8, 45, {31, 31, 31, 31}, {31, 31, 31, 31}, {55, 65, 75}),
      even(8, {1, 1, 1}, 0, 16, 69, {55, 51, 48, 48}, {55, 51, 48, 48}, {96, 113, 123}),
      even(8, {1, 1, 1}, 0, 32, 117, {103, 99, 96, 96}, {103, 99, 96, 96}, {192, 209, 219}),
      even(8, {1, 1, 1}, 0, 64, 213, {199, 195, 192, 192}, {199, 195, 192, 192}, {384, 0, 0}),
      even(4, {10, 10, 10}, 1, 8, 346, {282, 256, 246, 246}, {276, 256, 240, 240}, {494, 552, 630}),
      even(4, {10, 10, 10}, 1, 16, 598, {522, 496, 486, 480}, {516, 496, 480, 480}, {974, 1032, 1142}),
      even(4, {10, 10, 10}, 1, 32, 1102, {1002, 976, 966, 960}, {996, 976, 960, 960}, {1934, 1992, 2166}),
      even(4, {10, 10, 10}, 1, 64, 2110, {1962, 1936, 1926, 1920}, {1956, 1936, 1920, 1920}, {3854, 0, 0}),
      even(8, {10, 10, 10}, 1, 8, 476, {324, 324, 324, 324}, {324, 324, 324, 324}, {564, 696, 814}),
      even(8, {10, 10, 10}, 1, 16, 730, {578, 524, 488, 488}, {564, 524, 484, 484}, {1000, 1178, 1336}),
      even(8, {10, 10, 10}, 1, 32, 1238, {1058, 1004, 968, 960}, {1044, 1004, 964, 960}, {1960, 2138, 2378}),
      even(8, {10, 10, 10}, 1, 64, 2254, {2018, 1964, 1928, 1920}, {2004, 1964, 1924, 1920}, {3880, 0, 0}),
      even(4, {5, 6, 4}, 0, 8, 165, {141, 128, 126, 126}, {138, 128, 120, 120}, {248, 279, 344}),
      even(4, {5, 6, 4}, 0, 16, 285, {261, 248, 243, 240}, {258, 248, 240, 240}, {488, 519, 632}),
      even(4, {5, 6, 4}, 0, 32, 525, {501, 488, 483, 480}, {498, 488, 480, 480}, {968, 999, 1208}),
      even(4, {5, 6, 4}, 0, 64, 1005, {981, 968, 963, 960}, {978, 968, 960, 960}, {1928, 0, 0}),
      even(8, {5, 6, 4}, 0, 8, 225, {169, 169, 169, 169}, {162, 162, 162, 162}, {275, 363, 429}),
      even(8, {5, 6, 4}, 0, 16, 345, {289, 262, 257, 257}, {282, 262, 242, 242}, {504, 595, 717}),
      even(8, {5, 6, 4}, 0, 32, 585, {529, 502, 484, 480}, {522, 502, 482, 480}, {984, 1075, 1293}),
      even(8, {5, 6, 4}, 0, 64, 1065, {1009, 982, 964, 960}, {1002, 982, 962, 960}, {1944, 0, 0}),
      even(4, {5478, 5806, 3534}, 200, 8, 166198, {144194, 128858, 128858, 128858}, {137162, 126206, 118544, 118544},
           {250786, 280822, 345658}),
      even(4, {5478, 5806, 3534}, 200, 16, 287142, {262738, 244750, 239272, 237088}, {255706, 244750, 237088, 237088},
           {487874, 517910, 630746}),
      even(4, {5478, 5806, 3534}, 200, 32, 529030, {499826, 481838, 476360, 474176}, {492794, 481838, 474176, 474176},
           {962050, 992086, 1200920}),
      even(4, {5478, 5806, 3534}, 200, 64, 1012810, {974002, 956014, 950536, 948352}, {966970, 956014, 948352, 948352}, {1910400, 0, 0}),
      even(8, {5478, 5806, 3534}, 200, 8, 227470, {175594, 175594, 175594, 175594}, {161986, 161986, 161986, 161986},
           {280634, 372886, 439346}),
      even(8, {5478, 5806, 3534}, 200, 16, 348814, {296938, 265866, 265866, 265866}, {280530, 258618, 237088, 237088},
           {511056, 600486, 726034}),
      even(8, {5478, 5806, 3534}, 200, 32, 591502, {534026, 495706, 479272, 474176}, {517618, 495706, 474176, 474176},
           {985232, 1074660, 1299410}),
      even(8, {5478, 5806, 3534}, 200, 64, 1076880, {1008200, 969882, 953448, 948352}, {991794, 969882, 948352, 948352}, {1933580, 0, 0}),
      {{4, 5, 6, 5}, {4, 5, 6, 5}, {3, 4, 5, 4}, 1, 4, 16, 0, {283, 272, 272, 272}, {272, 272, 272, 272}, {0, 0, 0}},
      {{10, 6, 6, 3}, {10, 6, 6, 3}, {8, 5, 5, 2}, 2, 4, 16, 0, {460, 454, 454, 454}, {460, 448, 448, 448}, {0, 0, 0}},
      {{4, 5, 6, 5, 3, 7, 5, 4},
       {5, 6, 7, 6, 4, 8, 6, 5},
       {3, 4, 5, 4, 2, 6, 4, 3},
       1,
       8,
       32,
       0,
       {682, 678, 678, 678},
       {672, 672, 672, 672},
       {0, 0, 0}}};
  return rows;
}

}  // namespace hetplan::test
