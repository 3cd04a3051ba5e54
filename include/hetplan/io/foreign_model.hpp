// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What the readers of other projects' model files share.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <hetplan/graph/layer.hpp>
#include <hetplan/graph/topological_order.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/markup.hpp>

namespace hetplan::io {

/// An object of a format that is not ours: what is needed is looked up, other keys (debug information) are let be.
class foreign_object {
 public:
  explicit foreign_object(json_node node, std::string_view expected = "an object") : node_(node) {
    static_cast<void>(node.members(expected));
  }

  [[nodiscard]] std::optional<json_node> find(std::string_view key) const {
    for (const auto& [name, value] : node_.members()) {
      if (name == key) return value;
    }
    return std::nullopt;
  }
  /// A member that must be there.
  [[nodiscard]] json_node at(std::string_view key, std::string_view expected) const {
    if (const auto found = find(key)) return *found;
    node_.fail_missing(key, expected);
  }
  /// A plain number that must be there; a text with a unit is ours, not theirs.
  [[nodiscard]] double number(std::string_view key, range r) const { return at(key, expectation({}, r)).number(r); }

 private:
  json_node node_;
};

/// Times of one device kind, by batch size, as they were measured. One measured size alone would mean the same time for every batch:
/// a second point at twice the size and twice the time says that larger batches run one after another.
///
/// Source  own, on what profiled (cost/profiled.hpp) makes of a profile's ends.
[[nodiscard]] inline layer_profile proportional_beyond(layer_profile p) {
  if (p.batch.size() != 1) return p;
  for (std::vector<double>* values : {&p.batch, &p.forward_s, &p.backward_s}) {
    if (!values->empty()) values->push_back(2 * values->front());
  }
  return p;
}

/// "shared/vgg16.txt" holds the model "vgg16".
[[nodiscard]] inline std::string model_name_of(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return stem.empty() ? "model" : stem;
}

namespace detail {

/// The index of an edge that lies on a cycle; none in a DAG. Complexity: that of topological_order.
[[nodiscard]] inline std::optional<std::size_t> index_on_cycle(std::size_t nodes,
                                                               const std::vector<std::pair<std::size_t, std::size_t>>& edges) {
  const std::vector<std::size_t> order = topological_order(nodes, edges);
  if (order.size() == nodes) return std::nullopt;
  return static_cast<std::size_t>(std::find(edges.begin(), edges.end(), edge_on_cycle(nodes, edges, order)) - edges.begin());
}

/// Model files hold UTF-8 only; texts that no JSON parser has seen may be anything.
[[nodiscard]] inline bool is_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

/// The whole word as a finite decimal number; independent of the locale.
[[nodiscard]] inline std::optional<double> number_in(std::string_view word) {
  double v = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), v);
  if (code != std::errc() || end != word.data() + word.size() || !std::isfinite(v)) return std::nullopt;
  return v;
}

}  // namespace detail

}  // namespace hetplan::io
