// SPDX-License-Identifier: BSL-1.0
#pragma once
/// JSON as files and standard output get it: stable order, short lines, numbers that read back the same.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/core/escaped.hpp>
#include <hetplan/core/quantity.hpp>

namespace hetplan::io {

/// What writers build: keys stay in the order in which they were added.
using json = nlohmann::ordered_json;

/// A finite number that reads back the same; a whole one is written without a fraction.
[[nodiscard]] inline json json_number(double value) {
  HETPLAN_ASSERT(std::isfinite(value));
  const bool whole = value == std::floor(value) && std::abs(value) < 9007199254740992.0;
  return whole ? json(static_cast<std::int64_t>(value)) : json(value);
}
/// Adds a number unless it is not finite, which no file ever holds.
inline void put(json& object, const std::string& key, double value) {
  if (std::isfinite(value)) object[key] = json_number(value);
}
template <int T, int D, int E, int W>
void put(json& object, const std::string& key, quantity<T, D, E, W> value) {
  put(object, key, value.value());
}
/// Adds a value that differs from the default of its format.
template <class Value>
void put_unless(json& object, const std::string& key, const Value& value, const Value& otherwise) {
  if (value != otherwise) put(object, key, value);
}
inline void put_unless(json& object, const std::string& key, const std::string& value, const std::string& otherwise) {
  if (value != otherwise) object[key] = value;
}

namespace detail {

inline std::string scalar_text(const json& value) {
  // Names from a program may be no UTF-8; a result with a replacement character is better than none.
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  // JSON escapes the first block of control characters alone; a terminal obeys those behind it, too.
  return text.find_first_of("\x7F\xC2") == std::string::npos ? text : escaped(text);
}

/// The value on one line; false as soon as that takes more than `width`.
inline bool write_line(std::string& out, const json& value, std::size_t width) {
  if (value.is_primitive() || value.empty()) {
    out += scalar_text(value);
    return out.size() <= width;
  }
  out += value.is_object() ? '{' : '[';
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (it != value.begin()) out += ", ";
    if (value.is_object()) out += scalar_text(json(it.key())) + ": ";
    if (!write_line(out, *it, width)) return false;
  }
  out += value.is_object() ? '}' : ']';
  return out.size() <= width;
}

inline constexpr std::size_t line_width = 120;

/// What fits stands on one line; long arrays of scalars are filled.
inline void write_json(std::string& out, const json& value, std::size_t indent, std::size_t column) {
  constexpr std::size_t width = line_width;
  std::string line;
  if (write_line(line, value, width - std::min(width, column)) || value.is_primitive()) {
    out += line;
    return;
  }
  const auto new_line = [&](std::size_t spaces) { out.append("\n").append(spaces, ' '); };
  out += value.is_object() ? '{' : '[';
  const bool fill = value.is_array() && std::all_of(value.begin(), value.end(), [](const json& v) { return v.is_primitive(); });
  std::size_t at = width;
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (it != value.begin()) out += ',';
    std::string begin;
    if (value.is_object()) begin = scalar_text(json(it.key())) + ": ";
    if (fill) begin = scalar_text(*it);
    if (!fill || at + begin.size() + 2 > width) {
      new_line(indent + 2);
      at = indent + 2;
    } else {
      out += ' ';
      ++at;
    }
    out += begin;
    at += begin.size() + 1;
    if (!fill) write_json(out, *it, indent + 2, indent + 2 + begin.size());
  }
  new_line(indent);
  out += value.is_object() ? '}' : ']';
}

}  // namespace detail

/// The text of a document, with a line break at its end.
[[nodiscard]] inline std::string json_text(const json& document) {
  std::string out;
  detail::write_json(out, document, 0, 0);
  return out + "\n";
}

/// The text of an object whose lists are too long to be held as documents: their elements are made, written and forgotten one by
/// one. The same text as that of json_text.
class object_text {
 public:
  void add(const std::string& key, const json& value) {
    begin(key);
    detail::write_json(out_, value, 2, column_);
    if (short_) whole_[key] = value;
  }
  /// @param make  (i) -> std::optional<json>: the element, an object or an array, or nothing; for i = 0 ... count - 1.
  template <class Make>
  void add_list(const std::string& key, std::size_t count, const Make& make) {
    begin(key);
    json row = json::array();  // while it fits on one line
    std::string line = "[]";
    bool fits = true, first = true;
    const auto put_down = [&](const json& element) {
      out_ += first ? "[\n    " : ",\n    ";
      first = false;
      detail::write_json(out_, element, 4, 4);
    };
    for (std::size_t i = 0; i < count; ++i) {
      std::optional<json> element = make(i);
      if (!element) continue;
      if (fits) {
        row.push_back(std::move(*element));
        line.clear();
        fits = detail::write_line(line, row, detail::line_width - std::min(detail::line_width, column_));
        if (!fits) std::for_each(row.begin(), row.end(), put_down);
      } else {
        put_down(*element);
      }
    }
    out_ += fits ? line : "\n  ]";
    short_ = short_ && fits;
    if (short_) whole_[key] = std::move(row);
  }
  [[nodiscard]] std::string text() && {
    std::string line;
    if (short_ && detail::write_line(line, whole_, detail::line_width)) return line + "\n";
    out_ += "\n}\n";
    return std::move(out_);
  }

 private:
  void begin(const std::string& key) {
    const std::string name = detail::scalar_text(json(key)) + ": ";
    out_ += out_.empty() ? "{\n  " : ",\n  ";
    out_ += name;
    column_ = 2 + name.size();
  }

  std::string out_;
  std::size_t column_ = 0;
  json whole_ = json::object();  ///< as long as all of it may fit on one line
  bool short_ = true;
};

}  // namespace hetplan::io
