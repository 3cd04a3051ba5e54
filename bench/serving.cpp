// SPDX-License-Identifier: BSL-1.0
// Requests per second of the request simulator on one core; --json: one array.

#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/serve/judged_tokens.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/serve_requests.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "measure.hpp"

using namespace hetplan;
using namespace hetplan::serve;

namespace {

/// Servers with 8 GPUs, each with one of eight services.
struct setting {
  edge_cloud cloud;
  std::vector<service> services;
  std::optional<service_time_table> times;
  deployment placed;
};

/// Returns a setting in which a batch of 16 takes four times as long as one request, with an SLO of five times that.
setting make(int servers, int batch, double one_s) {
  setting s;
  s.cloud.name = "bench";
  s.cloud.ring = {.period = 100_ms, .group = 100};
  for (int n = 0; n < servers; ++n) {
    edge_server one{
        .name = std::string("s").append(std::to_string(n)), .uplink = 10_Gbit_per_s, .downlink = 10_Gbit_per_s, .latency = 1_ms};
    one.gpus.assign(8, {"P100", 16_GB});
    s.cloud.servers.push_back(std::move(one));
  }
  std::vector<std::vector<variant_times>> times;
  for (int l = 0; l < 8; ++l) {
    s.services.push_back({.name = "m" + std::to_string(l),
                          .latency = seconds(20 * one_s),
                          .request_size = 100_kB,
                          .variants = {{.name = "one", .gpu_kind = "P100", .memory = 2_GB}}});
    times.push_back({{.pass = {{1, 16}, {one_s, 4 * one_s}}}});
  }
  s.times.emplace(std::move(times));
  for (int n = 0; n < servers; ++n) {
    for (int g = 0; g < 8; ++g) s.placed.instances.push_back({.what = service_id(g), .gpus = {{server_id(n), g}}, .batch = batch});
  }
  return s;
}

double uniform(std::uint64_t seed, std::uint64_t i) { return draw(seed, static_cast<request_number>(i), 0); }

/// Returns Poisson arrivals at `rate` per second and server. A tenth of the servers gets `skew` times as much as the others; at 3.5, they
/// pass on more than 10 % of the requests.
request_stream poisson(const setting& s, std::size_t count, double rate, double skew) {
  const auto servers = static_cast<double>(s.cloud.size());
  const double hot = skew / (skew + 9);  // share of all requests
  std::vector<request> all;
  all.reserve(count);
  double now_s = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now_s -= std::log(1 - uniform(1, i)) / (rate * servers);
    const double u = uniform(2, i);
    int where = 0;  // every tenth server is hot
    if (u < hot) {
      where = 10 * static_cast<int>(u / hot * servers / 10);
    } else {
      const int cool = static_cast<int>((u - hot) / (1 - hot) * servers * 0.9);
      where = cool / 9 * 10 + 1 + cool % 9;
    }
    all.push_back({now_s, service_id(static_cast<int>(uniform(3, i) * 8)), server_id(where)});
  }
  return request_stream(std::move(all));
}

double resident_GB() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  return static_cast<double>(r.ru_maxrss) * 1024 / 1e9;
}

template <class Handler>
double measure(bench::table& t, const bench::options& o, const std::string& name, const setting& s, const request_stream& requests,
               Handler handler, double target) {
  service_history last;
  const auto play = [&] {
    auto fresh = handler;
    last = serve_requests(s.cloud, s.services, *s.times, requests, s.placed, fresh);
    return last.requests();
  };
  const double median_s = t.run(name, static_cast<double>(requests.size()), "/s", target, play, o.quick ? 1 : 5);
  const double per_event_s = median_s / static_cast<double>(last.events);
  if (o.json) return per_event_s;
  std::uint64_t passed_on = 0;
  for (const auto& x : last.servers) passed_on += x.passed_on;
  std::printf("    %.1f s played, %.2f %% served, passed on %.1f per 100, %.0f ns an event, %.2f GB\n", last.duration.value(),
              100 * last.attainment(), 100 * static_cast<double>(passed_on) / static_cast<double>(requests.size()), 1e9 * per_event_s,
              resident_GB());
  return per_event_s;
}

/// EPARA's handler with the time of each decision to pass a request on, once every server has heard of all others.
struct timed_handler {
  offload_by_idle_goodput decides;
  request_number from = 0;
  std::vector<double> times_s = {};

  decision handle(const pending_request& r, const server_view& here) {
    if (r.number < from) return decides.handle(r, here);
    decision d;
    const double took_s = bench::seconds_of([&] { return (d = decides.handle(r, here)).kind; });
    if (d.kind == decision::what::pass_on) times_s.push_back(took_s);
    return d;
  }
};

/// Measures single decisions in the middle of a run, with realistic caches. Each includes a clock reading of about 30 ns.
void measure_decision(bench::table& t, const setting& s, const request_stream& requests, const std::string& name) {
  const auto middle = static_cast<request_number>(requests.size() / 2);
  timed_handler timed{{&s.services}, middle};
  const auto stop = [&](const serving_progress&) { return timed.times_s.size() < 300'000 ? control::go : control::stop; };
  static_cast<void>(serve_requests(s.cloud, s.services, *s.times, requests, s.placed, timed, {}, stop));
  if (timed.times_s.size() < 1000) return;  // a quick run ends before queues are long
  t.times(name, std::move(timed.times_s), 5e-6);
}

/// One A100 with Llama-3-8B, whose times are judged: prompts of 2 048 tokens on average in chunks beside the steps, 28 tokens out, as in
/// Azure's trace of code requests, 2.6 a second.
void measure_language_model(bench::table& t, const bench::options& o, std::size_t count) {
  setting s;
  s.cloud = {"rack", {{.name = "host", .gpus = {{"A100", 80_GB}}, .uplink = 10_Gbit_per_s, .downlink = 10_Gbit_per_s}}, {.period = 100_ms}};
  const token_counts typical{2048, 28};
  const auto alone = [](const planning_problem& q) { return recipes::on_device(q, minimize_response{}, 1); };
  const judged_tokens judged =
      judged_token_times(zoo::model("llama3-8b"), zoo::cluster("a100-80gb"), roofline{}, alone, {.typical = typical});
  s.services = {{.name = "code",
                 .latency = 60_s,
                 .generates = true,
                 .tokens = typical,
                 .batches = batching::continuous,
                 .prefill_chunk = 512,
                 .variants = {{.name = "bf16", .gpu_kind = "A100", .memory = 80_GB, .cache_tokens = judged.cache_tokens}}}};
  s.times.emplace(std::vector<std::vector<variant_times>>{{judged.times}});
  s.placed.instances = {{.what = service_id(0), .gpus = {{server_id(0), 0}}, .batch = 64}};
  std::vector<request> all;
  double now_s = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now_s -= std::log(1 - uniform(1, i)) / 2.6;
    all.push_back({now_s, service_id(0), server_id(0), static_cast<std::uint32_t>(2 * typical.in * uniform(2, i)),
                   1 + static_cast<std::uint32_t>(2 * typical.out * uniform(3, i))});
  }
  measure(t, o, "Llama-3-8B on an A100, as Azure's code requests", s, request_stream(std::move(all)), serve_locally{}, 8819);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::table table(options);
  const std::size_t count = options.quick ? 200'000 : 2'000'000;
  {
    const auto s = make(1000, 1, 0.01);
    measure(table, options, "1 000 servers, first come first served", s, poisson(s, count, 400, 1), serve_locally{}, 10e6);
  }
  measure_language_model(table, options, options.quick ? 8819 : 88190);
  for (const int servers : {1000, 10000}) {
    auto s = make(servers, 16, 0.3);
    const auto requests = poisson(s, count / 1000 * static_cast<std::size_t>(servers), 70, 3.5);
    measure(table, options, std::to_string(servers) + " servers, batches, some passed on", s, requests,
            offload_by_idle_goodput{&s.services}, 1e6);
    if (servers < 10000) continue;
    for (const int ring : {100, 500}) {
      s.cloud.ring.group = ring;
      measure_decision(table, s, requests, "passing one on, 10000 servers, rings of " + std::to_string(ring));
    }
  }
}
