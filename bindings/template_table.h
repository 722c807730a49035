// The variants of one kernel that take templates, each with a plan that takes its arguments apart.
//
// The GIL guards it. A variant that is removed while a call runs it lives until that call is over.
#pragma once

#include <Python.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "arguments.h"
#include "expansion.h"
#include "launchable.h"

namespace tack {

struct TemplatedVariant {
  TemplatedVariant(const Launchable& variant_, nb::object owner_, nb::handle arguments)
      : variant(variant_), owner(std::move(owner_)), expansion(arguments, variant_.size()) {}

  const Launchable& variant;
  nb::object owner;  // the Python object that holds the variant
  const Expansion expansion;
  std::size_t users = 0;  // calls that are under way
  bool is_dropped = false;
};

// Keeps a variant, and the values of a call of it, for as long as the call may run Python code or
// be without the GIL.
class HeldCall {
 public:
  HeldCall(TemplatedVariant& entry, PyObject* const* flat);
  ~HeldCall();
  HeldCall(const HeldCall&) = delete;
  HeldCall& operator=(const HeldCall&) = delete;

 private:
  TemplatedVariant& entry_;
  PyObject* values_[kMaxParameters];
};

class TemplateTable {
 public:
  // The variant that answered last, or null.
  TemplatedVariant* last() const { return last_; }
  bool is_empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  TemplatedVariant& operator[](std::size_t index) { return *entries_[index]; }

  // Variants with more pinned extents come first, older ones before newer ones.
  TemplatedVariant& insert(std::unique_ptr<TemplatedVariant> entry);
  // To be tried first from now on, unless a more specific one precedes it.
  void remember(TemplatedVariant& entry);

  void retire();  // drops the variants of classes that were collected
  void clear();
  int traverse(visitproc visit, void* arg) const;

 private:
  void drop(std::size_t begin);  // the entries from there on
  void sweep();

  TemplatedVariant* last_ = nullptr;
  std::vector<std::unique_ptr<TemplatedVariant>> entries_;
  std::vector<std::unique_ptr<TemplatedVariant>> dropped_;  // those in use
};

}  // namespace tack
