// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/ncnn_operators.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::exchange::detail::ncnn {

inline constexpr double most_elements = 1e15;
inline constexpr long long ncnn_rest = -233;  ///< "what is left", in many parameters

HETPLAN_INLINE void fail(const ncnn_line& l, const std::string& what) {
  io::detail::fail_file(*l.file, "line " + std::to_string(l.number) + ": " + l.type + " " + io::in_quotes(l.name) + ": " + what);
}

[[nodiscard]] HETPLAN_INLINE double number(const ncnn_line& l, int key, double otherwise) {
  const auto found = l.parameters.find(key);
  if (found == l.parameters.end()) return otherwise;
  if (found->second.size() != 1 || !std::isfinite(found->second[0])) fail(l, "parameter " + std::to_string(key) + ": expected a number");
  return found->second[0];
}

[[nodiscard]] HETPLAN_INLINE long long integer(const ncnn_line& l, int key, long long otherwise) {
  const double v = number(l, key, static_cast<double>(otherwise));
  if (v != std::floor(v) || std::abs(v) > 1e12) fail(l, "parameter " + std::to_string(key) + ": expected an integer, got " + to_text(v));
  return static_cast<long long>(v);
}

[[nodiscard]] HETPLAN_INLINE long long size(const ncnn_line& l, int key, long long otherwise, long long least) {
  const long long v = integer(l, key, otherwise);
  if (v < least)
    fail(l, "parameter " + std::to_string(key) + ": expected an integer >= " + std::to_string(least) + ", got " + std::to_string(v));
  return v;
}

[[nodiscard]] HETPLAN_INLINE std::vector<long long> list(const ncnn_line& l, int key) {
  std::vector<long long> all;
  const auto found = l.parameters.find(key);
  if (found == l.parameters.end()) return all;
  for (const double v : found->second) {
    if (v != std::floor(v) || std::abs(v) > 1e12) fail(l, "parameter " + std::to_string(key) + ": expected integers, got " + to_text(v));
    all.push_back(static_cast<long long>(v));
  }
  return all;
}

/// Reads -23330: dimensions, w, h and c of each output.
[[nodiscard]] HETPLAN_INLINE std::optional<std::vector<ncnn_shape>> hinted(const ncnn_line& l) {
  const std::vector<long long> all = list(l, 30);
  if (all.empty() || all.size() != 4 * l.out.size()) return std::nullopt;
  std::vector<ncnn_shape> shapes;
  for (std::size_t i = 0; i < all.size(); i += 4) {
    const long long dims = all[i];
    if (dims < 1 || dims > 3) return std::nullopt;
    ncnn_shape s;
    for (long long d = dims; d >= 1; --d) s.push_back(all[i + static_cast<std::size_t>(d)]);
    require_sizes(l, s);
    shapes.push_back(std::move(s));
  }
  return shapes;
}

HETPLAN_INLINE void require_sizes(const ncnn_line& l, const ncnn_shape& s) {
  for (const long long d : s) {
    if (d < 1) fail(l, "expected sizes >= 1 of what it gives, got " + std::to_string(d));
  }
  if (elements_of(s) > most_elements) fail(l, "expected tensors of at most 1e15 elements, got " + to_text(elements_of(s)));
}

[[nodiscard]] HETPLAN_INLINE long long times(const ncnn_line& l, long long size, long long factor) {
  const double product = static_cast<double>(size) * static_cast<double>(factor);
  if (product > most_elements) fail(l, "expected tensors of at most 1e15 elements, got " + to_text(product));
  return size * factor;
}

[[nodiscard]] HETPLAN_INLINE const ncnn_shape& needed(const ncnn_line& l, const std::vector<std::optional<ncnn_shape>>& in, std::size_t i) {
  if (i >= in.size()) fail(l, "expected at least " + std::to_string(i + 1) + " inputs, got " + std::to_string(in.size()));
  if (!in[i]) {
    fail(l, "expected a known shape of input " + io::in_quotes(l.in[i]) +
                "; state the sizes of the network's inputs, such as in0=WIDTHxHEIGHT");
  }
  return *in[i];
}

[[nodiscard]] HETPLAN_INLINE std::size_t axis(const ncnn_line& l, long long given, std::size_t dims) {
  const auto n = static_cast<long long>(dims);
  if (given < -n || given >= n)
    fail(l, "expected an axis of a blob with " + std::to_string(dims) + " dimensions, got " + std::to_string(given));
  return static_cast<std::size_t>(given < 0 ? given + n : given);
}

/// Width and height behind a window; with `pad` -233 or -234 ("same") each output is one stride.
[[nodiscard]] HETPLAN_INLINE long long behind_window(long long size, long long window, long long stride, long long before,
                                                     long long after) {
  if (before == ncnn_rest || before == ncnn_rest - 1) return (size + stride - 1) / stride;
  return size + before + after < window ? 0 : (size + before + after - window) / stride + 1;
}

[[nodiscard]] HETPLAN_INLINE ncnn_work convolution(const ncnn_line& l, const ncnn_shape& in, bool transposed) {
  const bool flat = l.type.ends_with("1D");
  const long long n = size(l, 0, 0), kw = size(l, 1, 0), dw = size(l, 2, 1), sw = size(l, 3, 1), left = integer(l, 4, 0);
  const long long kh = size(l, 11, kw), dh = size(l, 12, dw), sh = size(l, 13, sw), top = integer(l, 14, left);
  const long long right = integer(l, 15, left), bottom = integer(l, 16, top);
  ncnn_work w;
  w.weights = static_cast<double>(size(l, 6, 0, 0));
  w.others = integer(l, 5, 0) != 0 ? static_cast<double>(n) : 0;
  if (std::max({kw, dw, sw, kh, dh, sh}) > 1000) fail(l, "expected kernels, strides and dilations of at most 1000");
  const long long window_w = dw * (kw - 1) + 1, window_h = dh * (kh - 1) + 1;
  const auto across = [&](long long s, long long window, long long stride, long long before, long long after, int output, int padding) {
    if (!transposed) return behind_window(s, window, stride, before, after);
    const long long asked = integer(l, output, integer(l, 20, 0));
    if (asked > 0) return asked;
    if (before < 0 || after < 0) return s * stride;
    return (s - 1) * stride + window + integer(l, padding, integer(l, 18, 0)) - before - after;
  };
  ncnn_shape out{n};
  if (in.size() == 1 && !flat) {  // a vector: ncnn multiplies it by the matrix of a 1x1 kernel
    w.rows = 1;
  } else if (flat) {
    if (in.size() != 2) fail(l, "expected an input of 2 dimensions, got " + std::to_string(in.size()));
    out.push_back(across(in[1], window_w, sw, left, right, 20, 18));
  } else {
    if (in.size() != 3) fail(l, "expected an input of 1 or 3 dimensions, got " + std::to_string(in.size()));
    out.push_back(across(in[1], window_h, sh, top, bottom, 21, 19));
    out.push_back(across(in[2], window_w, sw, left, right, 20, 18));
  }
  require_sizes(l, out);
  if (in.size() > 1) w.rows = elements_of(transposed ? in : out) / static_cast<double>(transposed ? in[0] : n);
  w.multiply_adds = w.weights * w.rows;
  w.out = {out};
  return w;
}

[[nodiscard]] HETPLAN_INLINE ncnn_work inner_product(const ncnn_line& l, const ncnn_shape& in) {
  ncnn_work w;
  const long long n = size(l, 0, 0);
  w.weights = static_cast<double>(size(l, 2, 0, 0));
  w.others = integer(l, 1, 0) != 0 ? static_cast<double>(n) : 0;
  const double inputs = w.weights / static_cast<double>(n);
  const bool matrix = in.size() == 2 && static_cast<double>(in[1]) == inputs;
  w.rows = matrix ? static_cast<double>(in[0]) : 1;
  w.multiply_adds = w.weights * w.rows;
  w.out = {matrix ? ncnn_shape{in[0], n} : ncnn_shape{n}};
  return w;
}

[[nodiscard]] HETPLAN_INLINE ncnn_work gemm(const ncnn_line& l, const std::vector<std::optional<ncnn_shape>>& in) {
  ncnn_work w;
  std::size_t next = 0;
  long long m = size(l, 7, 0, 0), n = size(l, 8, 0, 0), k = size(l, 9, 0, 0);
  const bool constant_a = integer(l, 4, 0) != 0, constant_b = integer(l, 5, 0) != 0, constant_c = integer(l, 6, 0) != 0;
  const auto matrix = [&](std::size_t i) {
    const ncnn_shape& s = needed(l, in, i);
    if (s.size() == 1) return std::pair<long long, long long>(1, s[0]);
    if (s.size() == 3 && s[1] == 1) return std::pair(s[0], s[2]);
    if (s.size() != 2) fail(l, "expected matrices, got an input of " + std::to_string(s.size()) + " dimensions");
    return std::pair(s[0], s[1]);
  };
  if (!constant_a) {
    const auto [rows, columns] = matrix(next++);
    const bool turned = integer(l, 2, 0) != 0;
    m = turned ? columns : rows;
    const long long inner = turned ? rows : columns;
    if (k != 0 && constant_b && inner != k) fail(l, "expected an input of " + std::to_string(k) + " columns, got " + std::to_string(inner));
    k = inner;
  }
  if (!constant_b) {
    const auto [rows, columns] = matrix(next++);
    const bool turned = integer(l, 3, 0) != 0;
    n = turned ? rows : columns;
    if (k != 0 && (turned ? columns : rows) != k)
      fail(l, "expected matrices with the same inner size, got " + std::to_string(k) + " and " + std::to_string(turned ? columns : rows));
    k = turned ? columns : rows;
  }
  if (m < 1 || n < 1 || k < 1)
    fail(l, "expected sizes >= 1 of the product, got " + std::to_string(m) + " x " + std::to_string(k) + " x " + std::to_string(n));
  const double md = static_cast<double>(m), nd = static_cast<double>(n), kd = static_cast<double>(k);
  w.weights = (constant_a ? md * kd : 0) + (constant_b ? kd * nd : 0);
  if (constant_c) {
    const long long kind = integer(l, 10, 0);  // -1 none, 0 one number, 1 and 2 a column, 3 all, 4 a row
    w.others = kind == 0 ? 1 : kind == 1 || kind == 2 ? md : kind == 3 ? md * nd : kind == 4 ? nd : 0;
  }
  w.rows = md;
  w.multiply_adds = md * nd * kd;
  const bool turned = integer(l, 14, 0) != 0;
  const ncnn_shape out = turned ? ncnn_shape{n, m} : ncnn_shape{m, n};
  w.out = {integer(l, 11, 0) != 0 ? ncnn_shape{out[0], 1, out[1]} : out};
  require_sizes(l, w.out[0]);
  return w;
}

[[nodiscard]] HETPLAN_INLINE ncnn_work mat_mul(const ncnn_line& l, const ncnn_shape& a, const ncnn_shape& b) {
  ncnn_work w;
  const bool turned = integer(l, 0, 0) != 0;
  const long long m = a.size() == 1 ? 1 : a[a.size() - 2], k = a.back();
  const long long inner = b.size() == 1 ? b[0] : turned ? b.back() : b[b.size() - 2];
  const long long n = b.size() == 1 ? 1 : turned ? b[b.size() - 2] : b.back();
  if (k != inner) fail(l, "expected matrices with the same inner size, got " + std::to_string(k) + " and " + std::to_string(inner));
  const ncnn_shape& deeper = a.size() >= b.size() ? a : b;
  ncnn_shape out(deeper.begin(), deeper.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, deeper.size())));
  const double batch = elements_of(out);
  if (a.size() > 1) out.push_back(m);
  if (b.size() > 1) out.push_back(n);
  if (out.empty()) out.push_back(1);
  require_sizes(l, out);
  w.rows = batch * static_cast<double>(m);
  w.multiply_adds = w.rows * static_cast<double>(k) * static_cast<double>(n);
  w.out = {out};
  return w;
}

[[nodiscard]] HETPLAN_INLINE ncnn_work attention(const ncnn_line& l, const std::vector<std::optional<ncnn_shape>>& in) {
  ncnn_work w;
  if (l.type == "SDPA") {
    const ncnn_shape &q = needed(l, in, 0), &k = needed(l, in, 1), &v = needed(l, in, 2);
    if (q.size() != 3 || k.size() != 3 || v.size() != 3) fail(l, "expected queries, keys and values of 3 dimensions");
    const double per_pair = static_cast<double>(q[0]) * static_cast<double>(q[2] + v[2]);
    w.multiply_adds = per_pair * static_cast<double>(q[1]) * static_cast<double>(k[1]);
    w.pair_multiply_adds = q[1] == k[1] ? per_pair : 0;
    if (integer(l, 7, 0) != 0)
      w.cached = static_cast<double>(k[0]) * static_cast<double>(k[2]) + static_cast<double>(v[0]) * static_cast<double>(v[2]);
    w.out = {{q[0], q[1], v[2]}};
    require_sizes(l, w.out[0]);
    return w;
  }
  const ncnn_shape& q = needed(l, in, 0);
  const ncnn_shape& k = in.size() > 1 ? needed(l, in, 1) : q;
  const ncnn_shape& v = in.size() > 2 ? needed(l, in, 2) : k;
  if (q.size() != 2 || k.size() != 2 || v.size() != 2) fail(l, "expected queries, keys and values of 2 dimensions");
  const double embedding = static_cast<double>(size(l, 0, 0)), all = static_cast<double>(size(l, 2, 0, 0));
  const double of_keys = embedding * static_cast<double>(size(l, 3, static_cast<long long>(embedding)));
  const double of_values = embedding * static_cast<double>(size(l, 4, static_cast<long long>(embedding)));
  const double rows = static_cast<double>(q[0]), keys = static_cast<double>(k[0]);
  w.weights = 2 * all + of_keys + of_values;
  w.others = 3 * embedding + all / embedding;
  w.rows = rows;
  w.multiply_adds = 2 * all * rows + of_keys * keys + of_values * static_cast<double>(v[0]) + 2 * rows * keys * embedding;
  w.pair_multiply_adds = rows == keys ? 2 * embedding : 0;
  if (integer(l, 7, 0) != 0) w.cached = 2 * embedding;
  w.out = {{q[0], std::max(1LL, static_cast<long long>(all / embedding))}};
  require_sizes(l, w.out[0]);
  return w;
}

[[nodiscard]] HETPLAN_INLINE ncnn_work recurrent(const ncnn_line& l, const ncnn_shape& in) {
  if (in.size() != 2) fail(l, "expected an input of 2 dimensions, got " + std::to_string(in.size()));
  ncnn_work w;
  const double n = static_cast<double>(size(l, 0, 0)), of_inputs = static_cast<double>(size(l, 1, 0, 0));
  const double directions = integer(l, 2, 0) == 2 ? 2 : 1;
  const double hidden = l.type == "LSTM" ? static_cast<double>(size(l, 3, static_cast<long long>(n))) : n;
  const double gates = l.type == "LSTM" ? 4 : l.type == "GRU" ? 3 : 1;
  w.weights = of_inputs + directions * (gates * hidden * n + (hidden != n ? hidden * n : 0));
  w.others = directions * hidden * (l.type == "RNN" ? 1 : 4);
  w.rows = static_cast<double>(in[0]);
  w.multiply_adds = w.weights * w.rows;
  w.out = {{in[0], static_cast<long long>(n * directions)}};
  require_sizes(l, w.out[0]);
  return w;
}

[[nodiscard]] HETPLAN_INLINE ncnn_shape pooled(const ncnn_line& l, const ncnn_shape& in) {
  if (in.size() < 2) fail(l, "expected an input of 2 or 3 dimensions, got " + std::to_string(in.size()));
  if (integer(l, 4, 0) != 0) return {in[0]};
  ncnn_shape out = in;
  if (integer(l, 7, 0) != 0) {
    const long long w = integer(l, 8, 0), h = integer(l, 18, w);
    if (w != ncnn_rest) out.back() = w;
    if (in.size() == 3 && h != ncnn_rest) out[1] = h;
    require_sizes(l, out);
    return out;
  }
  const long long kw = size(l, 1, 0), sw = size(l, 2, 1), left = integer(l, 3, 0), kh = size(l, 11, kw), sh = size(l, 12, sw);
  const long long top = integer(l, 13, left), right = integer(l, 14, left), bottom = integer(l, 15, top), mode = integer(l, 5, 0);
  const auto across = [mode](long long s, long long window, long long stride, long long before, long long after) {
    if (mode >= 2) return (s + stride - 1) / stride;
    const long long room = s + before + after - window;
    if (room < 0) return 0LL;
    return (mode == 0 ? (room + stride - 1) / stride : room / stride) + 1;
  };
  out.back() = across(in.back(), kw, sw, left, right);
  if (in.size() == 3) out[1] = across(in[1], kh, sh, top, bottom);
  require_sizes(l, out);
  return out;
}

[[nodiscard]] HETPLAN_INLINE ncnn_shape cropped(const ncnn_line& l, ncnn_shape s) {
  const std::vector<long long> starts = list(l, 9), ends = list(l, 10);
  std::vector<long long> axes = list(l, 11);
  if (!starts.empty()) {
    if (axes.empty()) {
      for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<long long>(i));
    }
    if (starts.size() != ends.size() || starts.size() != axes.size()) fail(l, "expected as many starts as ends and axes");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      long long& size = s[axis(l, axes[i], s.size())];
      const long long whole = size, from = starts[i] == ncnn_rest ? 0 : starts[i] < 0 ? whole + starts[i] : starts[i];
      const long long to = ends[i] == ncnn_rest || ends[i] > whole ? whole : ends[i] < 0 ? whole + ends[i] : ends[i];
      size = to - from;
    }
  } else {
    // Offset, size, offset from the end: of w, h, c, d.
    constexpr std::array<std::array<int, 3>, 4> keys{{{0, 3, 6}, {1, 4, 7}, {2, 5, 8}, {13, 14, 15}}};
    const std::size_t n = s.size();
    for (std::size_t d = 0; d < n; ++d) {
      const std::size_t name = n - 1 - d;  // 0 w, 1 h, then c, or d before c
      const auto& [offset, given, rest] = keys[n == 4 && name == 2 ? 3 : std::min<std::size_t>(name, 2)];
      const long long asked = integer(l, given, 0);
      s[d] = asked > 0 ? asked : s[d] - size(l, offset, 0, 0) - size(l, rest, 0, 0);
    }
  }
  require_sizes(l, s);
  return s;
}

[[nodiscard]] HETPLAN_INLINE std::vector<ncnn_shape> sliced(const ncnn_line& l, const ncnn_shape& s) {
  const std::size_t at = axis(l, integer(l, 1, 0), s.size());
  const std::vector<long long> parts = list(l, 0), indices = list(l, 2);
  std::vector<ncnn_shape> all;
  long long left = s[at], begun = 0;
  for (std::size_t i = 0; i < l.out.size(); ++i) {
    const auto others = static_cast<long long>(l.out.size() - i);
    long long part = left / others;  // -233: an equal part of what is left
    if (!indices.empty()) {
      if (i < indices.size()) part = (indices[i] < 0 ? indices[i] + s[at] : indices[i]) - begun;
      else part = left;
    } else if (i < parts.size() && parts[i] != ncnn_rest) {
      part = parts[i];
    }
    left -= part;
    begun += part;
    ncnn_shape slice = s;
    slice[at] = part;
    require_sizes(l, slice);
    all.push_back(std::move(slice));
  }
  if (left < 0) fail(l, "expected parts of together " + std::to_string(s[at]) + ", got " + std::to_string(s[at] - left));
  return all;
}

[[nodiscard]] HETPLAN_INLINE ncnn_shape reshape(const ncnn_line& l, const ncnn_shape& s) {
  // Sizes with the innermost first, as the parameters are: w, h, d, c.
  const std::array<long long, 4> asked{integer(l, 0, ncnn_rest), integer(l, 1, ncnn_rest), integer(l, 11, ncnn_rest),
                                       integer(l, 2, ncnn_rest)};
  const std::size_t n = s.size();
  const std::array<long long, 4> had{s[n - 1], n > 1 ? s[n - 2] : 1, n == 4 ? s[1] : 1, n > 2 ? s[0] : 1};
  ncnn_shape out;
  double known = 1;
  std::optional<std::size_t> rest;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i] == ncnn_rest) continue;
    const long long v = asked[i] == 0 ? had[i] : asked[i];
    if (v == -1) {
      if (rest) fail(l, "expected one size of -1, got two");
      rest = out.size();
    } else {
      known *= static_cast<double>(v);
    }
    out.push_back(v);
  }
  if (out.empty()) fail(l, "expected at least one size");
  const double all = elements_of(s);
  if (rest) out[*rest] = known > 0 ? static_cast<long long>(all / known) : 0;
  require_sizes(l, out);
  if (elements_of(out) != all) fail(l, "expected sizes of together " + to_text(all) + " elements, got " + to_text(elements_of(out)));
  std::reverse(out.begin(), out.end());
  return out;
}

[[nodiscard]] HETPLAN_INLINE ncnn_shape permuted(const ncnn_line& l, const ncnn_shape& s) {
  constexpr std::array<std::string_view, 2> two{"WH", "HW"};
  constexpr std::array<std::string_view, 6> three{"WHC", "HWC", "WCH", "CWH", "HCW", "CHW"};
  constexpr std::array<std::string_view, 24> four{"WHDC", "HWDC", "WDHC", "DWHC", "HDWC", "DHWC", "WHCD", "HWCD",
                                                  "WCHD", "CWHD", "HCWD", "CHWD", "WDCH", "DWCH", "WCDH", "CWDH",
                                                  "DCWH", "CDWH", "HDCW", "DHCW", "HCDW", "CHDW", "DCHW", "CDHW"};
  if (s.size() == 1) return s;
  const auto order = static_cast<std::size_t>(size(l, 0, 0, 0));
  const std::size_t most = s.size() == 2 ? two.size() : s.size() == 3 ? three.size() : four.size();
  if (order >= most) fail(l, "expected an order below " + std::to_string(most) + ", got " + std::to_string(order));
  const std::string_view names = s.size() == 2 ? two[order] : s.size() == 3 ? three[order] : four[order];
  const std::string_view before = s.size() == 2 ? "WH" : s.size() == 3 ? "WHC" : "WHDC";
  ncnn_shape out;
  for (const char c : names) out.push_back(s[s.size() - 1 - before.find(c)]);
  std::reverse(out.begin(), out.end());
  return out;
}

/// Returns the words of a text that spaces separate.
[[nodiscard]] HETPLAN_INLINE std::set<std::string_view> words(std::string_view text) {
  std::set<std::string_view> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    all.insert(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

/// Shapes of operators without products. `known` becomes false for an operator without a rule.
[[nodiscard]] HETPLAN_INLINE std::optional<std::vector<ncnn_shape>> reshaped(const ncnn_line& l,
                                                                             const std::vector<std::optional<ncnn_shape>>& in, bool& moves,
                                                                             bool& known) {
  static const auto same = words(
      "AbsVal BNLL BatchNorm Bias Cast Clip CELU CumulativeSum Dequantize Dropout ELU Eltwise Exp Erf GELU GroupNorm HardSigmoid HardSwish "
      "InstanceNorm LRN LayerNorm Log MVN Mish Normalize PReLU Packing Power Quantize RMSNorm ReLU Requantize RotaryEmbed SELU Scale "
      "Shrink ShuffleChannel Sigmoid Softmax Softplus Swish TanH Threshold UnaryOp CopyTo Diag");
  static const auto shaping = words("Reshape Flatten ExpandDims Squeeze");
  static const auto others = words(
      "BinaryOp Concat Slice Crop Interp Padding Permute Pooling Tile PixelShuffle Reorg Reduction GLU PriorBox DetectionOutput "
      "YoloDetectionOutput Yolov3DetectionOutput");
  moves = !shaping.contains(l.type) && l.type != "Dropout";
  if (!same.contains(l.type) && !shaping.contains(l.type) && !others.contains(l.type)) {
    known = false;
    return std::nullopt;
  }
  for (const auto& s : in) {
    if (!s && l.type != "RotaryEmbed") return std::nullopt;
  }
  if (in.empty() || !in[0]) return std::nullopt;
  const ncnn_shape& s = *in[0];
  const std::size_t n = s.size();
  ncnn_shape out = s;
  if (same.contains(l.type)) return one(out);
  if (l.type == "BinaryOp") {
    for (std::size_t i = 1; i < in.size(); ++i) {
      const ncnn_shape& other = *in[i];
      if (other.size() > out.size()) out = other;
      else if (other.size() == out.size()) {
        for (std::size_t d = 0; d < out.size(); ++d) out[d] = std::max(out[d], other[d]);
      }
    }
    require_sizes(l, out);
    return one(out);
  }
  if (l.type == "Concat") {
    const std::size_t at = axis(l, integer(l, 0, 0), n);
    for (std::size_t i = 1; i < in.size(); ++i) {
      if (in[i]->size() != n) fail(l, "expected inputs of " + std::to_string(n) + " dimensions, got " + std::to_string(in[i]->size()));
      for (std::size_t d = 0; d < n; ++d) {
        if (d != at && (*in[i])[d] != s[d])
          fail(l, "expected inputs that differ along one axis only, got sizes " + std::to_string(s[d]) + " and " +
                      std::to_string((*in[i])[d]));
      }
      out[at] += (*in[i])[at];
      require_sizes(l, out);
    }
    return one(out);
  }
  if (l.type == "Slice") return sliced(l, s);
  if (l.type == "Crop") return in.size() > 1 ? one(*in[1]) : one(cropped(l, s));
  if (l.type == "Permute") return one(permuted(l, s));
  if (l.type == "Pooling") return one(pooled(l, s));
  if (l.type == "Reshape") {
    if (in.size() > 1 || l.parameters.contains(6)) return std::nullopt;  // sizes that other blobs, or an expression, tell
    return one(reshape(l, s));
  }
  if (l.type == "Flatten") return one(ncnn_shape{static_cast<long long>(elements_of(s))});
  if (l.type == "ExpandDims") {
    std::set<std::size_t> at;
    const std::vector<long long> axes = list(l, 3);
    for (const long long a : axes) at.insert(axis(l, a, n + axes.size()));
    if (axes.empty()) {
      if (integer(l, 0, 0) != 0) at.insert(n);
      if (integer(l, 1, 0) != 0) at.insert(n > 1 ? n - 1 : 0);
      if (integer(l, 2, 0) != 0) at.insert(0);
    }
    if (n + at.size() > 4) fail(l, "expected at most 4 dimensions, got " + std::to_string(n + at.size()));
    for (const std::size_t a : at) out.insert(out.begin() + static_cast<std::ptrdiff_t>(std::min(a, out.size())), 1);
    return one(out);
  }
  if (l.type == "Squeeze") {
    std::vector<char> dropped(n, 0);
    const std::vector<long long> axes = list(l, 3);
    for (const long long a : axes) dropped[axis(l, a, n)] = 1;
    if (axes.empty()) {
      if (integer(l, 0, 0) != 0) dropped[n - 1] = 1;
      if (integer(l, 1, 0) != 0 && n > 1) dropped[n - 2] = 1;
      if (integer(l, 2, 0) != 0 && n > 2) dropped[0] = 1;
    }
    out.clear();
    for (std::size_t d = 0; d < n; ++d) {
      if (dropped[d] == 0 || s[d] != 1) out.push_back(s[d]);
    }
    if (out.empty()) out.push_back(1);
    return one(out);
  }
  if (l.type == "Tile") {
    std::vector<long long> repeats = list(l, 2);
    if (repeats.empty()) {
      repeats.assign(n, 1);
      repeats[axis(l, integer(l, 0, 0), n)] = size(l, 1, 1);
    }
    if (repeats.size() > 4) fail(l, "expected at most 4 repeats, got " + std::to_string(repeats.size()));
    while (repeats.size() < out.size()) repeats.insert(repeats.begin(), 1);
    while (out.size() < repeats.size()) out.insert(out.begin(), 1);
    for (std::size_t d = 0; d < out.size(); ++d) {
      if (repeats[d] < 1 || repeats[d] > 1'000'000'000) fail(l, "expected repeats >= 1, got " + std::to_string(repeats[d]));
      out[d] = times(l, out[d], repeats[d]);
    }
    require_sizes(l, out);
    return one(out);
  }
  if (l.type == "Interp") {
    if (in.size() > 1) {
      out = *in[1];
      if (n == 3 && out.size() == 3) out[0] = s[0];
      return one(out);
    }
    const long long h = integer(l, 3, 0), w = integer(l, 4, 0);
    const auto scaled = [&](long long d, long long asked, int key) {
      const double v = asked > 0 ? static_cast<double>(asked) : std::floor(static_cast<double>(d) * number(l, key, 1));
      if (!(v >= 1) || v > 1e12) fail(l, "expected a size >= 1, got " + to_text(v));
      return static_cast<long long>(v);
    };
    if (n == 1) out = {s[0], scaled(1, h, 1), scaled(1, w, 2)};
    else if (n == 2) out[1] = scaled(s[1], w, 2);
    else {
      out[n - 2] = scaled(s[n - 2], h, 1);
      out[n - 1] = scaled(s[n - 1], w, 2);
    }
    require_sizes(l, out);
    return one(out);
  }
  if (l.type == "Padding") {
    out[n - 1] += size(l, 2, 0, 0) + size(l, 3, 0, 0);
    if (n > 1) out[n - 2] += size(l, 0, 0, 0) + size(l, 1, 0, 0);
    if (n > 2) out[0] += size(l, 7, 0, 0) + size(l, 8, 0, 0);
    require_sizes(l, out);
    return one(out);
  }
  if (l.type == "PixelShuffle" || l.type == "Reorg") {
    const long long f = size(l, 0, 1);
    if (n != 3 || f > 100'000) fail(l, "expected an input of 3 dimensions and a factor of at most 1e5");
    if (l.type == "Reorg") out = {times(l, s[0], f * f), s[1] / f, s[2] / f};
    else out = {s[0] / (f * f), times(l, s[1], f), times(l, s[2], f)};
    require_sizes(l, out);
    return one(out);
  }
  if (l.type == "GLU") {
    long long& halved = out[axis(l, integer(l, 0, 0), n)];
    halved /= 2;
    require_sizes(l, out);
    return one(out);
  }
  if (l.type == "Reduction") {
    const bool all = integer(l, 1, 1) != 0, keep = integer(l, 4, 0) != 0;
    std::vector<char> reduced(n, all ? 1 : 0);
    for (const long long a : list(l, 3)) {
      if (!all) reduced[axis(l, a, n)] = 1;
    }
    out.clear();
    for (std::size_t d = 0; d < n; ++d) {
      if (reduced[d] == 0) out.push_back(s[d]);
      else if (keep) out.push_back(1);
    }
    if (out.empty()) out.push_back(1);
    return one(out);
  }
  return std::nullopt;  // boxes, of which data tell the number
}

/// Numbers of weights of operators without products.
[[nodiscard]] HETPLAN_INLINE double norm_weights(const ncnn_line& l) {
  const auto affine = [&](int count, int flag) { return integer(l, flag, 1) != 0 ? static_cast<double>(size(l, count, 0, 0)) : 0; };
  if (l.type == "BatchNorm") return 4 * static_cast<double>(size(l, 0, 0, 0));
  if (l.type == "LayerNorm") return 2 * affine(0, 2);
  if (l.type == "RMSNorm") return affine(0, 2);
  if (l.type == "GroupNorm") return 2 * affine(1, 3);
  if (l.type == "InstanceNorm") return 2 * affine(0, 2);
  if (l.type == "PReLU" || l.type == "Bias") return static_cast<double>(size(l, 0, 0, 0));
  if (l.type == "Normalize") return static_cast<double>(size(l, 3, 0, 0));
  if (l.type == "Scale" && integer(l, 0, 0) != ncnn_rest) return static_cast<double>(size(l, 0, 0, 0)) * (integer(l, 1, 0) != 0 ? 2 : 1);
  return 0;
}

[[nodiscard]] HETPLAN_INLINE ncnn_work work_of(const ncnn_line& l, const std::vector<std::optional<ncnn_shape>>& in) {
  using namespace std::string_view_literals;
  const auto is = [&](auto... types) { return ((l.type == types) || ...); };
  if (is("Convolution"sv, "ConvolutionDepthWise"sv, "Convolution1D"sv, "ConvolutionDepthWise1D"sv, "DeformableConv2D"sv))
    return convolution(l, needed(l, in, 0), false);
  if (is("Deconvolution"sv, "DeconvolutionDepthWise"sv, "Deconvolution1D"sv, "DeconvolutionDepthWise1D"sv))
    return convolution(l, needed(l, in, 0), true);
  if (is("InnerProduct"sv)) return inner_product(l, needed(l, in, 0));
  if (is("Gemm"sv)) return gemm(l, in);
  if (is("MatMul"sv)) return mat_mul(l, needed(l, in, 0), needed(l, in, 1));
  if (is("SDPA"sv, "MultiHeadAttention"sv)) return attention(l, in);
  if (is("LSTM"sv, "GRU"sv, "RNN"sv)) return recurrent(l, needed(l, in, 0));
  if (is("Embed"sv)) {
    ncnn_work w;
    const ncnn_shape& s = needed(l, in, 0);
    const long long n = size(l, 0, 0);
    w.weights = static_cast<double>(size(l, 3, 0, 0)) + (integer(l, 2, 0) != 0 ? static_cast<double>(n) : 0);
    w.out = {{static_cast<long long>(elements_of(s)), n}};
    require_sizes(l, w.out[0]);
    w.looked_up = std::min(w.weights, elements_of(w.out[0]));
    return w;
  }
  ncnn_work w;
  if (auto out = reshaped(l, in, w.moves, w.known)) w.out = std::move(*out);
  else if (auto hint = hinted(l)) w.out = std::move(*hint);
  w.weights = norm_weights(l);
  return w;
}

}  // namespace hetplan::exchange::detail::ncnn
