// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Forward and backward computations of the built-in networks' layers, on the rows of a batch.

#include <cstdint>
#include <variant>
#include <vector>

#include <Eigen/Core>

namespace executors {

/// Row-major matrix: a row is a flattened sample, so any range of samples is contiguous.
using matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using view = Eigen::Map<const matrix>;
using mutable_view = Eigen::Map<matrix>;

[[nodiscard]] inline view rows_of(const matrix& m, long first, long last) { return {m.data() + first * m.cols(), last - first, m.cols()}; }
[[nodiscard]] inline mutable_view rows_of(matrix& m, long first, long last) {
  return {m.data() + first * m.cols(), last - first, m.cols()};
}

/// The samples [first, last) of the global batch, and the seed of their data.
struct samples {
  long first = 0;
  long last = 0;
  std::uint64_t seed = 1;

  [[nodiscard]] long count() const { return last - first; }
};

/// Returns number `index` of a stream, in [-1, 1). It is the same everywhere, so no device sends data or initial weights.
[[nodiscard]] double random_value(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

/// Values that a layer keeps from a microbatch's forward to its backward, or from its input gradients to its weight gradients.
using tape = std::vector<matrix>;

/// y = tanh(x W + b) of all inputs side by side; without an input, of the samples' data.
///
/// Interface of every operation: width of the output and parameters (numbers); FLOP of a forward and numbers kept (per sample). forward
/// writes `out` and appends to an empty tape. input_gradients adds to the gradients of the inputs, and appends to another empty tape what
/// weight_gradients needs. weight_gradients adds to the gradients of the parameters.
struct dense {
  long in = 0;
  long out = 0;
  std::uint64_t data = 0;  ///< stream of the data, without inputs

  [[nodiscard]] long width() const { return out; }
  [[nodiscard]] long parameters() const { return (in + 1) * out; }
  [[nodiscard]] double flops() const { return 2.0 * static_cast<double>(in * out); }
  [[nodiscard]] long kept() const { return 2 * out; }
  [[nodiscard]] long fan_in() const { return in; }

  void forward(const double* p, const std::vector<view>& inputs, const samples& s, mutable_view y, tape& keep) const;
  void input_gradients(const double* p, const std::vector<view>&, const samples&, view dy, std::vector<mutable_view>& dx, const tape& keep,
                       tape& left) const;
  void weight_gradients(const std::vector<view>& inputs, const samples&, view, double* dp, const tape& keep, const tape& left) const;
};

/// A table with a row of `model` numbers per token: a sample becomes tokens x model.
struct embed {
  long tokens = 0;
  long model = 0;
  long vocabulary = 0;

  [[nodiscard]] long width() const { return tokens * model; }
  [[nodiscard]] long parameters() const { return vocabulary * model; }
  [[nodiscard]] double flops() const { return static_cast<double>(tokens * model); }
  [[nodiscard]] long kept() const { return tokens * model; }
  [[nodiscard]] long fan_in() const { return model; }

  void forward(const double* p, const std::vector<view>&, const samples& s, mutable_view y, tape&) const;
  void input_gradients(const double*, const std::vector<view>&, const samples&, view, std::vector<mutable_view>&, const tape&,
                       tape&) const {}
  void weight_gradients(const std::vector<view>&, const samples& s, view dy, double* dp, const tape&, const tape&) const;
};

/// y = x + softmax(q k' / sqrt(model), the past only) v O, with q, k, v = x Q, x K, x V.
struct attention {
  long tokens = 0;
  long model = 0;

  [[nodiscard]] long width() const { return tokens * model; }
  [[nodiscard]] long parameters() const { return 4 * model * model; }
  [[nodiscard]] double flops() const { return static_cast<double>(8 * tokens * model * model + 4 * tokens * tokens * model); }
  [[nodiscard]] long kept() const { return 5 * tokens * model + tokens * tokens; }
  [[nodiscard]] long fan_in() const { return model; }

  void forward(const double* p, const std::vector<view>& inputs, const samples& s, mutable_view y, tape& keep) const;
  void input_gradients(const double* p, const std::vector<view>&, const samples& s, view dy, std::vector<mutable_view>& dinputs,
                       const tape& keep, tape& left) const;
  void weight_gradients(const std::vector<view>& inputs, const samples& s, view dy, double* dp, const tape& keep, const tape& left) const;

 private:
  [[nodiscard]] view weight(const double* p, int i) const { return {p + i * model * model, model, model}; }
};

/// y = x + max(0, x A) B, token by token.
struct feed_forward {
  long tokens = 0;
  long model = 0;
  long hidden = 0;

  [[nodiscard]] long width() const { return tokens * model; }
  [[nodiscard]] long parameters() const { return 2 * model * hidden; }
  [[nodiscard]] double flops() const { return static_cast<double>(4 * tokens * model * hidden); }
  [[nodiscard]] long kept() const { return tokens * (model + hidden); }
  [[nodiscard]] long fan_in() const { return model; }

  void forward(const double* p, const std::vector<view>& inputs, const samples& s, mutable_view y, tape& keep) const;
  void input_gradients(const double* p, const std::vector<view>&, const samples& s, view dy, std::vector<mutable_view>& dinputs,
                       const tape& keep, tape& left) const;
  void weight_gradients(const std::vector<view>& inputs, const samples& s, view dy, double* dp, const tape& keep, const tape& left) const;
};

/// A sink: each sample's loss is half the mean squared distance of the input from the sample's target.
struct square_loss {
  long in = 0;

  [[nodiscard]] long width() const { return 1; }
  [[nodiscard]] long parameters() const { return 0; }
  [[nodiscard]] double flops() const { return 4.0 * static_cast<double>(in); }
  [[nodiscard]] long kept() const { return in; }
  [[nodiscard]] long fan_in() const { return in; }

  void forward(const double*, const std::vector<view>& x, const samples& s, mutable_view y, tape& keep) const;
  void input_gradients(const double*, const std::vector<view>&, const samples&, view dy, std::vector<mutable_view>& dx, const tape& keep,
                       tape&) const;
  void weight_gradients(const std::vector<view>&, const samples&, view, double*, const tape&, const tape&) const {}
};

/// A sink: each sample's loss is the mean of -log p(next token) with p = softmax(x E'), E the table of `embed`.
struct next_token_loss {
  long tokens = 0;
  long model = 0;
  long vocabulary = 0;

  [[nodiscard]] long width() const { return 1; }
  [[nodiscard]] long parameters() const { return vocabulary * model; }
  [[nodiscard]] double flops() const { return static_cast<double>(2 * tokens * model * vocabulary); }
  [[nodiscard]] long kept() const { return tokens * vocabulary; }
  [[nodiscard]] long fan_in() const { return model; }

  void forward(const double* p, const std::vector<view>& x, const samples& s, mutable_view y, tape& keep) const;
  void input_gradients(const double* p, const std::vector<view>&, const samples& s, view dy, std::vector<mutable_view>& dx,
                       const tape& keep, tape& left) const;
  void weight_gradients(const std::vector<view>& x, const samples&, view, double* dp, const tape&, const tape& left) const;

 private:
  [[nodiscard]] long target(const samples& s, long row) const;
};

using operation = std::variant<dense, embed, attention, feed_forward, square_loss, next_token_loss>;

}  // namespace executors
