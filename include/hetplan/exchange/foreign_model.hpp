// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What the readers of other projects' model files share.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/graph/layer.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/requests_csv.hpp>

namespace hetplan::exchange {

// Tables of other projects: the columns that are needed, whatever else they have.

/// Throws invalid_input where a text is what a well-known program has compressed.
void require_text(std::string_view text, const std::string& file);

/// The lines of a table of which these columns are read; the first `needed` of them must be there, others are let be.
///
/// Throws  invalid_input that names the file: what require_text and io::csv_lines throw.
[[nodiscard]] io::csv_lines foreign_table(std::string_view text, const std::string& file, std::span<const std::string_view> columns,
                                          std::size_t needed);

/// An object of a format that is not ours: what is needed is looked up, other keys (debug information) are let be.
class foreign_object {
 public:
  explicit foreign_object(io::json_node node, std::string_view expected = "an object");

  [[nodiscard]] std::optional<io::json_node> find(std::string_view key) const;
  /// A member that must be there.
  [[nodiscard]] io::json_node at(std::string_view key, std::string_view expected) const;
  /// A plain number that must be there; a text with a unit is ours, not theirs.
  [[nodiscard]] double number(std::string_view key, io::range r) const { return at(key, io::expectation({}, r)).number(r); }

 private:
  io::json_node node_;
};

/// Times of one device kind, by batch size, as they were measured. One measured size alone would mean the same time for every batch:
/// a second point at twice the size and twice the time says that larger batches run one after another.
///
/// Source  own, on what profiled (cost/cost_model.hpp) makes of a profile's ends.
[[nodiscard]] layer_profile proportional_beyond(layer_profile p);

/// "shared/vgg16.txt" holds the model "vgg16".
[[nodiscard]] std::string model_name_of(const std::string& file);

namespace detail {

/// The index of an edge that lies on a cycle; none in a DAG. Complexity: that of topological_order.
[[nodiscard]] std::optional<std::size_t> index_on_cycle(std::size_t nodes, const std::vector<std::pair<std::size_t, std::size_t>>& edges);

/// Model files hold UTF-8 only; texts that no JSON parser has seen may be anything.
[[nodiscard]] bool is_utf8(std::string_view text);

/// The whole word as a finite decimal number; independent of the locale.
[[nodiscard]] std::optional<double> number_in(std::string_view word);

}  // namespace detail

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/foreign_model.ipp>
#endif
