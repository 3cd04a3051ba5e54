// SPDX-License-Identifier: BSL-1.0
#include "layers.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace executors {

namespace {

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15U + stream * 0xd1b54a32d192ed03U + index * 0x8cb92ba72f3d8dd7U;
  for (int round = 0; round < 2; ++round) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
  }
  return z;
}

/// Returns a matrix whose row i is the stream's data of sample first + i.
matrix random_rows(const samples& s, std::uint64_t stream, long width) {
  matrix m(s.count(), width);
  for (long i = 0; i < m.size(); ++i) m.data()[i] = random_value(s.seed, stream, static_cast<std::uint64_t>(s.first * width + i));
  return m;
}

/// Returns token `position` of a sample, in [0, tokens]; token t + 1 is the one to predict at position t.
long token_at(const samples& s, long sample, long position, long tokens, long vocabulary) {
  const auto index = static_cast<std::uint64_t>(sample * (tokens + 1) + position);
  return static_cast<long>(random_bits(s.seed, 1001, index) % static_cast<std::uint64_t>(vocabulary));
}

std::vector<view> side_by_side(const std::vector<view>& inputs, const tape& keep) {
  if (!inputs.empty()) return inputs;
  return {view(keep.front().data(), keep.front().rows(), keep.front().cols())};
}

}  // namespace

double random_value(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return static_cast<double>(random_bits(seed, stream, index) >> 11) * 0x1p-52 - 1;
}

void dense::forward(const double* p, const std::vector<view>& inputs, const samples& s, mutable_view y, tape& keep) const {
  if (inputs.empty()) keep.push_back(random_rows(s, data, in));
  y.rowwise() = Eigen::Map<const Eigen::RowVectorXd>(p + in * out, out);
  const double* w = p;  // rows of W for one input
  for (const view& x : side_by_side(inputs, keep)) {
    y.noalias() += x * view(w, x.cols(), out);
    w += x.cols() * out;
  }
  y = y.array().tanh();
  keep.push_back(y);
}

void dense::input_gradients(const double* p, const std::vector<view>&, const samples&, view dy, std::vector<mutable_view>& dx,
                            const tape& keep, tape& left) const {
  left.push_back(dy.array() * (1 - keep.back().array().square()));
  const matrix& dz = left.back();
  long at = 0;
  for (mutable_view& d : dx) {
    d.noalias() += dz * view(p + at, d.cols(), out).transpose();
    at += d.cols() * out;
  }
}

void dense::weight_gradients(const std::vector<view>& inputs, const samples&, view, double* dp, const tape& keep, const tape& left) const {
  const matrix& dz = left.back();
  Eigen::Map<Eigen::RowVectorXd>(dp + in * out, out) += dz.colwise().sum();
  long at = 0;
  for (const view& x : side_by_side(inputs, keep)) {
    mutable_view(dp + at, x.cols(), out).noalias() += x.transpose() * dz;
    at += x.cols() * out;
  }
}

void embed::forward(const double* p, const std::vector<view>&, const samples& s, mutable_view y, tape&) const {
  for (long i = 0; i < s.count(); ++i) {
    for (long t = 0; t < tokens; ++t) {
      y.row(i).segment(t * model, model) = view(p, vocabulary, model).row(token_at(s, s.first + i, t, tokens, vocabulary));
    }
  }
}

void embed::weight_gradients(const std::vector<view>&, const samples& s, view dy, double* dp, const tape&, const tape&) const {
  for (long i = 0; i < s.count(); ++i) {
    for (long t = 0; t < tokens; ++t) {
      mutable_view(dp, vocabulary, model).row(token_at(s, s.first + i, t, tokens, vocabulary)) += dy.row(i).segment(t * model, model);
    }
  }
}

void attention::forward(const double* p, const std::vector<view>& inputs, const samples& s, mutable_view y, tape& keep) const {
  const long n = s.count() * tokens;
  const view x(inputs[0].data(), n, model);
  matrix q = x * weight(p, 0), k = x * weight(p, 1), v = x * weight(p, 2), mixed(n, model), share(n, tokens);
  for (long i = 0; i < s.count(); ++i) {
    const auto mine = [&](matrix& m) { return m.middleRows(i * tokens, tokens); };
    matrix scores = mine(q) * mine(k).transpose() / std::sqrt(static_cast<double>(model));
    for (long t = 0; t < tokens; ++t) {
      auto row = scores.row(t);
      row.tail(tokens - t - 1).setConstant(-std::numeric_limits<double>::infinity());
      row = (row.array() - row.head(t + 1).maxCoeff()).exp();
      row /= row.sum();
    }
    mine(share) = scores;
    mine(mixed).noalias() = scores * mine(v);
  }
  mutable_view out(y.data(), n, model);
  out = x;
  out.noalias() += mixed * weight(p, 3);
  for (matrix* m : {&q, &k, &v, &mixed, &share}) keep.push_back(std::move(*m));
}

void attention::input_gradients(const double* p, const std::vector<view>&, const samples& s, view dy, std::vector<mutable_view>& dinputs,
                                const tape& keep, tape& left) const {
  const long n = s.count() * tokens;
  const view dout(dy.data(), n, model);
  const matrix &q = keep[0], &k = keep[1], &v = keep[2], &share = keep[4];
  const matrix dmixed = dout * weight(p, 3).transpose();
  matrix dq(n, model), dk(n, model), dv(n, model);
  for (long i = 0; i < s.count(); ++i) {
    const auto mine = [&](const matrix& m) { return m.middleRows(i * tokens, tokens); };
    const auto mine_to = [&](matrix& m) { return m.middleRows(i * tokens, tokens); };
    const matrix dshare = mine(dmixed) * mine(v).transpose();
    const Eigen::VectorXd sum = (dshare.array() * mine(share).array()).rowwise().sum();
    const matrix dscores = mine(share).array() * (dshare.colwise() - sum).array() / std::sqrt(static_cast<double>(model));
    mine_to(dv).noalias() = mine(share).transpose() * mine(dmixed);
    mine_to(dq).noalias() = dscores * mine(k);
    mine_to(dk).noalias() = dscores.transpose() * mine(q);
  }
  mutable_view dx(dinputs[0].data(), n, model);
  dx += dout;
  for (matrix* m : {&dq, &dk, &dv}) {
    dx.noalias() += *m * weight(p, static_cast<int>(left.size())).transpose();
    left.push_back(std::move(*m));
  }
}

void attention::weight_gradients(const std::vector<view>& inputs, const samples& s, view dy, double* dp, const tape& keep,
                                 const tape& left) const {
  const long n = s.count() * tokens;
  const view x(inputs[0].data(), n, model), dout(dy.data(), n, model);
  for (int i = 0; i < 3; ++i)
    mutable_view(dp + i * model * model, model, model).noalias() += x.transpose() * left[static_cast<std::size_t>(i)];
  mutable_view(dp + 3 * model * model, model, model).noalias() += keep[3].transpose() * dout;
}

void feed_forward::forward(const double* p, const std::vector<view>& inputs, const samples& s, mutable_view y, tape& keep) const {
  const long n = s.count() * tokens;
  const view x(inputs[0].data(), n, model);
  matrix h = x * view(p, model, hidden);
  h = h.array().max(0.0);
  mutable_view out(y.data(), n, model);
  out = x;
  out.noalias() += h * view(p + model * hidden, hidden, model);
  keep.push_back(std::move(h));
}

void feed_forward::input_gradients(const double* p, const std::vector<view>&, const samples& s, view dy, std::vector<mutable_view>& dinputs,
                                   const tape& keep, tape& left) const {
  const long n = s.count() * tokens;
  const view dout(dy.data(), n, model);
  matrix dh = dout * view(p + model * hidden, hidden, model).transpose();
  dh = (keep[0].array() > 0).select(dh, 0.0);
  mutable_view dx(dinputs[0].data(), n, model);
  dx += dout;
  dx.noalias() += dh * view(p, model, hidden).transpose();
  left.push_back(std::move(dh));
}

void feed_forward::weight_gradients(const std::vector<view>& inputs, const samples& s, view dy, double* dp, const tape& keep,
                                    const tape& left) const {
  const long n = s.count() * tokens;
  const view x(inputs[0].data(), n, model), dout(dy.data(), n, model);
  mutable_view(dp, model, hidden).noalias() += x.transpose() * left[0];
  mutable_view(dp + model * hidden, hidden, model).noalias() += keep[0].transpose() * dout;
}

void square_loss::forward(const double*, const std::vector<view>& x, const samples& s, mutable_view y, tape& keep) const {
  keep.push_back(x[0] - random_rows(s, 1002, in));
  y = keep.back().rowwise().squaredNorm() / (2.0 * static_cast<double>(in));
}

void square_loss::input_gradients(const double*, const std::vector<view>&, const samples&, view dy, std::vector<mutable_view>& dx,
                                  const tape& keep, tape&) const {
  dx[0] += (dy.col(0) / static_cast<double>(in)).asDiagonal() * keep[0];
}

void next_token_loss::forward(const double* p, const std::vector<view>& x, const samples& s, mutable_view y, tape& keep) const {
  matrix share = view(x[0].data(), s.count() * tokens, model) * view(p, vocabulary, model).transpose();
  y.setZero();
  for (long r = 0; r < share.rows(); ++r) {
    auto row = share.row(r);
    row = (row.array() - row.maxCoeff()).exp();
    row /= row.sum();
    y(r / tokens, 0) -= std::log(row[target(s, r)]) / static_cast<double>(tokens);
  }
  keep.push_back(std::move(share));
}

void next_token_loss::input_gradients(const double* p, const std::vector<view>&, const samples& s, view dy, std::vector<mutable_view>& dx,
                                      const tape& keep, tape& left) const {
  matrix d = keep[0];
  for (long r = 0; r < d.rows(); ++r) {
    d(r, target(s, r)) -= 1;
    d.row(r) *= dy(r / tokens, 0) / static_cast<double>(tokens);
  }
  mutable_view(dx[0].data(), d.rows(), model).noalias() += d * view(p, vocabulary, model);
  left.push_back(std::move(d));
}

void next_token_loss::weight_gradients(const std::vector<view>& x, const samples&, view, double* dp, const tape&, const tape& left) const {
  mutable_view(dp, vocabulary, model).noalias() += left[0].transpose() * view(x[0].data(), left[0].rows(), model);
}

long next_token_loss::target(const samples& s, long row) const {
  return token_at(s, s.first + row / tokens, row % tokens + 1, tokens, vocabulary);
}

}  // namespace executors
