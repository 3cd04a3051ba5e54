// SPDX-License-Identifier: BSL-1.0
// User-defined service times: measured on one kind of GPU, scaled to other kinds and to slices.
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/hetplan.hpp>
#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/service_time.hpp>

using namespace hetplan;

// [service_time]
/// Seconds of a batch on a whole A100. Other kinds are slower by a factor; a slice of half a GPU takes twice as long.
struct scaled {
  serve::batch_curve measured;
  std::map<std::string, double> slower;

  seconds pass(const serve::service_run& r, const serve::batch_load& b) const {
    return seconds(measured.at(b.requests) * slower.at(r.as.gpu_kind) / r.as.compute_share);
  }
  seconds step(const serve::service_run&, int) const { return 1_s; }  // never called: nothing here generates tokens
  int largest_batch(const serve::service_run&) const { return measured.batch.back(); }
};
static_assert(serve::check_service_time<scaled>());
// [service_time]

int main() {
  const serve::service detection{.name = "detection",
                                 .latency = 250_ms,
                                 .variants = {{.name = "A100", .gpu_kind = "A100", .memory = 6_GB},
                                              {.name = "P100", .gpu_kind = "P100", .memory = 6_GB},
                                              {.name = "half a P100", .gpu_kind = "P100", .compute_share = 0.5, .memory = 6_GB}}};
  const scaled times{{{1, 8, 64}, {0.006, 0.02, 0.15}}, {{"A100", 1.0}, {"P100", 4.0}}};

  for (const serve::gpu& unit : {serve::gpu{"A100", 40_GB}, serve::gpu{"P100", 16_GB}}) {
    const auto a = serve::allocate(serve::service_id(0), detection, {unit}, times);
    std::printf("%s: %s, batches of up to %d, %.0f requests a second, of which the slowest is answered in %s\n", unit.kind.c_str(),
                detection.variants[static_cast<std::size_t>(a->variant)].name.c_str(), a->batch, a->capacity, readable(a->answer).c_str());
  }
}
