// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/json_document.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>

#include <nlohmann/json.hpp>

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

HETPLAN_INLINE file_head::file_head(const std::string& path) : path_(path) {
  std::error_code code;
  file_bytes_ = std::filesystem::file_size(path, code);
  if (code) fail_file(path, "cannot read", code.value());
  errno = 0;
  file_.reset(std::fopen(path.c_str(), "rb"));
  if (!file_) fail_file(path, "cannot read", errno);
}

HETPLAN_INLINE const std::string& file_head::upto(std::size_t count) {
  const std::size_t before = bytes_.size();
  bytes_.resize(count);
  if (std::fread(bytes_.data() + before, 1, count - before, file_.get()) != count - before)
    fail_file(path_, "cannot read", errno != 0 ? errno : EIO);
  return bytes_;
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

/// Receives nlohmann-json's events and checks limits as soon as they are exceeded.
class json_document::builder {
 public:
  using json = nlohmann::json;

  builder(json_document& d, std::string_view text) : document_(d), text_(text) {}

  bool null() { return add(numbered(kind::null, 0)); }
  bool boolean(bool v) { return add(numbered(kind::boolean, v ? 1 : 0)); }
  bool number_integer(json::number_integer_t v) { return add(numbered(kind::integer, v)); }
  bool number_unsigned(json::number_unsigned_t v);
  bool number_float(json::number_float_t v, const json::string_t& written);
  bool string(json::string_t& v) { return add(lettered(kind::text, v)); }
  bool binary(json::binary_t&) { return false; }

  bool start_object(std::size_t) { return open(kind::object); }
  bool key(json::string_t& v);
  bool end_object();
  bool start_array(std::size_t) { return open(kind::array); }
  bool end_array() { return close(); }

  bool parse_error(std::size_t position, const std::string&, const json::exception& e);
  [[noreturn]] void fail_at(std::size_t offset, const std::string& what) const;

 private:
  static entry numbered(kind what, std::int64_t v) { return {what, 0, v}; }
  entry lettered(kind what, const std::string& v);
  bool add(const entry& e);
  bool open(kind what);
  bool close();

  /// Checks that an object's keys are distinct. Large objects are sorted instead of comparing each pair.
  void check_keys(std::uint32_t object);
  [[noreturn]] void fail_twice(const std::pair<std::string_view, std::uint32_t>& key) const;
  [[noreturn]] void fail(std::uint32_t index, const std::string& what) const;

  /// Returns nlohmann-json's message without its prefix and with the last token shortened.
  static std::string explanation(std::string_view what);

  json_document& document_;
  std::string_view text_;
  std::vector<std::uint32_t> open_;
  std::vector<std::pair<std::string_view, std::uint32_t>> keys_;
};

HETPLAN_INLINE std::uint32_t json_document::after(std::uint32_t i) const {
  const entry& e = entries_[i];
  return e.what == kind::array || e.what == kind::object ? static_cast<std::uint32_t>(e.number) : i + 1;
}

HETPLAN_INLINE std::string_view json_document::text(std::uint32_t i) const {
  return std::string_view(letters_).substr(static_cast<std::size_t>(entries_[i].number), entries_[i].size);
}

HETPLAN_INLINE std::string json_document::pointer(std::uint32_t target) const {
  std::string path;
  std::uint32_t at = 0;
  while (at != target) {
    const bool object = kind_of(at) == kind::object;
    std::uint32_t child = at + 1, key = child;
    std::size_t position = 0;
    for (;; ++position) {
      key = child;
      if (object) ++child;
      if (target < after(child)) break;
      child = after(child);
    }
    path += "/" + (object ? pointer_token(text(key)) : std::to_string(position));
    if (object && target == key) return path;
    at = child;
  }
  return path;
}

HETPLAN_INLINE std::string json_document::pointer_token(std::string_view name) {
  std::string token;
  for (const char c : shortened(name, 80)) {
    if (c == '~') token += "~0";
    else if (c == '/') token += "~1";
    else token += c;
  }
  return escaped(token);
}

HETPLAN_INLINE bool json_document::builder::number_unsigned(json::number_unsigned_t v) {
  if (v > static_cast<json::number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
    return number_float(static_cast<double>(v), std::to_string(v));
  }
  return add(numbered(kind::integer, static_cast<std::int64_t>(v)));
}

HETPLAN_INLINE bool json_document::builder::number_float(json::number_float_t v, const json::string_t& written) {
  add(numbered(kind::real, std::bit_cast<std::int64_t>(v)));
  // Digits alone are meant exactly, and a double would change the last ones.
  if (written.find_first_of(".eE") == std::string::npos) {
    fail(static_cast<std::uint32_t>(document_.entries_.size() - 1),
         "expected an integer from -2^63 to 2^63 - 1, or a number with a point or an exponent, got " + shortened(written, 40));
  }
  return true;
}

HETPLAN_INLINE bool json_document::builder::key(json::string_t& v) {
  ++document_.entries_[open_.back()].size;
  document_.entries_.push_back(lettered(kind::key, v));
  return true;
}

HETPLAN_INLINE bool json_document::builder::end_object() {
  check_keys(open_.back());
  return close();
}

HETPLAN_INLINE bool json_document::builder::parse_error(std::size_t position, const std::string&, const json::exception& e) {
  // nlohmann-json counts the end of the text as a character; positions start at 1.
  fail_at(std::min(position == 0 ? 0 : position - 1, text_.size()), explanation(e.what()));
}

HETPLAN_INLINE void json_document::builder::fail_at(std::size_t offset, const std::string& what) const {
  const std::string_view before = text_.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? offset + 1 : offset - newline;
  throw invalid_input(escaped(document_.file_) + ": line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what);
}

HETPLAN_INLINE json_document::entry json_document::builder::lettered(kind what, const std::string& v) {
  entry e = numbered(what, static_cast<std::int64_t>(document_.letters_.size()));
  e.size = static_cast<std::uint32_t>(v.size());
  document_.letters_ += v;
  return e;
}

HETPLAN_INLINE bool json_document::builder::add(const entry& e) {
  if (!open_.empty() && document_.entries_[open_.back()].what == kind::array) ++document_.entries_[open_.back()].size;
  document_.entries_.push_back(e);
  return true;
}

HETPLAN_INLINE bool json_document::builder::open(kind what) {
  const auto index = static_cast<std::uint32_t>(document_.entries_.size());
  add(numbered(what, std::numeric_limits<std::uint32_t>::max()));  // open: everything that follows is inside
  open_.push_back(index);
  if (open_.size() > max_nesting) {
    fail(index, "expected nesting of at most " + std::to_string(max_nesting) + ", got deeper");
  }
  return true;
}

HETPLAN_INLINE bool json_document::builder::close() {
  document_.entries_[open_.back()].number = static_cast<std::int64_t>(document_.entries_.size());
  open_.pop_back();
  return true;
}

HETPLAN_INLINE void json_document::builder::check_keys(std::uint32_t object) {
  keys_.clear();
  const auto end = static_cast<std::uint32_t>(document_.entries_.size());
  for (std::uint32_t i = object + 1; i < end; i = document_.after(i + 1)) keys_.emplace_back(document_.text(i), i);
  if (keys_.size() <= 16) {
    for (std::size_t i = 1; i < keys_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (keys_[i].first == keys_[j].first) fail_twice(keys_[i]);
      }
    }
    return;
  }
  std::sort(keys_.begin(), keys_.end());
  for (std::size_t i = 1; i < keys_.size(); ++i) {
    if (keys_[i].first == keys_[i - 1].first) fail_twice(keys_[i]);
  }
}

HETPLAN_INLINE void json_document::builder::fail_twice(const std::pair<std::string_view, std::uint32_t>& key) const {
  fail(key.second, "expected every key once, got " + in_quotes(key.first) + " again");
}

HETPLAN_INLINE void json_document::builder::fail(std::uint32_t index, const std::string& what) const {
  throw invalid_input(escaped(document_.file_) + ": " + document_.pointer(index) + ": " + what);
}

HETPLAN_INLINE std::string json_document::builder::explanation(std::string_view what) {
  if (const auto end = what.find("column "); end != std::string_view::npos && what.find(": ", end) != std::string_view::npos) {
    what.remove_prefix(what.find(": ", end) + 2);
  } else if (what.starts_with('[')) {
    what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
  }
  const auto read = what.find("; last read: '");
  if (read == std::string_view::npos) return escaped(shortened(what, 200));
  const std::string_view rest = what.substr(read + 14);
  const auto close = rest.rfind('\'');
  const auto tail = rest.rfind("'; expected ");
  const std::string_view token = rest.substr(0, std::min(tail, close));
  const std::string_view expected = tail == std::string_view::npos ? "" : rest.substr(tail + 1);
  return escaped(shortened(what.substr(0, read), 200)) + std::string(expected) + "; read '" + escaped(shortened(token, 40)) + "'";
}

HETPLAN_INLINE json_document json_document::json_document::parse(std::string_view text, std::string file) {
  json_document d;
  d.file_ = std::move(file);
  if (text.size() > max_file_bytes) throw invalid_input(escaped(d.file_) + ": expected at most 64 MB, got more");
  builder b(d, text);
  // nlohmann-json takes a zero byte for the end of the text and would ignore the rest.
  if (const void* zero = std::memchr(text.data(), 0, text.size()); zero != nullptr) {
    b.fail_at(static_cast<std::size_t>(static_cast<const char*>(zero) - text.data()), "expected text, got a zero byte");
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw invalid_input(escaped(d.file_) + ": expected JSON, got an empty file");
  d.entries_.reserve(text.size() / 12 + 16);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &b, nlohmann::json::input_format_t::json, true, true)) {
    throw invalid_input(escaped(d.file_) + ": expected JSON");
  }
  return d;
}

}  // namespace hetplan::io
