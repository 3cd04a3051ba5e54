// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/json_object.hpp>

namespace hetplan::io {

HETPLAN_INLINE json_object::json_object(json_node node, key_list keys, std::string_view expected) : node_(node), keys_(keys) {
  HETPLAN_ASSERT(keys.size() <= found_.size());
  for (const auto& [key, value] : node.members(expected)) {
    const std::size_t k = position(key);
    if (k == keys.size()) refuse(key, value);
    found_[k] = value.index();
  }
}

HETPLAN_INLINE std::optional<json_node> json_object::find(std::string_view key) const {
  const std::size_t k = position(key);
  HETPLAN_ASSERT(k < keys_.size());
  if (found_[k] == 0) return std::nullopt;
  return json_node(node_.document(), found_[k]);
}

HETPLAN_INLINE json_node json_object::at(std::string_view key, std::string_view expected) const {
  if (const auto found = find(key)) return *found;
  node_.fail_missing(key, expected);
}

HETPLAN_INLINE std::optional<double> json_object::number(std::string_view key, range r) const {
  const auto found = find(key);
  return found ? std::optional(found->number(r)) : std::nullopt;
}

HETPLAN_INLINE std::size_t json_object::position(std::string_view key) const {
  std::size_t k = 0;
  while (k < keys_.size() && keys_[k] != key) ++k;
  return k;
}

HETPLAN_INLINE void json_object::refuse(std::string_view key, const json_node& value) const {
  std::string hint = suggestion(key, keys_);
  if (hint.empty()) {
    hint = "; known keys:";
    for (std::size_t k = 0; k < keys_.size(); ++k) hint.append(k == 0 ? " " : ", ").append(keys_[k]);
  }
  value.fail_with("expected a known key, got " + in_quotes(key) + hint);
}

HETPLAN_INLINE json_object open_document(const json_document& d, std::string_view format, key_list keys) {
  const json_node root(d);
  bool found = false;
  for (const auto& [key, value] : root.members("a JSON object")) {
    if (key != "format") continue;
    found = true;
    if (!value.is_text() || value.text() != format) value.fail(in_quotes(format));
  }
  if (!found) root.fail_missing("format", in_quotes(format));
  return {root, keys};
}

HETPLAN_INLINE std::string document_format(const json_document& d) {
  const json_node root(d);
  if (!root.is_object()) return {};
  for (const auto& [key, value] : root.members()) {
    if (key == "format" && value.is_text()) return std::string(value.text());
  }
  return {};
}

}  // namespace hetplan::io
