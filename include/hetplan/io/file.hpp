// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Whole files in and out, with errors that name the path.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::io {

// How messages show what a file says: short, on one line, with the name that was perhaps meant.

using hetplan::escaped;

/// At most `limit` bytes of the text, never half a UTF-8 character; "..." where something was cut.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t limit);

/// A value of type string as messages show it: `"six"`.
[[nodiscard]] std::string in_quotes(std::string_view text, std::size_t limit = 40);

/// `a, b, c`.
template <class Names>
[[nodiscard]] std::string joined(const Names& names, std::string_view separator = ", ") {
  std::string text;
  for (const auto& name : names) text.append(text.empty() ? "" : separator).append(name);
  return text;
}

/// Insertions, deletions, changes and swaps of neighbours that turn a into b.
///
/// Complexity  O(|a| |b|).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// `; did you mean "x"?` for the nearest known name, if one is near enough to be a slip of the hand; else "".
template <class Names>
[[nodiscard]] std::string suggestion(std::string_view given, const Names& known) {
  constexpr std::size_t longest = 64, most = 10000;  // an error message must not take seconds
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

/// The largest file that is read: 64 MB.
inline constexpr std::size_t max_file_bytes = 64'000'000;

namespace detail {

struct file_closer {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using file_handle = std::unique_ptr<std::FILE, file_closer>;

[[noreturn]] inline void fail_file(const std::string& path, const std::string& what) { throw invalid_input(escaped(path) + ": " + what); }
[[noreturn]] void fail_file(const std::string& path, const char* what, int code);

/// Makes a file that was not there: `begin` and six letters for a number, those of the next one where they are taken.
///
/// @return  nothing for any other reason, which is in errno; the name.
[[nodiscard]] std::pair<file_handle, std::string> make_new(const std::string& begin, std::uint64_t number);

}  // namespace detail

/// The bytes of a file, a pipe or /dev/stdin.
///
/// @param most  bytes; in whole megabytes.
/// Throws       invalid_input that names the path: missing, a folder, not readable, more than `most`.
[[nodiscard]] std::string read_text(const std::string& path, std::size_t most = max_file_bytes);

/// A file that is written whole, and not in its place before `commit`: until then it has a temporary name beside it. Destroyed
/// without `commit` it leaves nothing behind.
///
/// Something that is no regular file (a pipe, /dev/stdout) is written to directly, by `commit`. A link stays a link.
class staged_file {
 public:
  /// Throws  invalid_input that names the path and the system's reason.
  staged_file(std::string path, std::string_view text);
  staged_file(staged_file&& other) noexcept;
  staged_file& operator=(staged_file&&) = delete;
  ~staged_file();

  /// Where it waits for its name; "" where it has none: written directly, or already in its place.
  [[nodiscard]] const std::string& temporary() const { return temporary_; }

  /// Puts the file in its place, once: readers see the old bytes or the new ones.
  ///
  /// Throws  invalid_input that names the path and the system's reason.
  void commit();

 private:
  /// A name from the clock: however many files killed programs have left, one is free.
  detail::file_handle open_temporary();

  std::string path_, target_, direct_, temporary_;
};

/// Writes a file under a temporary name beside it and renames: readers see the old bytes or the new ones.
///
/// Something that is no regular file (a pipe, /dev/stdout) is written to directly. A link stays a link.
/// Throws  invalid_input that names the path and the system's reason; nothing is left behind.
inline void write_atomically(const std::string& path, std::string_view text) { staged_file(path, text).commit(); }

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/file.ipp>
#endif
