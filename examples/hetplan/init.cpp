// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>

#include <hetplan/exchange/export_runtimes.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/requests_csv.hpp>
#include <hetplan/io/serving_json.hpp>
#include <hetplan/serve/request_process.hpp>

#include "commands.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

namespace {

struct starter {
  std::string_view name;
  std::string_view text;
};

constexpr std::array starters{
    starter{"model.json", R"(// A model: layers and the tensors between them, per sample. Comments like these are allowed.
{
  "format": "hetplan/model/1",
  "name": "starter",
  "layers": [
    // weight: parameters in bytes; activation: kept from a sample's forward until its backward.
    // The backward defaults to the forward's FLOP, once for the input and once for the weights.
    {"name": "embed", "forward_flops": "1 GFLOP", "weight": "40 MB", "activation": "2 MB"},
    {"name": "left", "forward_flops": "30 GFLOP", "weight": "120 MB", "activation": "8 MB"},
    {"name": "right", "forward_flops": "20 GFLOP", "weight": "80 MB", "activation": "6 MB"},
    // A measured layer: seconds by batch size on a kind of device; other kinds use the FLOP.
    {"name": "head", "forward_flops": "10 GFLOP", "weight": "40 MB", "activation": "4 MB",
     "profile": {"phone": {"batch": [1, 4], "forward": ["8 ms", "26 ms"], "backward": ["17 ms", "55 ms"]}}}
  ],
  "edges": [
    // gradient: bytes that come back in training (= bytes; 0 for none).
    {"from": "embed", "to": "left", "bytes": "1 MB"},
    {"from": "embed", "to": "right", "bytes": "1 MB"},
    {"from": "left", "to": "head", "bytes": "1 MB"},
    {"from": "right", "to": "head", "bytes": "500 kB"}
  ]
}
)"},
    starter{"cluster.json", R"(// A cluster: devices and the network between them.
{
  "format": "hetplan/cluster/1",
  "name": "home",
  "devices": [
    // compute: what a kernel sustains at large batch; half_batch: the batch at which half of it is reached.
    {"name": "laptop", "memory": "6 GB", "compute": "9 TFLOP/s", "memory_bandwidth": "192 GB/s", "half_batch": 3, "launch": "10 us",
     "power": {"idle": "8 W", "active": "50 W", "send": 4e-8, "receive": 3e-8}},
    // memory_budget: what plans may use; kind: what profiles are looked up by.
    {"name": "phone0", "kind": "phone", "memory": "12 GB", "memory_budget": "8 GB", "compute": "1.6 TFLOP/s",
     "memory_bandwidth": "84.8 GB/s", "power": {"idle": "1 W", "active": "8 W", "send": 4e-8, "receive": 3e-8}},
    {"name": "phone1", "kind": "phone", "memory": "12 GB", "memory_budget": "8 GB", "compute": "1.6 TFLOP/s",
     "memory_bandwidth": "84.8 GB/s", "power": {"idle": "1 W", "active": "8 W", "send": 4e-8, "receive": 3e-8}}
  ],
  // kind: shared, ring, star, mesh or hierarchical; or list "resources" and "routes" yourself.
  "topology": {"kind": "shared", "capacity": "600 Mbit/s", "latency": "2 ms"}
}
)"},
    starter{"job.json", R"(// A job: what is to be done and what "good" means. Everything but format, mode and batch has a default.
{
  "format": "hetplan/job/1",
  "mode": "training",             // or inference, generation
  "batch": 32,                    // samples per iteration
  "optimizer_factor": 2,          // Adam 2, SGD 0; or "optimizer": "adamw-amp" and the like
  "objective": "latency"          // or throughput, energy, qoe (then add "qoe": {"latency": "2 s"})
  // Work that may pause, as long as it is done in time:  , "qoe": {"deadline": "10 min", "iterations": 300}
}
)"},
    starter{"timeline.json", R"(// A timeline: what changes while the job runs, in time order. For: hetplan adapt
{
  "format": "hetplan/timeline/1",
  "duration": "10 min",
  "events": [
    {"at": "1 min", "device": "laptop", "speed": 0.2},                  // its owner plays; 0: it stands still
    {"at": "5 min", "resource": "shared", "capacity": "300 Mbit/s"},    // 0: nothing gets through
    {"at": "6 min", "transfer": {"from": "phone1", "to": "laptop", "bytes": "500 MB"}},  // somebody else's
    {"at": "8 min", "device": "laptop", "speed": 1}
    // a device goes and comes:  {"at": "8 min", "device": "phone0", "leaves": true}, {"at": "9 min", "device": "phone0", "joins": true}
    // a wish:                   {"at": "9 min", "qoe": {"latency": "1 s"}}
  ]
  // A measured network, seconds and Mbit/s per line:  , "traces": [{"resource": "shared", "file": "wifi.txt", "repeat": true}]
}
)"},
    starter{"cloud.json", R"(// An edge cloud: servers with GPUs that pass requests on to each other. For: hetplan serve
{
  "format": "hetplan/cloud/1",
  "name": "street",
  "ring": {"period": "100 ms"},     // how often servers tell their neighbours what they do
  "servers": [
    // count: pole0, pole1, pole2; load_bandwidth: at which weights come
    {"name": "pole", "count": 3, "gpus": [{"kind": "P100", "memory": "16 GiB"}], "uplink": "1 Gbit/s", "latency": "1 ms",
     "load_bandwidth": "1 GB/s"},
    {"name": "station", "gpus": [{"kind": "P100", "memory": "16 GiB", "count": 4}], "uplink": "10 Gbit/s", "latency": "1 ms"}
  ]
}
)"},
    starter{"services.json", R"(// Services: what is wanted of a model, and how long it takes on what. For: hetplan serve
{
  "format": "hetplan/services/1",
  "services": [
    // Wanted within the latency. A slice of half a GPU; seconds by batch size, linear between two.
    {"name": "image", "latency": "200 ms", "request_bytes": "100 kB", "response_bytes": "1 kB", "weights": "100 MB",
     "variants": [{"name": "half", "gpu": "P100", "compute": 0.5, "memory": "2 GB",
                   "pass": {"batch": [1, 16], "seconds": ["20 ms", "90 ms"]}}]},
    // Wanted at a rate: frames of a stream. One GPU has 45 a second of the 60: it takes two in turn.
    {"name": "video", "latency": "1 s", "frame_latency": "70 ms", "rate": 60, "frames": 300, "weights": "250 MB",
     "variants": [{"name": "whole", "gpu": "P100", "memory": "4 GB", "pass": {"batch": [1, 4], "seconds": ["23 ms", "88 ms"]}}]},
    // Generates tokens; others may join between two of them. pass: the prompt, step: one token of each.
    {"name": "chat", "latency": "8 s", "request_bytes": "1 kB", "tokens": {"in": 500, "out": 60}, "batching": "continuous",
     "weights": "3 GB",
     "variants": [{"name": "whole", "gpu": "P100", "memory": "6 GB",
                   "pass": {"batch": [1, 8], "seconds": ["10 ms", "10 ms"], "per_token": 3e-4},
                   "step": {"batch": [1, 8], "seconds": ["10 ms", "13 ms"]}}]}
  ]
}
)"}};

/// Returns a minute of requests for the starter's cloud, most of them at its first servers.
std::string starter_requests() {
  const auto text_of = [](std::string_view name) { return std::ranges::find(starters, name, &starter::name)->text; };
  const auto cloud = io::read_cloud(io::json_document::parse(text_of("cloud.json"), "cloud.json"));
  const auto services = io::read_services(io::json_document::parse(text_of("services.json"), "services.json")).services;
  serve::request_process process{.rates = {}, .duration = 60_s};
  constexpr std::array per_s = {40.0, 0.15, 0.3};
  for (std::size_t l = 0; l < services.size(); ++l) {
    for (std::size_t s = 0; s < cloud.size(); ++s)
      process.rates.push_back({serve::service_id(l), serve::server_id(s), per_s[l] / static_cast<double>(1 + s), 2});
  }
  return io::write_requests(serve::draw_requests(process, cloud, services, 1), cloud, services);
}

}  // namespace

int init(const common_options& options, const std::string& folder) {
  require_no_model_options(options, "hetplan init");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw invalid_input(escaped(folder) + ": cannot make the folder: " + error.message());
  io::json written = io::json::array();
  outputs files({}, {});
  const auto write = [&](std::string_view name, const auto& text) {
    const std::string path = (std::filesystem::path(folder) / name).string();
    const auto status = std::filesystem::status(path, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
      throw invalid_input(escaped(path) + ": expected a file, or none, got something else of that name");
    if (std::filesystem::exists(status)) {
      if (!options.quiet) std::fprintf(stderr, "hetplan: %s exists and is kept\n", escaped(path).c_str());
      return;
    }
    files.put(path, text());
    written.push_back(path);
    if (!options.json) std::printf("%s\n", escaped(path).c_str());
  };
  for (const starter& s : starters) write(s.name, [&] { return s.text; });
  write("requests.csv", starter_requests);
  if (options.json) {
    std::cout << io::json_text(io::json{{"written", written}});
  } else {
    const std::string word = escaped(exchange::shell_word(folder));
    const char* const f = word.c_str();
    std::printf("now try: hetplan plan %s/model.json %s/cluster.json %s/job.json --svg plan.svg\n", f, f, f);
    std::printf("then: hetplan adapt %s/model.json %s/cluster.json %s/job.json %s/timeline.json --html report.html\n", f, f, f, f);
    std::printf("or: hetplan serve %s/cloud.json %s/services.json %s/requests.csv --html serving.html\n", f, f, f);
  }
  files.commit();
  return 0;
}

}  // namespace cli
