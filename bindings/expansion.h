// Taking template arguments apart: from the arguments of a call to one value for each parameter of
// a variant, by a plan that was learned from objects like these.
//
// A plan fits objects of the same class, with the same attribute names, numbers of the class and
// functions. Matching it reads type pointers, instance dictionaries and slots; it runs no Python
// code, raises nothing, and gives borrowed references. The GIL is held throughout.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "parse.h"

namespace tack {

class TemplateNode;

// What is done with one attribute of an object.
struct TemplateEntry {
  enum class Action : std::uint8_t { skip, value, same, child, unset };

  nb::object key;  // its name; a slot has none, for its descriptor would keep the class
  Action action = Action::skip;
  bool is_public = false;
  std::uint16_t flat = 0;  // value: where it goes
  Py_ssize_t offset = 0;   // of a slot, in the object; -1 for what the class holds
  nb::object expected;     // same: what it must be
  std::unique_ptr<TemplateNode> child;
};

// One object: its class, what the plan expects of the class, and its attributes.
class TemplateNode {
 public:
  TemplateNode(nb::handle row, std::size_t count);

  // Whether `object` is as expected; fills in the values that it has.
  bool match(PyObject* object, PyObject** flat);

  bool is_alive() const;  // whether its class and those below are
  void collect(std::vector<std::uint16_t>& flat) const;
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Check {
    nb::object name;
    nb::object expected;     // null where the class must not have it, or has a slot
    Py_ssize_t offset = -1;  // of the slot
  };

  bool has_same_class(PyTypeObject* type);
  bool match_slots(PyObject* object, PyObject** flat) const;
  bool match_dict(PyObject* dict, PyObject** flat) const;
  bool match_unordered(PyObject* dict, PyObject** flat) const;
  static bool take(const TemplateEntry& entry, PyObject* value, PyObject** flat);
  TemplateEntry entry_of(nb::handle row, std::size_t count, bool is_slot) const;

  nb::object type_;  // a weak reference
  unsigned int version_ = 0;
  bool has_dict_ = false;
  Py_ssize_t public_count_ = 0;
  std::vector<Check> checks_;
  std::vector<TemplateEntry> entries_;  // of the dictionary, in its order
  std::vector<TemplateEntry> slots_;    // and what the class holds
};

// The plan of a whole call.
class Expansion {
 public:
  // `arguments` has an entry for each argument: the index of the value that it is, or a node.
  // Raises ValueError unless each of the `count` values is set by exactly one of them.
  Expansion(nb::handle arguments, std::size_t count);

  std::size_t size() const { return count_; }  // values
  std::size_t arguments() const { return arguments_.size(); }
  // The argument that value `flat` is, or -1 if it is an attribute.
  int argument_of(std::size_t flat) const { return sources_[flat]; }

  // Whether the arguments fit; fills flat[0 .. size()-1].
  bool expand(PyObject* const* arguments, PyObject** flat) const;

  bool is_alive() const;
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Argument {
    std::uint16_t flat = 0;
    std::unique_ptr<TemplateNode> node;  // null for an argument that is passed as it is
  };

  std::size_t count_;
  std::vector<Argument> arguments_;
  std::vector<int> sources_;
};

}  // namespace tack
