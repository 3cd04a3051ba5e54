// SPDX-License-Identifier: BSL-1.0
// A user-defined request handler: what a server cannot answer in time goes to the shortest queue that it last heard of.
#include <algorithm>
#include <cstdio>
#include <vector>

#include <hetplan/hetplan.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/serve_requests.hpp>
#include <hetplan/serve/service_time.hpp>

using namespace hetplan;

// [request_handler]
/// Passes a request on once, to the shortest known queue.
struct shortest_queue {
  serve::decision handle(const serve::pending_request& r, const serve::server_view& here) const {
    if (r.timed_out()) return serve::decision::turn_down(serve::request_outcome::timed_out);
    if (const auto own = serve::own_capacity(r, here)) return serve::decision::serve(*own);
    const auto others = here.others();
    if (r.offloads() > 0 || others.empty()) return serve::decision::turn_down(serve::request_outcome::no_resources);
    return serve::decision::pass_on(std::ranges::min_element(others, {}, &serve::known_server::wait)->server);
  }
};
static_assert(serve::check_request_handler<shortest_queue>());
// [request_handler]

int main() {
  const std::vector<serve::service> services{
      {.name = "faces", .latency = 200_ms, .request_size = 100_kB, .variants = {{.name = "whole", .gpu_kind = "P100", .memory = 2_GB}}}};
  const serve::service_time_table times({{{.pass = {{1, 16}, {0.02, 0.08}}}}});
  serve::edge_cloud street{.name = "street", .ring = {.period = 100_ms}};
  serve::deployment everywhere;
  serve::request_process crowd{.duration = 120_s};
  for (int s = 0; s < 6; ++s) {
    street.servers.push_back(
        {.name = "pole" + std::to_string(s), .gpus = {{"P100", 16_GB}}, .uplink = 1_Gbit_per_s, .downlink = 1_Gbit_per_s, .latency = 2_ms});
    everywhere.instances.push_back({.what = serve::service_id(0), .gpus = {{serve::server_id(s), 0}}, .batch = 16});
    crowd.rates.push_back({serve::service_id(0), serve::server_id(s), s == 0 ? 550.0 : 85.0});
  }
  const auto requests = serve::draw_requests(crowd, street, services, 1);

  const auto play = [&](const char* name, auto handler) {
    const auto h = serve::serve_requests(street, services, times, requests, everywhere, handler);
    std::printf("%-14s %5.1f %% served, passed on %.2f times each\n", name, 100 * h.attainment(), h.mean_offloads());
  };
  play("locally", serve::serve_locally{});
  play("shortest queue", shortest_queue{});
  play("idle goodput", serve::offload_by_idle_goodput{&services});
}
