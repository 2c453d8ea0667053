#pragma once

#include <span>
#include <string_view>

namespace partita::model::build {

/// Keys of every Hugging Face config that change no training step: tokens, generation, names, versions.
std::span<const std::string_view> generic_keys();

/// Further keys of one class that change no graph, such as how weights are first drawn, or that only another
/// head reads. Empty for a class without any.
std::span<const std::string_view> idle_keys(std::string_view model_type);

/// Shares of values that a module drops while it trains; a builder leaves dropout out.
std::span<const std::string_view> dropout_keys();

/// The name that this class has for a key of others: "n_embd" for "hidden_size" of gpt2; empty where none.
/// Hugging Face takes both, the builders only the class's own.
std::string_view own_name(std::string_view model_type, std::string_view key);

}  // namespace partita::model::build
