#include "base/error.h"
#include "base/interrupt.h"
#include "bind.h"

namespace partita::python {
namespace {

/// A class of partita.errors, for as long as the interpreter lives.
py::handle error_class(const char* name) {
  return py::module_::import("partita.errors").attr(name).cast<py::object>().release();
}

}  // namespace

// They are the package's own classes, whoever throws them.
void bind_errors() {
  static const py::handle input = error_class("InputError"), run = error_class("RunError"),
                          infeasible = error_class("Infeasible");
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const InputError& error) {
      PyErr_SetString(input.ptr(), error.what());
    } catch (const RunError& error) {
      PyErr_SetString(run.ptr(), error.what());
    } catch (const Infeasible& error) {
      PyErr_SetString(infeasible.ptr(), error.what());
    } catch (const Interrupted&) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
    } catch (const Bug& error) {
      PyErr_SetString(PyExc_RuntimeError,
                      fmt::format("this is a bug in partita, please report it: {}", error.what()).c_str());
    }
  });
}

}  // namespace partita::python
