// SPDX-License-Identifier: BSL-1.0
#pragma once
/// JSON as files and standard output get it: stable order, short lines, numbers that read back the same.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>

namespace hetplan::io {

/// What writers build: keys stay in the order in which they were added.
using json = nlohmann::ordered_json;

/// A finite number that reads back the same; a whole one is written without a fraction.
[[nodiscard]] json json_number(double value);
/// Adds a number unless it is not finite, which no file ever holds.
void put(json& object, const std::string& key, double value);
/// "proof" where a status has one: {"of", "rows": [{"what", "needed", "available"}]} or {"of", "searched"}.
void put_proof(json& object, const status& s);
template <int T, int D, int E, int W>
void put(json& object, const std::string& key, quantity<T, D, E, W> value) {
  put(object, key, value.value());
}
/// Adds a value that differs from the default of its format.
template <class Value>
void put_unless(json& object, const std::string& key, const Value& value, const Value& otherwise) {
  if (value != otherwise) put(object, key, value);
}
void put_unless(json& object, const std::string& key, const std::string& value, const std::string& otherwise);

namespace detail {

/// The value on one line; false as soon as that takes more than `width`.
bool write_line(std::string& out, const json& value, std::size_t width);

inline constexpr std::size_t line_width = 120;

/// What fits stands on one line; long arrays of scalars are filled.
void write_json(std::string& out, const json& value, std::size_t indent, std::size_t column);

}  // namespace detail

/// The text of a document, with a line break at its end.
[[nodiscard]] std::string json_text(const json& document);

/// The text of an object whose lists are too long to be held as documents: their elements are made, written and forgotten one by
/// one. The same text as that of json_text.
class object_text {
 public:
  void add(const std::string& key, const json& value);
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
  [[nodiscard]] std::string text() &&;

 private:
  void begin(const std::string& key);

  std::string out_;
  std::size_t column_ = 0;
  json whole_ = json::object();  ///< as long as all of it may fit on one line
  bool short_ = true;
};

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/json_text.ipp>
#endif
