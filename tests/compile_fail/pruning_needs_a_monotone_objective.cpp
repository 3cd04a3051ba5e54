// SPDX-License-Identifier: BSL-1.0
// expect: dropping partial plans needs a monotone objective: double score(seconds response, joules energy) const
// expect: any other objective can be searched with the cell policy exhaustive
#include <hetplan/partition/two_substate_dp.hpp>

struct my_objective {
  double score(const hetplan::evaluation& e) const { return e.peak_memory().value(); }
};
hetplan::partition::search_result run(const hetplan::partition::search_tables& t, const hetplan::partition::device_space& s,
                                      const hetplan::plan& blank) {
  return hetplan::partition::two_substate_dp(t, s, blank, my_objective{}, hetplan::partition::top_k{10});
}
