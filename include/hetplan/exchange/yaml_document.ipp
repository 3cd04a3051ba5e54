// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/yaml_document.hpp>

#include <cmath>
#include <set>
#include <sstream>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::exchange {

namespace detail {

/// Refuses aliases and deep nesting, with which a small file could stand for a huge one, before anything is stored.
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

HETPLAN_INLINE yaml_node yaml_node::parse(const std::string& text, const std::string& file) {
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
         escaped(io::shortened(e.msg, 200)));
    throw;
  }
}

HETPLAN_INLINE std::string yaml_node::shown() const {
  if (node_.IsNull()) return "nothing";
  if (node_.IsScalar()) return io::in_quotes(node_.Scalar());
  return std::string(node_.size() == 0 ? "an empty " : "a ") + (node_.IsMap() ? "map" : "list");
}

HETPLAN_INLINE void yaml_node::fail_with(std::string_view text) const {
  throw invalid_input(escaped(*file_) + ": " + (node_.Mark().is_null() ? "" : place(node_.Mark()) + ": ") + escaped(path_) + escaped(text));
}

HETPLAN_INLINE std::vector<std::pair<std::string, yaml_node>> yaml_node::members(std::string_view expected) const {
  if (!node_.IsMap()) fail(expected);
  std::vector<std::pair<std::string, yaml_node>> all;
  std::set<std::string> seen;
  for (const auto& member : node_) {
    if (!member.first.IsScalar()) fail_with("expected a text as key, got " + yaml_node(file_, "", member.first).shown());
    const std::string& key = member.first.Scalar();
    all.emplace_back(key, yaml_node(file_, path_ + io::shortened(key, 80) + ": ", member.second));
    if (!seen.insert(key).second) all.back().second.fail_with("expected every key once, got " + io::in_quotes(key) + " again");
  }
  return all;
}

HETPLAN_INLINE yaml_node yaml_node::at(std::string_view key, std::string_view expected) const {
  for (auto& [name, value] : members("a map with " + std::string(key))) {
    if (name == key) return value;
  }
  fail_with(std::string(key) + ": expected " + std::string(expected) + ", got nothing");
}

HETPLAN_INLINE std::vector<yaml_node> yaml_node::elements(std::string_view expected) const {
  if (!node_.IsSequence()) fail(expected);
  std::vector<yaml_node> all;
  for (const YAML::Node& element : node_) all.push_back(yaml_node(file_, path_, element));
  return all;
}

HETPLAN_INLINE std::string yaml_node::name(std::string_view expected) const {
  if (!node_.IsScalar() || node_.Scalar().empty()) fail(expected);
  return node_.Scalar();
}

HETPLAN_INLINE double yaml_node::number(double least, std::string_view expected) const {
  if (!node_.IsScalar() || node_.Tag() == "!") fail(expected);
  const auto v = detail::number_in(node_.Scalar());
  if (!v || *v < least) fail(expected);
  return *v;
}

HETPLAN_INLINE double yaml_node::whole(double least, std::string_view expected) const {
  const double v = number(least, expected);
  if (v != std::floor(v)) fail(expected);
  return v;
}

HETPLAN_INLINE yaml_node::yaml_node(std::shared_ptr<const std::string> file, std::string path, YAML::Node node)
    : file_(std::move(file)), path_(std::move(path)), node_(std::move(node)) {}

}  // namespace hetplan::exchange
