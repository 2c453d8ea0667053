#pragma once

namespace partita::reshard {

/// Prints, for every pair of layouts on small meshes, what the per-axis conversion of src/lower moves beside
/// the engine. False where the engine is above its bound.
bool compare_with_lowering();

}  // namespace partita::reshard
