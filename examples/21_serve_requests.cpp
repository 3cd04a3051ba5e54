// SPDX-License-Identifier: BSL-1.0
// Requests over time in a small edge cloud: EPARA places three services, and its handlers pass on what a server cannot do itself.
#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include <hetplan/hetplan.hpp>
#include <hetplan/recipes/epara.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/zoo/edge_services.hpp>

using namespace hetplan;

int main() {
  const std::vector<std::string_view> names{"resnet50.picture", "yolov10.video", "qwen2.5-1.5b.chat"};
  const auto [services, times] = zoo::edge_services_of(names);
  const serve::edge_cloud street = zoo::p100_cloud(4, 2);  // four servers with two P100s each

  serve::request_process crowd{.duration = 60_s};  // half of it at the first server
  for (std::size_t s = 0; s < street.size(); ++s) {
    const double share = s == 0 ? 0.5 : 0.5 / 3;
    crowd.rates.push_back({serve::service_id(0), serve::server_id(s), share * 4000});  // pictures per second
    crowd.rates.push_back({serve::service_id(1), serve::server_id(s), share * 0.5});   // videos of five seconds per second
    crowd.rates.push_back({serve::service_id(2), serve::server_id(s), share * 3});     // chats per second
  }
  const serve::request_stream requests = serve::draw_requests(crowd, street, services, 1);

  const auto [placed, history] =
      serve::serve_with(recipes::epara(services), street, services, times, requests, requests, requests.window());

  for (std::size_t l = 0; l < services.size(); ++l) {
    const serve::service_totals& t = history.services[l];
    const auto instances = std::ranges::count(placed.instances, serve::service_id(l), &serve::instance::what);
    std::printf("%-20s %2td instances, %6llu requests, %5.1f %% served\n", services[l].name.c_str(), instances,
                static_cast<unsigned long long>(t.requests()), 100 * t.attainment());
  }
  for (std::size_t s = 0; s < street.size(); ++s) {
    const serve::server_totals& t = history.servers[s];
    std::printf("%-8s %6llu requests entered, %6llu were passed on, %6llu ended here\n", street.servers[s].name.c_str(),
                static_cast<unsigned long long>(t.entered), static_cast<unsigned long long>(t.passed_on),
                static_cast<unsigned long long>(t.ended));
  }
}
