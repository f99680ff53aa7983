#ifndef GRADSMITH_CORE_LRU_MAP_H_
#define GRADSMITH_CORE_LRU_MAP_H_

#include <cstddef>
#include <list>
#include <unordered_map>
#include <utility>

namespace gradsmith::internal {

/// LruMap holds at most `capacity` values; the one that was not used for longest makes room.
template <typename Key, typename Value, typename Hash>
class LruMap {
 public:
  explicit LruMap(std::size_t capacity) : capacity_(capacity) {}

  /// Find returns the value, or null; it counts as a use.
  Value* Find(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) {
      return nullptr;
    }
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  Value& Insert(const Key& key, Value value) {
    if (Value* there = Find(key); there != nullptr) {
      *there = std::move(value);
      return *there;
    }
    // Apart first: where there is no memory for both, neither is there.
    std::list<std::pair<Key, Value>> entry;
    entry.emplace_front(key, std::move(value));
    places_.emplace(key, entry.begin());
    entries_.splice(entries_.begin(), entry);
    if (entries_.size() > capacity_) {
      places_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return entries_.front().second;
  }

  void Erase(const Key& key) {
    if (const auto found = places_.find(key); found != places_.end()) {
      entries_.erase(found->second);
      places_.erase(found);
    }
  }

  void Clear() {
    places_.clear();
    entries_.clear();
  }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

  /// All entries, the last used first.
  [[nodiscard]] const std::list<std::pair<Key, Value>>& entries() const { return entries_; }

 private:
  std::size_t capacity_;
  std::list<std::pair<Key, Value>> entries_;
  std::unordered_map<Key, typename std::list<std::pair<Key, Value>>::iterator, Hash> places_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_LRU_MAP_H_
