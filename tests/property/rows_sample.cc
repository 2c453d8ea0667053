#include "rows_sample.h"

#include <ATen/ATen.h>

#include <cctype>
#include <cmath>
#include <map>
#include <random>

#include "base/error.h"
#include "run/torch/call.h"

namespace partita::run {
namespace {

/// Reads the text of a sample from left to right.
class Reader {
 public:
  Reader(std::string_view text, uint64_t seed) : text_(text), seed_(seed), random_(seed * 7919 + 17) {}

  Instance read(std::string_view target) {
    Op op{.name = std::string(target), .target = std::string(target)};
    while (!done()) {
      std::string name = keyword();
      Arg arg = value();
      if (name.empty())
        op.args.push_back(std::move(arg));
      else
        op.kwargs.emplace_back(name, std::move(arg));
      take(',');
    }
    size_t outputs = take('>') ? static_cast<size_t>(sum()) : 1;
    instance_.model.ops = {op};
    instance_.out = call(instance_.model, op, instance_.in, outputs);
    for (const at::Tensor& out : instance_.out)
      instance_.model.ops[0].outputs.push_back(out.defined() ? add(out, Role::kValue) : TensorId{});
    return std::move(instance_);
  }

 private:
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  void need(char c) {
    if (!take(c)) input_error("sample \"{}\": needs '{}' at {}", text_, c, at_);
  }
  // "->" ends the arguments; the '>' is left to be taken.
  bool done() {
    skip();
    if (text_.substr(at_, 2) != "->") return at_ >= text_.size();
    ++at_;
    return true;
  }

  std::string word() {
    skip();
    size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string keyword() {
    size_t begin = at_;
    std::string name = word();
    if (!name.empty() && take('=')) return name;
    at_ = begin;
    return "";
  }

  Arg value() {
    skip();
    char c = text_[at_];
    if (std::isupper(static_cast<unsigned char>(c))) return tensor();
    if (take('[')) return list();
    if (take('\'')) return quoted();
    size_t begin = at_;
    std::string name = word();
    if (name == "none") return {};
    if (name == "true" || name == "false") return {.kind = Arg::kBool, .integer = name == "true"};
    if (name == "float64" || name == "float32" || name == "int64" || name == "bool")
      return {.kind = Arg::kDType, .text = name};
    at_ = begin;
    return number();
  }

  Arg list() {
    Arg arg{.kind = Arg::kList};
    while (!take(']')) {
      arg.items.push_back(value());
      take(',');
    }
    return arg;
  }

  Arg quoted() {
    Arg arg{.kind = Arg::kText, .text = word()};
    need('\'');
    return arg;
  }

  Arg number() {
    size_t end = text_.find_first_of(",]-> ", at_ + 1), dot = text_.find('.', at_);
    if (dot != text_.npos && dot < std::min(end, text_.size())) {
      Arg arg{.kind = Arg::kFloat, .number = std::stod(std::string(text_.substr(at_, end - at_)))};
      at_ = std::min(end, text_.size());
      return arg;
    }
    return Arg::of(sum());
  }

  int64_t sum() {
    int64_t total = product();
    while (true) {
      skip();
      if (text_.substr(at_, 2) == "->") return total;
      if (take('+'))
        total += product();
      else if (take('-'))
        total -= product();
      else
        return total;
    }
  }

  int64_t product() {
    int64_t total = factor();
    while (take('*')) total *= factor();
    return total;
  }

  int64_t factor() {
    if (take('-')) return -factor();
    std::string name = word();
    if (name.empty()) input_error("sample \"{}\": needs a number at {}", text_, at_);
    if (std::isdigit(static_cast<unsigned char>(name[0]))) return std::stoll(name);
    auto [letter, fresh] = letters_.emplace(name, 0);
    if (fresh) letter->second = seed_ == 0 ? 4 : 2 + static_cast<int64_t>(random_() % 5);
    return letter->second;
  }

  std::vector<int64_t> shape() {
    std::vector<int64_t> sizes;
    need('[');
    while (!take(']')) {
      sizes.push_back(sum());
      take(',');
    }
    return sizes;
  }

  Arg tensor() {
    char kind = text_[at_++];
    int64_t high = 0;
    if (kind == 'I') {
      need('(');
      high = sum();
      need(')');
    }
    at::Tensor made = fill(kind, high, shape());
    instance_.in.push_back(made);
    return Arg::of(add(made, Role::kConstant));
  }

  at::Tensor fill(char kind, int64_t high, const std::vector<int64_t>& sizes) {
    at::Tensor made = at::zeros(sizes, kind == 'I' ? at::kLong : kind == 'B' ? at::kBool : at::kDouble);
    normal_.reset();
    for (int64_t i = 0; i < made.numel(); ++i) {
      if (kind == 'I')
        made.data_ptr<int64_t>()[i] = static_cast<int64_t>(random_() % static_cast<uint64_t>(high));
      else if (kind == 'B')
        made.data_ptr<bool>()[i] = random_() % 2;
      else
        made.data_ptr<double>()[i] = real(kind);
    }
    return made;
  }

  double real(char kind) {
    constexpr double kOdd[] = {NAN, INFINITY, -INFINITY};
    if (kind == 'N' && random_() % 2) return kOdd[random_() % 3];
    if (kind == 'F' || kind == 'N') return normal_(random_);
    return (kind == 'P' ? 0.5 : 0.0005) + static_cast<double>(random_() % 1000) / 1000;
  }

  TensorId add(const at::Tensor& value, Role role) {
    TensorId id{static_cast<int32_t>(instance_.model.tensors.size())};
    instance_.model.tensors.push_back({.name = fmt::format("t{}", id.value),
                                       .shape = value.sizes().vec(),
                                       .strides = value.strides().vec(),
                                       .dtype = dtype_of(value.scalar_type()),
                                       .role = role});
    return id;
  }

  std::string_view text_;
  uint64_t seed_;
  size_t at_ = 0;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::map<std::string, int64_t> letters_;
  Instance instance_;
};

// In an instruction a tensor argument is an index into its inputs.
void number_tensors(Arg& arg, int32_t& next) {
  if (arg.kind == Arg::kTensor) arg.tensor = TensorId{next++};
  for (Arg& item : arg.items) number_tensors(item, next);
}

}  // namespace

Instance draw(const Sample& sample, uint64_t seed) { return Reader(sample.text, seed).read(sample.target); }

std::vector<at::Tensor> call(const Model& model, const Op& piece, const std::vector<at::Tensor>& in,
                             size_t outputs) {
  Instr instr{.op = OpId{0}, .args = piece.args, .kwargs = piece.kwargs};
  int32_t next = 0;
  for (Arg& arg : instr.args) number_tensors(arg, next);
  for (auto& [name, arg] : instr.kwargs) number_tensors(arg, next);
  std::vector<at::Tensor> slots = in;
  slots.resize(in.size() + outputs);
  for (size_t i = 0; i < slots.size(); ++i)
    (i < in.size() ? instr.in : instr.out).push_back({Space::kLocal, static_cast<int32_t>(i)});
  Slots view;
  view.base[static_cast<int>(Space::kLocal)] = slots.data();
  torch::jit::Stack stack;
  Call(model, instr).run(view, stack);
  return {slots.begin() + static_cast<ptrdiff_t>(in.size()), slots.end()};
}

}  // namespace partita::run
