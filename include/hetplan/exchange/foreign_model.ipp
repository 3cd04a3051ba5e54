// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/foreign_model.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::exchange {

HETPLAN_INLINE void require_text(std::string_view text, const std::string& file) {
  // Magic numbers of compressed files.
  constexpr std::array<std::pair<std::string_view, const char*>, 3> compressed{
      {{"\xFD\x37zXZ", "xz"}, {"\x1F\x8B", "gzip"}, {"\x28\xB5\x2F\xFD", "zstd"}}};
  for (const auto& [begin, program] : compressed) {
    if (text.starts_with(begin))
      io::detail::fail_file(file, std::string("expected text, got what ") + program + " has compressed; decompress it first");
  }
}

HETPLAN_INLINE io::csv_lines foreign_table(std::string_view text, const std::string& file, std::span<const std::string_view> columns,
                                           std::size_t needed) {
  require_text(text, file);
  return {text, file, columns, needed, io::other_columns::let_be};
}

HETPLAN_INLINE foreign_object::foreign_object(io::json_node node, std::string_view expected) : node_(node) {
  static_cast<void>(node.members(expected));
}

HETPLAN_INLINE std::optional<io::json_node> foreign_object::find(std::string_view key) const {
  for (const auto& [name, value] : node_.members()) {
    if (name == key) return value;
  }
  return std::nullopt;
}

HETPLAN_INLINE io::json_node foreign_object::at(std::string_view key, std::string_view expected) const {
  if (const auto found = find(key)) return *found;
  node_.fail_missing(key, expected);
}

HETPLAN_INLINE layer_profile proportional_beyond(layer_profile p) {
  if (p.batch.size() != 1) return p;
  for (std::vector<double>* values : {&p.batch, &p.forward_s, &p.backward_s}) {
    if (!values->empty()) values->push_back(2 * values->front());
  }
  return p;
}

HETPLAN_INLINE std::string model_name_of(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return stem.empty() || !detail::is_utf8(stem) ? "model" : stem;
}

namespace detail {

HETPLAN_INLINE std::optional<std::size_t> index_on_cycle(std::size_t nodes, const std::vector<std::pair<std::size_t, std::size_t>>& edges) {
  const std::vector<std::size_t> order = topological_order(nodes, edges);
  if (order.size() == nodes) return std::nullopt;
  return static_cast<std::size_t>(std::find(edges.begin(), edges.end(), edge_on_cycle(nodes, edges, order)) - edges.begin());
}

HETPLAN_INLINE bool is_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

HETPLAN_INLINE std::optional<double> number_in(std::string_view word) {
  double v = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), v);
  if (code != std::errc() || end != word.data() + word.size() || !std::isfinite(v)) return std::nullopt;
  return v;
}

}  // namespace detail

}  // namespace hetplan::exchange
