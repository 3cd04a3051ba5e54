// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/measured_csv.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/core/precision.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/requests_csv.hpp>
#include <hetplan/zoo/models.hpp>

namespace hetplan::io {

namespace detail {

inline constexpr std::array<std::string_view, 17> measured_columns{
    "device", "model",       "batch", "prompt", "context", "what",         "value",             // needed
    "tokens", "weights",     "dtype", "layers", "phase",   "prompt_chunk", "chunks_in_flight",  //
    "weight", "score_bytes", "note"};
inline constexpr std::size_t needed_measured_columns = 7;

class measurement_reader {
 public:
  measurement_reader(const std::string& file, const cluster& c) : folder_(std::filesystem::path(file).parent_path()), cluster_(c) {}

  void read(const csv_lines& lines, measured_rows& all) {
    fit::measurement m;
    m.where = lines.where();
    m.devices = devices(lines);
    m.what = named(lines, what, fit::measured_names);
    m.batch = count(lines, batch, 1, m.batch);
    m.prompt = count(lines, prompt, 0, m.prompt);
    if (lines.has(context)) m.context = count(lines, context, 0, 0);
    m.tokens = count(lines, tokens, 1, m.tokens);
    if (lines.has(phase)) m.phase = named(lines, phase, fit::timed_phases);
    m.prompt_chunk = count(lines, prompt_chunk, 1, m.prompt_chunk);
    m.chunks_in_flight = count(lines, chunks_in_flight, 1, m.chunks_in_flight);
    m.value = lines.number(value, "a number > 0");
    if (!(m.value > 0)) lines.fail(value, "a number > 0");
    if (lines.has(weight)) m.weight = lines.number(weight, "a number >= 0");
    m.model = model_of(lines, m);
    fit::check_measurement(m, cluster_);
    all.rows.push_back(std::move(m));
    all.devices.emplace_back(lines.field(device));
    std::string name(lines.field(model));
    for (const std::size_t c : {weights, dtype, layers}) {
      if (lines.has(c)) name.append(" ").append(lines.field(c));
    }
    all.models.push_back(std::move(name));
  }

 private:
  enum column : std::size_t {
    device,
    model,
    batch,
    prompt,
    context,
    what,
    value,
    tokens,
    weights,
    dtype,
    layers,
    phase,
    prompt_chunk,
    chunks_in_flight,
    weight,
    score_bytes
  };

  [[nodiscard]] static int count(const csv_lines& lines, std::size_t c, std::uint32_t least, int otherwise) {
    if (!lines.has(c)) return otherwise;
    const std::uint32_t n = lines.count(c, least);
    if (n > most_tokens) lines.fail(c, "at most 1e9");
    return static_cast<int>(n);
  }

  template <class Value, std::size_t N>
  [[nodiscard]] static Value named(const csv_lines& lines, std::size_t c, const std::array<std::pair<std::string_view, Value>, N>& known) {
    std::vector<std::string_view> names;
    for (const auto& [name, v] : known) {
      if (name == lines.field(c)) return v;
      names.push_back(name);
    }
    lines.fail(c, "one of " + joined(names), suggestion(lines.field(c), names));
  }

  /// Returns the devices of a cell: the whole cell is one device, or each part between + is.
  [[nodiscard]] std::vector<device_id> devices(const csv_lines& lines) const {
    const std::string_view cell = lines.field(device);
    std::vector<device_id> found;
    if (find(cell, found)) return found;
    for (std::size_t at = 0; at <= cell.size();) {
      const std::size_t end = std::min(cell.find('+', at), cell.size());
      if (!find(cell.substr(at, end - at), found)) {
        std::vector<std::string_view> names;
        for (const hetplan::device& d : cluster_.devices()) {
          names.emplace_back(d.name);
          if (d.kind != d.name && std::find(names.begin(), names.end(), d.kind) == names.end()) names.emplace_back(d.kind);
        }
        lines.fail(device, "names or kinds of different devices of cluster " + in_quotes(cluster_.name()) + ", one or joined by +",
                   suggestion(cell.substr(at, end - at), names));
      }
      at = end + 1;
    }
    return found;
  }

  /// Adds the device of a name, or the first of a kind that is not there yet. False if there is none.
  [[nodiscard]] bool find(std::string_view name, std::vector<device_id>& found) const {
    const auto is_new = [&](device_id id) { return std::find(found.begin(), found.end(), id) == found.end(); };
    for (const bool by_kind : {false, true}) {
      for (const hetplan::device& d : cluster_.devices()) {
        if ((by_kind ? d.kind : d.name) != name || !is_new(d.id)) continue;
        found.push_back(d.id);
        return true;
      }
    }
    return false;
  }

  /// Returns the model of a row, or those of its layers that the row names; each is made once.
  [[nodiscard]] std::shared_ptr<const planning_graph> model_of(const csv_lines& lines, const fit::measurement& m) {
    const std::string name(lines.field(model));
    const auto known = zoo::model_names();
    const std::string path = (folder_ / name).string();
    const bool is_file = std::filesystem::exists(path);
    const bool built_in = !is_file && std::find(known.begin(), known.end(), name) != known.end();
    if (!is_file && !built_in) lines.fail(model, "a model file or one of " + joined(known), suggestion(name, known));
    // Of samples a prompt is all tokens; otherwise a sample's tokens do not matter.
    const bool of_samples = m.what == fit::measured::images_per_s || (m.what == fit::measured::layer_seconds && !m.context);
    const int sample = built_in && zoo::takes_tokens(name) && of_samples ? m.prompt : 0;
    const std::string key = name + "\n" + std::to_string(sample) + "\n" + std::string(lines.field(weights)) + "\n" +
                            std::string(lines.field(dtype)) + "\n" + std::string(lines.field(score_bytes)) + "\n" +
                            std::string(lines.field(layers));
    std::shared_ptr<const planning_graph>& made = models_[key];
    if (made != nullptr) return made;
    planning_graph whole = built_in ? named_model(lines, name, sample) : file_model(lines, path);
    if (!lines.has(layers)) return made = std::make_shared<const planning_graph>(std::move(whole));
    std::vector<std::string> prefixes;
    const std::string_view list = lines.field(layers);
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t end = std::min(list.find(' ', at), list.size());
      if (end > at) prefixes.emplace_back(list.substr(at, end - at));
      at = end + 1;
    }
    return made = at_line(lines, [&] { return std::make_shared<const planning_graph>(fit::layers_named(whole, prefixes)); });
  }

  [[nodiscard]] static planning_graph named_model(const csv_lines& lines, const std::string& name, int sample) {
    zoo::model_options o;
    if (sample > 0) o.tokens = sample;
    o.weights = lines.field(weights);
    if (lines.has(score_bytes)) o.score_bytes = lines.number(score_bytes, "bytes >= 0");
    for (const std::size_t c : {weights, score_bytes}) {
      if (lines.has(c) && !zoo::takes_tokens(name)) lines.fail(c, "nothing for a vision model");
    }
    if (lines.has(dtype)) o.dtype = named(lines, dtype, precisions);
    return at_line(lines, [&] { return zoo::model(name, o); });
  }
  [[nodiscard]] static planning_graph file_model(const csv_lines& lines, const std::string& path) {
    for (const std::size_t c : {weights, dtype, score_bytes}) {
      if (lines.has(c)) lines.fail(c, "nothing for a model file, which says it itself");
    }
    return read_model(json_document::load(path));
  }

  /// Runs f; what it refuses begins with the line.
  template <class F>
  static auto at_line(const csv_lines& lines, const F& f) -> decltype(f()) {
    try {
      return f();
    } catch (const invalid_input& e) {
      throw invalid_input(lines.where() + ": " + e.what());
    }
  }

  std::filesystem::path folder_;
  const cluster& cluster_;
  std::map<std::string, std::shared_ptr<const planning_graph>> models_;
};

}  // namespace detail

HETPLAN_INLINE measured_rows parse_measurements(std::string_view text, const std::string& file, const cluster& c) {
  csv_lines lines(text, file, detail::measured_columns, detail::needed_measured_columns, other_columns::refused, '#');
  detail::measurement_reader reader(file, c);
  measured_rows all;
  while (lines.next()) reader.read(lines, all);
  if (all.rows.empty()) detail::fail_file(file, "expected a line for each measurement under the header, got none");
  return all;
}

HETPLAN_INLINE measured_rows read_measurements(const std::string& path, const cluster& c) {
  return parse_measurements(read_text(path), path, c);
}

}  // namespace hetplan::io
