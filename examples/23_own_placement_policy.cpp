// SPDX-License-Identifier: BSL-1.0
// A user-defined placement policy: every server runs its most requested services, independently of others. Demand shifts after a minute.
#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include <hetplan/hetplan.hpp>
#include <hetplan/recipes/epara.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/zoo/edge_services.hpp>

using namespace hetplan;

// [placement_policy]
/// One service per GPU, those that the server was asked for most. Without requests, nothing changes.
struct most_wanted {
  serve::deployment place(const serve::placement_question& q) const {
    if (q.requests.empty()) return q.present;
    serve::deployment d;
    for (std::size_t s = 0; s < q.cloud.size(); ++s) {
      const serve::server_id here(s);
      if (q.damage.is_absent(here)) continue;
      std::vector<std::pair<std::ptrdiff_t, std::size_t>> order;  // most requested first
      for (std::size_t l = 0; l < q.services.size(); ++l) {
        const auto wants = [&](const serve::request& r) { return r.server == here && r.service.index() == l; };
        order.emplace_back(-std::ranges::count_if(q.requests, wants), l);
      }
      std::ranges::sort(order);
      for (std::size_t g = 0; g < q.cloud[here].gpus.size(); ++g) {
        const std::size_t l = order[g % order.size()].second;
        const auto a = serve::allocate(serve::service_id(l), q.services[l], {q.cloud[here].gpus[g]}, q.times);  // variant and batch
        if (!a) continue;
        serve::instance i = a->unplaced();
        i.gpus = {{here, static_cast<int>(g)}};
        d.instances.insert(d.instances.end(), static_cast<std::size_t>(a->replicas), i);  // as many as share a GPU
      }
    }
    return d;
  }
};
static_assert(serve::check_placement_policy<most_wanted>());
// [placement_policy]

int main() {
  const auto [services, times] = zoo::edge_services_of(std::vector<std::string_view>{"resnet50.picture", "yolov10.picture", "bert.text"});
  const serve::edge_cloud street = zoo::p100_cloud(3, 1);
  std::vector<serve::request> all;  // each server is asked for one service, after a minute for another
  for (int i = 0; i < 120'000; ++i)
    all.push_back({.arrival_s = 0.001 * i, .service = serve::service_id((i + i / 60'000) % 3), .server = serve::server_id(i % 3)});
  const serve::request_stream requests(all), first_minute({all.begin(), all.begin() + 60'000});
  const auto play = [&](const serve::serving_system& system, seconds cycle) {
    const auto run = serve::serve_with(system, street, services, times, requests, first_minute, 60_s, cycle);
    std::printf("%-12s placing anew every %2.0f s: %5.1f %% served\n", system.name.c_str(), cycle.value(), 100 * run.history.attainment());
  };
  for (const seconds cycle : {0_s, 10_s}) {
    play({"most wanted", most_wanted{}, serve::serve_locally{}}, cycle);
    play(recipes::epara(services), cycle);
  }
}
