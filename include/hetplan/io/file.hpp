// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Whole files in and out, with errors that name the path.

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include <hetplan/core/error.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::io {

/// The largest file that is read: 64 MB.
inline constexpr std::size_t max_file_bytes = 64'000'000;

namespace detail {

struct file_closer {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using file_handle = std::unique_ptr<std::FILE, file_closer>;

[[noreturn]] inline void fail_file(const std::string& path, const std::string& what) {
  throw invalid_input(escaped(path) + ": " + what);
}
[[noreturn]] inline void fail_file(const std::string& path, const char* what, int code) {
  fail_file(path, std::string(what) + ": " + std::generic_category().message(code));
}

/// Writes and closes; the error of the first step that failed, or 0. A full disk may show only at the end.
[[nodiscard]] inline int write_and_close(file_handle f, std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), f.get()) == text.size() && std::fflush(f.get()) == 0;
  const int code = errno;
  const bool closed = std::fclose(f.release()) == 0;
  if (written && closed) return 0;
  return code != 0 ? code : errno != 0 ? errno : EIO;
}

/// Removes the temporary file unless it got its name.
struct temporary_file {
  std::string path;
  bool keep = false;
  ~temporary_file() {
    if (!keep) std::remove(path.c_str());
  }
};

}  // namespace detail

/// The bytes of a file, a pipe or /dev/stdin.
///
/// Throws  invalid_input that names the path: missing, a folder, not readable, more than 64 MB.
[[nodiscard]] inline std::string read_text(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) detail::fail_file(path, "expected a file, got a folder");
  errno = 0;
  const detail::file_handle f(std::fopen(path.c_str(), "rb"));
  if (!f) detail::fail_file(path, "cannot read", errno);
  std::string text;
  // Read in pieces instead of asking for the size: a pipe has none.
  for (std::size_t piece = 1 << 16;; piece *= 2) {
    const std::size_t before = text.size();
    text.resize(before + piece);
    const std::size_t got = std::fread(text.data() + before, 1, piece, f.get());
    text.resize(before + got);
    if (text.size() > max_file_bytes) detail::fail_file(path, "expected at most 64 MB, got more");
    if (got == piece) continue;
    if (std::ferror(f.get()) != 0) detail::fail_file(path, "cannot read", errno);
    return text;
  }
}

/// Writes a file under a temporary name beside it and renames: readers see the old bytes or the new ones.
///
/// Something that is no regular file (a pipe, /dev/stdout) is written to directly. A link stays a link.
/// Throws  invalid_input that names the path and the system's reason; nothing is left behind.
inline void write_atomically(const std::string& path, std::string_view text) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (fs::is_directory(status)) detail::fail_file(path, "expected a file to write, got a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    errno = 0;
    detail::file_handle f(std::fopen(path.c_str(), "wb"));
    if (!f) detail::fail_file(path, "cannot write", errno);
    if (const int failed = detail::write_and_close(std::move(f), text)) detail::fail_file(path, "cannot write", failed);
    return;
  }
  std::string target = path;
  if (fs::is_symlink(fs::symlink_status(path, code)) && fs::exists(status)) {
    const fs::path real = fs::canonical(path, code);
    if (!code) target = real.string();
  }
  detail::file_handle f;
  detail::temporary_file temporary;
  // "x": never somebody else's file, and two writers get two names.
  for (int i = 0; !f; ++i) {
    temporary.keep = true;
    temporary.path = target + ".tmp" + std::to_string(i);
    errno = 0;
    f.reset(std::fopen(temporary.path.c_str(), "wbx"));
    if (!f && (errno != EEXIST || i == 1000)) detail::fail_file(path, "cannot write", errno);
  }
  temporary.keep = false;
  if (const int failed = detail::write_and_close(std::move(f), text)) detail::fail_file(path, "cannot write", failed);
  if (fs::exists(status)) fs::permissions(temporary.path, status.permissions(), code);
  fs::rename(temporary.path, target, code);
  if (code) detail::fail_file(path, "cannot write", code.value());
  temporary.keep = true;
}

}  // namespace hetplan::io
