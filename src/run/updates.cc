#include "run/updates.h"

#include <cmath>

#include "base/error.h"

namespace partita::run {
namespace {

/// One element and its states.
struct Element {
  double value = 0, first = 0, second = 0;
};

/// What is the same for all elements of an update.
struct Update {
  const OptimizerGroup& by;
  bool is_first = false;
  double whole = 1, square = 1;  // the shares of the moments that there are already
};

void moments(const Update& update, double gradient, Element& at) {
  const OptimizerGroup& by = update.by;
  at.first = by.beta1 * at.first + (1 - by.beta1) * gradient;
  at.second = by.beta2 * at.second + (1 - by.beta2) * gradient * gradient;
  at.value -= by.lr / update.whole * at.first / (std::sqrt(at.second) / std::sqrt(update.square) + by.eps);
}

void adamw(const Update& update, double gradient, Element& at) {
  at.value *= 1 - update.by.lr * update.by.weight_decay;
  moments(update, gradient, at);
}

void adam(const Update& update, double gradient, Element& at) {
  moments(update, gradient + update.by.weight_decay * at.value, at);
}

void sgd(const Update& update, double gradient, Element& at) {
  const OptimizerGroup& by = update.by;
  gradient += by.weight_decay * at.value;
  at.first = update.is_first ? gradient : by.momentum * at.first + (1 - by.dampening) * gradient;
  double momentum = by.nesterov ? gradient + by.momentum * at.first : at.first;
  at.value -= by.lr * (by.momentum != 0 ? momentum : gradient);
}

void none(const Update&, double, Element&) {}

struct UpdateRow {
  std::string_view name;
  void (*update)(const Update&, double, Element&);
};
constexpr UpdateRow kUpdates[] = {{"adamw", adamw}, {"adam", adam}, {"sgd", sgd}, {"none", none}};

const UpdateRow& row_of(std::string_view name) {
  for (const UpdateRow& row : kUpdates)
    if (row.name == name) return row;
  bug(__FILE__, __LINE__, fmt::format("there is an optimizer \"{}\"", name));
}

}  // namespace

std::vector<double> updated(std::string_view optimizer, const OptimizerGroup& by,
                            std::vector<double> parameter,
                            const std::vector<std::vector<double>>& gradients) {
  const UpdateRow& row = row_of(optimizer);
  std::vector<Element> elements;
  for (double value : parameter) elements.push_back({.value = value});
  for (size_t k = 0; k < gradients.size(); ++k) {
    auto updates = static_cast<double>(k + 1);
    Update update{by, k == 0, 1 - std::pow(by.beta1, updates), 1 - std::pow(by.beta2, updates)};
    for (size_t i = 0; i < elements.size(); ++i) row.update(update, gradients[k][i], elements[i]);
  }
  for (size_t i = 0; i < elements.size(); ++i) parameter[i] = elements[i].value;
  return parameter;
}

}  // namespace partita::run
