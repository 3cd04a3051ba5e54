// SPDX-License-Identifier: BSL-1.0
#pragma once
// Variants of a services file whose times are planned and simulated.

#include <string>
#include <vector>

#include <hetplan/io/serving_json.hpp>

namespace cli {

/// Returns what judges the variants of a services file: models, clusters and devices by name, or by files beside it. A variant's memory
/// limits that of each device.
///
/// @param told  gets a line for each variant: the tokens of its cache, and how far its times are from the simulated ones; may be null.
hetplan::io::variant_judge variant_judge_of(const std::string& services, std::vector<std::string>* told);

}  // namespace cli
