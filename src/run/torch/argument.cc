#include "run/torch/argument.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/scalar_tensor.h>

#include "base/error.h"
#include "base/names.h"
#include "run/torch/value.h"

namespace partita::run {
namespace {

using c10::IValue;
using c10::TypeKind;

struct Word {
  std::string_view text;
  int64_t value;
};
constexpr Word kLayouts[] = {{"strided", static_cast<int64_t>(c10::Layout::Strided)}};
constexpr Word kMemoryFormats[] = {
    {"contiguous_format", static_cast<int64_t>(c10::MemoryFormat::Contiguous)},
    {"preserve_format", static_cast<int64_t>(c10::MemoryFormat::Preserve)},
    {"channels_last", static_cast<int64_t>(c10::MemoryFormat::ChannelsLast)},
    {"channels_last_3d", static_cast<int64_t>(c10::MemoryFormat::ChannelsLast3d)},
};

template <size_t N>
int64_t find_word(const Word (&words)[N], const std::string& text, const std::string& where) {
  std::vector<std::string> known;
  for (const Word& word : words) {
    if (word.text == text) return word.value;
    known.emplace_back(word.text);
  }
  input_error("{}: unknown \"{}\"{}", where, text, did_you_mean(text, known));
}

[[noreturn]] void refuse(const c10::Type& type, const std::string& where) {
  input_error("{}: the model gives a value that is no {}", where, type.str());
}

bool is_number(const Arg& arg) {
  return arg.kind == Arg::kInt || arg.kind == Arg::kFloat || arg.kind == Arg::kBool;
}

c10::Scalar scalar(const Arg& arg) {
  if (arg.kind == Arg::kFloat) return arg.number;
  if (arg.kind == Arg::kBool) return arg.integer != 0;
  return arg.integer;
}

int64_t integer(const Arg& arg, const c10::Type& type, const std::string& where) {
  switch (arg.kind) {
    case Arg::kInt:
    case Arg::kBool:
      return arg.integer;
    case Arg::kDType:
      return static_cast<int64_t>(scalar_type(parse_dtype(arg.text, where)));
    case Arg::kLayout:
      return find_word(kLayouts, arg.text, where);
    case Arg::kMemoryFormat:
      return find_word(kMemoryFormats, arg.text, where);
    default:
      refuse(type, where);
  }
}

double number(const Arg& arg, const c10::Type& type, const std::string& where) {
  if (!is_number(arg)) refuse(type, where);
  return arg.kind == Arg::kFloat ? arg.number : static_cast<double>(arg.integer);
}

IValue wrapped_number(const Arg& arg, std::optional<DType> dtype) {
  at::Tensor tensor =
      dtype ? at::scalar_tensor(scalar(arg), scalar_type(*dtype)) : c10::scalar_to_tensor(scalar(arg));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

template <class T, class Convert>
IValue list_of(const Arg& arg, std::optional<int32_t> length, const Convert& convert) {
  c10::List<T> list;
  for (const Arg& item : arg.items) list.push_back(convert(item));
  // `int[2] stride=1` takes a single number for all places.
  if (arg.kind != Arg::kList)
    for (int32_t i = 0; i < length.value_or(1); ++i) list.push_back(convert(arg));
  return list;
}

IValue list_value(const Arg& arg, const c10::Type& element, std::optional<int32_t> length,
                  const std::string& where) {
  switch (element.kind()) {
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return list_of<int64_t>(arg, length, [&](const Arg& a) { return integer(a, element, where); });
    case TypeKind::FloatType:
      return list_of<double>(arg, length, [&](const Arg& a) { return number(a, element, where); });
    case TypeKind::BoolType:
      return list_of<bool>(arg, length, [&](const Arg& a) { return integer(a, element, where) != 0; });
    case TypeKind::TensorType:
      return c10::List<at::Tensor>();
    default:
      refuse(element, where);
  }
}

IValue value(const Arg& arg, const c10::Type& type, std::optional<int32_t> length, const std::string& where) {
  switch (type.kind()) {
    case TypeKind::OptionalType:
      if (arg.kind == Arg::kNone) return IValue();
      return value(arg, *type.expectRef<c10::OptionalType>().getElementType(), length, where);
    case TypeKind::TensorType:
      if (arg.kind == Arg::kNone) return at::Tensor();
      refuse(type, where);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return integer(arg, type, where);
    case TypeKind::FloatType:
      return number(arg, type, where);
    case TypeKind::BoolType:
      return integer(arg, type, where) != 0;
    case TypeKind::NumberType:
      if (!is_number(arg)) refuse(type, where);
      return scalar(arg);
    case TypeKind::StringType:
      if (arg.kind != Arg::kText) refuse(type, where);
      return arg.text;
    case TypeKind::DeviceObjType:
      if (arg.kind != Arg::kDevice) refuse(type, where);
      return c10::Device(arg.text);
    case TypeKind::ListType:
      return list_value(arg, *type.expectRef<c10::ListType>().getElementType(), length, where);
    default:
      if (arg.kind == Arg::kNone) return IValue();
      refuse(type, where);
  }
}

}  // namespace

IValue constant_argument(const Arg& arg, const c10::Argument& formal, std::optional<DType> number,
                         const std::string& where) {
  if (is_number(arg) && formal.type()->kind() == TypeKind::TensorType) return wrapped_number(arg, number);
  return value(arg, *formal.type(), formal.N(), where);
}

bool takes_optional_tensors(const c10::Argument& formal) {
  const auto* list = formal.type()->castRaw<c10::ListType>();
  return list && list->getElementType()->kind() == TypeKind::OptionalType;
}

}  // namespace partita::run
