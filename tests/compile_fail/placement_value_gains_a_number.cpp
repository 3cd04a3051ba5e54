// SPDX-License-Identifier: BSL-1.0
// expect: placement_value needs: hetplan::serve::placement_gain gain(const hetplan::serve::instance&, const
// hetplan::serve::allocation&) const
#include <hetplan/serve/greedy_placement.hpp>

using namespace hetplan::serve;

struct my_value {
  placement_gain most(server_id, const allocation& a) const { return {a.capacity, 0}; }
  double gain(const instance&, const allocation& a) const { return a.capacity; }
  void add(const instance&, const allocation&) {}
};
static_assert(check_placement_value<my_value>());
