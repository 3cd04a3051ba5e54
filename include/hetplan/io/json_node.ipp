// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/json_node.hpp>

#include <charconv>
#include <cstddef>
#include <system_error>

namespace hetplan::io {

namespace detail {

struct unit_name {
  std::string_view text;
  dimension dim;
  double times;  ///< SI value = number * times / divided: exact if one of them is 1
  double divided;
  int least;  ///< range of plausible prefixes, as powers of ten: no millibits, and "200 Ms" means 200 ms
  int most;
};

inline constexpr std::array<unit_name, 9> unit_names{{{"min", {1, 0, 0, 0}, 60, 1, 0, 0},
                                                      {"s", {1, 0, 0, 0}, 1, 1, -9, 3},
                                                      {"Wh", {0, 0, 1, 0}, 3600, 1, -9, 12},
                                                      {"h", {1, 0, 0, 0}, 3600, 1, 0, 0},
                                                      {"bit", {0, 1, 0, 0}, 1, 8, 0, 12},
                                                      {"B", {0, 1, 0, 0}, 1, 1, 0, 12},
                                                      {"FLOP", {0, 0, 0, 1}, 1, 1, 0, 12},
                                                      {"J", {0, 0, 1, 0}, 1, 1, -9, 12},
                                                      {"W", {-1, 0, 1, 0}, 1, 1, -9, 12}}};

struct unit_prefix {
  std::string_view text;
  int exponent;  ///< power of ten
  double times;  ///< factor of binary prefixes
};

/// Both micro signs are accepted: U+00B5 in formats, U+03BC on Greek keyboards. They look alike.
inline constexpr std::array<unit_prefix, 13> unit_prefixes{{{"", 0, 1},
                                                            {"n", -9, 1},
                                                            {"u", -6, 1},
                                                            {"\xC2\xB5", -6, 1},
                                                            {"\xCE\xBC", -6, 1},
                                                            {"m", -3, 1},
                                                            {"k", 3, 1},
                                                            {"M", 6, 1},
                                                            {"G", 9, 1},
                                                            {"T", 12, 1},
                                                            {"Ki", 0, 1024.0},
                                                            {"Mi", 0, 1048576.0},
                                                            {"Gi", 0, 1073741824.0}}};

struct unit_meaning {
  dimension dim = {};
  int exponent = 0;
  double times = 1;
  double divided = 1;
};

[[nodiscard]] HETPLAN_INLINE std::optional<unit_meaning> parse_unit(std::string_view text) {
  dimension per{};
  std::string spelled;  // storage: "Mbit" for "Mbps"
  if (text.ends_with("bps")) {
    spelled = std::string(text.substr(0, text.size() - 3)) + "bit";
    text = spelled;
    per.time = -1;
  } else if (text.ends_with("/s") || text.ends_with("/B")) {
    (text.back() == 's' ? per.time : per.data) = -1;
    text.remove_suffix(2);
  }
  for (const unit_name& u : unit_names) {
    if (!text.ends_with(u.text)) continue;
    const std::string_view front = text.substr(0, text.size() - u.text.size());
    for (const unit_prefix& p : unit_prefixes) {
      if (front != p.text || p.exponent < u.least || p.exponent > u.most || (p.times > 1 && u.text != "B")) continue;
      return unit_meaning{
          {u.dim.time + per.time, u.dim.data + per.data, u.dim.energy, u.dim.work}, p.exponent, p.times * u.times, u.divided};
    }
  }
  return std::nullopt;
}

/// Normalizes a misspelled unit for comparison: lower case, "b" for bit, "ps" for "/s", "FLOPS" for a rate.
[[nodiscard]] HETPLAN_INLINE std::string loosely_spelled(std::string_view text, const dimension& d) {
  std::string s(text);
  const auto replace_end = [&](std::string_view end, std::string_view with) {
    if (s.size() < end.size() || !std::string_view(s).ends_with(end)) return;
    s.replace(s.size() - end.size(), end.size(), with);
  };
  replace_end("bps", "bit/s");
  replace_end("Bps", "B/s");
  std::string rate;
  if (s.ends_with("/s") || s.ends_with("/B")) {
    rate = s.substr(s.size() - 2);
    s.resize(s.size() - 2);
  }
  replace_end("b", "bit");
  replace_end("bits", "bit");
  for (char& c : s) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (s.ends_with("flops")) replace_end("s", d.time < 0 && rate.empty() ? "/s" : "");
  replace_end("bytes", "b");
  replace_end("byte", "b");
  replace_end("seconds", "s");
  replace_end("sec", "s");
  replace_end("watts", "w");
  replace_end("joules", "j");
  return s + rate;
}

/// Returns a unit of the dimension spelled almost like the text, "" if there is none.
[[nodiscard]] HETPLAN_INLINE std::string meant_unit(std::string_view text, const dimension& d) {
  if (text.empty() || text.size() > 16) return {};
  const std::string given = loosely_spelled(text, d);
  for (const unit_name& u : unit_names) {
    for (const std::string_view rate : {"", "/s", "/B"}) {
      for (const unit_prefix& p : unit_prefixes) {
        std::string candidate(p.text);
        candidate.append(u.text).append(rate);
        const auto meaning = parse_unit(candidate);
        if (!meaning || meaning->dim != d) continue;
        std::string lower(candidate.substr(0, candidate.size() - rate.size()));
        for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        if (lower.append(rate) == given) return candidate;
      }
    }
  }
  return {};
}

/// Returns the length of the number at the start of a text (digits, fraction, exponent), 0 if there is none.
[[nodiscard]] HETPLAN_INLINE std::size_t number_length(std::string_view t, std::size_t& mantissa) {
  const auto digits = [&](std::size_t i) {
    while (i < t.size() && t[i] >= '0' && t[i] <= '9') ++i;
    return i;
  };
  std::size_t begin = t.starts_with('-') ? 1 : 0;
  std::size_t end = digits(begin);
  if (end == begin) return 0;
  if (end < t.size() && t[end] == '.') {
    begin = end + 1;
    end = digits(begin);
    if (end == begin) return 0;
  }
  mantissa = end;
  if (end < t.size() && (t[end] == 'e' || t[end] == 'E')) {
    begin = end + 1 < t.size() && (t[end + 1] == '+' || t[end + 1] == '-') ? end + 2 : end + 1;
    if (digits(begin) > begin) end = digits(begin);
  }
  return end;
}

}  // namespace detail

HETPLAN_INLINE parsed_quantity parse_quantity(std::string_view text, const dimension& d) {
  std::size_t mantissa = 0;
  const std::size_t length = detail::number_length(text, mantissa);
  if (length == 0 || d.plain()) return {};
  std::string_view unit = text.substr(length);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto meaning = detail::parse_unit(unit);
  if (!meaning || meaning->dim != d) {
    std::string meant = detail::meant_unit(unit, d);
    if (meant.empty() && d.time < 0) meant = detail::meant_unit(std::string(unit) + "/s", d);  // an amount given for a rate
    return {{}, meant.empty() ? meant : std::string(text.substr(0, length)) + " " + meant};
  }
  int exponent = 0;
  if (length > mantissa) {
    const std::size_t plus = text[mantissa + 1] == '+' ? 1 : 0;
    if (std::from_chars(text.data() + mantissa + 1 + plus, text.data() + length, exponent).ec != std::errc()) return {};
    if (exponent > 100000 || exponent < -100000) return {};
  }
  const std::string number = std::string(text.substr(0, mantissa)) + "e" + std::to_string(exponent + meaning->exponent);
  double value = 0;
  if (std::from_chars(number.data(), number.data() + number.size(), value).ec != std::errc()) {
    // Overflow is an error; underflow is 0, as for numbers without unit.
    if (exponent + meaning->exponent > 0 || mantissa > 300) return {};
    value = 0;
  }
  value = value * meaning->times / meaning->divided;
  return {std::isfinite(value) ? std::optional(value) : std::nullopt, {}};
}

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
