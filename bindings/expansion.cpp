#include "expansion.h"

#include <structmember.h>

#include <cstring>
#include <string_view>

namespace tack {
namespace {

using Action = TemplateEntry::Action;

constexpr const char* kWhere = "the expansion";

PyObject* referent(const nb::object& reference) {
  return reinterpret_cast<PyWeakReference*>(reference.ptr())->wr_object;
}

// The version of a type's attributes; 0 if it has none at present.
unsigned int version_of(const PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030C0000
  if ((type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) == 0) return 0;
#endif
  return type->tp_version_tag;
}

// The place in an object of a slot; -1 for what is no slot.
Py_ssize_t offset_of(PyObject* descriptor) {
  if (Py_TYPE(descriptor) != &PyMemberDescr_Type) return -1;
  const PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member;
  return member->type == T_OBJECT_EX ? member->offset : -1;
}

bool same_bits(double left, double right) { return std::memcmp(&left, &right, sizeof left) == 0; }

// Whether a value is the same to a kernel: the same object, or a number of the same type and bits.
bool is_same(PyObject* value, PyObject* expected) {
  if (value == expected) return true;
  if (PyFloat_CheckExact(value) && PyFloat_CheckExact(expected)) {
    return same_bits(PyFloat_AS_DOUBLE(value), PyFloat_AS_DOUBLE(expected));
  }
  if (PyLong_CheckExact(value) && PyLong_CheckExact(expected)) {
    return PyObject_RichCompareBool(value, expected, Py_EQ) == 1;  // of ints: it cannot fail
  }
  return false;
}

Action action_named(std::string_view name) {
  if (name == "skip") return Action::skip;
  if (name == "value") return Action::value;
  if (name == "same") return Action::same;
  if (name == "child") return Action::child;
  if (name == "unset") return Action::unset;
  refuse(kWhere, "an attribute has an unknown action");
}

}  // namespace

TemplateNode::TemplateNode(nb::handle row, std::size_t count) {
  const Items parts(row, kWhere);  // class, checks, has a dictionary, entries, slots
  parts.expect_size(5);
  type_ = nb::borrow(parts[0]);
  if (!PyWeakref_CheckRef(type_.ptr())) refuse(kWhere, "a class is no weak reference");
  const Items checks(parts[1], kWhere);
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Items check(checks[i], kWhere);
    check.expect_size(2);
    check.text(0);
    const Items expected(check[1], kWhere);  // empty where the class must not have the name
    Check& made = checks_.emplace_back();
    made.name = nb::borrow(check[0]);
    if (expected.size() == 0) continue;
    made.offset = offset_of(expected[0].ptr());
    if (made.offset < 0) made.expected = nb::borrow(expected[0]);
  }
  has_dict_ = parts.boolean(2);
  const Items entries(parts[3], kWhere);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries_.push_back(entry_of(entries[i], count, false));
    public_count_ += entries_.back().is_public ? 1 : 0;
  }
  const Items slots(parts[4], kWhere);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots_.push_back(entry_of(slots[i], count, true));
  }
}

TemplateEntry TemplateNode::entry_of(nb::handle row, std::size_t count, bool is_slot) const {
  const Items parts(row, kWhere);  // key, action, operand, whether kernels see it
  parts.expect_size(4);
  TemplateEntry entry;
  entry.key = nb::borrow(parts[0]);
  entry.action = action_named(parts.text(1));
  entry.is_public = parts.boolean(3);
  if (is_slot) {
    entry.offset = offset_of(entry.key.ptr());
    const bool is_of_class = PyUnicode_CheckExact(entry.key.ptr());
    if (entry.offset < 0 && !is_of_class) refuse(kWhere, "a slot is no slot");
    if (!is_of_class) entry.key.reset();
  } else if (entry.is_public && !PyUnicode_CheckExact(entry.key.ptr())) {
    refuse(kWhere, "a name is no text");
  }
  if (entry.action == Action::value) {
    entry.flat = static_cast<std::uint16_t>(parts.index(2, count));
  } else if (entry.action == Action::same) {
    entry.expected = nb::borrow(parts[2]);
  } else if (entry.action == Action::child) {
    entry.child = std::make_unique<TemplateNode>(parts[2], count);
  }
  return entry;
}

bool TemplateNode::match(PyObject* object, PyObject** flat) {
  PyTypeObject* type = Py_TYPE(object);
  if (referent(type_) != reinterpret_cast<PyObject*>(type)) return false;
  if ((version_ == 0 || version_of(type) != version_) && !has_same_class(type)) return false;
  if (!slots_.empty() && !match_slots(object, flat)) return false;
  if (!has_dict_) return true;
  PyObject* dict = PyObject_GenericGetDict(object, nullptr);
  if (dict == nullptr) {
    PyErr_Clear();
    return false;
  }
  const bool result = match_dict(dict, flat);
  Py_DECREF(dict);  // the object has it
  return result;
}

// Whether the class still has the numbers and functions that the plan was made for.
bool TemplateNode::has_same_class(PyTypeObject* type) {
  for (const Check& check : checks_) {
    PyObject* found = _PyType_Lookup(type, check.name.ptr());  // borrowed; runs no descriptor
    PyObject* expected = check.expected.ptr();
    if (check.offset >= 0) {
      if (found == nullptr || offset_of(found) != check.offset) return false;
      continue;
    }
    if (found == nullptr || expected == nullptr) {
      if (found != expected) return false;
    } else if (!is_same(found, expected)) {
      return false;
    }
  }
  version_ = version_of(type);
  return true;
}

bool TemplateNode::match_slots(PyObject* object, PyObject** flat) const {
  for (const TemplateEntry& entry : slots_) {
    PyObject* value =
        entry.offset < 0
            ? _PyType_Lookup(Py_TYPE(object), entry.key.ptr())  // borrowed; runs no descriptor
            : *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + entry.offset);
    if (value == nullptr ? entry.action != Action::unset : !take(entry, value, flat)) return false;
  }
  return true;
}

bool TemplateNode::match_dict(PyObject* dict, PyObject** flat) const {
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  std::size_t index = 0;
  while (PyDict_Next(dict, &position, &key, &value) != 0) {
    if (index == entries_.size() || entries_[index].key.ptr() != key) {
      return match_unordered(dict, flat);
    }
    if (!take(entries_[index], value, flat)) return false;
    ++index;
  }
  return index == entries_.size() || match_unordered(dict, flat);
}

// The attributes were set in another order, or others that kernels do not see come and go.
bool TemplateNode::match_unordered(PyObject* dict, PyObject** flat) const {
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t seen = 0;
  while (PyDict_Next(dict, &position, &key, &value) != 0) {
    if (!PyUnicode_CheckExact(key)) return false;
    if (PyUnicode_GET_LENGTH(key) == 0 || PyUnicode_READ_CHAR(key, 0) != '_') ++seen;
  }
  if (seen != public_count_) return false;
  for (const TemplateEntry& entry : entries_) {
    if (!entry.is_public) continue;
    value = PyDict_GetItemWithError(dict, entry.key.ptr());  // of texts: it cannot fail
    if (value == nullptr || !take(entry, value, flat)) return false;
  }
  return true;
}

bool TemplateNode::take(const TemplateEntry& entry, PyObject* value, PyObject** flat) {
  switch (entry.action) {
    case Action::value:
      flat[entry.flat] = value;
      return true;
    case Action::same:
      return is_same(value, entry.expected.ptr());
    case Action::child:
      return entry.child->match(value, flat);
    case Action::skip:
      return true;
    case Action::unset:
      return false;
  }
  return false;
}

bool TemplateNode::is_alive() const {
  if (referent(type_) == Py_None) return false;
  for (const auto* entries : {&entries_, &slots_}) {
    for (const TemplateEntry& entry : *entries) {
      if (entry.child != nullptr && !entry.child->is_alive()) return false;
    }
  }
  return true;
}

void TemplateNode::collect(std::vector<std::uint16_t>& flat) const {
  for (const auto* entries : {&entries_, &slots_}) {
    for (const TemplateEntry& entry : *entries) {
      if (entry.action == Action::value) flat.push_back(entry.flat);
      if (entry.child != nullptr) entry.child->collect(flat);
    }
  }
}

int TemplateNode::traverse(visitproc visit, void* arg) const {
  Py_VISIT(type_.ptr());
  for (const Check& check : checks_) Py_VISIT(check.expected.ptr());
  for (const auto* entries : {&entries_, &slots_}) {
    for (const TemplateEntry& entry : *entries) {
      Py_VISIT(entry.key.ptr());
      Py_VISIT(entry.expected.ptr());
      if (entry.child != nullptr) {
        if (const int result = entry.child->traverse(visit, arg)) return result;
      }
    }
  }
  return 0;
}

Expansion::Expansion(nb::handle arguments, std::size_t count) : count_(count) {
  const Items rows(arguments, kWhere);
  std::vector<int> times(count);
  sources_.assign(count, -1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Argument argument;
    std::vector<std::uint16_t> filled;
    if (PyLong_CheckExact(rows[i].ptr())) {
      argument.flat = static_cast<std::uint16_t>(rows.index(i, count));
      sources_[argument.flat] = static_cast<int>(i);
      filled.push_back(argument.flat);
    } else {
      argument.node = std::make_unique<TemplateNode>(rows[i], count);
      argument.node->collect(filled);
    }
    for (const std::uint16_t flat : filled) ++times[flat];
    arguments_.push_back(std::move(argument));
  }
  for (const int each : times) {
    if (each != 1) refuse(kWhere, "a parameter has no value, or two");
  }
}

bool Expansion::expand(PyObject* const* arguments, PyObject** flat) const {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& argument = arguments_[i];
    if (argument.node == nullptr) {
      flat[argument.flat] = arguments[i];
    } else if (!argument.node->match(arguments[i], flat)) {
      return false;
    }
  }
  return true;
}

bool Expansion::is_alive() const {
  for (const Argument& argument : arguments_) {
    if (argument.node != nullptr && !argument.node->is_alive()) return false;
  }
  return true;
}

int Expansion::traverse(visitproc visit, void* arg) const {
  for (const Argument& argument : arguments_) {
    if (argument.node == nullptr) continue;
    if (const int result = argument.node->traverse(visit, arg)) return result;
  }
  return 0;
}

}  // namespace tack
