// The variants of one kernel. Calls read it without a lock and without counting references;
// insertions are serialized by a mutex and publish immutable records with release.
//
// Nothing that a reader may have seen is freed before the table itself: clear() sets records aside.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "arguments.h"
#include "launchable.h"

namespace tack {

class VariantTable {
 public:
  VariantTable();

  // The variant that answered last, or null. To be tried before find().
  const Launchable* last() const { return last_.load(std::memory_order_acquire); }

  // The next call may be for another kind of variant: last() is null until find() has an answer.
  void forget_last() { last_.store(nullptr, std::memory_order_release); }

  // The variant that takes these arguments, which are packed into `call`, or null.
  const Launchable* find(PyObject* const* arguments, std::size_t count, PackedCall& call);

  // Keeps a reference to `owner`, the Python object that holds `variant`.
  void insert(const Launchable& variant, nb::object owner);

  void clear();

  int traverse(visitproc visit, void* arg) const;
  void drop_references();  // for the garbage collector; leaves the table empty

 private:
  // A variant in its bucket. Variants of one key follow each other, those with more pinned extents
  // first, older ones before newer ones.
  struct Node {
    const Launchable* variant;
    std::atomic<Node*> next{nullptr};
  };

  struct Buckets {
    explicit Buckets(std::size_t count) : mask(count - 1), heads(count) {}
    std::atomic<Node*>& head(std::uint64_t key) { return heads[key & mask]; }

    std::size_t mask;
    std::vector<std::atomic<Node*>> heads;
  };

  Buckets& make_buckets(std::size_t count);
  void link(Buckets& buckets, const Launchable& variant);

  std::atomic<const Launchable*> last_{nullptr};
  std::atomic<Buckets*> buckets_{nullptr};

  std::mutex mutex_;                              // guards all below
  std::vector<const Launchable*> variants_;       // those in use
  std::vector<std::unique_ptr<Buckets>> tables_;  // the one in use and its predecessors
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<nb::object> owners_;  // of every variant ever inserted
};

}  // namespace tack
