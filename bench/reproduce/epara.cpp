// SPDX-License-Identifier: BSL-1.0
// EPARA's evaluation (section 5), played by the simulator of requests: the sections of docs/reproduction/epara.md.

#include <cstdio>
#include <exception>

#include "epara_extremes.hpp"
#include "epara_parts.hpp"
#include "epara_systems.hpp"

int main(int argc, char** argv) try {
  const bench::sections page(argc, argv);
  bench::add_token_rates(page);
  bench::add_configurations(page);
  bench::add_testbed(page);
  bench::add_burstiness(page);
  bench::add_utilisation(page);
  bench::add_many_servers(page);
  bench::add_sizes(page);
  bench::add_allocator(page);
  bench::add_handling(page);
  bench::add_placement(page);
  bench::add_placement_time(page);
  bench::add_synchronisation(page);
  bench::add_staleness(page);
  bench::add_groups(page);
  bench::add_devices(page);
  bench::add_faults(page);
} catch (const std::exception& e) {
  std::fprintf(stderr, "reproduce_epara: %s\n", e.what());
  return 1;
}
