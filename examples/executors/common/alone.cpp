// SPDX-License-Identifier: BSL-1.0
#include "alone.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <range/v3/view/zip.hpp>

namespace executors {

double loss_of(const neural_network& net, const tensors& parameters, long batch, std::uint64_t seed, tensors* slopes) {
  const std::size_t n = net.layers.size();
  const samples all{0, batch, seed};
  std::vector<matrix> outputs(n), gradients(n);
  std::vector<tape> tapes(n);
  std::vector<char> read(n, 0);
  const auto inputs_of = [&](std::size_t l) {
    std::vector<view> inputs;
    for (const std::size_t from : net.layers[l].inputs) inputs.push_back(rows_of(std::as_const(outputs[from]), 0, batch));
    return inputs;
  };
  double loss = 0;
  for (std::size_t l = 0; l < n; ++l) {
    outputs[l].resize(batch, net.layers[l].width());
    gradients[l].setZero(batch, net.layers[l].width());
    const double* p = parameters[net.tensor_of(l)].data();
    const mutable_view out = rows_of(outputs[l], 0, batch);
    std::visit([&](const auto& work) { work.forward(p, inputs_of(l), all, out, tapes[l]); }, net.layers[l].work);
    for (const std::size_t from : net.layers[l].inputs) read[from] = 1;
  }
  for (std::size_t l = 0; l < n; ++l) {
    if (read[l] == 0) loss += outputs[l].sum() / static_cast<double>(batch);
  }
  if (slopes == nullptr) return loss;
  slopes->assign(n, {});
  for (std::size_t l = 0; l < n; ++l) (*slopes)[net.tensor_of(l)].setZero(net.layers[l].parameters());
  for (std::size_t l = n; l-- > 0;) {
    if (read[l] == 0) gradients[l].setConstant(1 / static_cast<double>(batch));
    std::vector<mutable_view> of_inputs;
    for (const std::size_t from : net.layers[l].inputs) of_inputs.push_back(rows_of(gradients[from], 0, batch));
    const std::size_t t = net.tensor_of(l);
    const view of_output = rows_of(std::as_const(gradients[l]), 0, batch);
    std::visit(
        [&](const auto& work) {
          tape left;
          work.input_gradients(parameters[t].data(), inputs_of(l), all, of_output, of_inputs, tapes[l], left);
          work.weight_gradients(inputs_of(l), all, of_output, (*slopes)[t].data(), tapes[l], left);
        },
        net.layers[l].work);
  }
  return loss;
}

tensors first_tensors(const neural_network& net, std::uint64_t seed) {
  tensors all(net.layers.size());
  for (std::size_t l = 0; l < net.layers.size(); ++l) {
    if (net.tensor_of(l) == l) all[l] = net.first_parameters(l, seed);
  }
  return all;
}

training_alone train_alone(const neural_network& net, long batch, const training_settings& settings, int iterations) {
  training_alone out{{}, first_tensors(net, settings.seed)};
  for (int i = 0; i < iterations; ++i) {
    tensors slopes;
    out.losses.push_back(loss_of(net, out.parameters, batch, settings.seed, &slopes));
    for (std::size_t t = 0; t < slopes.size(); ++t) {
      if (slopes[t].size() > 0) out.parameters[t] -= settings.rate * slopes[t];
    }
  }
  return out;
}

double difference(const Eigen::VectorXd& got, const Eigen::VectorXd& expected) {
  if (got.size() != expected.size()) return std::numeric_limits<double>::infinity();
  return got.size() == 0 ? 0 : (got - expected).cwiseAbs().maxCoeff() / std::max(expected.cwiseAbs().maxCoeff(), 1e-300);
}

double difference(const std::vector<iteration_record>& records, const tensors& held, const training_alone& expected) {
  double most = records.size() == expected.losses.size() ? 0 : std::numeric_limits<double>::infinity();
  for (const auto& [record, loss] : ranges::views::zip(records, expected.losses)) most = std::max(most, std::abs(record.loss / loss - 1));
  for (const auto& [mine, theirs] : ranges::views::zip(held, expected.parameters)) {
    if (mine.size() > 0) most = std::max(most, difference(mine, theirs));
  }
  return most;
}

}  // namespace executors
