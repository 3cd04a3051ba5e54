// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/edge_cloud.hpp>

#include <set>
#include <string_view>
#include <unordered_set>

#include <hetplan/core/error.hpp>

namespace hetplan::serve {

namespace detail {

[[noreturn]] HETPLAN_INLINE void refuse(const std::string& where, const std::string& what) { throw invalid_input(where + ": " + what); }

HETPLAN_INLINE void expect_amount(const std::string& where, const char* what, double v, bool positive) {
  if (!std::isfinite(v) || v < 0 || (positive && v == 0))
    refuse(where, std::string(what) + " = " + to_text(v) + "; expected a finite number " + (positive ? "> 0" : ">= 0"));
}

HETPLAN_INLINE void validate_variant(const std::string& where, const service_variant& v) {
  if (v.gpu_kind.empty()) refuse(where, "names no kind of GPU");
  if (v.tensor_parallel < 1 || v.tensor_parallel > 1024)
    refuse(where, "tensor_parallel = " + std::to_string(v.tensor_parallel) + "; expected 1 to 1024");
  if (v.pipeline_parallel < 1 || v.pipeline_parallel > 1024)
    refuse(where, "pipeline_parallel = " + std::to_string(v.pipeline_parallel) + "; expected 1 to 1024");
  if (!(v.compute_share > 0) || v.compute_share > 1)
    refuse(where, "compute_share = " + to_text(v.compute_share) + "; expected 0 < share <= 1");
  expect_amount(where, "memory [B]", v.memory.value(), true);
}

}  // namespace detail

HETPLAN_INLINE void validate(const std::vector<service>& services) {
  if (services.empty()) throw invalid_input("services: expected at least one");
  std::set<std::string> names;
  for (const auto& s : services) {
    const std::string where = "service \"" + escaped(s.name) + "\"";
    const auto refuse = [&](const std::string& what) { detail::refuse(where, what); };
    const auto amount = [&](const char* what, double v, bool positive = false) { detail::expect_amount(where, what, v, positive); };
    if (s.name.empty()) refuse("has no name");
    if (!names.insert(s.name).second) refuse("the name is taken");
    amount("latency [s]", s.latency.value(), true);
    amount("rate [1/s]", s.rate);
    amount("frame_latency [s]", s.frame_latency.value());
    if (s.frame_latency.value() > 0 && !s.is_stream()) refuse("frame_latency is for streams, which have a rate");
    amount("request_size [B]", s.request_size.value());
    amount("bytes_per_token [B]", s.bytes_per_token.value());
    amount("response_size [B]", s.response_size.value());
    amount("weights [B]", s.weights.value());
    amount("tokens.in", s.tokens.in);
    for (const double typical : {s.tokens.in, s.tokens.out, s.frames}) {
      if (typical > most_typical) refuse("typical tokens or frames = " + to_text(typical) + "; expected at most " + to_text(most_typical));
    }
    amount("frames", s.frames, true);
    if (!std::isfinite(s.tokens.out) || s.tokens.out < 1)
      refuse("tokens.out = " + to_text(s.tokens.out) + "; expected a finite number >= 1");
    if (s.batches == batching::continuous && (!s.generates || s.is_stream()))
      refuse("continuous batches are for services that generate tokens within a latency");
    amount("ttft [s]", s.ttft.value());
    amount("time_between_tokens [s]", s.time_between_tokens.value());
    if ((s.ttft.value() > 0 || s.time_between_tokens.value() > 0 || !s.limits_answer) && (!s.generates || s.is_stream()))
      refuse("ttft and time_between_tokens are for services that generate tokens within a latency");
    if (!s.limits_answer && (s.ttft.value() == 0 || s.time_between_tokens.value() == 0))
      refuse("without a limit on the answer expected both ttft and time_between_tokens");
    const auto of_continuous = [&](const char* what, std::int64_t tokens) {
      if (tokens < 0) refuse(std::string(what) + " = " + std::to_string(tokens) + "; expected tokens >= 0");
      if (tokens > 0 && s.batches != batching::continuous) refuse(std::string(what) + " is for continuous batches");
    };
    of_continuous("prefill_chunk", s.prefill_chunk);
    if (s.variants.empty()) refuse("has no variant to run as");
    std::set<std::string> variants;
    for (const auto& v : s.variants) {
      detail::validate_variant("service \"" + escaped(s.name + "\", variant \"" + v.name) + "\"", v);
      of_continuous("cache_tokens", v.cache_tokens);
      if (!variants.insert(v.name).second) refuse("two variants are called \"" + escaped(v.name) + "\"");
    }
  }
}

HETPLAN_INLINE seconds shortest_latency(const std::vector<service>& services) {
  return services.empty() ? seconds{} : std::ranges::min(services, {}, &service::latency).latency;
}

namespace detail {

HETPLAN_INLINE void validate_unit(const std::string& where, const gpu& g) {
  if (g.kind.empty()) refuse(where, "a GPU without a kind");
  expect_amount(where, "memory of a GPU [B]", g.memory.value(), true);
}

HETPLAN_INLINE void validate_server(const std::string& where, const edge_server& s) {
  for (const auto& g : s.gpus) validate_unit(where, g);
  expect_amount(where, "uplink [B/s]", s.uplink.value(), true);
  expect_amount(where, "downlink [B/s]", s.downlink.value(), true);
  expect_amount(where, "latency [s]", s.latency.value(), false);
  if (s.load_bandwidth) expect_amount(where, "load_bandwidth [B/s]", s.load_bandwidth->value(), true);
  std::unordered_set<std::string_view> names;
  for (const auto& d : s.devices) {
    const std::string device = where + ", device \"" + escaped(d.name) + "\"";
    if (d.name.empty() || !names.insert(d.name).second) refuse(device, "the name is empty or taken");
    validate_unit(device, d.unit);
    expect_amount(device, "bandwidth [B/s]", d.bandwidth.value(), true);
    expect_amount(device, "latency [s]", d.latency.value(), false);
  }
}

}  // namespace detail

HETPLAN_INLINE void validate(const edge_cloud& cloud) {
  const std::string where = "edge cloud \"" + escaped(cloud.name) + "\"";
  if (cloud.servers.empty()) detail::refuse(where, "expected at least one server");
  detail::expect_amount(where + ": ring", "period [s]", cloud.ring.period.value(), true);
  if (cloud.ring.group < 1) detail::refuse(where, "ring: group = " + std::to_string(cloud.ring.group) + "; expected >= 1");
  if (cloud.ring.max_age < 0) detail::refuse(where, "ring: max_age = " + std::to_string(cloud.ring.max_age) + "; expected >= 0");
  std::unordered_set<std::string_view> names;
  for (const auto& s : cloud.servers) {
    const std::string server = where + ": server \"" + escaped(s.name) + "\"";
    if (s.name.empty() || !names.insert(s.name).second) detail::refuse(server, "the name is empty or taken");
    detail::validate_server(server, s);
  }
}

}  // namespace hetplan::serve
