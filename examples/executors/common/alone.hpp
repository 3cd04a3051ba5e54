// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Training on one device, without plans, links or microbatches: the reference for all plans.

#include <cstdint>
#include <vector>

#include "worker.hpp"

namespace executors {

struct training_alone {
  std::vector<double> losses;  ///< [iteration]
  tensors parameters;          ///< after the last step
};

/// Returns the loss of a batch and, if `slopes` is given, its gradients by tensor.
///
/// Complexity  all layers forward and, for the slopes, backward, on the whole batch at once.
[[nodiscard]] double loss_of(const neural_network& net, const tensors& parameters, long batch, std::uint64_t seed,
                             tensors* slopes = nullptr);

[[nodiscard]] tensors first_tensors(const neural_network& net, std::uint64_t seed);

[[nodiscard]] training_alone train_alone(const neural_network& net, long batch, const training_settings& settings, int iterations);

/// Returns the largest difference between two tensors, relative to the largest number of the second.
[[nodiscard]] double difference(const Eigen::VectorXd& got, const Eigen::VectorXd& expected);

/// Returns the largest relative difference of the losses, and of the tensors that a device holds.
[[nodiscard]] double difference(const std::vector<iteration_record>& records, const tensors& held, const training_alone& expected);

}  // namespace executors
