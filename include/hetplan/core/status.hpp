// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What became of a search or a run: part of the result, never an exception.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace hetplan {

/// `infeasible` is proven: nothing that the problem allows is a solution. `none_found` says less: what was tried holds no solution.
enum class outcome { feasible, infeasible, none_found, stopped };

[[nodiscard]] constexpr std::string_view to_string(outcome o) {
  switch (o) {
    case outcome::feasible: return "feasible";
    case outcome::infeasible: return "infeasible";
    case outcome::none_found: return "none found";
    case outcome::stopped: return "stopped";
  }
  return "?";
}

/// Why there is no solution, in numbers that can be checked without this library: rows of a relaxation that nothing satisfies together,
/// or how many steps a search took that left nothing of the whole space out.
struct infeasibility_proof {
  struct row {
    std::string what;      ///< a sentence: which amounts are added up, in which unit
    double needed = 0;     ///< at least, by every solution
    double available = 0;  ///< at most; one row proves alone where needed > available

    friend bool operator==(const row&, const row&) = default;
  };

  std::string of;              ///< the problem that has no solution: "placements of single operators in 1.1 GB", ...
  std::vector<row> rows = {};  ///< of the relaxation
  long long searched = 0;      ///< steps that excluded the whole space; 0: the rows prove it

  friend bool operator==(const infeasibility_proof&, const infeasibility_proof&) = default;
};

/// An outcome and, unless feasible, the sentence that explains it: which limit, where, by how much; or what was tried.
struct status {
  outcome result = outcome::feasible;
  std::string reason;
  std::optional<infeasibility_proof> proof = {};  ///< infeasible: set by every planner and search

  [[nodiscard]] bool ok() const { return result == outcome::feasible; }
  friend bool operator==(const status&, const status&) = default;
};

}  // namespace hetplan
