// SPDX-License-Identifier: BSL-1.0
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/partition/partial_store.hpp>

namespace test_partial_store {

using namespace hetplan::partition;

TEST_CASE("what a cell drops gives its ports back, and what it keeps has its own") {
  const top_k five{5};
  partial_store<top_k> store(five, 2, true);
  port_lists lists;
  std::vector<tail> ports(7);
  const auto offer = [&](double rank, std::size_t cell) {
    partial_plan p{.energy_J = 1e6 - rank, .rank = rank, .ports = ports};  // no plan covers another
    p.finished.reach_s = rank;
    for (tail& t : ports) t.rest_s = rank;
    store.keep({.rank = rank, .tail = {.reach_s = rank}}, &p, cell, lists);
  };
  for (int i = 10'000; i > 0; --i) offer(i, 0);  // each better than all before it
  CHECK(lists.size() <= 6);
  REQUIRE(store.cell(0).size() == 5);
  for (const partial_plan& p : store.plans_of(0)) {
    REQUIRE(p.ports.size() == 7);
    for (const tail& t : p.ports) CHECK(t.rest_s == p.rank);
  }
  const auto [begin, end] = store.close(0);
  for (int i = 1000; i > 0; --i) offer(0.5 * i, 1);
  CHECK(lists.size() <= 11);
  for (std::size_t i = begin; i < end; ++i) {  // plans of a closed cell keep their ports
    for (const tail& t : store.plan(i).ports) CHECK(t.rest_s == store[i].rank);
  }
  std::fill(ports.begin(), ports.end(), tail{});
  const partial_plan best{.energy_J = 0, .rank = -1, .ports = ports};  // covers all plans of cell 1
  store.keep({.rank = -1}, &best, 1, lists);
  CHECK(store.cell(1).size() == 1);
  CHECK(lists.size() <= 11);
}

}  // namespace test_partial_store
