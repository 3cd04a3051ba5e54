// SPDX-License-Identifier: BSL-1.0
#pragma once
/// YAML files, checked: what the readers of YAML formats walk over. Needs yaml-cpp (hetplan::yaml).

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <hetplan/core/version.hpp>

namespace hetplan::exchange {

/// The largest YAML file that is read: 4 MB. yaml-cpp keeps a node of some hundred bytes for every value.
inline constexpr std::size_t max_yaml_bytes = 4'000'000;

/// A value of a YAML file and the checked questions that readers ask it. Every question throws invalid_input
/// `FILE: line N: KEY: KEY: expected X, got Y` where the value is something else.
class yaml_node {
 public:
  /// Parses a text that holds one document; `file` is what messages call it.
  ///
  /// Throws  invalid_input, one line that starts with the file: more than max_yaml_bytes, a syntax error with line and column, an
  ///         alias, nesting > 64, bytes that are no UTF-8, no document or several.
  /// Source  YAML 1.2, as yaml-cpp reads it. Deviation: aliases are refused.
  [[nodiscard]] static yaml_node parse(const std::string& text, const std::string& file);

  [[nodiscard]] bool is_null() const { return node_.IsNull(); }

  [[nodiscard]] std::string shown() const;
  [[noreturn]] void fail_with(std::string_view text) const;
  [[noreturn]] void fail(std::string_view expected) const { fail_with("expected " + std::string(expected) + ", got " + shown()); }

  /// Key and value of every member of a map, in file order. A key is a text, each once.
  [[nodiscard]] std::vector<std::pair<std::string, yaml_node>> members(std::string_view expected) const;
  /// A member that must be there; others are let be.
  [[nodiscard]] yaml_node at(std::string_view key, std::string_view expected) const;
  /// The elements of a list.
  [[nodiscard]] std::vector<yaml_node> elements(std::string_view expected) const;

  /// A text that is not empty.
  [[nodiscard]] std::string name(std::string_view expected) const;
  /// A finite decimal number >= least that is not in quotes.
  [[nodiscard]] double number(double least, std::string_view expected) const;
  /// A whole number >= least.
  [[nodiscard]] double whole(double least, std::string_view expected) const;

 private:
  yaml_node(std::shared_ptr<const std::string> file, std::string path, YAML::Node node);

  [[nodiscard]] static std::string place(const YAML::Mark& mark) { return "line " + std::to_string(mark.line + 1); }

  std::shared_ptr<const std::string> file_;
  std::string path_;  ///< "vit: layers: "
  YAML::Node node_;
};

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/yaml_document.ipp>
#endif
