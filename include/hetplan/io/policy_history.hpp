// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The row of everything that compares policies: who, and what came of it.

#include <string>

#include <hetplan/adapt/history.hpp>

namespace hetplan::io {

/// What one policy made of a timeline; all rows of a comparison are of one timeline, one job and one cluster.
struct policy_history {
  std::string policy;
  adapt::history history;
};

}  // namespace hetplan::io
