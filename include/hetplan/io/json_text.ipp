// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/json_text.hpp>

#include <cmath>
#include <cstdint>

namespace hetplan::io {

HETPLAN_INLINE json json_number(double value) {
  HETPLAN_ASSERT(std::isfinite(value));
  const bool whole = value == std::floor(value) && std::abs(value) < 9007199254740992.0;
  return whole ? json(static_cast<std::int64_t>(value)) : json(value);
}

HETPLAN_INLINE void put_proof(json& object, const status& s) {
  if (!s.proof) return;
  json proof;
  proof["of"] = s.proof->of;
  if (s.proof->searched > 0) proof["searched"] = s.proof->searched;
  for (const infeasibility_proof::row& r : s.proof->rows) {
    json row;
    row["what"] = r.what;
    put(row, "needed", r.needed);
    put(row, "available", r.available);
    proof["rows"].push_back(std::move(row));
  }
  object["proof"] = std::move(proof);
}

HETPLAN_INLINE void put(json& object, const std::string& key, double value) {
  if (std::isfinite(value)) object[key] = json_number(value);
}

HETPLAN_INLINE void put_unless(json& object, const std::string& key, const std::string& value, const std::string& otherwise) {
  if (value != otherwise) object[key] = value;
}

namespace detail {

HETPLAN_INLINE std::string scalar_text(const json& value) {
  // Names from a program may be invalid UTF-8; a result with a replacement character is better than none.
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  // JSON escapes only the C0 control characters; terminals obey DEL and the C1 ones, too.
  return text.find_first_of("\x7F\xC2") == std::string::npos ? text : escaped(text);
}

HETPLAN_INLINE bool write_line(std::string& out, const json& value, std::size_t width) {
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

HETPLAN_INLINE void write_json(std::string& out, const json& value, std::size_t indent, std::size_t column) {
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

HETPLAN_INLINE std::string json_text(const json& document) {
  std::string out;
  detail::write_json(out, document, 0, 0);
  return out + "\n";
}

HETPLAN_INLINE void object_text::add(const std::string& key, const json& value) {
  begin(key);
  detail::write_json(out_, value, 2, column_);
  if (short_) whole_[key] = value;
}

HETPLAN_INLINE std::string object_text::text() && {
  std::string line;
  if (short_ && detail::write_line(line, whole_, detail::line_width)) return line + "\n";
  out_ += "\n}\n";
  return std::move(out_);
}

HETPLAN_INLINE void object_text::begin(const std::string& key) {
  const std::string name = detail::scalar_text(json(key)) + ": ";
  out_ += out_.empty() ? "{\n  " : ",\n  ";
  out_ += name;
  column_ = 2 + name.size();
}

}  // namespace hetplan::io
