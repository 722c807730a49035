#include "template_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tack {
namespace {

constexpr std::size_t kMostPlans = 256;  // objects of ever new attributes must not fill the memory

}  // namespace

HeldCall::HeldCall(TemplatedVariant& entry, PyObject* const* flat) : entry_(entry) {
  ++entry_.users;
  for (std::size_t i = 0; i < entry_.variant.size(); ++i) values_[i] = Py_NewRef(flat[i]);
}

HeldCall::~HeldCall() {
  const std::size_t count = entry_.variant.size();
  --entry_.users;  // the last use of it: what follows may run anything
  for (std::size_t i = 0; i < count; ++i) Py_DECREF(values_[i]);
}

TemplatedVariant& TemplateTable::insert(std::unique_ptr<TemplatedVariant> entry) {
  retire();
  if (entries_.size() >= kMostPlans) drop(kMostPlans / 2);
  const std::size_t pins = entry->variant.pins().size();
  const auto place = std::find_if(entries_.begin(), entries_.end(), [pins](const auto& each) {
    return each->variant.pins().size() < pins;
  });
  last_ = nullptr;
  return **entries_.insert(place, std::move(entry));
}

void TemplateTable::remember(TemplatedVariant& entry) {
  if (entry.is_dropped) return;
  const bool is_first = entry.variant.pins().size() == entries_.front()->variant.pins().size();
  last_ = is_first ? &entry : nullptr;
}

void TemplateTable::retire() {
  const auto dead = std::stable_partition(entries_.begin(), entries_.end(), [](const auto& each) {
    return each->expansion.is_alive();
  });
  drop(static_cast<std::size_t>(std::distance(entries_.begin(), dead)));
}

void TemplateTable::clear() { drop(0); }

void TemplateTable::drop(std::size_t begin) {
  if (begin < entries_.size()) last_ = nullptr;
  for (std::size_t i = begin; i < entries_.size(); ++i) entries_[i]->is_dropped = true;
  std::move(entries_.begin() + static_cast<std::ptrdiff_t>(begin), entries_.end(),
            std::back_inserter(dropped_));
  entries_.resize(begin);
  sweep();
}

void TemplateTable::sweep() {
  std::vector<std::unique_ptr<TemplatedVariant>> unused;  // destroyed last: it may run anything
  const auto first = std::stable_partition(dropped_.begin(), dropped_.end(),
                                           [](const auto& each) { return each->users > 0; });
  std::move(first, dropped_.end(), std::back_inserter(unused));
  dropped_.erase(first, dropped_.end());
}

int TemplateTable::traverse(visitproc visit, void* arg) const {
  for (const auto* entries : {&entries_, &dropped_}) {
    for (const auto& entry : *entries) {
      Py_VISIT(entry->owner.ptr());
      if (const int result = entry->expansion.traverse(visit, arg)) return result;
    }
  }
  return 0;
}

}  // namespace tack
