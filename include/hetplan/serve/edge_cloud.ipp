// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/edge_cloud.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <unordered_set>

#include <hetplan/core/error.hpp>

namespace hetplan::serve {

namespace detail {

[[noreturn]] HETPLAN_INLINE void refuse_service(const std::string& who, const std::string& what) {
  throw invalid_input("service \"" + escaped(who) + "\": " + what);
}

HETPLAN_INLINE void expect_amount(const std::string& who, const char* what, double v, bool positive = false) {
  if (!std::isfinite(v) || v < 0 || (positive && v == 0))
    refuse_service(who, std::string(what) + " = " + to_text(v) + "; expected a finite number " + (positive ? "> 0" : ">= 0"));
}

HETPLAN_INLINE void validate_variant(const std::string& who, const service_variant& v) {
  const std::string where = who + "\", variant \"" + v.name;
  if (v.gpu_kind.empty()) refuse_service(where, "names no kind of GPU");
  if (v.tensor_parallel < 1 || v.tensor_parallel > 1024)
    refuse_service(where, "tensor_parallel = " + std::to_string(v.tensor_parallel) + "; expected 1 to 1024");
  if (v.pipeline_parallel < 1 || v.pipeline_parallel > 1024)
    refuse_service(where, "pipeline_parallel = " + std::to_string(v.pipeline_parallel) + "; expected 1 to 1024");
  if (!(v.compute_share > 0) || v.compute_share > 1)
    refuse_service(where, "compute_share = " + to_text(v.compute_share) + "; expected 0 < share <= 1");
  expect_amount(where, "memory [B]", v.memory.value(), true);
}

}  // namespace detail

HETPLAN_INLINE void validate(const std::vector<service>& services) {
  if (services.empty()) throw invalid_input("services: expected at least one");
  std::set<std::string> names;
  for (const auto& s : services) {
    if (s.name.empty()) detail::refuse_service(s.name, "has no name");
    if (!names.insert(s.name).second) detail::refuse_service(s.name, "the name is taken");
    detail::expect_amount(s.name, "latency [s]", s.latency.value(), true);
    detail::expect_amount(s.name, "rate [1/s]", s.rate);
    detail::expect_amount(s.name, "frame_latency [s]", s.frame_latency.value());
    if (s.frame_latency.value() > 0 && !s.is_stream()) detail::refuse_service(s.name, "frame_latency is for streams, which have a rate");
    detail::expect_amount(s.name, "request_size [B]", s.request_size.value());
    detail::expect_amount(s.name, "bytes_per_token [B]", s.bytes_per_token.value());
    detail::expect_amount(s.name, "response_size [B]", s.response_size.value());
    detail::expect_amount(s.name, "weights [B]", s.weights.value());
    detail::expect_amount(s.name, "tokens.in", s.tokens.in);
    for (const double typical : {s.tokens.in, s.tokens.out, s.frames}) {
      if (typical > most_typical)
        detail::refuse_service(s.name, "typical tokens or frames = " + to_text(typical) + "; expected at most " + to_text(most_typical));
    }
    detail::expect_amount(s.name, "frames", s.frames, true);
    if (!std::isfinite(s.tokens.out) || s.tokens.out < 1)
      detail::refuse_service(s.name, "tokens.out = " + to_text(s.tokens.out) + "; expected a finite number >= 1");
    if (s.batches == batching::continuous && (!s.generates || s.is_stream()))
      detail::refuse_service(s.name, "continuous batches are for services that generate tokens within a latency");
    if (s.variants.empty()) detail::refuse_service(s.name, "has no variant to run as");
    std::set<std::string> variants;
    for (const auto& v : s.variants) {
      detail::validate_variant(s.name, v);
      if (!variants.insert(v.name).second) detail::refuse_service(s.name, "two variants are called \"" + escaped(v.name) + "\"");
    }
  }
}

HETPLAN_INLINE seconds shortest_latency(const std::vector<service>& services) {
  return services.empty() ? seconds{} : std::ranges::min(services, {}, &service::latency).latency;
}

namespace detail {

/// Checks the amounts of a cloud; errors name the place and the value.
class cloud_check {
 public:
  explicit cloud_check(const edge_cloud& cloud) : where_("edge cloud \"" + escaped(cloud.name) + "\"") {}

  [[noreturn]] void refuse(const std::string& what) const { throw invalid_input(where_ + ": " + what); }
  void positive(const std::string& who, const char* what, double v) const {
    if (!std::isfinite(v) || v <= 0) refuse(who + ": " + what + " = " + to_text(v) + "; expected a finite number > 0");
  }
  void not_negative(const std::string& who, const char* what, double v) const {
    if (!std::isfinite(v) || v < 0) refuse(who + ": " + what + " = " + to_text(v) + "; expected a finite number >= 0");
  }
  void unit(const std::string& who, const gpu& g) const {
    if (g.kind.empty()) refuse(who + ": a GPU without a kind");
    positive(who, "memory of a GPU [B]", g.memory.value());
  }

 private:
  std::string where_;
};

HETPLAN_INLINE void validate_server(const cloud_check& check, const edge_server& s) {
  const std::string who = "server \"" + escaped(s.name) + "\"";
  for (const auto& g : s.gpus) check.unit(who, g);
  check.positive(who, "uplink [B/s]", s.uplink.value());
  check.positive(who, "downlink [B/s]", s.downlink.value());
  check.not_negative(who, "latency [s]", s.latency.value());
  if (s.load_bandwidth) check.positive(who, "load_bandwidth [B/s]", s.load_bandwidth->value());
  std::unordered_set<std::string_view> names;
  for (const auto& d : s.devices) {
    const std::string device = who + ", device \"" + escaped(d.name) + "\"";
    if (d.name.empty() || !names.insert(d.name).second) check.refuse(device + ": the name is empty or taken");
    check.unit(device, d.unit);
    check.positive(device, "bandwidth [B/s]", d.bandwidth.value());
    check.not_negative(device, "latency [s]", d.latency.value());
  }
}

}  // namespace detail

HETPLAN_INLINE void validate(const edge_cloud& cloud) {
  const detail::cloud_check check(cloud);
  if (cloud.servers.empty()) check.refuse("expected at least one server");
  check.positive("ring", "period [s]", cloud.ring.period.value());
  if (cloud.ring.group < 1) check.refuse("ring: group = " + std::to_string(cloud.ring.group) + "; expected >= 1");
  if (cloud.ring.max_age < 0) check.refuse("ring: max_age = " + std::to_string(cloud.ring.max_age) + "; expected >= 0");
  std::unordered_set<std::string_view> names;
  for (const auto& s : cloud.servers) {
    if (s.name.empty() || !names.insert(s.name).second) check.refuse("server \"" + escaped(s.name) + "\": the name is empty or taken");
    detail::validate_server(check, s);
  }
}

}  // namespace hetplan::serve
