// tack._core: what of tack runs in C++.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <string>
#include <vector>

#include "cpu_level.h"
#include "host_program.h"
#include "kernel_type.h"
#include "launchable.h"
#include "library.h"

namespace tack {
namespace {

// A record and what it keeps alive may form a cycle with the kernel that holds it.
int launchable_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<Launchable>(self)->keepalive().ptr());
  return 0;
}

int launchable_clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Launchable>(self)->keepalive().reset();
  return 0;
}

PyType_Slot launchable_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(launchable_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(launchable_clear)},
    {0, nullptr},
};

std::uint64_t address_of(tack_entry entry) { return reinterpret_cast<std::uintptr_t>(entry); }

void add_launchable(nb::module_& module) {
  nb::class_<Launchable>(module, "Launchable", nb::is_final(), nb::type_slots(launchable_slots),
                         "A variant that can be launched. Immutable.")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, std::uint64_t, std::uint64_t,
                    std::string, nb::object, nb::handle, std::uint64_t, nb::handle, bool>(),
           nb::arg("params").none(), nb::arg("slots").none(), nb::arg("host").none(),
           nb::arg("written").none(), nb::arg("general"), nb::arg("noalias"), nb::arg("label"),
           nb::arg("keepalive").none(), nb::arg("aligned") = nb::make_tuple(), nb::arg("wide") = 0,
           nb::arg("multiples") = nb::make_tuple(), nb::arg("prints") = false,
           "Raises ValueError for a record that could not be launched safely.")
      .def_prop_ro("label", &Launchable::label)
      .def_prop_ro("general", [](const Launchable& self) { return address_of(self.general()); })
      .def_prop_ro("noalias",
                   [](const Launchable& self) {
                     return self.noalias() == self.general() ? 0 : address_of(self.noalias());
                   })
      .def("__repr__", [](const Launchable& self) { return "<Launchable " + self.label() + ">"; });
}

void add_library(nb::module_& module) {
  nb::class_<Library>(module, "Library", "A kernel library. It stays loaded.")
      .def(nb::init<nb::handle>(), nb::arg("path"), "Raises OSError in the loader's words.")
      .def("symbol", &Library::symbol, nb::arg("name"),
           "The address of an entry point; raises AttributeError if there is none.")
      .def_prop_ro("path", &Library::path);
}

std::vector<std::int64_t> evaluate_host(nb::handle host, nb::handle slots, std::size_t loops) {
  const Items values(slots, "slots");
  std::vector<tack_slot> packed(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) packed[i].i64 = values.bits(i);
  const std::vector<SlotAccess> readable(values.size(), {SlotAccess::Kind::any, DType::i64});
  const HostProgram program(host, readable);
  if (program.loops() != loops) {
    raise(PyExc_ValueError, "the program sets another number of loops");
  }
  std::int64_t extents[kMaxLoops];
  switch (program.run(packed.data(), extents)) {
    case HostStatus::step_not_positive:
      raise(PyExc_ValueError, "step");
    case HostStatus::too_many_iterations:
      raise(PyExc_OverflowError, "range");
    case HostStatus::ok:
      break;
  }
  return {extents, extents + loops};
}

nb::tuple host_ops() {
  nb::list names;
  for (const HostOpFacts& op : kHostOps) names.append(op.name);
  return nb::tuple(names);
}

}  // namespace

NB_MODULE(_core, module) {
  // Loaded kernels live as long as the process, so at its end there is nothing to warn about.
  nb::set_leak_warnings(false);
  module.doc() = "The compiled part of tack: kernels that can be called, and their launch.";
  module.attr("ABI") = TACK_ABI;
  module.attr("HOST_OPS") = host_ops();
  add_kernel_type(module);
  add_launchable(module);
  add_library(module);
  module.def("cpu_levels", &cpu_levels, "The CPU levels that this machine runs, the best last.");
  module.def("evaluate_host", &evaluate_host, nb::arg("host"), nb::arg("slots"), nb::arg("loops"),
             "Runs a host program on its own: the extents of the loops. For tests.");
}

}  // namespace tack
