// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Parsed and checked JSON documents, stored flat.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>

namespace hetplan::io {

// Whole files read and written; errors name the path.

using hetplan::escaped;

/// Returns at most `limit` bytes of a text, never half a UTF-8 character, with "..." appended if shortened.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t limit);

/// Returns a string in quotes for messages: `"six"`.
[[nodiscard]] std::string in_quotes(std::string_view text, std::size_t limit = 40);

/// Returns the names in one text: `a, b, c`.
template <class Names>
[[nodiscard]] std::string joined(const Names& names, std::string_view separator = ", ") {
  std::string text;
  for (const auto& name : names) text.append(text.empty() ? "" : separator).append(name);
  return text;
}

/// Returns the edit distance of two texts: insertions, deletions, substitutions and swaps of neighbours. Complexity: O(|a| |b|).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns `; did you mean "x"?` with the nearest known name if it is near enough for a typo, else "".
template <class Names>
[[nodiscard]] std::string suggestion(std::string_view given, const Names& known) {
  constexpr std::size_t longest = 64, most = 10000;  // bounds the time of an error message
  if (given.size() > longest) return {};
  std::size_t best = std::max<std::size_t>(1, given.size() / 3) + 1, seen = 0;
  std::string_view nearest;
  for (const auto& name : known) {
    const std::string_view candidate(name);
    if (++seen > most) break;
    if (candidate.size() > longest || candidate == given) continue;
    const std::size_t distance = edit_distance(given, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? std::string() : "; did you mean " + in_quotes(nearest) + "?";
}

inline constexpr std::size_t max_file_bytes = 64'000'000;

namespace detail {

struct file_closer {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using file_handle = std::unique_ptr<std::FILE, file_closer>;

[[noreturn]] inline void fail_file(const std::string& path, const std::string& what) { throw invalid_input(escaped(path) + ": " + what); }
[[noreturn]] void fail_file(const std::string& path, const char* what, int code);

/// The first bytes of a file, as many as were asked for.
class file_head {
 public:
  /// Throws  invalid_input that names the path and the system's reason.
  explicit file_head(const std::string& path);

  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }

  /// Reads on up to so many bytes, at least those read before and at most those of the file. Returns all so far.
  ///
  /// Throws  invalid_input that names the path and the system's reason.
  const std::string& upto(std::size_t count);

 private:
  std::string path_, bytes_;
  std::uint64_t file_bytes_ = 0;
  file_handle file_;
};

/// Creates a new file named `begin` and six letters that encode `number`, or the next number if the name is taken.
///
/// @return  the file and its name; no file on other errors, with the reason in errno.
[[nodiscard]] std::pair<file_handle, std::string> make_new(const std::string& begin, std::uint64_t number);

}  // namespace detail

/// Returns the bytes of a file, a pipe or /dev/stdin.
///
/// @param most  size limit in bytes; whole megabytes.
/// Throws       invalid_input that names the path: missing, a folder, not readable, more than `most`.
[[nodiscard]] std::string read_text(const std::string& path, std::size_t most = max_file_bytes);

/// A file that is written completely under a temporary name in the same folder, and renamed by `commit`. Destruction without `commit`
/// removes it. `commit` writes directly to anything that is no regular file (a pipe, /dev/stdout). A symbolic link stays a link.
class staged_file {
 public:
  /// Throws  invalid_input that names the path and the system's reason.
  staged_file(std::string path, std::string_view text);
  staged_file(staged_file&& other) noexcept;
  staged_file& operator=(staged_file&&) = delete;
  ~staged_file();

  /// Returns the temporary path, "" if the file is committed or written directly.
  [[nodiscard]] const std::string& temporary() const { return temporary_; }

  /// Renames the file to its path, once. Readers see the old bytes or the new ones.
  ///
  /// Throws  invalid_input that names the path and the system's reason.
  void commit();

 private:
  /// Opens a file named by the clock, so that files left by killed programs do not exhaust the names.
  detail::file_handle open_temporary();

  std::string path_, target_, direct_, temporary_;
};

/// Writes a file under a temporary name and renames it (see staged_file). Readers see the old bytes or the new ones.
///
/// Throws  invalid_input that names the path and the system's reason; nothing is left behind.
inline void write_atomically(const std::string& path, std::string_view text) { staged_file(path, text).commit(); }

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
