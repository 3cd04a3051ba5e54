// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/recipes/epara.hpp>
#include <hetplan/recipes/serving_systems.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/size_for.hpp>
#include <hetplan/zoo/edge_services.hpp>

#include "support/random_source.hpp"

namespace test_serving_systems {

using namespace hetplan;
using namespace hetplan::serve;

namespace {

/// Returns Poisson arrivals at `load` times the capacity of all GPUs, split evenly among services; half arrive at a fifth of the servers.
request_stream requests_for(const zoo::edge_services& e, const edge_cloud& cloud, double load, double until_s) {
  const auto& gpus = cloud[server_id(0)].gpus;
  const auto servers = static_cast<double>(cloud.size());
  const std::size_t busy = std::max<std::size_t>(1, cloud.size() / 5);
  request_process process{.duration = seconds(until_s)};
  for (std::size_t l = 0; l < e.services.size(); ++l) {
    const auto& s = e.services[l];
    const auto a = allocate(service_id(l), s, {gpus[0], 8}, e.times);
    const double parts = servers * static_cast<double>(gpus.size()) / static_cast<double>(e.services.size());
    const double per_s = load * a->capacity / a->gpus * parts / s.credit(s.typical_length());
    for (std::size_t k = 0; k < cloud.size(); ++k) {
      const double share = 0.5 / servers + (k < busy ? 0.5 / static_cast<double>(busy) : 0);
      process.rates.push_back({service_id(l), server_id(k), per_s * share});
    }
  }
  return draw_requests(process, cloud, e.services, test::first_seed());
}

constexpr std::array<std::string_view, 6> mixed = {"resnet50.video",     "deeplabv3plus.video", "resnet50.picture",
                                                   "maskformer.picture", "qwen2.5-1.5b.chat",   "llama3-8b.talk"};

service_history play(std::string_view system, const zoo::edge_services& e, const edge_cloud& cloud, const request_stream& requests) {
  return serve_with(*recipes::serving_system_named(system, e.services), cloud, e.services, e.times, requests, requests, requests.window())
      .history;
}

}  // namespace

TEST_CASE("every service of table 1 is allocated to the category that the table has it in") {
  for (const auto c : {task_category::one_gpu_latency, task_category::several_gpus_latency, task_category::one_gpu_frequency,
                       task_category::several_gpus_frequency}) {
    const auto names = zoo::edge_service_names(c);
    const auto e = zoo::edge_services_of(names);
    validate(e.services);
    const auto cloud = zoo::p100_cloud(1);
    for (std::size_t l = 0; l < names.size(); ++l) {
      CAPTURE(names[l]);
      const auto a = allocate(service_id(l), e.services[l], {cloud[server_id(0)].gpus[0], 8}, e.times);
      REQUIRE(a);
      CHECK(a->category(e.services[l]) == c);
      CHECK(a->meets_slo);
    }
  }
  CHECK(zoo::edge_service_names().size() == 32);
  CHECK_THROWS_AS(zoo::edge_services_of(std::vector<std::string_view>{"vgg.video"}), invalid_input);
}

TEST_CASE("a roofline adds launches to the longer of computing and moving, and all-reduces where tensors are cut") {
  const gpu_speed g{.compute = 1_TFLOP_per_s,
                    .memory = bytes_per_second(1e11),
                    .launch = 1_us,
                    .link = bytes_per_second(1e9),
                    .network = bytes_per_second(1e8),
                    .link_latency = 1_us,
                    .network_latency = 10_us};
  const roofline_service_time t({{"g", g}},
                                {{.per_request = 1_GFLOP, .weights = 10_MB, .exchanged = bytes(1e5), .operators = 100, .exchanges = 10}});
  service s{.name = "s", .latency = 1_s, .variants = {{.name = "v", .gpu_kind = "g", .memory = 1_GB}}};
  const auto pass = [&](int b) { return t.pass({s, s.variants[0], service_id(0), 0}, {b, 0}).value(); };
  CHECK(pass(1) == Approx(1e-4 + 1e-3));
  CHECK(pass(8) == Approx(1e-4 + 8e-3));
  s.variants[0].compute_share = 0.5;
  CHECK(pass(1) == Approx(1e-4 + 2e-3));
  s.variants[0].compute_share = 1;
  s.variants[0].tensor_parallel = 2;
  CHECK(pass(1) == Approx(1e-4 + 0.5e-3 + 10 * (2e-6 + 1e5 / 1e9)));
  s.variants[0].across_servers = true;
  CHECK(pass(1) == Approx(1e-4 + 0.5e-3 + 10 * (20e-6 + 1e5 / 1e8)));
  s.variants[0] = {.name = "v", .gpu_kind = "g", .pipeline_parallel = 2, .memory = 1_GB};
  CHECK(pass(1) == Approx(1e-4 + 1e-3 + 1e-6 + 1e5 / 1e9));
  s.variants[0].gpu_kind = "other";
  CHECK_THROWS_AS(pass(1), invalid_input);
  CHECK_THROWS_AS(roofline_service_time({{"g", {}}}, {}), invalid_input);
}

TEST_CASE("every system serves, and EPARA serves as much as each baseline, to half a percent", "[long]") {
  const auto e = zoo::edge_services_of(mixed);
  const auto cloud = zoo::p100_cloud(10);
  const auto requests = requests_for(e, cloud, 1.0, 30);
  std::map<std::string_view, double> goodput;
  for (const auto& known : recipes::serving_systems) {
    const auto name = known.name;
    CAPTURE(name);
    CHECK(known.make(e.services, {}).name == name);
    const auto h = play(name, e, cloud, requests);
    CHECK(h.requests() == requests.size());
    CHECK(h.credit() > 0);
    goodput[name] = h.credit();
  }
  for (const auto& [name, credit] : goodput) {
    CAPTURE(name, credit, goodput["epara"]);
    CHECK(goodput["epara"] >= 0.995 * credit);
  }
  CHECK_FALSE(recipes::serving_system_named("nobody", e.services));
}

TEST_CASE("EPARA's goodput does not fall when ten times as much is asked") {
  const auto e = zoo::edge_services_of(mixed);
  const auto cloud = zoo::p100_cloud(4);
  double most = 0;
  double at_ten = 0;
  for (const double load : {0.5, 1.0, 2.0, 5.0, 10.0}) {
    const auto requests = requests_for(e, cloud, load, 10);
    const auto h = play("epara", e, cloud, requests);
    at_ten = h.credit();
    most = std::max(most, at_ten);
  }
  CHECK(at_ten >= 0.98 * most);
}

TEST_CASE("chats that are taken in are answered in time, mostly also when ten times as many ask") {
  // All running chats stall while another one joins. A server that ignores this admits too many and answers most of them late.
  const auto e = zoo::edge_services_of(std::vector<std::string_view>{"llama3-8b.chat", "deepseekv2-16b.chat"});
  const auto cloud = zoo::p100_cloud(4);
  double most = 0;
  for (const double load : {1.0, 2.0, 10.0}) {
    const auto h = play("epara", e, cloud, requests_for(e, cloud, load, 100));
    CAPTURE(load, h.goodput_per_s(), most);
    CHECK(h.count(request_outcome::late) < h.count(request_outcome::served));
    CHECK(h.goodput_per_s() >= 0.7 * most);
    most = std::max(most, h.goodput_per_s());
  }
}

TEST_CASE("placing anew in cycles follows the demand, and options that say otherwise are refused") {
  const auto e = zoo::edge_services_of(std::vector<std::string_view>{"unet.picture", "maskformer.picture"});
  const auto cloud = zoo::p100_cloud(2, 2);
  // All requests ask for the first service, later all for the second.
  std::vector<request> all;
  for (int i = 0; i < 4000; ++i) all.push_back({i * 0.02, service_id(i < 2000 ? 0 : 1), server_id(i % 2)});
  const request_stream requests(std::move(all));
  const request_stream expected(std::vector<request>(requests.begin(), requests.begin() + 1000));
  const auto run = [&](seconds cycle, serving_options options = {}) {
    return serve_with(recipes::epara(e.services), cloud, e.services, e.times, requests, expected, seconds(20), cycle, std::move(options));
  };
  const auto stays = run({});
  const auto follows = run(seconds(10));
  CHECK(stays.first == follows.first);
  CHECK(stays.history.services[1].credit == 0);
  CHECK(follows.history.services[1].credit > 100);
  CHECK(follows.history.changes >= 6);
  CHECK_THROWS_AS(serve_with(recipes::epara(e.services), cloud, e.services, e.times, requests, requests, seconds(20)), invalid_input);
  CHECK_THROWS_AS(run({}, {.changes = {.cycle = 1_s, .policy = submodular_placement()}}), invalid_input);
}

TEST_CASE("a load needs as many GPUs as serve it, and one less a server does not") {
  const auto e = zoo::edge_services_of(std::vector<std::string_view>{"unet.picture", "deeplabv3plus.video"});
  const auto cloud = zoo::p100_cloud(2, 1);
  const auto requests = requests_for(e, zoo::p100_cloud(2, 5), 1.0, 20);
  const auto epara = [&] { return recipes::epara(e.services); };
  const auto found = size_for(0.99, epara, cloud, e.services, e.times, requests);
  REQUIRE(found.result.ok());
  CHECK(found.best.attainment >= 0.99);
  CHECK(found.best.gpus <= 2 * static_cast<std::size_t>(found.best.gpus_per_server));
  CHECK(found.best.gpus == used_gpus(found.placed));
  bool less = false;
  for (const auto& t : found.tried) less = less || (t.gpus_per_server == found.best.gpus_per_server - 1 && t.attainment < 0.99);
  CHECK(less);
  const auto few = size_for(0.99, epara, cloud, e.services, e.times, requests, 2);
  CHECK(few.result.result == outcome::none_found);
  CHECK(few.best.gpus_per_server == 2);
  CHECK_THROWS_AS(size_for(0, epara, cloud, e.services, e.times, requests), invalid_input);
  CHECK_THROWS_AS(size_for(0.9, epara, with_gpus(cloud, 0), e.services, e.times, requests), invalid_input);
}

}  // namespace test_serving_systems
