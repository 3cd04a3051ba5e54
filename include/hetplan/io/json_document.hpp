// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Parsed and checked JSON documents, stored flat.

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/io/file.hpp>

namespace hetplan::io {

inline constexpr std::size_t max_nesting = 64;

/// A parsed JSON file. Values lie in one array in reading order, so that a hostile file costs memory in proportion to its size and no
/// recursion. `//` and `/* */` comments are skipped. `json_node` gives access to the values.
class json_document {
 public:
  enum class kind : std::uint8_t { null, boolean, integer, real, text, key, array, object };

  /// Parses a text; `file` is its name in messages.
  ///
  /// Throws  invalid_input, one line that starts with the file: more than 64 MB, a syntax error with line and column, text after the end, a
  ///         number beyond double, an integer beyond 64 bits, nesting > 64, a duplicate key in an object.
  [[nodiscard]] static json_document parse(std::string_view text, std::string file);

  [[nodiscard]] static json_document load(const std::string& path) { return parse(read_text(path), path); }

  [[nodiscard]] const std::string& file() const { return file_; }

  // Access for json_node. An index names a value; 0 is the whole document.
  [[nodiscard]] kind kind_of(std::uint32_t i) const { return entries_[i].what; }
  [[nodiscard]] std::size_t size_of(std::uint32_t i) const { return entries_[i].size; }
  /// Returns the index after a value and everything inside it.
  [[nodiscard]] std::uint32_t after(std::uint32_t i) const;
  [[nodiscard]] bool boolean(std::uint32_t i) const { return entries_[i].number != 0; }
  [[nodiscard]] std::int64_t integer(std::uint32_t i) const { return entries_[i].number; }
  [[nodiscard]] double real(std::uint32_t i) const { return std::bit_cast<double>(entries_[i].number); }
  [[nodiscard]] std::string_view text(std::uint32_t i) const;

  /// Returns the JSON pointer of a value, "" for the whole document. Complexity: O(values before it), used for errors only.
  [[nodiscard]] std::string pointer(std::uint32_t target) const;

  /// Returns a key as a token of a JSON pointer: `~` and `/` escaped, on one line, shortened.
  [[nodiscard]] static std::string pointer_token(std::string_view name);

 private:
  class builder;
  struct entry {
    kind what = kind::null;
    std::uint32_t size = 0;   ///< bytes of text; elements of an array; members of an object
    std::int64_t number = 0;  ///< integer; boolean; bits of a real; offset of text in letters_; index after an array or object
  };

  std::string file_;
  std::vector<entry> entries_;
  std::string letters_;
};

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/json_document.ipp>
#endif
