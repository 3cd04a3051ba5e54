// SPDX-License-Identifier: BSL-1.0
// expect: network_sharing needs: double next_end()
#include <hetplan/problem/planning_problem.hpp>

using namespace hetplan;

struct my_sharing {
  void start(double, std::uint32_t, const tasks::transfer&, std::span<const resource_use>) {}
  void update(double, const rate_changed&) {}
  seconds next_end() { return {}; }
  void finish_until(double, const transfer_finished&) {}
};
const judge_models wrong{.sharing = my_sharing{}};
