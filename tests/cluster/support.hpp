// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Devices named by letters, and routes as text.

#include <cmath>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>

namespace hetplan::test {

inline std::vector<device> named(const std::string& letters) {
  std::vector<device> all;
  for (const char letter : letters) all.push_back({.name = std::string(1, letter), .memory = 1_GB});
  return all;
}

/// Returns a route as text, such as "a->b b->c: 3 ms". A weight other than 1 follows its resource: "wifi*2: 0 ms".
inline std::string way(const cluster& c, const std::string& from, const std::string& to) {
  const route* r = c.network().find(c.find(from), c.find(to));
  if (r == nullptr) return "none";
  std::string text;
  for (const resource_use& u : r->via) {
    text += (text.empty() ? "" : " ") + c.network()[u.resource].name + (u.weight == 1 ? "" : "*" + to_text(u.weight));
  }
  return text + ": " + to_text(std::round(1e6 * r->latency.value()) / 1e3) + " ms";
}

}  // namespace hetplan::test
