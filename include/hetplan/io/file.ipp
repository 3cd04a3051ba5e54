// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/file.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

namespace hetplan::io {

HETPLAN_INLINE std::string shortened(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return std::string(text.substr(0, limit)) + "...";
}

HETPLAN_INLINE std::string in_quotes(std::string_view text, std::size_t limit) { return "\"" + escaped(shortened(text, limit)) + "\""; }

HETPLAN_INLINE std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

namespace detail {

HETPLAN_INLINE void fail_file(const std::string& path, const char* what, int code) {
  fail_file(path, std::string(what) + ": " + std::generic_category().message(code));
}

/// Writes and closes a file. Returns the error of the first failing step, or 0. A full disk may show only on closing.
[[nodiscard]] HETPLAN_INLINE int write_and_close(file_handle f, std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), f.get()) == text.size() && std::fflush(f.get()) == 0;
  const int code = errno;
  const bool closed = std::fclose(f.release()) == 0;
  if (written && closed) return 0;
  return code != 0 ? code : errno != 0 ? errno : EIO;
}

HETPLAN_INLINE std::pair<file_handle, std::string> make_new(const std::string& begin, std::uint64_t number) {
  constexpr std::string_view letters = "0123456789abcdefghijklmnopqrstuvwxyz";
  for (;; ++number) {
    std::string name = begin;
    for (std::uint64_t rest = number, i = 0; i < 6; rest /= letters.size(), ++i) name += letters[rest % letters.size()];
    errno = 0;
    file_handle f(std::fopen(name.c_str(), "wbx"));  // "x": fails on existing files, so that two writers get two names
    if (f || errno != EEXIST) return {std::move(f), std::move(name)};
  }
}

}  // namespace detail

HETPLAN_INLINE std::string read_text(const std::string& path, std::size_t most) {
  const auto fail_size = [&] { detail::fail_file(path, "expected at most " + std::to_string(most / 1'000'000) + " MB, got more"); };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) detail::fail_file(path, "expected a file, got a folder");
  errno = 0;
  const detail::file_handle f(std::fopen(path.c_str(), "rb"));
  if (!f) detail::fail_file(path, "cannot read", errno);
  std::size_t piece = 1 << 16;
  if (const auto size = std::filesystem::file_size(path, ignored); !ignored) {
    if (size > most) fail_size();
    piece = std::max<std::size_t>(piece, size + 1);
  }
  std::string text;
  for (;; piece *= 2) {  // pipes have no size, and files may grow
    const std::size_t before = text.size();
    text.resize(before + piece);
    const std::size_t got = std::fread(text.data() + before, 1, piece, f.get());
    text.resize(before + got);
    if (text.size() > most) fail_size();
    if (got == piece) continue;
    if (std::ferror(f.get()) != 0) detail::fail_file(path, "cannot read", errno);
    return text;
  }
}

HETPLAN_INLINE staged_file::staged_file(std::string path, std::string_view text) : path_(std::move(path)) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::file_status status = fs::status(path_, code);
  if (fs::is_directory(status)) detail::fail_file(path_, "expected a file to write, got a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    direct_ = text;
    return;
  }
  target_ = path_;
  if (fs::is_symlink(fs::symlink_status(path_, code)) && fs::exists(status)) {
    const fs::path real = fs::canonical(path_, code);
    if (!code) target_ = real.string();
  }
  detail::file_handle f = open_temporary();
  if (const int failed = detail::write_and_close(std::move(f), text)) {
    std::remove(temporary_.c_str());
    detail::fail_file(path_, "cannot write", failed);
  }
  if (fs::exists(status)) fs::permissions(temporary_, status.permissions(), code);
}

HETPLAN_INLINE staged_file::staged_file(staged_file&& other) noexcept
    : path_(std::move(other.path_)), target_(std::move(other.target_)), direct_(std::move(other.direct_)),
      temporary_(std::exchange(other.temporary_, {})) {}

HETPLAN_INLINE staged_file::~staged_file() {
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

HETPLAN_INLINE void staged_file::commit() {
  if (target_.empty()) {
    errno = 0;
    detail::file_handle f(std::fopen(path_.c_str(), "wb"));
    if (!f) detail::fail_file(path_, "cannot write", errno);
    if (const int failed = detail::write_and_close(std::move(f), direct_)) detail::fail_file(path_, "cannot write", failed);
    return;
  }
  std::error_code code;
  std::filesystem::rename(temporary_, target_, code);
  if (code) detail::fail_file(path_, "cannot write", code.value());
  temporary_.clear();
}

HETPLAN_INLINE detail::file_handle staged_file::open_temporary() {
  constexpr std::size_t longest = 200;  // leaves room for the suffix within the length limit of names
  const std::filesystem::path place(target_);
  const std::string begin = (place.parent_path() / place.filename().string().substr(0, longest)).string() + ".tmp";
  auto [f, name] = detail::make_new(begin, static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
  if (!f) detail::fail_file(path_, "cannot write", errno);
  temporary_ = std::move(name);
  return std::move(f);
}

}  // namespace hetplan::io
