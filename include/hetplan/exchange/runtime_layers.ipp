// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/runtime_layers.hpp>

#include <cctype>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <hetplan/core/error.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::exchange {

namespace detail {

/// Which layers belong to which block, by the numbers in their names.
class block_finder {
 public:
  explicit block_finder(const planning_graph& model) : model_(model), numbers_(model.size()) {
    std::map<std::string, std::set<int>> stems, of_attention;
    for (const layer& l : model.layers()) {
      numbers_[l.id.index()] = numbers_in(l.name);
      for (const auto& [stem, number] : numbers_[l.id.index()]) {
        stems[stem].insert(number);
        if (l.kind == "attention") of_attention[stem].insert(number);
      }
    }
    std::size_t most = 0;
    for (const auto& [stem, found] : of_attention.empty() ? stems : of_attention) {
      if (found.size() <= most) continue;
      stem_ = stem;
      most = found.size();
    }
    if (most == 0) fail("no layer has the number of a block in its name, as \"l0.q\" and \"layers.0.q\" have");
    const auto& found = stems[stem_];
    count_ = found.size();
    int next = 0;
    for (const int n : found) {
      if (n != next++)
        fail("expected block " + io::in_quotes(stem_ + std::to_string(next - 1)) + ", got " + io::in_quotes(stem_ + std::to_string(n)));
    }
  }

  [[nodiscard]] std::size_t blocks() const { return count_; }
  [[nodiscard]] const std::string& stem() const { return stem_; }
  [[nodiscard]] std::optional<std::size_t> block_of(layer_id l) const {
    const auto& own = numbers_[l.index()];
    const auto it = own.find(stem_);
    if (it == own.end()) return std::nullopt;
    return static_cast<std::size_t>(it->second);
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw invalid_input("runtime_layers: model " + io::in_quotes(model_.name()) + ": " + what);
  }

 private:
  /// "a.l3.fc1" has 3 behind "a.l" and 1 behind "a.l3.fc": whatever part between dots ends in digits.
  static std::map<std::string, int> numbers_in(const std::string& name) {
    std::map<std::string, int> all;
    constexpr std::size_t most_digits = 6;
    for (std::size_t end = 0; end <= name.size(); ++end) {
      if (end < name.size() && name[end] != '.') continue;
      std::size_t first = end;
      while (first > 0 && std::isdigit(static_cast<unsigned char>(name[first - 1])) != 0) --first;
      if (first < end && end - first <= most_digits) all.emplace(name.substr(0, first), std::stoi(name.substr(first, end - first)));
    }
    return all;
  }

  const planning_graph& model_;
  std::vector<std::map<std::string, int>> numbers_;  ///< by layer: from what stands before a number to the number
  std::string stem_;
  std::size_t count_ = 0;
};

}  // namespace detail

HETPLAN_INLINE runtime_layers find_runtime_layers(const planning_graph& model) {
  const detail::block_finder find(model);
  const auto edges = model.edges();
  std::vector<char> after_block(model.size(), 0), before_block(model.size(), 0);  // by layer: of any block
  for (const layer_edge& e : edges) {
    const auto from = find.block_of(e.from), to = find.block_of(e.to);
    if (from && to && *from > *to) {
      find.fail("layer " + io::in_quotes(model[e.from].name) + " feeds a block before its own, that of " + io::in_quotes(model[e.to].name));
    }
    if (from || after_block[e.from.index()] != 0) after_block[e.to.index()] = 1;
  }
  for (auto e = edges.rbegin(); e != edges.rend(); ++e) {
    if (find.block_of(e->to) || before_block[e->to.index()] != 0) before_block[e->from.index()] = 1;
  }
  runtime_layers found;
  found.blocks.resize(find.blocks());
  for (const layer& l : model.layers()) {
    if (const auto block = find.block_of(l.id)) {
      found.blocks[*block].push_back(l.id);
      continue;
    }
    const std::string name = "layer " + io::in_quotes(l.name);
    if (l.kind == "attention") find.fail(name + " is attention outside of the blocks " + io::in_quotes(find.stem() + "0") + " and so on");
    const bool reads = after_block[l.id.index()] != 0, is_read = before_block[l.id.index()] != 0;
    if (reads == is_read)
      find.fail(name + (reads ? " stands between blocks and has no number" : " has no number and no path from or to a block"));
    (reads ? found.head : found.embedding).push_back(l.id);
  }
  return found;
}

}  // namespace hetplan::exchange
