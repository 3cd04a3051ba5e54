// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/json_node.hpp>

namespace HETPLAN_NAMESPACE::io {

HETPLAN_INLINE std::string expectation(const dimension& d, range r) {
  return std::string(to_string(d)) + (r == range::above_zero ? " > 0" : r == range::at_least_zero ? " >= 0" : "");
}

HETPLAN_INLINE std::string json_node::shown() const {
  switch (what()) {
    case kind::null: return "null";
    case kind::boolean: return document_->boolean(index_) ? "true" : "false";
    case kind::integer: return std::to_string(document_->integer(index_));
    case kind::real: return to_text(document_->real(index_));
    case kind::text:
    case kind::key: return in_quotes(document_->text(index_));
    case kind::array: return size() == 0 ? "an empty array" : "an array";
    case kind::object: return size() == 0 ? "an empty object" : "an object";
  }
  return "?";
}

HETPLAN_INLINE void json_node::fail(std::string_view expected, std::string_view hint) const {
  fail_with("expected " + std::string(expected) + ", got " + shown() + std::string(hint));
}

HETPLAN_INLINE void json_node::fail_missing(std::string_view key, std::string_view expected) const {
  fail_below("/" + json_document::pointer_token(key), "expected " + std::string(expected) + ", got nothing");
}

HETPLAN_INLINE std::string_view json_node::text(std::string_view expected) const {
  if (!is_text()) fail(expected);
  return document_->text(index_);
}

HETPLAN_INLINE std::string_view json_node::name(std::string_view expected) const {
  if (!is_text() || document_->size_of(index_) == 0) fail(expected);
  return document_->text(index_);
}

HETPLAN_INLINE bool json_node::boolean() const {
  if (what() != kind::boolean) fail("true or false");
  return document_->boolean(index_);
}

HETPLAN_INLINE double json_node::number(range r, const dimension& d) const {
  double v = std::numeric_limits<double>::quiet_NaN();
  if (what() == kind::integer) {
    v = static_cast<double>(document_->integer(index_));
  } else if (what() == kind::real) {
    v = document_->real(index_);
  } else if (is_text()) {
    const parsed_quantity p = parse_quantity(document_->text(index_), d);
    if (!p.value) fail(expectation(d, r), p.meant.empty() ? "" : "; did you mean " + in_quotes(p.meant) + "?");
    v = *p.value;
  }
  if (!std::isfinite(v) || (r == range::at_least_zero && v < 0) || (r == range::above_zero && v <= 0)) fail(expectation(d, r));
  return v;
}

HETPLAN_INLINE json_node::element_iterator& json_node::element_iterator::operator++() {
  index_ = document_->after(index_);
  return *this;
}

HETPLAN_INLINE json_node::element_range json_node::elements(std::string_view expected, std::size_t least) const {
  if (what() != kind::array || size() < least) fail(expected);
  return {{*document_, index_ + 1}, {*document_, document_->after(index_)}};
}

HETPLAN_INLINE json_node::member_iterator& json_node::member_iterator::operator++() {
  index_ = document_->after(index_ + 1);
  return *this;
}

HETPLAN_INLINE json_node::member_range json_node::members(std::string_view expected) const {
  if (!is_object()) fail(expected);
  return {{*document_, index_ + 1}, {*document_, document_->after(index_)}};
}

HETPLAN_INLINE void json_node::fail_below(std::string_view path, std::string_view text) const {
  const std::string where = pointer() + std::string(path);
  throw invalid_input(escaped(document_->file()) + ": " + (where.empty() ? "" : where + ": ") + escaped(text));
}

}  // namespace HETPLAN_NAMESPACE::io
