// SPDX-License-Identifier: BSL-1.0
#include <hetplan/plan/plan.hpp>

#include <algorithm>
#include <functional>

#include <catch2/catch.hpp>

#include "plan/support.hpp"

namespace test_same_placement {

using namespace hetplan;

namespace {

plan given() {
  plan p = plan_tests::stage_per_device({{0, 1}, {2}}, 4, 2);
  p.stages[1].devices = {{device_id(1), 3, 1}, {device_id(2), 1, 2}};
  return p;
}
bool stays(const std::function<void(plan&)>& change) {
  plan other = given();
  change(other);
  REQUIRE(other != given());
  return same_placement(given(), other) && same_placement(other, given());
}

}  // namespace

TEST_CASE("a plan with other microbatches, shares, names or rules has its work in the same places") {
  CHECK(same_placement(given(), given()));
  CHECK(stays([](plan& p) {
    p.microbatch_size = 2;
    p.microbatches = 4;
    p.stages[0].devices[0].samples = 2;
    p.stages[1].devices[0].samples = p.stages[1].devices[1].samples = 1;
  }));
  CHECK(stays([](plan& p) { std::swap(p.stages[1].devices[0].samples, p.stages[1].devices[1].samples); }));
  CHECK(stays([](plan& p) { std::reverse(p.stages[1].devices.begin(), p.stages[1].devices.end()); }));
  CHECK(stays([](plan& p) { p.stages[0].name = "first"; }));
  CHECK(stays([](plan& p) { p.sharing_policy = sharing::priority; }));
  CHECK(stays([](plan& p) {  // one stage split into two on its device
    p.stages.insert(p.stages.begin() + 1, p.stages[0]);
    p.stages[0].layers = plan_tests::ids({0});
    p.stages[1].layers = plan_tests::ids({1});
  }));
}

TEST_CASE("a layer that changes its device, or what a device does of it, is elsewhere") {
  CHECK_FALSE(stays([](plan& p) { p.stages[0].devices[0].device = device_id(3); }));
  CHECK_FALSE(stays([](plan& p) { p.stages[1].devices.pop_back(); }));
  CHECK_FALSE(stays([](plan& p) { std::swap(p.stages[0].devices, p.stages[1].devices); }));
  CHECK_FALSE(stays([](plan& p) {
    p.stages[0].layers = plan_tests::ids({0});
    p.stages[1].layers = plan_tests::ids({1, 2});
  }));
  CHECK_FALSE(stays([](plan& p) { p.stages[1].devices[1].tensor_parallel = 1; }));
  CHECK_FALSE(same_placement(plan{}, given()));
  CHECK_FALSE(stays([](plan& p) { p.stages[1].shard = sharding::state; }));
  CHECK(stays([](plan& p) { p.stages[0].shard = sharding::state; }));  // on one device, sharding changes nothing
  CHECK(stays([](plan& p) { p.stages[1].recompute = recomputation::stage; }));
  plan shared = given();
  shared.stages[1].shard = sharding::state;
  plan turned = shared;  // each device has the other's part of the state
  std::reverse(turned.stages[1].devices.begin(), turned.stages[1].devices.end());
  CHECK_FALSE(same_placement(shared, turned));
}

}  // namespace test_same_placement
