#include "deploy/pending.h"

#include <utility>

namespace freshet::deploy {

// The nodes of both containers and their strings' own memory, about.
std::uint64_t Pending::BytesOf(const Rows::value_type& row) {
  constexpr std::uint64_t kBeside = 256;
  return kBeside + row.first.first.size() + row.first.second.size() + row.second.packed.size();
}

void Pending::Count(const Rows::value_type& row, Owner& owner) {
  const std::uint64_t bytes = BytesOf(row);
  owner.bytes += bytes;
  bytes_ += bytes;
}

void Pending::Uncount(const Rows::value_type& row, Owner& owner) {
  const std::uint64_t bytes = BytesOf(row);
  owner.bytes -= bytes;
  bytes_ -= bytes;
}

void Pending::Add(std::string owner_name, std::string id, std::int64_t time, std::string packed) {
  const auto [row, fresh] = rows_.try_emplace(Key(std::move(id), std::move(owner_name)));
  Owner& owner = owners_[row->first.second];
  if (fresh) {
    row->second.place = owner.rows.insert(owner.rows.end(), row);
    row->second.packed = std::move(packed);
  } else {
    Uncount(*row, owner);
    if (!row->second.packed.empty() || Expired(row->second, time)) row->second.packed = std::move(packed);
    owner.rows.splice(owner.rows.end(), owner.rows, row->second.place);
  }
  row->second.time = time;
  Count(*row, owner);
  while (Expired(owner.rows.front()->second, time)) Erase(owner.rows.front());  // never the one just added
  while (bytes_ > most_bytes_ && !rows_.empty()) DropOne(time);
}

const std::string* Pending::Find(const std::string& owner, const std::string& id, std::int64_t now) const {
  const auto found = rows_.find(Key(id, owner));
  if (found == rows_.end() || Expired(found->second, now) || found->second.packed.empty()) return nullptr;
  return &found->second.packed;
}

std::vector<std::string> Pending::OwnersOf(const std::string& id, std::int64_t now) const {
  std::vector<std::string> owners;
  for (auto row = rows_.lower_bound(Key(id, "")); row != rows_.end() && row->first.first == id; ++row)
    if (!Expired(row->second, now)) owners.push_back(row->first.second);
  return owners;
}

void Pending::Answer(const std::string& owner, const std::string& id) {
  const auto found = rows_.find(Key(id, owner));
  if (found == rows_.end()) return;
  Owner& of = owners_.at(owner);
  Uncount(*found, of);
  found->second.packed = {};
  Count(*found, of);
}

void Pending::Erase(Rows::iterator row) {
  const auto owner = owners_.find(row->first.second);
  Uncount(*row, owner->second);
  owner->second.rows.erase(row->second.place);
  if (owner->second.rows.empty()) owners_.erase(owner);
  rows_.erase(row);
}

// The oldest row of an owner whose oldest has expired; else of the one who holds most.
void Pending::DropOne(std::int64_t now) {
  auto most = owners_.begin();
  for (auto owner = owners_.begin(); owner != owners_.end(); ++owner) {
    if (Expired(owner->second.rows.front()->second, now)) return Erase(owner->second.rows.front());
    if (owner->second.bytes > most->second.bytes) most = owner;
  }
  Erase(most->second.rows.front());
}

}  // namespace freshet::deploy
