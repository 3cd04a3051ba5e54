// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/ncnn_param.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/ncnn_operators.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::exchange {

namespace detail {

class ncnn_reader {
 public:
  ncnn_reader(std::string_view text, const std::string& file, const ncnn_options& options)
      : text_(text), file_(file), options_(options), builder_(model_name_of(file), facts_of(options)) {}

  [[nodiscard]] ncnn_model read();

 private:
  /// A tensor by its blob: who makes it, or none for inputs and constants.
  struct blob {
    std::optional<ncnn_shape> shape;
    std::optional<layer_id> maker;
    double constant = 0;  ///< numbers of a MemoryData
    std::string name;     ///< of the tensor behind Splits
  };

  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    io::detail::fail_file(file_, "line " + std::to_string(line) + ": " + what);
  }
  static model_facts facts_of(const ncnn_options& o) {
    model_facts f;
    f.bytes_per_parameter = o.element_bytes;
    f.tokens_per_sample = o.tokens_per_sample;
    return f;
  }

  void split_lines();
  [[nodiscard]] ncnn_line parse(std::size_t number, const std::vector<std::string_view>& words) const;
  [[nodiscard]] std::size_t count(std::size_t line, std::string_view word, std::size_t least, std::size_t most, const char* what) const;
  void add(const ncnn_line& l);
  void add_input(const ncnn_line& l);
  void find_widths();
  void give(const ncnn_line& l, std::size_t i, blob b);

  [[nodiscard]] layer_spec spec_of(const ncnn_line& l, const ncnn_work& w) const;

  std::string_view text_;
  const std::string& file_;
  const ncnn_options& options_;
  planning_graph_builder builder_;
  std::map<std::string, std::size_t> unknown_;
  std::map<std::string, std::vector<long long>> assumed_;
  std::vector<ncnn_line> lines_;
  std::map<std::string, blob> blobs_;
  std::map<std::string, long long> widths_;
  std::size_t layers_ = 0;
};

HETPLAN_INLINE std::size_t ncnn_reader::count(std::size_t line, std::string_view word, std::size_t least, std::size_t most,
                                              const char* what) const {
  const auto v = number_in(word);
  if (!v || *v != std::floor(*v) || *v < static_cast<double>(least) || *v > static_cast<double>(most)) {
    fail(line, "expected " + std::string(what) + ", an integer of " + std::to_string(least) + " to " + std::to_string(most) + ", got " +
                   io::in_quotes(word));
  }
  return static_cast<std::size_t>(*v);
}

HETPLAN_INLINE void ncnn_reader::split_lines() {
  require_text(text_, file_);
  constexpr std::size_t most = 1'000'000;
  std::vector<std::vector<std::string_view>> rows;
  std::vector<std::size_t> numbers;
  std::size_t at = 0, number = 0;
  while (at < text_.size()) {
    const std::size_t end = std::min(text_.find('\n', at), text_.size());
    std::string_view line = text_.substr(at, end - at);
    at = end + 1;
    ++number;
    std::vector<std::string_view> words;
    for (std::size_t i = 0; i < line.size();) {
      const std::size_t begin = line.find_first_not_of(" \t\r", i);
      if (begin == std::string_view::npos) break;
      i = std::min(line.find_first_of(" \t\r", begin), line.size());
      words.push_back(line.substr(begin, i - begin));
    }
    if (words.empty()) continue;
    rows.push_back(std::move(words));
    numbers.push_back(number);
  }
  if (rows.empty() || rows[0].size() != 1 || rows[0][0] != "7767517")
    fail(rows.empty() ? 1 : numbers[0], "expected the magic number 7767517 of ncnn, got " + io::in_quotes(rows.empty() ? "" : rows[0][0]));
  if (rows.size() < 2 || rows[1].size() != 2) fail(rows.size() < 2 ? number : numbers[1], "expected the counts of layers and blobs");
  const std::size_t layers = count(numbers[1], rows[1][0], 1, most, "the count of layers");
  static_cast<void>(count(numbers[1], rows[1][1], 0, 100 * most, "the count of blobs"));
  // ncnn loads as many operators as the file counts; its nanodet_m.param has a Noop after them.
  while (rows.size() - 2 > layers && rows.back()[0] == "Noop") rows.pop_back();
  if (rows.size() - 2 != layers) {
    fail(numbers[1], "expected " + std::to_string(layers) + " layers as the file says, got " + std::to_string(rows.size() - 2) +
                         "; is the file complete?");
  }
  for (std::size_t r = 2; r < rows.size(); ++r) lines_.push_back(parse(numbers[r], rows[r]));
}

HETPLAN_INLINE ncnn_line ncnn_reader::parse(std::size_t number, const std::vector<std::string_view>& words) const {
  if (words.size() < 4)
    fail(number, "expected type, name and the counts of inputs and outputs, got " + std::to_string(words.size()) + " words");
  for (const std::string_view w : words) {
    if (!is_utf8(w)) fail(number, "expected UTF-8, got " + io::in_quotes(w));
  }
  ncnn_line l{&file_, number, std::string(words[0]), std::string(words[1]), {}, {}, {}};
  const std::size_t in = count(number, words[2], 0, 1'000'000, "the count of inputs");
  const std::size_t out = count(number, words[3], 0, 1'000'000, "the count of outputs");
  if (words.size() - 4 < in + out)
    ncnn::fail(l, "expected the names of " + std::to_string(in + out) + " blobs, got " + std::to_string(words.size() - 4) + " words");
  for (std::size_t i = 0; i < in + out; ++i) (i < in ? l.in : l.out).emplace_back(words[4 + i]);
  for (std::size_t i = 4 + in + out; i < words.size(); ++i) {
    const std::string_view w = words[i];
    const std::size_t equals = w.find('=');
    const auto key = number_in(w.substr(0, equals));
    if (equals == std::string_view::npos || !key || *key != std::floor(*key) || std::abs(*key) > 100'000)
      ncnn::fail(l, "expected parameters as KEY=VALUE, got " + io::in_quotes(w));
    std::vector<std::string_view> parts;
    for (std::size_t at = equals + 1; at <= w.size();) {
      const std::size_t comma = std::min(w.find(',', at), w.size());
      parts.push_back(w.substr(at, comma - at));
      at = comma + 1;
    }
    std::vector<double> values;
    bool numbers = true;
    for (const std::string_view p : parts) {
      const auto v = number_in(p.starts_with('+') ? p.substr(1) : p);
      numbers = numbers && v.has_value();
      values.push_back(v.value_or(0));
    }
    int k = static_cast<int>(*key);
    if (k <= -23300) {  // an array: its count first
      if (!numbers || values[0] != static_cast<double>(values.size() - 1))
        ncnn::fail(l, "expected an array as COUNT,NUMBER,..., got " + io::in_quotes(w));
      values.erase(values.begin());
      k = -23300 - k;
    }
    if (!numbers) values = {std::numeric_limits<double>::quiet_NaN()};  // a text, which no rule asks for
    if (!l.parameters.emplace(k, std::move(values)).second)
      ncnn::fail(l, "expected every parameter once, got " + std::to_string(k) + " again");
  }
  return l;
}

/// Finds the width that the first reader of each blob needs, through Splits.
HETPLAN_INLINE void ncnn_reader::find_widths() {
  for (auto l = lines_.rbegin(); l != lines_.rend(); ++l) {  // so that earlier readers have the last word
    long long width = 0;
    if (l->type == "RMSNorm" || l->type == "LayerNorm") width = ncnn::size(*l, 0, 0, 0);
    if (l->type == "Gemm" && ncnn::integer(*l, 5, 0) != 0 && ncnn::integer(*l, 2, 0) == 0) width = ncnn::size(*l, 9, 0, 0);
    if (l->type == "Split") {
      for (auto out = l->out.rbegin(); out != l->out.rend(); ++out) {
        if (const auto known = widths_.find(*out); known != widths_.end()) width = known->second;
      }
    }
    if (width == 0) continue;
    for (const std::string& in : l->in) widths_[in] = width;
  }
}

HETPLAN_INLINE void ncnn_reader::give(const ncnn_line& l, std::size_t i, blob b) {
  if (b.name.empty()) b.name = l.out[i];
  if (!blobs_.emplace(l.out[i], std::move(b)).second)
    ncnn::fail(l, "expected every blob from one layer, got " + io::in_quotes(l.out[i]) + " again");
}

HETPLAN_INLINE void ncnn_reader::add_input(const ncnn_line& l) {
  std::optional<ncnn_shape> s;
  const std::array<long long, 4> sizes{ncnn::size(l, 2, 0, 0), ncnn::size(l, 11, 0, 0), ncnn::size(l, 1, 0, 0), ncnn::size(l, 0, 0, 0)};
  for (const long long d : sizes) {
    if (d > 0 || (s && !s->empty())) s = s.value_or(ncnn_shape{}), s->push_back(std::max(1LL, d));
  }
  if (s && sizes[1] == 0 && s->size() == 4) s->erase(s->begin() + 1);
  if (s) ncnn::require_sizes(l, *s);
  for (std::size_t i = 0; i < l.out.size(); ++i) {
    blob b{s, {}, 0, {}};
    if (const auto given = options_.shapes.find(l.out[i]); given != options_.shapes.end()) {
      b.shape = ncnn_shape(given->second.rbegin(), given->second.rend());
      if (b.shape->empty() || b.shape->size() > 4) ncnn::fail(l, "expected 1 to 4 sizes, got " + std::to_string(b.shape->size()));
      ncnn::require_sizes(l, *b.shape);
    } else if (!b.shape) {
      if (const auto width = widths_.find(l.out[i]); width != widths_.end()) {
        b.shape = ncnn_shape{options_.tokens_per_sample, width->second};
        ncnn::require_sizes(l, *b.shape);
        assumed_[l.out[i]] = {b.shape->rbegin(), b.shape->rend()};
      }
    }
    give(l, i, std::move(b));
  }
}

HETPLAN_INLINE layer_spec ncnn_reader::spec_of(const ncnn_line& l, const ncnn_work& w) const {
  layer_spec spec{.name = l.name, .kind = l.type};
  const double e = options_.element_bytes;
  const bool int8 = w.multiply_adds > 0 && ncnn::integer(l, l.type == "Gemm" || l.type == "MultiHeadAttention" ? 18 : 8, 0) != 0 &&
                    l.type != "SDPA" && l.type != "MatMul";
  spec.weight = bytes(int8 ? w.weights + 4 * w.others : e * (w.weights + w.others));
  if (w.looked_up > 0) spec.weight_traffic = bytes(e * w.looked_up);
  double multiply_adds = w.multiply_adds;
  if (const double pairs = w.pair_multiply_adds; pairs > 0 && (options_.tokens_per_sample > 1 || w.cached > 0)) {
    const double t = options_.tokens_per_sample;
    const bool causal = w.cached > 0;
    if (w.rows == 0 || w.rows == t) {
      spec.sequence.attention_flops = flops(2 * pairs);
      spec.sequence.attention = causal ? attention_kind::causal : attention_kind::full;
      if (causal) multiply_adds -= pairs * (t * t - t * (t + 1) / 2);
      spec.kv_bytes_per_token = bytes(e * w.cached);
    }
  }
  spec.forward_flops = flops(2 * multiply_adds);
  if (w.rows > 0 && w.rows != options_.tokens_per_sample) spec.rows = w.rows;
  return spec;
}

HETPLAN_INLINE void ncnn_reader::add(const ncnn_line& l) {
  if (l.type == "Input") return add_input(l);
  std::vector<std::optional<ncnn_shape>> in;
  std::vector<const blob*> read;
  for (const std::string& name : l.in) {
    const auto found = blobs_.find(name);
    if (found == blobs_.end()) ncnn::fail(l, "expected a blob that an earlier layer gives, got " + io::in_quotes(name));
    read.push_back(&found->second);
    in.push_back(found->second.shape);
  }
  if (l.type == "MemoryData") {
    ncnn_shape s;
    for (const int key : {2, 11, 1, 0}) {
      if (const long long d = ncnn::size(l, key, 0, 0); d > 0) s.push_back(d);
    }
    ncnn::require_sizes(l, s);
    for (std::size_t i = 0; i < l.out.size(); ++i) give(l, i, {s, {}, elements_of(s), {}});
    return;
  }
  if (l.type == "Split" || l.type == "Noop") {
    if (l.type == "Split" && l.in.size() != 1) ncnn::fail(l, "expected one input, got " + std::to_string(l.in.size()));
    for (std::size_t i = 0; i < l.out.size(); ++i) {
      if (l.in.empty()) ncnn::fail(l, "expected an input, got none");
      give(l, i, *read[std::min(i, read.size() - 1)]);
    }
    return;
  }
  ncnn_work w = ncnn::work_of(l, in);
  if (!w.known) ++unknown_[l.type];
  layer_spec spec = spec_of(l, w);
  double moved = 0, given = 0;
  std::map<std::string_view, const blob*> once;
  for (const blob* b : read) once.emplace(b->name, b);
  std::map<std::size_t, double> from;
  for (const auto& [name, b] : once) {
    const double n = b->shape ? elements_of(*b->shape) : 0;
    if (b->constant > 0) spec.weight += bytes(options_.element_bytes * b->constant);
    else moved += n;
    if (b->maker) from[b->maker->index()] += n;
  }
  for (const ncnn_shape& s : w.out) given += elements_of(s);
  if (w.looked_up > 0) given *= 2;  // the rows are read, too
  spec.traffic = bytes(w.moves ? options_.element_bytes * (moved + given) : 0);
  spec.activation = bytes(options_.element_bytes * (w.moves ? given : 0));
  layer_id id;
  try {
    id = builder_.add_layer(std::move(spec));
  } catch (const invalid_input& e) {
    ncnn::fail(l, e.what());
  }
  ++layers_;
  for (const auto& [maker, n] : from) builder_.add_edge(layer_id(maker), id, bytes(options_.element_bytes * n));
  for (std::size_t i = 0; i < l.out.size(); ++i) give(l, i, {i < w.out.size() ? std::optional(w.out[i]) : std::nullopt, id, 0, {}});
}

HETPLAN_INLINE ncnn_model ncnn_reader::read() {
  if (options_.tokens_per_sample < 1)
    throw invalid_input("read_ncnn: tokens_per_sample = " + std::to_string(options_.tokens_per_sample) + "; expected an integer >= 1");
  split_lines();
  for (const auto& [name, sizes] : options_.shapes) {
    const bool there = std::any_of(lines_.begin(), lines_.end(), [&](const ncnn_line& l) {
      return l.type == "Input" && std::find(l.out.begin(), l.out.end(), name) != l.out.end();
    });
    if (!there) io::detail::fail_file(file_, "expected sizes of inputs, got some for " + io::in_quotes(name));
  }
  find_widths();
  for (const ncnn_line& l : lines_) add(l);
  if (layers_ == 0) io::detail::fail_file(file_, "expected at least one operator besides inputs, got none");
  try {
    return {std::move(builder_).build(), std::move(unknown_), std::move(assumed_)};
  } catch (const invalid_input& e) {
    io::detail::fail_file(file_, e.what());
  }
}

}  // namespace detail

HETPLAN_INLINE ncnn_model read_ncnn(std::string_view text, const std::string& file, const ncnn_options& options) {
  return detail::ncnn_reader(text, file, options).read();
}

}  // namespace hetplan::exchange
