// SPDX-License-Identifier: BSL-1.0
// How long EPARA's placement of services takes, on one core: a step, and all of them; --json: one array.

#include <cstdio>
#include <string>
#include <vector>

#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/zoo/edge_services.hpp>

#include "measure.hpp"

using namespace hetplan;
using namespace hetplan::serve;

namespace {

/// Every server is asked for all services, for each as much as a share of its GPUs can do, half as much to half as much again.
service_demand draw_demand(const zoo::edge_services& e, const edge_cloud& cloud) {
  service_demand demand(cloud.size(), e.services.size());
  for (std::size_t l = 0; l < e.services.size(); ++l) {
    const auto a = allocate(service_id(l), e.services[l], {cloud.servers[0].gpus[0], 8}, e.times);
    const double fair = a->capacity / a->gpus * 8 / static_cast<double>(e.services.size());
    for (std::size_t n = 0; n < cloud.size(); ++n) demand.set(server_id(n), service_id(l), fair * (0.5 + draw(1, 64 * n + l, 0)));
  }
  return demand;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::table table(options);
  const auto e = zoo::edge_services_of(zoo::edge_service_names());
  const any_service_time times(e.times);
  const cloud_damage damage;
  const deployment nothing;
  const std::vector<int> sizes = options.quick ? std::vector<int>{100} : std::vector<int>{100, 1000, 10000};
  for (const int servers : sizes) {
    const auto cloud = zoo::p100_cloud(servers);
    const auto demand = draw_demand(e, cloud);
    const placement_question q{cloud, e.services, times, {}, seconds(), damage, nothing};
    for (const auto& [name, search] : {std::pair("lazy", greedy_search::lazy), std::pair("incremental", greedy_search::incremental)}) {
      std::vector<double> step_s;
      submodular_report last;
      double whole_s = 0;
      for (int run = 0; run < (options.quick ? 1 : 5); ++run) {
        whole_s = bench::seconds_of([&] {
          last = place_submodular(q, demand, {.arrivals = arrival_model::even, .search = search, .order = greedy_order::gain});
          return last.value;
        });
        step_s.push_back(whole_s / static_cast<double>(last.placed.instances.size()));
      }
      table.times(std::to_string(servers) + " servers, " + name + ": a step", step_s, 20e-3);
      if (!options.json)
        std::printf("    %zu instances in %.2f s, %.1f looked at each, %.1f %% of the bound\n", last.placed.instances.size(), whole_s,
                    static_cast<double>(last.evaluated) / static_cast<double>(last.placed.instances.size()), 100 * last.value / last.bound);
    }
  }
}
