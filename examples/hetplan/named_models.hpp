// SPDX-License-Identifier: BSL-1.0
#pragma once
// The models that options can name: each table is the one place where a name meets its model.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/coarsen/fuse_operators.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/schedule/transfer_scheduler.hpp>

namespace cli {

template <class Model>
struct named_model {
  const char* name;
  const char* about;
  Model (*make)(std::uint64_t seed);
};

/// Of --rows, --law, --orders and --transfers; the first law, orders and transfers are what dora takes unasked.
std::span<const named_model<hetplan::decompose::any_decomposition>> known_rows();
std::span<const named_model<std::optional<hetplan::any_step_law>>> known_laws();
std::span<const named_model<hetplan::partition::any_device_ordering>> known_orders();
std::span<const named_model<hetplan::schedule::any_transfer_scheduler>> known_transfers();
/// Of --fuse.
std::span<const named_model<hetplan::coarsen::fusion_rules>> known_fusions();

template <class Model>
std::vector<std::string> names_of(std::span<const named_model<Model>> known) {
  std::vector<std::string> names;
  for (const named_model<Model>& m : known) names.emplace_back(m.name);
  return names;
}

/// Why this is none of the names; "" where it is one.
std::string fault_in_name(std::string_view given, const std::vector<std::string>& known);

}  // namespace cli
