// SPDX-License-Identifier: BSL-1.0
// expect: placement_policy needs: hetplan::serve::deployment place(const hetplan::serve::placement_question&)
#include <vector>

#include <hetplan/serve/serving_options.hpp>

using namespace hetplan::serve;

struct my_policy {
  std::vector<instance> place(const placement_question& q) { return q.present.instances; }
};
any_placement_policy policy = my_policy{};
