// SPDX-License-Identifier: BSL-1.0
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/partition/partial_store.hpp>

namespace test_partial_store {

using namespace hetplan::partition;

TEST_CASE("what a cell drops gives its ports back, and what it keeps has its own") {
  const top_k five{5};
  partial_store<top_k> store(five, 2);
  port_lists lists;
  std::vector<tail> ports(7);
  const auto offer = [&](double rank, std::size_t cell) {
    partial_node n;
    n.rank = n.finished.reach_s = rank;
    n.energy_J = 1e6 - rank;  // no plan covers another
    for (tail& t : ports) t.rest_s = rank;
    n.ports = ports;
    store.keep(n, cell, lists);
  };
  for (int i = 10'000; i > 0; --i) offer(i, 0);  // each better than all before it
  CHECK(lists.size() <= 6);
  REQUIRE(store.cell(0).size() == 5);
  for (const partial_node& n : store.cell(0)) {
    REQUIRE(n.ports.size() == 7);
    for (const tail& t : n.ports) CHECK(t.rest_s == n.rank);
  }
  const auto [begin, end] = store.close(0);
  for (int i = 1000; i > 0; --i) offer(0.5 * i, 1);
  CHECK(lists.size() <= 11);
  for (std::size_t i = begin; i < end; ++i) {  // plans of a closed cell keep their ports
    for (const tail& t : store[i].ports) CHECK(t.rest_s == store[i].rank);
  }
  partial_node best;  // covers all plans of cell 1
  best.rank = -1;
  best.energy_J = 0;
  std::fill(ports.begin(), ports.end(), tail{});
  best.ports = ports;
  store.keep(best, 1, lists);
  CHECK(store.cell(1).size() == 1);
  CHECK(lists.size() <= 11);
}

}  // namespace test_partial_store
