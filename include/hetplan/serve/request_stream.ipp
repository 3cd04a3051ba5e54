// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/request_stream.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::serve {

HETPLAN_INLINE request_stream::request_stream(std::vector<request> requests) : requests_(std::move(requests)) {
  if (requests_.size() >= std::numeric_limits<std::uint32_t>::max())
    throw invalid_input("request_stream: " + std::to_string(requests_.size()) + " requests; expected fewer than 2^32 - 1");
  double before_s = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const auto& r = requests_[i];
    const auto refuse = [i](const std::string& what) { throw invalid_input("request_stream: request " + std::to_string(i) + ": " + what); };
    if (!std::isfinite(r.arrival_s) || r.arrival_s < 0) refuse("arrival = " + to_text(r.arrival_s) + " s; expected a finite time >= 0");
    if (r.arrival_s < before_s)
      refuse("arrival = " + to_text(r.arrival_s) + " s, before the " + to_text(before_s) +
             " s of the one before it; expected ascending times");
    if (!r.service.valid() || !r.server.valid()) refuse("names no service or no server");
    if (r.length == 0) refuse("length = 0; expected at least one token or frame");
    before_s = r.arrival_s;
  }
}

HETPLAN_INLINE std::span<const request> request_stream::between(seconds from, seconds to) const {
  const auto since_s = [this](const request& r) { return since_first_s(r.arrival_s); };
  const auto first = std::ranges::lower_bound(requests_, from.value(), {}, since_s);
  const auto last = std::ranges::lower_bound(first, requests_.end(), to.value(), {}, since_s);
  return {first, last};
}

HETPLAN_INLINE void validate(const request_stream& requests, const edge_cloud& cloud, const std::vector<service>& services) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto& r = requests[i];
    if (r.service.index() >= services.size())
      throw invalid_input("request " + std::to_string(i) + ": service " + std::to_string(r.service.value) + "; there are " +
                          std::to_string(services.size()));
    if (r.server.index() >= cloud.size())
      throw invalid_input("request " + std::to_string(i) + ": server " + std::to_string(r.server.value) + "; cloud \"" + cloud.name +
                          "\" has " + std::to_string(cloud.size()));
  }
}

}  // namespace hetplan::serve
