// SPDX-License-Identifier: BSL-1.0
#pragma once
/// YAML files, checked: what the readers of YAML formats walk over. Needs yaml-cpp (hetplan::yaml).

#include <cmath>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <hetplan/core/error.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/io/foreign_model.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::io {

/// The largest YAML file that is read: 4 MB. yaml-cpp keeps a node of some hundred bytes for every value.
inline constexpr std::size_t max_yaml_bytes = 4'000'000;

namespace detail {

/// Refuses what would let a small file stand for a huge one, before any of it is stored.
class yaml_guard final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { throw YAML::ParserException(mark, "expected values, got an alias"); }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { open(mark); }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { open(mark); }
  void OnMapEnd() override { --depth_; }

 private:
  void open(const YAML::Mark& mark) {
    if (++depth_ > 64) throw YAML::ParserException(mark, "expected nesting of at most 64, got deeper");
  }
  int depth_ = 0;
};

}  // namespace detail

/// A value of a YAML file and the checked questions that readers ask it. Every question throws invalid_input
/// `FILE: line N: KEY: KEY: expected X, got Y` where the value is something else.
class yaml_node {
 public:
  /// Parses a text that holds one document; `file` is what messages call it.
  ///
  /// Throws  invalid_input, one line that starts with the file: more than max_yaml_bytes, a syntax error with line and column, an
  ///         alias, nesting > 64, bytes that are no UTF-8, no document or several.
  /// Source  YAML 1.2, as yaml-cpp reads it. Deviation: aliases are refused.
  [[nodiscard]] static yaml_node parse(const std::string& text, const std::string& file) {
    const auto fail = [&](const std::string& what) { throw invalid_input(escaped(file) + ": " + what); };
    if (text.size() > max_yaml_bytes) fail("expected at most 4 MB of YAML, got more");
    if (text.find('\0') != std::string::npos) fail("expected text, got a zero byte");
    if (!detail::is_utf8(text)) fail("expected UTF-8, got bytes that are none");
    try {
      std::istringstream stream(text);
      YAML::Parser parser(stream);
      detail::yaml_guard guard;
      while (parser.HandleNextDocument(guard)) {
      }
      const std::vector<YAML::Node> documents = YAML::LoadAll(text);
      if (documents.empty() || documents.front().IsNull()) fail("expected YAML, got an empty file");
      if (documents.size() > 1) fail("expected one YAML document, got " + std::to_string(documents.size()));
      return {std::make_shared<const std::string>(file), "", documents.front()};
    } catch (const YAML::Exception& e) {
      fail((e.mark.is_null() ? "" : place(e.mark) + ", column " + std::to_string(e.mark.column + 1) + ": ") +
           escaped(shortened(e.msg, 200)));
      throw;
    }
  }

  [[nodiscard]] bool is_null() const { return node_.IsNull(); }

  [[nodiscard]] std::string shown() const {
    if (node_.IsNull()) return "nothing";
    if (node_.IsScalar()) return in_quotes(node_.Scalar());
    return std::string(node_.size() == 0 ? "an empty " : "a ") + (node_.IsMap() ? "map" : "list");
  }
  [[noreturn]] void fail_with(std::string_view text) const {
    throw invalid_input(escaped(*file_) + ": " + (node_.Mark().is_null() ? "" : place(node_.Mark()) + ": ") + escaped(path_) +
                        escaped(text));
  }
  [[noreturn]] void fail(std::string_view expected) const { fail_with("expected " + std::string(expected) + ", got " + shown()); }

  /// Key and value of every member of a map, in file order. A key is a text, each once.
  [[nodiscard]] std::vector<std::pair<std::string, yaml_node>> members(std::string_view expected) const {
    if (!node_.IsMap()) fail(expected);
    std::vector<std::pair<std::string, yaml_node>> all;
    std::set<std::string> seen;
    for (const auto& member : node_) {
      if (!member.first.IsScalar()) fail_with("expected a text as key, got " + yaml_node(file_, "", member.first).shown());
      const std::string& key = member.first.Scalar();
      all.emplace_back(key, yaml_node(file_, path_ + shortened(key, 80) + ": ", member.second));
      if (!seen.insert(key).second) all.back().second.fail_with("expected every key once, got " + in_quotes(key) + " again");
    }
    return all;
  }
  /// A member that must be there; others are let be.
  [[nodiscard]] yaml_node at(std::string_view key, std::string_view expected) const {
    for (auto& [name, value] : members("a map with " + std::string(key))) {
      if (name == key) return value;
    }
    fail_with(std::string(key) + ": expected " + std::string(expected) + ", got nothing");
  }
  /// The elements of a list.
  [[nodiscard]] std::vector<yaml_node> elements(std::string_view expected) const {
    if (!node_.IsSequence()) fail(expected);
    std::vector<yaml_node> all;
    for (const YAML::Node& element : node_) all.push_back(yaml_node(file_, path_, element));
    return all;
  }

  /// A text that is not empty.
  [[nodiscard]] std::string name(std::string_view expected) const {
    if (!node_.IsScalar() || node_.Scalar().empty()) fail(expected);
    return node_.Scalar();
  }
  /// A finite decimal number >= least that is not in quotes.
  [[nodiscard]] double number(double least, std::string_view expected) const {
    if (!node_.IsScalar() || node_.Tag() == "!") fail(expected);
    const auto v = detail::number_in(node_.Scalar());
    if (!v || *v < least) fail(expected);
    return *v;
  }
  /// A whole number >= least.
  [[nodiscard]] double whole(double least, std::string_view expected) const {
    const double v = number(least, expected);
    if (v != std::floor(v)) fail(expected);
    return v;
  }

 private:
  yaml_node(std::shared_ptr<const std::string> file, std::string path, YAML::Node node)
      : file_(std::move(file)), path_(std::move(path)), node_(std::move(node)) {}

  [[nodiscard]] static std::string place(const YAML::Mark& mark) { return "line " + std::to_string(mark.line + 1); }

  std::shared_ptr<const std::string> file_;
  std::string path_;  ///< "vit: layers: "
  YAML::Node node_;
};

}  // namespace hetplan::io
