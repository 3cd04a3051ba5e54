// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Common parts of the readers of other projects' files: tables, JSON objects, profiles.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/requests_csv.hpp>

namespace hetplan::exchange {

/// Throws invalid_input for text that begins as a file of a well-known compressor (xz, gzip, zstd).
void require_text(std::string_view text, const std::string& file);

/// Returns the lines of a table with these columns. The first `needed` columns must be there; unknown columns are ignored.
///
/// Throws  invalid_input that names the file: what require_text and io::csv_lines throw.
[[nodiscard]] io::csv_lines foreign_table(std::string_view text, const std::string& file, std::span<const std::string_view> columns,
                                          std::size_t needed);

/// A JSON object of a foreign format. Unknown keys are ignored.
class foreign_object {
 public:
  explicit foreign_object(io::json_node node, std::string_view expected = "an object");

  [[nodiscard]] std::optional<io::json_node> find(std::string_view key) const;
  [[nodiscard]] io::json_node at(std::string_view key, std::string_view expected) const;
  /// Returns a plain number that must be there. Strings with units belong to this library's own formats.
  [[nodiscard]] double number(std::string_view key, io::range r) const { return at(key, io::expectation({}, r)).number(r); }

 private:
  io::json_node node_;
};

/// Completes a profile with a single batch size by a second point: twice the batch, twice the time. Larger batches then run one after
/// another; a single point would mean the same time for every batch.
///
/// Source  own, on what profiled (cost/cost_model.hpp) makes of a profile's ends.
[[nodiscard]] layer_profile proportional_beyond(layer_profile p);

/// Returns the model name of a file: "vgg16" for "shared/vgg16.txt".
[[nodiscard]] std::string model_name_of(const std::string& file);

namespace detail {

/// Returns the index of an edge that lies on a cycle, none in a DAG. Complexity: that of topological_order.
[[nodiscard]] std::optional<std::size_t> index_on_cycle(std::size_t nodes, const std::vector<std::pair<std::size_t, std::size_t>>& edges);

/// True if a text is UTF-8: model files hold nothing else, and no JSON parser has checked texts of other formats.
[[nodiscard]] bool is_utf8(std::string_view text);

/// Parses a whole word as a finite decimal number, independently of the locale.
[[nodiscard]] std::optional<double> number_in(std::string_view word);

}  // namespace detail

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/foreign_model.ipp>
#endif
