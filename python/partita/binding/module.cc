#include "bind.h"

PYBIND11_MODULE(_partita, m) {
  using namespace partita::python;
  bind_errors();
  bind_model(m);
  bind_plan(m);
  bind_run(m);
  bind_cli(m);
}
