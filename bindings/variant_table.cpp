#include "variant_table.h"

namespace tack {
namespace {

constexpr std::size_t kFewBuckets = 4;
constexpr std::size_t kVariantsPerBucket = 2;

}  // namespace

VariantTable::VariantTable() { buckets_.store(&make_buckets(kFewBuckets)); }

const Launchable* VariantTable::find(PyObject* const* arguments, std::size_t count,
                                     PackedCall& call) {
  const std::uint64_t key = hash_of(arguments, count);
  Buckets& buckets = *buckets_.load(std::memory_order_acquire);
  const Launchable* preferred = nullptr;  // the first of this key
  for (const Node* node = buckets.head(key).load(std::memory_order_acquire); node != nullptr;
       node = node->next.load(std::memory_order_acquire)) {
    const Launchable& variant = *node->variant;
    if (variant.key() != key || variant.size() != count) continue;
    if (preferred == nullptr) preferred = &variant;
    if (!pack(variant, arguments, call)) continue;
    // A variant that a more specific one precedes is not remembered: the next call might be for
    // the other.
    if (variant.pins().size() == preferred->pins().size())
      last_.store(&variant, std::memory_order_release);
    return &variant;
  }
  return nullptr;
}

void VariantTable::insert(const Launchable& variant, nb::object owner) {
  const std::lock_guard<std::mutex> lock(mutex_);
  owners_.push_back(std::move(owner));
  variants_.push_back(&variant);
  Buckets& current = *buckets_.load(std::memory_order_relaxed);
  if (variants_.size() > kVariantsPerBucket * (current.mask + 1)) {
    Buckets& larger = make_buckets(2 * (current.mask + 1));
    for (const Launchable* each : variants_) link(larger, *each);
    buckets_.store(&larger, std::memory_order_release);
  } else {
    link(current, variant);
  }
  last_.store(nullptr, std::memory_order_release);  // the new one may be more specific
}

VariantTable::Buckets& VariantTable::make_buckets(std::size_t count) {
  tables_.push_back(std::make_unique<Buckets>(count));
  return *tables_.back();
}

void VariantTable::link(Buckets& buckets, const Launchable& variant) {
  nodes_.push_back(std::make_unique<Node>());
  Node& node = *nodes_.back();
  node.variant = &variant;
  std::atomic<Node*>* place = &buckets.head(variant.key());
  Node* next = place->load(std::memory_order_relaxed);
  while (next != nullptr && next->variant->pins().size() >= variant.pins().size()) {
    place = &next->next;
    next = place->load(std::memory_order_relaxed);
  }
  node.next.store(next, std::memory_order_relaxed);
  place->store(&node, std::memory_order_release);
}

void VariantTable::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  variants_.clear();
  buckets_.store(&make_buckets(kFewBuckets), std::memory_order_release);
  last_.store(nullptr, std::memory_order_release);
}

int VariantTable::traverse(visitproc visit, void* arg) const {
  for (const nb::object& owner : owners_) Py_VISIT(owner.ptr());
  return 0;
}

void VariantTable::drop_references() {
  clear();
  std::vector<nb::object> owners;  // destroyed last: their destructors may run anything
  owners.swap(owners_);
}

}  // namespace tack
