// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/pipedream_graph.hpp>

#include <cmath>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::exchange {

namespace detail {

class pipedream_reader {
 public:
  pipedream_reader(const std::string& file, const pipedream_options& options)
      : file_(file), options_(options), builder_(options.name.empty() ? model_name_of(file) : options.name) {}

  planning_graph read(std::string_view text) {
    for (line_ = 1; !text.empty(); ++line_) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      const std::string_view words = trimmed(line);
      if (words.empty()) continue;
      if (!is_utf8(words)) fail("UTF-8", io::in_quotes(words));
      if (line.front() == '\t' || line.front() == ' ') {
        read_edge(words);
      } else {
        read_node(words);
      }
    }
    if (nodes_.empty()) io::detail::fail_file(file_, "expected a line with a node, got nothing");
    return build();
  }

 private:
  struct node {
    layer_spec spec;
    bytes output;
    std::size_t line;
    bool input;
  };
  struct edge {
    std::string_view from, to;
    std::size_t line;
  };

  [[noreturn]] void fail(std::string_view expected, std::string_view got) const {
    io::detail::fail_file(file_, "line " + std::to_string(line_) + ": expected " + std::string(expected) + ", got " + std::string(got));
  }
  [[nodiscard]] static std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t\r";
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    return text.substr(0, text.find_last_not_of(blank) + 1);
  }
  [[nodiscard]] static std::vector<std::string_view> parts(std::string_view text, std::string_view separator) {
    std::vector<std::string_view> all;
    for (;;) {
      const std::size_t end = text.find(separator);
      all.push_back(trimmed(text.substr(0, end)));
      if (end == std::string_view::npos) return all;
      text.remove_prefix(end + separator.size());
    }
  }

  [[nodiscard]] double amount(std::string_view word, std::string_view key) const {
    const auto v = number_in(word);
    if (!v || *v < 0) fail(std::string(key) + " >= 0", io::in_quotes(word));
    return *v;
  }
  /// Returns one size, or the sum over several outputs: "[6291456.0; 131072.0]".
  [[nodiscard]] double sizes(std::string_view word, std::string_view key) const {
    if (!word.starts_with('[')) return amount(word, key);
    if (!word.ends_with(']')) fail(std::string(key) + " to end with ]", io::in_quotes(word));
    double sum = 0;
    for (const std::string_view each : parts(word.substr(1, word.size() - 2), ";")) sum += amount(each, key);
    if (!std::isfinite(sum)) fail(std::string(key) + " with a finite sum", io::in_quotes(word));
    return sum;
  }

  void read_node(std::string_view text) {
    // The optional fourth column is the stage that PipeDream's optimizer chose.
    const auto columns = parts(text, " -- ");
    if (columns.size() != 3 && columns.size() != 4) fail("ID -- DESCRIPTION -- MEASUREMENTS", io::in_quotes(text));
    if (columns[0].empty()) fail("the id of a node", io::in_quotes(text));
    static constexpr std::string_view keys[] = {"forward_compute_time", "backward_compute_time", "activation_size", "parameter_size"};
    const auto fields = parts(columns[2], ",");
    if (fields.size() != 4) fail("4 measurements", std::to_string(fields.size()));
    double values[4] = {};
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t equals = fields[i].find('=');
      if (fields[i].substr(0, equals) != keys[i] || equals == std::string_view::npos)
        fail(std::string(keys[i]) + "=NUMBER", io::in_quotes(fields[i]));
      const std::string_view value = fields[i].substr(equals + 1);
      values[i] = i == 2 ? sizes(value, keys[i]) : amount(value, keys[i]);
    }
    const auto [known, fresh] = ids_.emplace(columns[0], nodes_.size());
    if (!fresh)
      fail("an id that no other node has",
           io::in_quotes(columns[0]) + " again, first in line " + std::to_string(nodes_[known->second].line));
    layer_profile measured{options_.device_kind, {1}, {values[0] / 1000}, {values[1] / 1000}};
    layer_spec s{.name = std::string(columns[0]),
                 .kind = std::string(columns[1].substr(0, columns[1].find('('))),
                 .weight = bytes(values[3]),
                 .activation = bytes(values[2])};
    s.profiles.push_back(std::move(measured));
    nodes_.push_back({std::move(s), bytes(values[2]), line_, columns[1].starts_with("Input")});
  }

  void read_edge(std::string_view text) {
    const auto ends = parts(text, " -- ");
    if (ends.size() != 2 || ends[0].empty() || ends[1].empty()) fail("ID -- ID, an edge", io::in_quotes(text));
    edges_.push_back({ends[0], ends[1], line_});
  }
  [[nodiscard]] std::size_t find(std::string_view id) const {
    const auto it = ids_.find(id);
    if (it == ids_.end()) fail("the id of a node", io::in_quotes(id));
    return it->second;
  }

  planning_graph build() {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (const edge& e : edges_) {
      line_ = e.line;
      pairs.emplace_back(find(e.from), find(e.to));
      nodes_[pairs.back().second].input = false;  // only a source can be the data loader
    }
    if (const auto at = index_on_cycle(nodes_.size(), pairs)) {
      line_ = edges_[*at].line;
      fail("edges without a cycle", io::in_quotes(edges_[*at].from) + " -> " + io::in_quotes(edges_[*at].to) + ", which is on one");
    }
    for (node& n : nodes_) {
      line_ = n.line;
      layer_profile& p = n.spec.profiles.front();
      if (n.input && options_.inputs == input_time::zero) p.forward_s = p.backward_s = {0};
      p = proportional_beyond(std::move(p));
      located([&] { builder_.add_layer(std::move(n.spec)); });
    }
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      line_ = edges_[i].line;
      located([&] { builder_.add_edge(layer_id(pairs[i].first), layer_id(pairs[i].second), nodes_[pairs[i].first].output); });
    }
    return std::move(builder_).build();
  }
  template <class F>
  void located(F&& f) const {
    try {
      f();
    } catch (const invalid_input& e) {
      io::detail::fail_file(file_, "line " + std::to_string(line_) + ": " + escaped(io::shortened(e.what(), 400)));
    }
  }

  const std::string& file_;
  const pipedream_options& options_;
  planning_graph_builder builder_;
  std::size_t line_ = 0;
  std::vector<node> nodes_;
  std::vector<edge> edges_;
  std::unordered_map<std::string_view, std::size_t> ids_;
};

}  // namespace detail

HETPLAN_INLINE planning_graph parse_pipedream_graph(std::string_view text, const std::string& file, const pipedream_options& options) {
  return detail::pipedream_reader(file, options).read(text);
}

HETPLAN_INLINE planning_graph read_pipedream_graph(const std::string& path, const pipedream_options& options) {
  return parse_pipedream_graph(io::read_text(path), path, options);
}

}  // namespace hetplan::exchange
