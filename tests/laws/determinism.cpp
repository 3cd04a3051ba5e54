// SPDX-License-Identifier: BSL-1.0
// Equal input gives equal bytes with every compiler and build type: a digest of a fixed set of runs per kind of plan.

#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/tasks/task_graph.hpp>

#include <bit>
#include <cstdint>
#include <iomanip>
#include <sstream>

#include <catch2/catch.hpp>

#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// FNV-1a over the bits of doubles.
class digest {
 public:
  void add(double x) {
    auto bits = std::bit_cast<std::uint64_t>(x);
    for (int i = 0; i < 8; ++i, bits >>= 8) hash_ = (hash_ ^ (bits & 0xff)) * 0x100000001b3U;
  }
  [[nodiscard]] std::string hex() const {
    std::ostringstream out;
    out << std::hex << std::setw(16) << std::setfill('0') << hash_;
    return out.str();
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

std::string digest_of(plan_kind kind) {
  digest d;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {  // fixed, not first_seed()
    const instance i = random_instance(seed, kind);
    const judgement j = evaluate(i.plan, i.model(), i.cluster(), roofline{});
    for (const auto* all : {&j.trace.computes, &j.trace.transfers}) {
      for (const interval& x : *all) {
        d.add(x.start_s);
        d.add(x.end_s);
      }
    }
    const evaluation& e = j.evaluation;
    for (const device_evaluation& x : e.devices) {
      d.add(x.energy.value());
      d.add(x.peak_memory.value());
      d.add(x.busy.value());
    }
    for (const bytes b : e.resource_bytes) d.add(b.value());
    for (const double x : {e.latency.value(), e.response().value(), e.bound.value(), e.gap, e.schedule_bound.value(), e.schedule_gap})
      d.add(x);
  }
  return d.hex();
}

}  // namespace

// A new digest is a change of behaviour, for the CHANGELOG, or a change of the random instances in tests/support.
TEST_CASE("traces and evaluations have the same bytes with every compiler and build type") {
  std::string digests;
  for (const plan_kind kind : all_plan_kinds) digests += digest_of(kind) + "\n";
  CHECK(digests ==
        "af17244427f6f94f\n"
        "400037704b84bdec\n"
        "fc4c5d0670fa33f0\n"
        "70dda75f65908679\n"
        "d2cc238099a19a9c\n"
        "83fc95a77d46012b\n"
        "7a671183673ed4d9\n"
        "1b467dcb0e1df6e4\n"
        "12aa066163f35de2\n"
        "cdd6d742b8ce4263\n"
        "a89174015c0d1cdc\n"
        "67c4938986619928\n"
        "df8b51d1df5fb8fc\n"
        "38b294da3a97f6b6\n");
}
