// SPDX-License-Identifier: BSL-1.0
#pragma once
/// An object whose keys are known: unknown ones are refused, known ones are found at once.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::io {

/// The keys that an object may have, in the order of the format.
using key_list = std::span<const std::string_view>;

/// The members of an object, by key. Throws invalid_input for what is no object or has an unknown key.
class json_object {
 public:
  json_object(json_node node, key_list keys, std::string_view expected = "an object");

  [[nodiscard]] const json_node& node() const { return node_; }

  [[nodiscard]] std::optional<json_node> find(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key).has_value(); }

  /// A member that must be there.
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
  std::array<std::uint32_t, 24> found_{};
};

/// The whole document as an object of a format: `open_document(d, "hetplan/model/1", keys)`. The format is
/// looked at first, so that a file of another kind or version is not called full of unknown keys.
[[nodiscard]] json_object open_document(const json_document& d, std::string_view format, key_list keys);

/// What a document says that it is: "hetplan/cluster/1"; "" if it does not say.
[[nodiscard]] std::string document_format(const json_document& d);

/// Runs something that checks on its own and puts file and pointer before what it objects to.
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

#ifndef HETPLAN_COMPILED
#include <hetplan/io/json_object.ipp>
#endif
