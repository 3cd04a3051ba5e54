// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The same training on one device, without plans, links or microbatches: what every plan has to agree with.

#include <cstdint>
#include <vector>

#include "worker.hpp"

namespace executors {

struct training_alone {
  std::vector<double> losses;  ///< by iteration
  tensors parameters;          ///< after the last step
};

/// The loss of a batch, and its slopes by tensor where they are asked for.
///
/// Complexity  all layers forward and, for the slopes, backward, on the whole batch at once.
[[nodiscard]] double loss_of(const neural_network& net, const tensors& parameters, long batch, std::uint64_t seed,
                             tensors* slopes = nullptr);

/// The parameters of all tensors that training starts with.
[[nodiscard]] tensors first_tensors(const neural_network& net, std::uint64_t seed);

/// Trains from the seed's first parameters.
[[nodiscard]] training_alone train_alone(const neural_network& net, long batch, const training_settings& settings, int iterations);

/// The largest difference of two tensors' numbers, by the largest number of the second.
[[nodiscard]] double difference(const Eigen::VectorXd& got, const Eigen::VectorXd& expected);

/// The largest relative difference of the losses, and of the tensors that a device holds.
[[nodiscard]] double difference(const std::vector<iteration_record>& records, const tensors& held, const training_alone& expected);

}  // namespace executors
