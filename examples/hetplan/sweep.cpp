// SPDX-License-Identifier: BSL-1.0
#include "sweep.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/requests_csv.hpp>
#include <hetplan/io/results_json.hpp>

#include "outputs.hpp"
#include "sweep_plans.hpp"
#include "sweep_serving.hpp"

namespace cli {

using namespace hetplan;
using io::json;

/// A hash that is the same everywhere: FNV-1a, 64 bits. The length goes first, so that two texts are never taken for one.
/// Source: Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm", IETF draft-eastlake-fnv, section 2.
std::uint64_t digest(std::uint64_t before, std::string_view text) {
  const auto take = [&](unsigned char c) { before = (before ^ c) * 0x100000001b3U; };
  for (std::size_t n = text.size(), i = 0; i < 8; ++i, n >>= 8) take(static_cast<unsigned char>(n & 0xFF));
  for (const char c : text) take(static_cast<unsigned char>(c));
  return before;
}
std::uint64_t digest(std::string_view name, std::string_view content) { return digest(digest(0xcbf29ce484222325U, name), content); }

std::string hexadecimal(std::uint64_t v) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(v));
  return text;
}

namespace {

constexpr std::string_view row_begin = "{\"key\":\"", check_begin = ",\"check\":\"";
constexpr std::size_t key_length = 16;

/// The row and, at its end, a digest of the rest: who finds it later sees whether it is still what was written.
std::string with_check(std::string row) {
  const std::string check = hexadecimal(digest("row", row));
  row.pop_back();
  return row.append(check_begin).append(check).append("\"}");
}

bool is_intact(const std::string& row) {
  const std::size_t at = row.rfind(check_begin);
  return row.starts_with(row_begin) && at != std::string::npos && with_check(row.substr(0, at) + "}") == row;
}

/// What an interruption may have left of a row, and nothing that ends like another file.
bool may_be_begun(const std::string& row, std::string_view first) {
  const std::string then = "\",\"" + std::string(first) + "\":\"";
  const std::string_view all(row), begin = all.substr(0, row_begin.size()), key = all.substr(begin.size(), key_length),
                                   rest = all.substr(begin.size() + key.size(), then.size());
  return row_begin.starts_with(begin) && key.find_first_not_of("0123456789abcdef") == std::string_view::npos && then.starts_with(rest) &&
         (rest.size() < then.size() || json::parse(row, nullptr, false).is_discarded() || is_intact(row));
}

/// What the command itself asks rows for; false for one that was made up, check and all.
bool has_what_is_asked(const json& row, const sweep_cases::table_shape& shape) {
  const auto is_text = [&](std::string_view key) { return row.contains(key) && row[std::string(key)].is_string(); };
  const auto may_be_number = [&](std::string_view key) { return !row.contains(key) || row[std::string(key)].is_number(); };
  return row.is_object() && is_text("key") && is_text("status") && std::ranges::all_of(shape.texts, is_text) &&
         std::ranges::all_of(shape.numbers, may_be_number) && may_be_number("score") && (!row.contains("reason") || is_text("reason"));
}

}  // namespace

case_outcome sweep_cases::run(std::size_t i) const {
  try {
    return {with_check(row(i).dump(-1, ' ', false, json::error_handler_t::replace))};
  } catch (const std::exception& e) {
    return {title(i) + ": " + e.what(), true};
  }
}

std::string sweep_cases::path_of(const std::string& name) const {
  return (std::filesystem::path(files_.front()).parent_path() / name).string();
}

std::unique_ptr<sweep_cases> load_sweep(const common_options& options, const std::string& file) {
  const io::json_document document = io::json_document::load(file);
  std::unique_ptr<sweep_cases> cases;
  if (io::document_format(document).starts_with("hetplan/serving-sweep/")) {
    cases = std::make_unique<serving_sweep>(options, file, document);
  } else {
    cases = std::make_unique<plan_sweep>(options, file, document);
  }
  constexpr std::size_t most = 100'000;
  if (cases->size() > most)
    throw invalid_input(io::escaped(file) + ": expected at most " + std::to_string(most) + " cases, got " + std::to_string(cases->size()));
  return cases;
}

namespace {

/// The table on disk, one row a line: those of cases that are done are kept, new ones are added as they come. Locked while it lives,
/// so that no other sweep cuts off a row that is being written or puts its own table in this one's place.
class sweep_table {
 public:
  sweep_table(std::string path, const sweep_cases& cases) : path_(std::move(path)), shape_(cases.shape()), rows_(cases.size()) {
    std::map<std::string, std::size_t> wanted;
    for (std::size_t i = 0; i < cases.size(); ++i) wanted.emplace(cases.key(i), i);
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::file_status status = fs::status(path_, ignored);
    if (fs::exists(status) && !fs::is_regular_file(status))
      throw invalid_input(io::escaped(path_) + ": expected a file, to be gone on with after an interruption");
    lock();
    read(wanted);
  }

  [[nodiscard]] std::vector<std::size_t> missing() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].empty()) all.push_back(i);
    }
    return all;
  }
  [[nodiscard]] const std::vector<std::string>& rows() const { return rows_; }
  /// Rows of the file that belong to none of the cases.
  [[nodiscard]] std::size_t others() const { return others_; }

  /// Adds a row to the file at once.
  void add(std::size_t i, const std::string& row) {
    const std::string line = row + "\n";
    errno = 0;
    if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0)
      io::detail::fail_file(path_, "cannot write", errno);
    rows_[i] = row;
  }

  /// The rows of the cases and no others, in their order.
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const std::string& row : rows_) all += row + "\n";
    return all;
  }

 private:
  /// Opens the file, made if missing; again where another sweep put its table there between the opening and the lock. A file system
  /// that has no locks is done without.
  void lock() {
    struct stat opened {
    }, named{};
    do {
      file_.reset(std::fopen(path_.c_str(), "ab"));
      if (!file_) io::detail::fail_file(path_, "cannot write", errno);
      const int file = fileno(file_.get());
      if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) io::detail::fail_file(path_, "another sweep is writing it");
      if (fstat(file, &opened) != 0 || stat(path_.c_str(), &named) != 0) io::detail::fail_file(path_, "cannot read", errno);
    } while (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino);
  }

  void read(const std::map<std::string, std::size_t>& wanted) {
    std::ifstream in(path_, std::ios::binary);
    if (!in) io::detail::fail_file(path_, "cannot read", errno);
    std::string row;
    std::uintmax_t whole = 0;  // bytes of the rows that have an end
    for (std::size_t line = 1; std::getline(in, row) && !in.eof(); ++line) {
      whole += row.size() + 1;
      const auto found = wanted.find(key_of(row, line));
      if (found != wanted.end()) {
        rows_[found->second] = row;
      } else {
        ++others_;
      }
    }
    if (in.bad()) io::detail::fail_file(path_, "cannot read", errno);
    if (row.empty()) return;
    // The last line without an end is what an interruption left of a row: it is done again.
    if (!may_be_begun(row, shape_.texts.front())) fail_row("the last line");
    std::error_code code;
    std::filesystem::resize_file(path_, whole, code);
    if (code) io::detail::fail_file(path_, "cannot write", code.value());
  }

  [[noreturn]] void fail_row(const std::string& where) const {
    throw invalid_input(io::escaped(path_) + ": " + where +
                        ": expected a row of a sweep's table; a file of something else is not written over");
  }
  [[nodiscard]] std::string key_of(const std::string& row, std::size_t line) const {
    const std::string where = "line " + std::to_string(line);
    const json o = json::parse(row, nullptr, false);
    if (!row.starts_with(row_begin) || !o.is_object() || !o.contains("check")) fail_row(where);
    if (is_intact(row) && !has_what_is_asked(o, shape_))
      throw invalid_input(io::escaped(path_) + ": " + where + ": expected a row of this kind of sweep, got one of another");
    if (!is_intact(row))
      throw invalid_input(io::escaped(path_) + ": " + where +
                          ": expected a row as it was written, got another; without the line its case is done again");
    return o["key"].get<std::string>();
  }

  std::string path_;
  sweep_cases::table_shape shape_;
  std::vector<std::string> rows_;
  std::size_t others_ = 0;
  io::detail::file_handle file_;
};

/// One field, quoted where it must be; a text that a spreadsheet would take for a formula begins with an apostrophe, which makes it
/// text there. Source: RFC 4180, section 2; OWASP, "CSV Injection".
std::string csv_field(const json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
  if (value.is_string() && !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos)
    text.insert(0, 1, '\'');
  return io::csv_field(text);
}

std::string csv_table(const std::vector<json>& rows, std::span<const std::string_view> columns) {
  std::string text;
  for (const std::string_view c : columns) text.append(text.empty() ? "" : ",").append(c);
  text += "\n";
  for (const json& row : rows) {
    std::string line;
    for (const std::string_view c : columns) {
      if (c != columns[0]) line += ',';
      if (const auto found = row.find(std::string(c)); found != row.end()) line += csv_field(*found);
    }
    text += line + "\n";
  }
  return text;
}

/// Of each group of rows the best: smallest score, on a tie the first; none where no row has a plan.
std::vector<const json*> best_rows(const std::vector<json>& rows, std::size_t group) {
  std::vector<const json*> best;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % group == 0) best.push_back(nullptr);
    if (!rows[i].contains("score")) continue;
    if (best.back() == nullptr || rows[i].at("score").get<double>() < best.back()->at("score").get<double>()) best.back() = &rows[i];
  }
  return best;
}

void print_best(const sweep_cases& cases, const std::vector<json>& rows, const std::vector<const json*>& best) {
  const auto names = cases.shape().texts.first(cases.shape().texts.size() - 1);
  const auto text = [](const json& row, std::string_view key) { return escaped(row.at(std::string(key)).get<std::string>()); };
  std::vector<std::size_t> width;
  for (const std::string_view name : names) {
    width.push_back(name.size());
    for (const json& row : rows) width.back() = std::max(width.back(), text(row, name).size());
  }
  const auto line = [&](const auto& name, const std::string& last) {
    for (std::size_t n = 0; n < names.size(); ++n)
      std::printf("%s%-*s", n == 0 ? "" : "  ", static_cast<int>(width[n]), std::string(name(names[n])).c_str());
    std::printf(" %s\n", last.c_str());
  };
  line([](std::string_view name) { return name; }, cases.header_of_best());
  for (std::size_t i = 0; i < best.size(); ++i) {
    const json& first = rows[i * cases.competitors()];
    line([&](std::string_view name) { return text(first, name); },
         cases.group_text(first) + "  " +
             (best[i] != nullptr ? cases.best_text(*best[i])
                                 : "none: " + (first.contains("reason") ? text(first, "reason") : text(first, "status"))));
  }
}

}  // namespace

int sweep(const common_options& options, const sweep_options& o, const case_runner& run) {
  const auto loaded = load_sweep(options, o.sweep);
  const sweep_cases& cases = *loaded;
  for (const std::string& line : cases.warnings()) warn(line);
  outputs files({{"--out", o.out}, {"--csv", o.csv}}, cases.files());
  sweep_table table(o.out, cases);
  const std::vector<std::size_t> missing = table.missing();
  const bool visible = shows_progress(options);
  const auto begin = std::chrono::steady_clock::now();
  std::size_t done = cases.size() - missing.size();
  const auto show = [&](const std::string& last) {
    if (!visible) return;
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::fprintf(stderr, "\r\033[K%zu of %zu cases, %s%s%s", done, cases.size(), readable(seconds(elapsed)).c_str(),
                 last.empty() ? "" : "; last ", escaped(last).c_str());
    std::fflush(stderr);
  };
  show("");
  std::map<std::size_t, std::string> failures;  // by case: which one is told does not depend on who ran it
  run(cases, missing, [&](std::size_t i, const case_outcome& outcome) {
    if (outcome.failed) {
      failures.emplace(i, outcome.text);
    } else {
      table.add(i, outcome.text);
      ++done;
    }
    show(cases.title(i));
  });
  if (visible) std::fprintf(stderr, "\r\033[K");
  if (!failures.empty()) {
    throw std::runtime_error(failures.begin()->second + " (" + std::to_string(failures.size()) + " of " + std::to_string(cases.size()) +
                             " cases failed, the rest is in " + io::escaped(o.out) + ")");
  }
  files.put(o.out, table.text());

  std::vector<json> rows;
  for (const std::string& row : table.rows()) rows.push_back(json::parse(row));
  if (!o.csv.empty()) files.put(o.csv, csv_table(rows, cases.shape().columns));
  const std::vector<const json*> best = best_rows(rows, cases.competitors());
  if (options.json) {
    json document;
    document["cases"] = cases.size();
    document["computed"] = missing.size();
    document["dropped"] = table.others();
    document["best"] = json::array();
    for (std::size_t i = 0; i < best.size(); ++i) {
      if (best[i] != nullptr) document["best"].push_back(*best[i]);
    }
    std::cout << io::json_text(document);
  } else {
    print_best(cases, rows, best);
    std::printf("%zu cases, %zu computed now", cases.size(), missing.size());
    if (table.others() > 0) std::printf(", %zu rows of other cases dropped", table.others());
    std::printf(": %s\n", escaped(o.out).c_str());
  }
  files.commit();
  return std::any_of(best.begin(), best.end(), [](const json* b) { return b != nullptr; }) ? 0 : 1;
}

int sweep(const common_options& options, const sweep_options& o) {
  return sweep(options, o, [](const sweep_cases& cases, std::span<const std::size_t> missing, const auto& done) {
    for (const std::size_t i : missing) done(i, cases.run(i));
  });
}

}  // namespace cli
