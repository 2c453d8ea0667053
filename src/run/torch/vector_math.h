#pragma once

namespace partita::run {

/// Makes MKL's vector math find its kernels, once a process. Before that, threads that call one of its
/// functions for the first time at the same moment may get one with half of the digits. To be called before
/// ranks run beside each other.
void settle_vector_math();

}  // namespace partita::run
