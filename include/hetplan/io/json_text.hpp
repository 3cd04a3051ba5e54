// SPDX-License-Identifier: BSL-1.0
#pragma once
/// JSON text for files and standard output: stable order, short lines, numbers that read back the same.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>

namespace hetplan::io {

/// JSON values built by writers. Keys stay in the order of insertion.
using json = nlohmann::ordered_json;

/// Returns a finite number that reads back the same. Whole numbers have no fraction.
[[nodiscard]] json json_number(double value);
/// Adds a number if it is finite: files hold no other.
void put(json& object, const std::string& key, double value);
/// Adds the proof of a status, if any, as "proof": {"of", "rows": [{"what", "needed", "available"}]} or {"of", "searched"}.
void put_proof(json& object, const status& s);
template <int T, int D, int E, int W>
void put(json& object, const std::string& key, quantity<T, D, E, W> value) {
  put(object, key, value.value());
}
/// Adds a value unless it equals the format's default.
template <class Value>
void put_unless(json& object, const std::string& key, const Value& value, const Value& otherwise) {
  if (value != otherwise) put(object, key, value);
}
void put_unless(json& object, const std::string& key, const std::string& value, const std::string& otherwise);

namespace detail {

/// Writes a value on one line. Returns false as soon as that takes more than `width`.
bool write_line(std::string& out, const json& value, std::size_t width);

inline constexpr std::size_t line_width = 120;

/// Writes a value: on one line if it fits; long arrays of scalars are wrapped.
void write_json(std::string& out, const json& value, std::size_t indent, std::size_t column);

}  // namespace detail

/// Returns the text of a document, with a line break at its end.
[[nodiscard]] std::string json_text(const json& document);

/// Writer of an object with lists too long for memory: elements are created, written and dropped one by one. The text is json_text's.
class object_text {
 public:
  void add(const std::string& key, const json& value);
  /// @param make  (i) -> std::optional<json> for i = 0 ... count - 1: the element, an object or an array, or none to skip it.
  template <class Make>
  void add_list(const std::string& key, std::size_t count, const Make& make) {
    begin(key);
    json row = json::array();  // kept while it fits on one line
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
  json whole_ = json::object();  ///< kept while everything may fit on one line
  bool short_ = true;
};

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/json_text.ipp>
#endif
