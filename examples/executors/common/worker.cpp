// SPDX-License-Identifier: BSL-1.0
#include "worker.hpp"

namespace executors {

std::vector<double> pack(const tensors& from, const std::vector<std::size_t>& which) {
  std::vector<double> all;
  for (const std::size_t t : which) all.insert(all.end(), from[t].begin(), from[t].end());
  return all;
}

void unpack(const std::vector<double>& all, const std::vector<std::size_t>& which, const neural_network& net, tensors& to) {
  to.resize(net.layers.size());
  const double* next = all.data();
  for (const std::size_t t : which) {
    to[t] = Eigen::Map<const Eigen::VectorXd>(next, net.layers[t].parameters());
    next += to[t].size();
  }
}

}  // namespace executors
