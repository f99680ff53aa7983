#ifndef AUTOENCODER_ADAM_H_
#define AUTOENCODER_ADAM_H_

#include <cmath>
#include <utility>
#include <vector>

#include "model.h"

/// Adam changes parameters against their gradients (Kingma and Ba, 2015), each by about the
/// learning rate. Weight decay adds weight_decay * value to every gradient: that of an L2 penalty.
class Adam {
 public:
  Adam(std::vector<Parameter*> parameters, double weight_decay)
      : parameters_(std::move(parameters)), weight_decay_(weight_decay) {
    for (const Parameter* parameter : parameters_) {
      moments_.emplace_back(parameter->value.values.size());
    }
  }

  void Step(double learning_rate) {
    ++steps_;
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      Tensor& value = parameters_[p]->value;
      for (std::size_t i = 0; i < value.values.size(); ++i) {
        const double gradient =
            parameters_[p]->gradient.values[i] + weight_decay_ * value.values[i];
        value.values[i] -= static_cast<float>(learning_rate * Direction(moments_[p][i], gradient));
      }
    }
  }

 private:
  /// Running means of a gradient and of its square.
  struct Moments {
    double first = 0;
    double second = 0;
  };

  double Direction(Moments& moments, double gradient) const {
    constexpr double kFirst = 0.9;
    constexpr double kSecond = 0.999;
    constexpr double kEpsilon = 1e-8;
    moments.first = kFirst * moments.first + (1 - kFirst) * gradient;
    moments.second = kSecond * moments.second + (1 - kSecond) * gradient * gradient;
    // The means start from 0; the divisions make up for that.
    const double mean = moments.first / (1 - std::pow(kFirst, steps_));
    const double square = moments.second / (1 - std::pow(kSecond, steps_));
    return mean / (std::sqrt(square) + kEpsilon);
  }

  std::vector<Parameter*> parameters_;
  std::vector<std::vector<Moments>> moments_;
  double weight_decay_;
  int steps_ = 0;
};

#endif  // AUTOENCODER_ADAM_H_
