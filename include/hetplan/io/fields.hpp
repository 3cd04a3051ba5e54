// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Fields of types in files: one list per type, `fields_of`, gives its reader, writer, keys and JSON schema.

#include <array>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <hetplan/io/json_node.hpp>

namespace hetplan::io::detail {

/// The type `Noun`, or its constant form: `fields_of` is a template over both, as readers change the object and writers do not.
template <class T, class Noun>
concept noun = std::same_as<std::remove_const_t<T>, Noun>;

// Meanings of a missing field: `required`, `absent`, a value, or the value of another field.

struct required_field {};
inline constexpr required_field required;
struct absent_field {};
inline constexpr absent_field absent;
template <class T>
struct same_as {
  std::string_view key;
  const T& value;
};
template <class T>
same_as(const char*, const T&) -> same_as<T>;
template <class T>
struct always {  ///< a default that is written nevertheless
  T value;
};
template <class T>
always(T) -> always<T>;

// Rules for the value of a field: a range (numbers and quantities), an array of names (enums), or one of these.

struct numbers_of {  ///< a double in a unit
  dimension unit;
  range allowed;
};
struct at_most {  ///< a number with an upper limit
  range allowed;
  double most;
  std::string_view expected;
};
struct integers {
  long long low;
  std::optional<long long> most = {};
};
struct names {  ///< strings that are not empty
  std::string_view expected = "a name";
};
struct truth {};

template <class T>
struct value_of : std::type_identity<T> {};
template <class T>
struct value_of<std::optional<T>> : std::type_identity<T> {};

template <class T>
inline constexpr dimension unit_of{};
template <int T, int D, int E, int W>
inline constexpr dimension unit_of<quantity<T, D, E, W>> = dimension_of<quantity<T, D, E, W>>;

template <class T, class Rule>
[[nodiscard]] T read_value(const json_node& n, const Rule& rule) {
  if constexpr (std::same_as<Rule, range>) {
    return T(n.number(rule, unit_of<T>));
  } else if constexpr (std::same_as<Rule, numbers_of>) {
    return n.number(rule.allowed, rule.unit);
  } else if constexpr (std::same_as<Rule, at_most>) {
    const double v = n.number(rule.allowed);
    if (v > rule.most) n.fail(rule.expected);
    return v;
  } else if constexpr (std::same_as<Rule, integers>) {
    return n.integer<T>(static_cast<T>(rule.low), rule.most ? static_cast<T>(*rule.most) : std::numeric_limits<T>::max());
  } else if constexpr (std::same_as<Rule, names>) {
    return T(n.name(rule.expected));
  } else if constexpr (std::same_as<Rule, truth>) {
    return n.boolean();
  } else {
    return n.one_of(rule);
  }
}

/// Returns the expected value of a missing required field, for messages.
template <class T, class Rule>
[[nodiscard]] std::string expected_value(const Rule& rule) {
  if constexpr (std::same_as<Rule, range>) {
    return expectation(unit_of<T>, rule);
  } else if constexpr (std::same_as<Rule, integers>) {
    return "an integer >= " + std::to_string(rule.low);
  } else if constexpr (std::same_as<Rule, names>) {
    return std::string(rule.expected);
  } else {
    return json_node::name_list(rule);
  }
}

class key_collector {
 public:
  void format(std::string_view) { all.push_back("format"); }
  void operator()(std::string_view key, const auto&...) { all.push_back(key); }
  void object(std::string_view key, const auto&...) { all.push_back(key); }
  void by_hand(std::string_view key, const auto&...) { all.push_back(key); }
  void check(const auto&) {}

  std::vector<std::string_view> all;
};

}  // namespace hetplan::io::detail

namespace hetplan::io {

// Declared here as in json_text.hpp, to keep headers free of it.
using json = nlohmann::ordered_json;
void put(json& object, const std::string& key, double value);

/// Returns the keys of a type, in the order of its fields.
template <class Noun>
[[nodiscard]] key_list keys_of() {
  static const std::vector<std::string_view> all = [] {
    detail::key_collector keys;
    const Noun nothing{};
    fields_of(nothing, keys);
    return keys.all;
  }();
  return all;
}

namespace detail {

/// Sets an object's members from a JSON object, in the order of the fields.
class field_reader {
 public:
  /// @param keeps  missing fields keep the value that they have, required ones too.
  explicit field_reader(const json_object& o, bool keeps = false) : object_(&o), keeps_(keeps) {}

  void format(std::string_view) {}  // checked by open_document

  template <class T, class Otherwise, class Rule>
  void operator()(std::string_view key, T& value, const Otherwise& otherwise, const Rule& rule, std::string_view = {}) {
    using type = typename value_of<T>::type;
    last_ = object_->find(key);
    if (last_) {
      value = read_value<type>(*last_, rule);
    } else if (keeps_) {
    } else if constexpr (std::same_as<Otherwise, required_field>) {
      object_->node().fail_missing(key, expected_value<type>(rule));
    } else if constexpr (std::same_as<Otherwise, same_as<T>> || std::same_as<Otherwise, always<T>>) {
      value = otherwise.value;
    } else if constexpr (!std::same_as<Otherwise, absent_field>) {
      value = otherwise;
    }
  }
  template <class Noun>
  void object(std::string_view key, Noun& part, std::string_view expected, std::string_view = {}) {
    last_ = object_->find(key);
    if (!last_) return;
    const json_object o(*last_, keys_of<Noun>(), expected);
    field_reader inner(o, keeps_);
    fields_of(part, inner);
  }
  /// @param read  called with the json_node of the field, if present
  void by_hand(std::string_view key, const auto& read, const auto&) {
    last_ = object_->find(key);
    if (last_) read(*last_);
  }
  /// Runs a further check on the previous field, if present.
  void check(const auto& refuse) {
    if (last_) refuse(*last_);
  }

 private:
  const json_object* object_;
  bool keeps_;
  std::optional<json_node> last_;
};

template <class Json, class Noun>
[[nodiscard]] Json write_fields(const Noun& from);

/// Adds the fields that differ from their defaults to a JSON object. A template, so that headers need not include all of JSON.
template <class Json>
class field_writer {
 public:
  explicit field_writer(Json& o) : object_(&o) {}

  void format(std::string_view format) { (*object_)["format"] = format; }

  template <class T, class Otherwise, class Rule>
  void operator()(std::string_view key, const T& value, const Otherwise& otherwise, const Rule& rule, std::string_view = {}) {
    if constexpr (!std::same_as<typename value_of<T>::type, T>) {
      if (value) add(key, *value, rule);
    } else if constexpr (std::same_as<Otherwise, same_as<T>>) {
      if (value != otherwise.value) add(key, value, rule);
    } else if constexpr (std::same_as<Otherwise, required_field> || std::same_as<Otherwise, always<T>>) {
      add(key, value, rule);
    } else {
      if (value != otherwise) add(key, value, rule);
    }
  }
  template <class Noun>
  void object(std::string_view key, const Noun& part, std::string_view, std::string_view = {}) {
    Json o = write_fields<Json>(part);
    if (!o.empty()) (*object_)[std::string(key)] = std::move(o);
  }
  /// @param write  called with the JSON object; may add the field
  void by_hand(std::string_view, const auto&, const auto& write) { write(*object_); }
  void check(const auto&) {}

 private:
  template <class T, class Rule>
  void add(std::string_view key, const T& value, const Rule& rule) {
    if constexpr (std::is_enum_v<T>) {
      for (const auto& [name, each] : rule) {
        if (each == value) (*object_)[std::string(key)] = name;
      }
    } else if constexpr (std::same_as<T, double>) {
      put(*object_, std::string(key), value);
    } else if constexpr (unit_of<T> != dimension{}) {
      put(*object_, std::string(key), value.value());
    } else {
      (*object_)[std::string(key)] = value;
    }
  }

  Json* object_;
};

template <class Json, class Noun>
Json write_fields(const Noun& from) {
  Json o;
  field_writer<Json> writer(o);
  fields_of(from, writer);
  return o;
}

/// @param keeps  missing fields keep the value that they have, required ones too.
template <class Noun>
void read_fields(const json_object& o, Noun& to, bool keeps = false) {
  field_reader reader(o, keeps);
  fields_of(to, reader);
}

}  // namespace detail

}  // namespace hetplan::io
