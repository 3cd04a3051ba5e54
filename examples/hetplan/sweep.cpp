// SPDX-License-Identifier: BSL-1.0
#include "sweep.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string_view>

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hetplan/io/check_together.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/sweep_json.hpp>
#include <hetplan/io/unused_profiles.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "outputs.hpp"

namespace cli {

using namespace hetplan;
using io::json;

namespace {

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

/// Runs something that names what it objects to, and says where in the sweep that stands.
template <class F>
auto below(const std::string& file, const std::string& pointer, F&& f) {
  try {
    return f();
  } catch (const invalid_input& e) {
    throw invalid_input(io::escaped(file) + ": " + pointer + ": " + e.what());
  }
}

std::string on_one_line(const json& row) { return row.dump(-1, ' ', false, json::error_handler_t::replace); }

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
bool may_be_begun(const std::string& row) {
  constexpr std::string_view then = "\",\"model\":\"";
  const std::string_view all(row), begin = all.substr(0, row_begin.size()), key = all.substr(begin.size(), key_length),
                                   rest = all.substr(begin.size() + key.size(), then.size());
  return row_begin.starts_with(begin) && key.find_first_not_of("0123456789abcdef") == std::string_view::npos && then.starts_with(rest) &&
         (rest.size() < then.size() || json::parse(row, nullptr, false).is_discarded() || is_intact(row));
}

/// What the command itself asks rows for; false for one that was made up, check and all.
bool has_what_is_asked(const json& row) {
  const auto all = [&](std::initializer_list<const char*> keys, auto&& fits) {
    return std::all_of(keys.begin(), keys.end(), [&](const char* key) { return row.contains(key) && fits(row[key]); });
  };
  if (!row.is_object() || !all({"key", "model", "cluster", "job", "planner", "status"}, [](const json& v) { return v.is_string(); }))
    return false;
  for (const char* key : {"target", "score", "latency", "energy", "peak_memory"}) {
    if (row.contains(key) && !row[key].is_number()) return false;
  }
  return !row.contains("reason") || row["reason"].is_string();
}

std::string best_text(const json& row) {
  char text[160];
  const auto shown = [&]<class Quantity>(const char* key, Quantity) {  // a number that is not finite is left out
    return row.contains(key) ? readable(Quantity(row.at(key).get<double>())) : std::string("-");
  };
  std::snprintf(text, sizeof text, "%-19s %10s %10s %10s", escaped(row.at("planner").get<std::string>()).c_str(),
                shown("latency", seconds()).c_str(), shown("energy", joules()).c_str(), shown("peak_memory", bytes()).c_str());
  return text;
}

}  // namespace

sweep_cases::sweep_cases(const common_options& options, const std::string& file) : options_(options), files_{file} {
  const io::json_document document = io::json_document::load(file);
  const io::sweep s = io::read_sweep(document, planner_names());
  if (!options_.tokens) options_.tokens = s.tokens;
  if (options_.dtype.empty()) options_.dtype = s.dtype;
  const auto where = [](const char* list, std::size_t i) { return std::string(list) + std::to_string(i); };
  // Like a timeline's traces: a file is beside the file that names it.
  const auto path = [folder = std::filesystem::path(file).parent_path()](const std::string& name) { return (folder / name).string(); };
  const auto load = [&](const auto& built_in, const std::string& name, auto&& read) {
    const bool known = std::find(built_in.begin(), built_in.end(), name) != built_in.end();
    if (known && !std::filesystem::exists(path(name))) return read(name);
    files_.push_back(path(name));
    return read(files_.back());
  };
  common_options left = options_;  // what no model has a use for
  const auto used_options = [&](const common_options& o) {
    if (o.tokens) left.tokens.reset();
    if (o.input) left.input.reset();
    if (!o.dtype.empty()) left.dtype.clear();
    left.fuse.clear();  // whatever the model
  };
  for (std::size_t i = 0; i < s.models.size(); ++i) {
    const std::string& name = s.models[i];
    planning_graph model = below(file, where("/models/", i), [&] {
      return load(zoo::model_names(), name, [&](const std::string& from) {
        used_options(options_for(options_, from));
        return load_model(options_for(options_, from), from);
      });
    });
    const std::uint64_t d = digest(name, io::write_model(model));
    models_.push_back({name, std::move(model), d});
  }
  require_no_model_options(left, "any of " + file);
  for (std::size_t i = 0; i < s.clusters.size(); ++i) {
    const std::string& name = s.clusters[i];
    cluster c = below(file, where("/clusters/", i),
                      [&] { return load(zoo::cluster_names(), name, [](const std::string& from) { return load_cluster(from); }); });
    const std::uint64_t d = digest(name, io::write_cluster(c));
    clusters_.push_back({name, std::move(c), d});
  }
  std::vector<io::json_node> job_nodes;
  for (const io::json_node n : io::json_object(io::json_node(document), io::keys::sweep).at("jobs", "").elements(""))
    job_nodes.push_back(n);
  for (std::size_t i = 0; i < s.jobs.size(); ++i) {
    std::optional<io::json_document> job_file;
    if (!s.jobs[i].job) {
      files_.push_back(path(s.jobs[i].name));
      job_file = below(file, where("/jobs/", i), [&] { return io::json_document::load(files_.back()); });
    }
    job wanted = s.jobs[i].job ? *s.jobs[i].job : below(file, where("/jobs/", i), [&] { return io::read_job(*job_file); });
    job asked = wanted;
    if (!s.latencies.empty()) asked.qoe.latency = s.latencies.front();
    for (std::string& line : io::unused_job_fields(job_file ? io::json_node(*job_file) : job_nodes[i], asked))
      warnings_.push_back(std::move(line));
    if (!s.latencies.empty() && asked.effective_objective() != objective_kind::qoe) {
      warnings_.push_back(file + ": /latencies: the objective of job " + io::in_quotes(s.jobs[i].name) + ", " +
                          io::in_quotes(to_string(asked.effective_objective())) + ", does not ask for a latency; not used");
    }
    const auto add = [&] { jobs_.push_back({s.jobs[i].name, wanted, digest(s.jobs[i].name, io::write_job(wanted))}); };
    if (s.latencies.empty()) add();
    for (const seconds latency : s.latencies) {
      wanted.qoe.latency = latency;
      add();
    }
    for (std::size_t m = 0; m < models_.size(); ++m) {
      for (const auto& c : clusters_) {
        io::check_together(models_[m].value, c.value, c.name, wanted.workload.mode);
        if (auto line = io::unused_profiles(models_[m].value, c.value)) warnings_.push_back(std::move(*line));
      }
    }
  }
  planners_ = s.planners.empty() ? planner_names() : s.planners;
  for (std::string& line : unused_options(options_, planners_)) warnings_.push_back(std::move(line));
  constexpr std::size_t most = 100'000;
  if (size() > most)
    throw invalid_input(io::escaped(file) + ": expected at most " + std::to_string(most) + " cases, got " + std::to_string(size()));
}

sweep_cases::position sweep_cases::at(std::size_t i) const {
  position p{};
  p.planner = i % planners_.size();
  i /= planners_.size();
  p.job = i % jobs_.size();
  i /= jobs_.size();
  p.cluster = i % clusters_.size();
  p.model = i / clusters_.size();
  return p;
}

std::string sweep_cases::key(std::size_t i) const {
  const position p = at(i);
  const auto number = [](std::uint64_t v) { return std::to_string(v); };
  std::uint64_t d = digest(version, number(models_[p.model].digest));
  d = digest(d, number(clusters_[p.cluster].digest));
  d = digest(d, number(jobs_[p.job].digest));
  d = digest(d, planners_[p.planner]);
  d = digest(d, std::to_string(options_.seed.value_or(standard_seed)));
  if (const std::string chosen = chosen_models(options_, planners_[p.planner]); !chosen.empty()) d = digest(d, chosen);
  if (options_.budget != standard_steps) d = digest(d, number(static_cast<std::uint64_t>(options_.budget)));
  return hexadecimal(d);
}

std::string sweep_cases::title(std::size_t i) const {
  const position p = at(i);
  return models_[p.model].name + " on " + clusters_[p.cluster].name + ", " + jobs_[p.job].name + ", " + planners_[p.planner];
}

case_outcome sweep_cases::run(std::size_t i) const {
  try {
    return {row(i)};
  } catch (const std::exception& e) {
    return {title(i) + ": " + e.what(), true};
  }
}

std::string sweep_cases::row(std::size_t i) const {
  const position at_i = at(i);
  const job& wanted = jobs_[at_i.job].value;
  const problem p{models_[at_i.model].value,
                  clusters_[at_i.cluster].value,
                  any_cost_model(profiled_or_roofline{}),
                  wanted,
                  {},
                  glpk_lp{},
                  options_.budget};
  common_options quiet = options_;
  quiet.quiet = true;
  progress nobody(quiet, "");
  const plan_result result = run_planner(quiet, planners_[at_i.planner], p, 1, nobody);

  json o;
  o["key"] = key(i);
  o["model"] = models_[at_i.model].name;
  o["cluster"] = clusters_[at_i.cluster].name;
  o["job"] = jobs_[at_i.job].name;
  if (wanted.qoe.latency) io::put(o, "target", *wanted.qoe.latency);
  o["planner"] = planners_[at_i.planner];
  const bool memory = result.status.result == outcome::infeasible && result.binding && result.binding->kind == limit_kind::memory;
  o["status"] = memory ? "out_of_memory" : to_string(result.status.result);
  if (!result.status.reason.empty()) o["reason"] = result.status.reason;
  if (!result.plans.empty()) {
    const hetplan::plan& best = result.plans.front();
    const evaluation& e = *best.predicted;
    io::put(o, "score", score(objective_of_job(wanted), e));
    io::put(o, "latency", e.latency);
    if (e.time_between_tokens) io::put(o, "time_between_tokens", *e.time_between_tokens);
    io::put(o, "energy", e.energy());
    io::put(o, "peak_memory", e.peak_memory());
    io::put(o, "bound", e.bound);
    io::put(o, "gap", e.gap);
    o["stages"] = best.stages.size();
    o["devices"] = std::count_if(e.devices.begin(), e.devices.end(), [](const device_evaluation& d) { return d.used; });
    o["microbatch_size"] = best.microbatch_size;
    o["microbatches"] = best.microbatches;
  }
  o["candidates"] = result.candidates;
  return with_check(on_one_line(o));
}

namespace {

/// The table on disk, one row a line: those of cases that are done are kept, new ones are added as they come. Locked while it lives,
/// so that no other sweep cuts off a row that is being written or puts its own table in this one's place.
class sweep_table {
 public:
  sweep_table(std::string path, const sweep_cases& cases) : path_(std::move(path)), rows_(cases.size()) {
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
    if (!may_be_begun(row)) fail_row("the last line");
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
    if (!is_intact(row) || !has_what_is_asked(o))
      throw invalid_input(io::escaped(path_) + ": " + where +
                          ": expected a row as it was written, got another; without the line its case is done again");
    return o["key"].get<std::string>();
  }

  std::string path_;
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
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_table(const std::vector<json>& rows) {
  constexpr std::string_view columns[] = {
      "model",  "cluster",     "job",   "target", "planner", "status",  "score",           "latency",      "time_between_tokens",
      "energy", "peak_memory", "bound", "gap",    "stages",  "devices", "microbatch_size", "microbatches", "candidates",
      "reason"};
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

/// Of each group of `planners` rows the best: smallest score, on a tie the first; none where no row has a plan.
std::vector<const json*> best_rows(const std::vector<json>& rows, std::size_t planners) {
  std::vector<const json*> best;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % planners == 0) best.push_back(nullptr);
    if (!rows[i].contains("score")) continue;
    if (best.back() == nullptr || rows[i].at("score").get<double>() < best.back()->at("score").get<double>()) best.back() = &rows[i];
  }
  return best;
}

void print_best(const std::vector<json>& rows, const std::vector<const json*>& best, std::size_t planners) {
  const auto text = [](const json& row, const char* key) { return escaped(row.at(key).get<std::string>()); };
  std::size_t model = 5, cluster = 7, job = 3;
  for (const json& row : rows) {
    model = std::max(model, text(row, "model").size());
    cluster = std::max(cluster, text(row, "cluster").size());
    job = std::max(job, text(row, "job").size());
  }
  const auto line = [&](const std::string& m, const std::string& c, const std::string& j, const std::string& target,
                        const std::string& rest) {
    std::printf("%-*s  %-*s  %-*s %10s  %s\n", static_cast<int>(model), m.c_str(), static_cast<int>(cluster), c.c_str(),
                static_cast<int>(job), j.c_str(), target.c_str(), rest.c_str());
  };
  line("model", "cluster", "job", "target", "best planner           latency     energy     memory");
  for (std::size_t i = 0; i < best.size(); ++i) {
    const json& first = rows[i * planners];
    const std::string target = first.contains("target") ? readable(seconds(first.at("target").get<double>())) : "-";
    line(text(first, "model"), text(first, "cluster"), text(first, "job"), target,
         best[i] != nullptr ? best_text(*best[i]) : "none: " + (first.contains("reason") ? text(first, "reason") : text(first, "status")));
  }
}

}  // namespace

int sweep(const common_options& options, const sweep_options& o, const case_runner& run) {
  const sweep_cases cases(options, o.sweep);
  for (const std::string& line : cases.warnings()) warn(line);
  outputs files({{"--out", o.out}, {"--csv", o.csv}}, cases.files());
  sweep_table table(o.out, cases);
  const std::vector<std::size_t> missing = table.missing();
  const bool visible = !options.quiet && isatty(STDERR_FILENO) != 0;
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
  if (!o.csv.empty()) files.put(o.csv, csv_table(rows));
  const std::vector<const json*> best = best_rows(rows, cases.planners());
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
    print_best(rows, best, cases.planners());
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
