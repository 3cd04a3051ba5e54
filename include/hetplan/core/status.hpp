// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What became of a search or a run: part of the result, never an exception.

#include <string>
#include <string_view>

#include <hetplan/core/linkage.hpp>

namespace HETPLAN_NAMESPACE {

enum class outcome { feasible, infeasible, stopped };

[[nodiscard]] constexpr std::string_view to_string(outcome o) {
  switch (o) {
    case outcome::feasible: return "feasible";
    case outcome::infeasible: return "infeasible";
    case outcome::stopped: return "stopped";
  }
  return "?";
}

/// An outcome and, unless feasible, the sentence that explains it: which limit, where, by how much.
struct status {
  outcome result = outcome::feasible;
  std::string reason;

  [[nodiscard]] bool ok() const { return result == outcome::feasible; }
  friend bool operator==(const status&, const status&) = default;
};

}  // namespace HETPLAN_NAMESPACE
