// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/service.hpp>

#include <algorithm>
#include <cmath>
#include <set>

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

}  // namespace hetplan::serve
