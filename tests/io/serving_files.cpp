// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/requests_csv.hpp>
#include <hetplan/io/serving_json.hpp>
#include <hetplan/serve/service_time.hpp>

namespace test_serving_files {

using namespace hetplan;
using namespace hetplan::serve;

namespace {

edge_cloud two_servers() {
  edge_cloud c{.name = "two", .servers = {}, .ring = {.period = 100_ms}};
  for (const char* name : {"left, \"old\"", "right"}) {
    c.servers.push_back({.name = name, .gpus = {{"P100", 16_GB}, {"P100", 16_GB}}, .uplink = 1_GB_per_s, .downlink = 1_GB_per_s});
  }
  c.servers[1].devices.push_back({.name = "nano", .unit = {"P100", 4_GB}, .bandwidth = 1_MB_per_s});
  return c;
}

std::vector<service> three_services() {
  const service_variant one{.name = "one", .gpu_kind = "P100", .memory = 2_GB};
  const service_variant both{.name = "both", .gpu_kind = "P100", .tensor_parallel = 2, .memory = 2_GB};
  return {{.name = "image", .latency = 1_s, .variants = {one, both}},
          {.name = "video", .latency = 1_s, .rate = 30, .frames = 90, .variants = {one}},
          {.name = "text", .latency = 9_s, .generates = true, .tokens = {20, 8}, .variants = {one}}};
}

}  // namespace

TEST_CASE("requests are read as they were written, names in quotes included") {
  const auto cloud = two_servers();
  const auto services = three_services();
  const request_stream written(
      {{0.1, service_id(0), server_id(0)}, {0.25, service_id(1), server_id(1), 0, 120}, {1.0 / 3, service_id(2), server_id(0), 17, 5}});
  CHECK(io::parse_requests(io::write_requests(written, cloud, services), "r.csv", cloud, services) == written);
}

TEST_CASE("what a request does not say is typical of its service, and columns stand in any order") {
  const auto cloud = two_servers();
  const auto services = three_services();
  const auto read = io::parse_requests("service,arrival,server\r\nvideo,1,right\r\n\r\ntext,2,right\r\n", "r.csv", cloud, services);
  REQUIRE(read.size() == 2);
  CHECK(read[0] == request{1, service_id(1), server_id(1), 0, 90});
  CHECK(read[1] == request{2, service_id(2), server_id(1), 20, 8});
}

TEST_CASE("a quote that does not end, and a count that is none, are refused at their line") {
  const auto cloud = two_servers();
  const auto services = three_services();
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(io::parse_requests("arrival,service,server\n1,image,\"left", "r.csv", cloud, services), Contains("r.csv: line 2"));
  CHECK_THROWS_WITH(io::parse_requests("arrival,service,server,frames\n1,video,right,0\n", "r.csv", cloud, services),
                    Contains("line 2: frames") && Contains("from 1"));
  CHECK_THROWS_WITH(io::parse_requests("arrival,service,server,frames\n1,image,right,7\n", "r.csv", cloud, services),
                    Contains("line 2: frames: expected nothing") && Contains("\"7\""));
  CHECK_THROWS_WITH(io::parse_requests("arrival,service,server,tokens_in\n1,video,right,7\n", "r.csv", cloud, services),
                    Contains("line 2: tokens_in: expected nothing"));
  CHECK_THROWS_WITH(io::parse_requests("arrival,service,server,arrival\n", "r.csv", cloud, services), Contains("once"));
}

TEST_CASE("clouds are read as they were written") {
  auto cloud = two_servers();
  cloud.ring = {.period = 0.3_s, .group = 7, .max_age = 3};
  cloud.servers[0].latency = 1_ms;
  cloud.servers[0].load_bandwidth = 3_GB_per_s;
  cloud.servers[1].downlink = 7_MB_per_s;
  cloud.servers[1].gpus = {{"P100", 16_GB}, {"A40", 48_GB}, {"A40", 48_GB}, {"P100", 16_GB}};
  cloud.servers.push_back({.name = "none", .uplink = 1_MB_per_s, .downlink = 1_MB_per_s});
  CHECK(io::read_cloud(io::json_document::parse(io::write_cloud(cloud), "c.json")) == cloud);
}

TEST_CASE("of a run that was stopped, there is a record of each request that has ended") {
  const std::vector<request_record> records{{.outcome = request_outcome::served, .end_s = 2, .server = server_id(1), .credit = 1}, {}};
  CHECK_FALSE(records[1].has_ended());
  CHECK(io::write_records(records, two_servers()) == "request,outcome,end,server,offloads,credit\n0,served,2,right,0,1\n");
}

TEST_CASE("deployments are read as they were written") {
  const auto cloud = two_servers();
  const auto services = three_services();
  const service_time_table table({{{.pass = {{1, 8}, {0.1, 0.2}}}, {.pass = {{1}, {0.1}}}},
                                  {{.pass = {{1, 8}, {0.1, 0.2}}}},
                                  {{.pass = {{1}, {0.1}}, .step = {{1}, {0.1}}}}});
  const deployment first{{{.what = service_id(0), .variant = 1, .gpus = {{server_id(0), 1}, {server_id(1), 0}}},
                          {.what = service_id(1), .gpus = {{server_id(0), 0}, {server_id(1), 1}}, .batch = 8, .frames = 4, .groups = 2},
                          {.what = service_id(2), .device = gpu_slot{server_id(1), 0}}}};
  const deployment second{{first.instances[1]}};
  const io::deployment_file written{first, {5_s, 7_s}, {second, first}};
  const auto text = io::write_deployment(written, cloud, services);
  const auto read = io::read_deployment(io::json_document::parse(text, "d.json"), cloud, services, table);
  CHECK(read.first == first);
  CHECK(read.at == written.at);
  CHECK(read.changes == written.changes);
}

}  // namespace test_serving_files
