// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Checked access to YAML files. Needs yaml-cpp (hetplan::yaml).

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

/// Size limit of YAML files: 4 MB, as yaml-cpp keeps a node of some hundred bytes for every value.
inline constexpr std::size_t max_yaml_bytes = 4'000'000;

/// A value of a YAML file with checked accessors. An accessor throws invalid_input `FILE: line N: KEY: KEY: expected X, got Y` if the value
/// is something else.
class yaml_node {
 public:
  /// Parses a text with one document; `file` is its name in messages.
  ///
  /// Throws  invalid_input, one line that starts with the file: more than max_yaml_bytes, a syntax error with line and column, an
  ///         alias, nesting > 64, bytes that are no UTF-8, no document or several.
  /// Source  YAML 1.2, as yaml-cpp reads it. Deviation: aliases are refused.
  [[nodiscard]] static yaml_node parse(const std::string& text, const std::string& file);

  [[nodiscard]] bool is_null() const { return node_.IsNull(); }

  [[nodiscard]] std::string shown() const;
  [[noreturn]] void fail_with(std::string_view text) const;
  [[noreturn]] void fail(std::string_view expected) const { fail_with("expected " + std::string(expected) + ", got " + shown()); }

  /// Returns key and value of every member of a map, in file order. Keys are distinct strings.
  [[nodiscard]] std::vector<std::pair<std::string, yaml_node>> members(std::string_view expected) const;
  /// Returns a member that must be there. Other members are ignored.
  [[nodiscard]] yaml_node at(std::string_view key, std::string_view expected) const;
  [[nodiscard]] std::vector<yaml_node> elements(std::string_view expected) const;

  /// Returns a string that is not empty.
  [[nodiscard]] std::string name(std::string_view expected) const;
  /// Returns a finite decimal number >= least, not in quotes.
  [[nodiscard]] double number(double least, std::string_view expected) const;
  /// Returns a whole number >= least.
  [[nodiscard]] double whole(double least, std::string_view expected) const;

 private:
  yaml_node(std::shared_ptr<const std::string> file, std::string path, YAML::Node node);

  [[nodiscard]] static std::string place(const YAML::Mark& mark) { return "line " + std::to_string(mark.line + 1); }

  std::shared_ptr<const std::string> file_;
  std::string path_;  ///< keys up to here: "vit: layers: "
  YAML::Node node_;
};

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/yaml_document.ipp>
#endif
