// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Checked access to the values of JSON documents, and quantities with units.

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::io {

// Quantities as text: "900 Mbit/s", "6 GB", "200 ms", "35 W", "9.1 TFLOP/s".

/// Powers of time [s], data [B], energy [J] and work [FLOP] in a quantity's unit; all 0: a plain number.
struct dimension {
  int time = 0;
  int data = 0;
  int energy = 0;
  int work = 0;

  [[nodiscard]] constexpr bool plain() const { return *this == dimension{}; }
  friend constexpr bool operator==(const dimension&, const dimension&) = default;
};

namespace detail {
template <class Quantity>
struct dimension_of_quantity;
template <int T, int D, int E, int W>
struct dimension_of_quantity<quantity<T, D, E, W>> {
  static constexpr dimension value{T, D, E, W};
};
}  // namespace detail

/// Dimension of a quantity type: `dimension_of<bytes_per_second>`.
template <class Quantity>
inline constexpr dimension dimension_of = detail::dimension_of_quantity<Quantity>::value;

[[nodiscard]] constexpr std::string_view to_string(const dimension& d) {
  if (d == dimension_of<seconds>) return "seconds";
  if (d == dimension_of<bytes>) return "bytes";
  if (d == dimension_of<flops>) return "FLOP";
  if (d == dimension_of<bytes_per_second>) return "bytes/s";
  if (d == dimension_of<flops_per_second>) return "FLOP/s";
  if (d == dimension_of<joules>) return "joules";
  if (d == dimension_of<watts>) return "watts (J/s)";
  if (d == dimension_of<joules_per_byte>) return "joules/byte";
  return "a number";
}

/// A quantity parsed from text: its SI value, or none and perhaps a correction.
struct parsed_quantity {
  std::optional<double> value = {};
  std::string meant = {};  ///< the text with the unit that was probably meant; "" if unknown
};

/// Parses number, optional space, optional prefix, unit, optional "/s" or "/B" as a quantity of dimension d.
///
/// A decimal prefix moves the decimal point before the number is rounded, so "200 ms" is exactly 0.2 and "600 Mbit/s" exactly 600e6 / 8.
/// Case matters: "Mb" is no unit, and `meant` then says "Mbit"; "600 mbit/s" is corrected to "600 Mbit/s". Implausible prefixes are
/// refused: less than one bit, byte or FLOP, more than 1000 s, any of min and h. Independent of the locale. Plain numbers have no unit and
/// cannot be written as text.
[[nodiscard]] parsed_quantity parse_quantity(std::string_view text, const dimension& d);

/// Allowed values of a number.
enum class range { any, at_least_zero, above_zero };

/// Returns the expected value for messages: "bytes > 0", "a number >= 0".
[[nodiscard]] std::string expectation(const dimension& d, range r);

/// A value of a document with checked accessors. An accessor throws invalid_input `FILE: /pointer: expected X, got Y` if the value is
/// something else. The document must outlive the node.
class json_node {
 public:
  using kind = json_document::kind;

  explicit json_node(const json_document& d, std::uint32_t index = 0) : document_(&d), index_(index) {}

  [[nodiscard]] bool is_text() const { return what() == kind::text; }
  [[nodiscard]] bool is_object() const { return what() == kind::object; }
  [[nodiscard]] bool is_boolean() const { return what() == kind::boolean; }
  [[nodiscard]] bool is_integer() const { return what() == kind::integer; }
  [[nodiscard]] const json_document& document() const { return *document_; }
  [[nodiscard]] std::string pointer() const { return document_->pointer(index_); }
  [[nodiscard]] std::uint32_t index() const { return index_; }

  [[nodiscard]] std::string shown() const;

  /// Throws invalid_input `FILE: /pointer: TEXT`.
  [[noreturn]] void fail_with(std::string_view text) const { fail_below("", text); }
  /// Throws invalid_input `FILE: /pointer: expected X, got VALUE` and the hint, which starts with its own "; ".
  [[noreturn]] void fail(std::string_view expected, std::string_view hint = "") const;
  /// Throws invalid_input `FILE: /pointer/key: expected X, got nothing`.
  [[noreturn]] void fail_missing(std::string_view key, std::string_view expected) const;

  [[nodiscard]] std::string_view text(std::string_view expected = "text") const;
  /// Returns a string that is not empty.
  [[nodiscard]] std::string_view name(std::string_view expected = "a name") const;
  [[nodiscard]] bool boolean() const;

  /// Returns a number, also from a string with a unit of the dimension. A plain dimension takes numbers only.
  [[nodiscard]] double number(range r, const dimension& d = {}) const;
  template <class Quantity>
  [[nodiscard]] Quantity amount(range r) const {
    return Quantity(number(r, dimension_of<Quantity>));
  }

  /// Returns an integer between two limits, also from a number without fraction such as 4.0.
  template <class Integer = int>
  [[nodiscard]] Integer integer(Integer low, Integer high = std::numeric_limits<Integer>::max()) const {
    const auto wanted = [&](bool both) {
      return both ? "an integer from " + std::to_string(low) + " to " + std::to_string(high) : "an integer >= " + std::to_string(low);
    };
    std::int64_t v = 0;
    if (what() == kind::integer) {
      v = document_->integer(index_);
    } else if (what() == kind::real) {
      const double x = document_->real(index_);
      if (x != std::floor(x)) fail(wanted(false));
      if (std::abs(x) > 9007199254740992.0) fail(wanted(true));
      v = static_cast<std::int64_t>(x);
    } else {
      fail(wanted(high != std::numeric_limits<Integer>::max()));
    }
    if (v < low) fail(wanted(high != std::numeric_limits<Integer>::max()));
    if (v > high) fail(wanted(true));
    return static_cast<Integer>(v);
  }

  /// Returns the enumerator named by a string, from a table of all names.
  template <class Enum, std::size_t N>
  [[nodiscard]] Enum one_of(const std::array<std::pair<std::string_view, Enum>, N>& names) const {
    if (is_text()) {
      for (const auto& [name, value] : names) {
        if (name == document_->text(index_)) return value;
      }
    }
    fail(name_list(names));
  }
  template <class Enum, std::size_t N>
  [[nodiscard]] static std::string name_list(const std::array<std::pair<std::string_view, Enum>, N>& names) {
    std::string all;
    for (std::size_t i = 0; i < N; ++i) all.append(i == 0 ? "" : i + 1 == N ? " or " : ", ").append(in_quotes(names[i].first));
    return all;
  }

  [[nodiscard]] std::size_t size() const { return document_->size_of(index_); }

  class element_iterator {
   public:
    element_iterator(const json_document& d, std::uint32_t index) : document_(&d), index_(index) {}
    json_node operator*() const { return json_node(*document_, index_); }
    element_iterator& operator++();
    bool operator==(const element_iterator& other) const { return index_ == other.index_; }

   private:
    const json_document* document_;
    std::uint32_t index_;
  };
  struct element_range {
    element_iterator first, last;
    [[nodiscard]] element_iterator begin() const { return first; }
    [[nodiscard]] element_iterator end() const { return last; }
  };
  /// Returns the elements of an array. Throws invalid_input if there are fewer than `least`.
  [[nodiscard]] element_range elements(std::string_view expected, std::size_t least = 0) const;

  class member_iterator {
   public:
    member_iterator(const json_document& d, std::uint32_t index) : document_(&d), index_(index) {}
    std::pair<std::string_view, json_node> operator*() const { return {document_->text(index_), json_node(*document_, index_ + 1)}; }
    member_iterator& operator++();
    bool operator==(const member_iterator& other) const { return index_ == other.index_; }

   private:
    const json_document* document_;
    std::uint32_t index_;
  };
  struct member_range {
    member_iterator first, last;
    [[nodiscard]] member_iterator begin() const { return first; }
    [[nodiscard]] member_iterator end() const { return last; }
  };
  /// Returns key and value of every member of an object, in file order.
  [[nodiscard]] member_range members(std::string_view expected = "an object") const;

 private:
  [[nodiscard]] kind what() const { return document_->kind_of(index_); }
  [[noreturn]] void fail_below(std::string_view path, std::string_view text) const;

  const json_document* document_;
  std::uint32_t index_;
};

/// Keys that an object may have, in the order of the format.
using key_list = std::span<const std::string_view>;

/// The members of an object by key. Throws invalid_input for a value that is no object or has an unknown key.
class json_object {
 public:
  json_object(json_node node, key_list keys, std::string_view expected = "an object");

  [[nodiscard]] const json_node& node() const { return node_; }

  [[nodiscard]] std::optional<json_node> find(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key).has_value(); }

  /// Returns a member that must be there.
  [[nodiscard]] json_node at(std::string_view key, std::string_view expected) const;

  template <class Quantity>
  [[nodiscard]] std::optional<Quantity> amount(std::string_view key, range r) const {
    const auto found = find(key);
    return found ? std::optional(found->amount<Quantity>(r)) : std::nullopt;
  }
  template <class Quantity>
  [[nodiscard]] Quantity required_amount(std::string_view key, range r) const {
    return at(key, expectation(dimension_of<Quantity>, r)).template amount<Quantity>(r);
  }
  [[nodiscard]] std::optional<double> number(std::string_view key, range r) const;
  template <class Integer>
  [[nodiscard]] Integer integer_or(std::string_view key, Integer low, Integer otherwise) const {
    const auto found = find(key);
    return found ? found->integer<Integer>(low) : otherwise;
  }
  template <class Integer = int>
  [[nodiscard]] Integer required_integer(std::string_view key, Integer low) const {
    return at(key, "an integer >= " + std::to_string(low)).template integer<Integer>(low);
  }
  template <class Enum, std::size_t N>
  [[nodiscard]] Enum one_of(std::string_view key, const std::array<std::pair<std::string_view, Enum>, N>& names,
                            std::optional<Enum> otherwise = {}) const {
    const auto found = find(key);
    if (!found && otherwise) return *otherwise;
    return found ? found->one_of(names) : at(key, json_node::name_list(names)).one_of(names);
  }

 private:
  [[nodiscard]] std::size_t position(std::string_view key) const;
  [[noreturn]] void refuse(std::string_view key, const json_node& value) const;

  json_node node_;
  key_list keys_;
  std::array<std::uint32_t, 32> found_{};
};

/// Opens a document as an object of a format: `open_document(d, "hetplan/model/1", keys)`. The format is checked before the keys, so that
/// a file of another kind or version is not reported as full of unknown keys.
[[nodiscard]] json_object open_document(const json_document& d, std::string_view format, key_list keys);

/// Returns the format that a document states, such as "hetplan/cluster/1", or "".
[[nodiscard]] std::string document_format(const json_document& d);

/// Runs a function and prefixes the messages of its invalid_input and invalid_model with file and pointer.
template <class F>
auto at_node(const json_node& node, F&& f, std::string_view drop = "") {
  std::string what;
  try {
    return f();
  } catch (const invalid_input& e) {
    what = e.what();
  } catch (const invalid_model& e) {
    what = e.what();
  }
  node.fail_with(shortened(what.starts_with(drop) ? what.substr(drop.size()) : what, 400));
}

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/json_node.ipp>
#endif
