// SPDX-License-Identifier: BSL-1.0
// expect: part_load needs: add(std::size_t node), remove(std::size_t node), double load(std::size_t kind) const
// expect: double work(std::size_t node, std::size_t kind) const
#include <hetplan/core/quantity.hpp>
#include <hetplan/place/contiguous_partition.hpp>

struct my_load {
  void add(std::size_t) {}
  void remove(std::size_t) {}
  hetplan::seconds load(std::size_t) const { return {}; }
  double work(std::size_t, std::size_t) const { return 0; }
};
static_assert(hetplan::place::check_part_load<my_load>());
