#pragma once

#include <string_view>

#include "model/build/build.h"

namespace partita::model {

/// Small models of eight architectures, for campaigns that run them.
inline constexpr const char* kSmallModels[] = {"gpt2-tiny", "llama-tiny",        "mixtral-tiny",
                                               "bert-tiny", "t5-tiny",           "mbart-tiny",
                                               "vit-tiny",  "swin-small-windows"};

/// One of them, or a preset of the library. InputError where there is none of this name.
const Preset& small_or_preset(std::string_view name);

}  // namespace partita::model
